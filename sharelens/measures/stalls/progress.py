"""How far the measures have read a share partition, so that the next run reads only the rest.

    records     1      2      3      4      5 | 6 new
    first incomplete offset
                100    100    105    105    105
                              ^ since       ^ read from

An interval of the first incomplete offset that still lasts goes on from the last record, with what is kept of its
records before. It is read again from its first record where new headers describe the offset or lower ones. Where
there is none (deleted, or no start offset yet) reading begins with the last record of the life before. Where the start
offset went away within a life, as no coordinator writes it, the share partition is measured whole.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.numbers import UNKNOWN
from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.places import Places
from sharelens.measures.schemas import PROGRESS
from sharelens.measures.stalls import incomplete
from sharelens.measures.stalls import incomplete_kernels as kernels
from sharelens.measures.stalls.incomplete import Intervals
from sharelens.measures.stalls.intervals import intervals_of
from state_model.columnar.codes import ABOVE_ALL, ints

Ints = npt.NDArray[np.int64]
KEPT_COLUMNS = dict(
    zip(
        incomplete.PAST_COLUMNS[:-1],
        (kernels.SINCE, kernels.SINCE_MS, kernels.SHOWN, kernels.WRITTEN_BEFORE),
        strict=True,
    )
)
"""What is kept of the interval that lasts: the columns of PROGRESS and of the interval."""


def goes_on(before: pa.Table, new_batches_from: Ints) -> npt.NDArray[np.bool_]:
    """Whether each share partition is measured on from its records; the others are measured whole.

    `before`: PROGRESS rows; `new_batches_from`: for each the lowest record offset that new batches of its user
    partition describe; ABOVE_ALL for none.
    """
    stands = ints(before, "since_log_offset") >= 0
    has_read_from = ints(before, "read_from_log_offset") >= 0
    settled: Ints = np.where(stands, ints(before, "highest_earlier_offset"), ABOVE_ALL - 1)
    return has_read_from & (new_batches_from > settled)


def reads_from(before: pa.Table, new_batches_from: Ints) -> Ints:
    """The log offset from which on each share partition that goes on needs its records; arguments as in `goes_on`.

    The last measured one, where new batches describe nothing up to the first incomplete offset that stands.
    """
    stands = ints(before, "since_log_offset") >= 0
    resumes = stands & (new_batches_from > ints(before, "first_incomplete_offset"))
    return np.where(resumes, ints(before, "log_offset"), ints(before, "read_from_log_offset"))


def rows(inputs: Inputs) -> pa.Table:
    """PROGRESS rows of the share partitions at the cut."""

    def computed() -> pa.Table:
        earlier = inputs.earlier()
        return progress(intervals_of(inputs), PROGRESS.empty_table() if earlier is None else earlier)

    return inputs.once("progress", computed)


def progress(intervals: Intervals, before: pa.Table) -> pa.Table:
    """PROGRESS rows of the places in `intervals`.

    `before`: the earlier PROGRESS rows of places whose `intervals` do not begin with their first record.
    """
    history, of_row = intervals.history, intervals.histories.place
    places, last = intervals.histories.lookup, intervals.histories.newest_rows
    present_places = of_row[last]
    current, highest = _intervals(intervals, of_row, places.count)
    highest = np.maximum(highest, _before(before, "highest_earlier_offset", places))
    written = np.maximum(_last_writes(intervals, of_row, places.count), _before(before, "last_write_ms", places))
    rows = history.take(pa.array(last))
    gone = pc.equal(rows.column("record_type"), "tombstone")
    at_end = _lives_at_end(intervals, of_row, last, present_places)
    since, current = current[present_places, kernels.SINCE], current[present_places]
    started = since >= 0
    had_start = _had_interval(intervals, of_row, at_end)[present_places]
    earlier = np.where(had_start, UNKNOWN, _last_of_earlier_life(intervals, of_row, at_end, present_places))
    read_from = np.where(started, since, earlier)
    columns = {name: rows.column(name) for name in rows.column_names} | {
        "start_offset": pc.if_else(gone, pa.scalar(None, pa.int64()), rows.column("start_offset")),
        "first_incomplete_offset": _or_null(current[:, kernels.FIRST], started),
        "highest_earlier_offset": _or_null(highest[present_places], highest[present_places] >= 0),
        "last_write_ms": _or_null(written[present_places], written[present_places] >= 0),
        **{
            name: _or_null(current[:, column], started & (current[:, column] >= 0))
            for name, column in KEPT_COLUMNS.items()
        },
        "read_from_log_offset": _or_null(read_from, read_from >= 0),
    }
    names = [name for name in PROGRESS.names if name in columns]
    return pa.table({name: columns[name] for name in names}).cast(pa.schema([PROGRESS.field(name) for name in names]))


def _before(before: pa.Table, name: str, places: Places) -> Ints:
    """A column of the earlier PROGRESS rows, one value for each place; -1: none."""
    return places.values(before, name, null=UNKNOWN, missing=UNKNOWN)


def _last_writes(intervals: Intervals, of_row: Ints, count: int) -> Ints:
    """For each place the log time of the last write in its history, which never falls; -1: none."""
    is_write = intervals.records[:, kernels.IS_WRITE] > 0
    result = np.full(count, UNKNOWN, np.int64)
    np.maximum.at(result, of_row[is_write], intervals.records[is_write, kernels.TIME])
    return result


def _intervals(intervals: Intervals, of_row: Ints, count: int) -> tuple[Ints, Ints]:
    """For each place the interval that lasts (-1: none), and the highest offset of those before."""
    rows = intervals.rows
    place = of_row[rows[:, kernels.BEGIN]]
    lasts = rows[:, kernels.END] < 0
    current = np.full((count, kernels.WIDTH), UNKNOWN, np.int64)
    current[place[lasts]] = rows[lasts]
    highest = np.full(count, UNKNOWN, np.int64)
    np.maximum.at(highest, place[~lasts], rows[~lasts, kernels.FIRST])
    return current, highest


def _lives_at_end(intervals: Intervals, of_row: Ints, last: Ints, present_places: Ints) -> Ints:
    """For each place the life of its last record; -1: none. A tombstone belongs to no life."""
    at_end = np.full(int(of_row.max(initial=-1)) + 1, UNKNOWN, np.int64)
    at_end[present_places] = intervals.records[last, kernels.LIFE]
    return at_end


def _had_interval(intervals: Intervals, of_row: Ints, at_end: Ints) -> npt.NDArray[np.bool_]:
    """Whether the life at the end of each place had a first incomplete offset."""
    begin = intervals.rows[:, kernels.BEGIN]
    place = of_row[begin]
    result = np.zeros(len(at_end), np.bool_)
    result[place[intervals.records[begin, kernels.LIFE] == at_end[place]]] = True
    return result


def _last_of_earlier_life(intervals: Intervals, of_row: Ints, at_end: Ints, present_places: Ints) -> Ints:
    """For each place that has rows the log offset of the last record of the life before the one at its end; -1: none.

    At a tombstone, the life before is the one that it ended.
    """
    offset, life = intervals.records[:, kernels.OFFSET], intervals.records[:, kernels.LIFE]
    other = (life >= 0) & (life != at_end[of_row])
    rows = np.where(other, np.arange(len(life)), UNKNOWN)
    newest = np.full(len(at_end), UNKNOWN, np.int64)
    np.maximum.at(newest, of_row, rows)
    return np.where(newest[present_places] >= 0, offset[np.maximum(newest[present_places], 0)], UNKNOWN)


def _or_null(values: Ints, valid: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, pa.int64(), mask=~valid)
