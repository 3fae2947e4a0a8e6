"""Long share partitions are measured in steps by log offset, each on from the one before: a task's memory has a bound.

    records of a share partition     0 .............. | ................ | ......... end
    step 1                           measured as if the log ended here
    step 2                           goes on from what step 1 left ----->|
    step 3                           goes on, to the end -------------------------->

A step leaves in the tables what a run leaves that has seen no more of the log. Share partitions that are not long are
measured in the last one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs.measure.bases import TEXTS, WHERE
from jobs.measure.reading import ABOVE_ALL, HISTORY
from lake.lake import Lake
from measures.settled import HOUR_MS
from state_model.columnar.keys import KEY

STEP_ROWS = 1 << 18
"""Records of a share partition that one step reads, about."""
SAMPLES = 128
"""Records of a step that it may end before, about."""
Ints = npt.NDArray[np.int64]


def steps(lake: Lake, run: int, before: int, touched: pa.Table) -> Iterator[pa.Table]:
    """What to measure (`jobs.measure.stage.touched_since` run `before`) in one step after the other.

    `upto`: the last log offset that is read of a share partition; ABOVE_ALL: all that there are. `before`: the run that
    it goes on from. `rows`: about how many records that are. All share partitions are in the last step.
    """
    long = np.flatnonzero(touched.column("rows").to_numpy() > STEP_ROWS)
    ends = {
        number: _ends(lake, place, before)
        for number, place in zip(long.tolist(), touched.take(pa.array(long)).to_pylist(), strict=True)
    }
    counts = np.ones(touched.num_rows, np.int64)
    counts[long] = [len(some) for some in ends.values()]
    for left in range(int(counts.max(initial=1)), 0, -1):
        here = np.flatnonzero(counts >= left)
        rows = touched.take(pa.array(here))
        begins = pa.array(counts[here] == left)
        columns = {name: rows.column(name) for name in (*WHERE, *KEY)} | {
            "whole": pc.and_(rows.column("whole"), begins),
            "rows": rows.column("rows").to_numpy() // counts[here],
            "upto": pa.array([ends[n][-left] if n in ends else ABOVE_ALL for n in here.tolist()], pa.int64()),
            "before": pc.if_else(begins, before, run),
        }
        yield pa.table(columns)


def in_one_step(touched: pa.Table, before: int) -> pa.Table:
    """The same as the only step."""
    columns = {"upto": pa.repeat(ABOVE_ALL, touched.num_rows), "before": pa.repeat(before, touched.num_rows)}
    return pa.table({name: touched.column(name) for name in touched.column_names} | columns)


def _ends(lake: Lake, place: Mapping[str, Any], before: int) -> list[int]:
    """The last log offset of each step of a long share partition, ABOVE_ALL for the last one.

    A step ends with an hour where it can: what is told by hour goes on from the beginning of one.
    """
    samples = [np.zeros((3, 0), np.int64), *_samples(lake, place, 0 if place["whole"] else before)]
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


def _samples(lake: Lake, place: Mapping[str, Any], before: int) -> Iterator[Ints]:
    """Some records that runs after `before` wrote: log offsets; for how many records each stands; log times."""
    groups = lake.snapshot(HISTORY).row_groups
    chosen = np.ones(groups.count, np.bool_)
    for name in TEXTS:
        chosen &= groups.may_hold(name, place[name])
    for name in ("state_partition", "partition"):
        bounds = groups.integers(name)
        chosen &= (bounds.low <= place[name]) & (place[name] <= bounds.high)
    chosen &= groups.integers("run_id").high > before
    here = pc.field("run_id") > before
    for name in (*WHERE, *KEY):
        here &= pc.field(name) == place[name]
    stride = max(1, STEP_ROWS // SAMPLES)
    for rows in groups.read(chosen, [*WHERE, *KEY, "log_offset", "log_time_ms", "run_id"]):
        mine = rows.filter(here).sort_by("log_offset")
        first = np.arange(0, mine.num_rows, stride)
        offsets, times = (mine.column(name).to_numpy()[first] for name in ("log_offset", "log_time_ms"))
        yield np.stack([offsets, np.diff(np.append(first, mine.num_rows)), times])
