"""Steps over long share partitions by log offset, so that the memory of a task has a bound.

    records of a share partition     0 .............. | ................ | ......... end
    step 1                           measured as if the log ended here
    step 2                           goes on from what step 1 left ----->|
    step 3                           goes on, to the end -------------------------->

After a step the tables are those of a run over a log that ends there. Short share partitions are measured in the last
step.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs.measure.bases import WHERE
from jobs.measure.reading import HISTORY, LOG_TOPIC, Reader, StateTopic
from jobs.spark.executors import cores
from sharelens.lake.lake import Lake, LakeView
from sharelens.measures.histories.settled import HOUR_MS
from sharelens.measures.ranges.places import Places
from state_model.columnar.codes import ABOVE_ALL
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY
from state_model.threads import map_in_threads

STEP_ROWS = 1 << 18
"""About the number of records of a share partition that one step reads."""
SAMPLES = 128
"""About the number of records by which a step may be shorter."""
Ints = npt.NDArray[np.int64]


def steps(lake: Lake, run: int, before: int, touched: pa.Table) -> Iterator[pa.Table]:
    """The steps over touched share partitions (`jobs.measure.touched.touched_since` run `before`).

    `upto`: the last log offset that is read of a share partition; ABOVE_ALL: all. `before`: the run that
    it resumes from. `rows`: about the number of records. All share partitions are in the last step.
    """
    long = np.flatnonzero(touched.column("rows").to_numpy() > STEP_ROWS)
    view = lake.view()
    ends_of_long = map_in_threads(lambda number: _ends(view, touched.slice(number, 1), before), long.tolist(), cores())
    ends = dict(zip(long.tolist(), ends_of_long, strict=True))
    counts = np.ones(touched.num_rows, np.int64)
    counts[long] = [len(step_ends) for step_ends in ends.values()]
    for remaining_steps in range(int(counts.max(initial=1)), 0, -1):
        row_numbers = np.flatnonzero(counts >= remaining_steps)
        rows = touched.take(pa.array(row_numbers))
        begins = pa.array(counts[row_numbers] == remaining_steps)
        columns = {name: rows.column(name) for name in (*WHERE, *SHARE_PARTITION_KEY)} | {
            "whole": pc.and_(rows.column("whole"), begins),
            "rows": rows.column("rows").to_numpy() // counts[row_numbers],
            "upto": pa.array(
                [ends[n][-remaining_steps] if n in ends else ABOVE_ALL for n in row_numbers.tolist()], pa.int64()
            ),
            "before": pc.if_else(begins, before, run),
        }
        yield pa.table(columns)


def in_one_step(touched: pa.Table, before: int) -> pa.Table:
    """All touched share partitions as the only step."""
    columns = {"upto": pa.repeat(ABOVE_ALL, touched.num_rows), "before": pa.repeat(before, touched.num_rows)}
    return pa.table({name: touched.column(name) for name in touched.column_names} | columns)


def _ends(lake: LakeView, place: pa.Table, before: int) -> list[int]:
    """The last log offset of each step of a long share partition, of which `place` is the row; ABOVE_ALL at last.

    A step ends with an hour where it can, because contributions by hour resume at the beginning of an hour.
    """
    samples = [np.zeros((3, 0), np.int64), *_samples(lake, place, 0 if place.column("whole")[0].as_py() else before)]
    offsets, weights, times = np.concatenate(samples, axis=1)
    order = np.argsort(offsets)
    offsets, ends = offsets[order], np.cumsum(weights[order])
    new_hours = np.flatnonzero(np.diff(times[order] // HOUR_MS)) + 1
    result, begin, done = [], 0, 0
    while ends[-1] - done > STEP_ROWS:
        end = max(begin + 1, int(np.searchsorted(ends, done + STEP_ROWS, "right")))
        hours = new_hours[(new_hours > begin) & (new_hours <= end)]
        end = next((hour for hour in hours[::-1].tolist() if 2 * (ends[hour - 1] - done) >= STEP_ROWS), end)
        result.append(int(offsets[end]) - 1)
        begin, done = end, int(ends[end - 1])
    return [*result, ABOVE_ALL]


def _samples(lake: LakeView, place: pa.Table, before: int) -> Iterator[Ints]:
    """Some records that runs after `before` wrote: log offsets; for how many records each stands; log times."""
    topic = StateTopic(lake=lake, **place.select(LOG_TOPIC).to_pylist()[0])
    reader = Reader(topic, Places(keys=place.select(PLACE_KEY)), np.array([ABOVE_ALL]))
    stride = max(1, STEP_ROWS // SAMPLES)
    for rows in reader.parts(HISTORY, ["log_offset", "log_time_ms"], ("run_id", np.array([before + 1]))):
        ordered_rows = rows.sort_by("log_offset")
        first = np.arange(0, ordered_rows.num_rows, stride)
        offsets, times = (ordered_rows.column(name).to_numpy()[first] for name in ("log_offset", "log_time_ms"))
        yield np.stack([offsets, np.diff(np.append(first, ordered_rows.num_rows)), times])
