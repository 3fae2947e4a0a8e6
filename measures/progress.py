"""How far the measures have read a share partition, so that the next run reads only the rest.

    records     1      2      3      4      5 | 6 new
    first incomplete offset
                100    100    105    105    105
                              ^ since, and read from

An interval of the first incomplete offset that still lasts is read again from its first record. Where there is none
(deleted, or no start offset yet) reading begins with the last record of the life before.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from measures import incomplete
from measures.histories import UNKNOWN
from measures.incomplete import Intervals
from measures.inputs import Inputs
from measures.places import Places
from measures.schemas import PROGRESS
from measures.stalls import intervals_of

Ints = npt.NDArray[np.int64]


def rows(inputs: Inputs) -> pa.Table:
    """PROGRESS rows of the share partitions at the cut."""
    intervals, earlier = intervals_of(inputs), inputs.earlier()
    return progress(intervals, PROGRESS.empty_table() if earlier is None else earlier)


def progress(intervals: Intervals, before: pa.Table) -> pa.Table:
    """PROGRESS rows of the places in `intervals`.

    `before`: the earlier PROGRESS rows of places whose `intervals` do not begin with their first record.
    """
    history, of_row = intervals.history, intervals.histories.place
    places, last = intervals.histories.lookup, intervals.histories.newest_rows
    here = of_row[last]
    earlier = _aligned(before, places)
    current, highest = _intervals(intervals, of_row, places.count)
    highest = np.maximum(highest, earlier["highest_earlier_offset"])
    since = current[:, 0]
    started = since >= 0
    writes = _writes(intervals, of_row, earlier["earlier_write_ms"])
    offset, time = intervals.records[:, incomplete.OFFSET], intervals.records[:, incomplete.TIME]
    rows = history.take(pa.array(last))
    gone = pc.equal(rows.column("record_type"), "tombstone")
    read_from = _last_of_earlier_life(intervals, of_row, last, here)
    at, started = np.maximum(since, 0)[here], started[here]
    read_from = np.where(started, offset[at], read_from)
    columns = {name: rows.column(name) for name in rows.column_names} | {
        "start_offset": pc.if_else(gone, pa.scalar(None, pa.int64()), rows.column("start_offset")),
        "first_incomplete_offset": _or_null(current[here, 1], started),
        "since_log_offset": _or_null(offset[at], started),
        "since_ms": _or_null(time[at], started),
        "highest_earlier_offset": _or_null(highest[here], highest[here] >= 0),
        "earlier_write_ms": _or_null(writes[at], started & (writes[at] >= 0)),
        "read_from_log_offset": _or_null(read_from, read_from >= 0),
    }
    names = [name for name in PROGRESS.names if name in columns]
    return pa.table({name: columns[name] for name in names}).cast(pa.schema([PROGRESS.field(name) for name in names]))


def _aligned(before: pa.Table, places: Places) -> dict[str, Ints]:
    """The columns of the earlier PROGRESS rows, one value for each place; -1: none."""
    at = places.of(before)
    before, at = before.filter(pa.array(at >= 0)), at[at >= 0]
    result = {}
    for name in ("highest_earlier_offset", "earlier_write_ms"):
        result[name] = np.full(places.count, UNKNOWN, np.int64)
        result[name][at] = pc.fill_null(before.column(name), UNKNOWN).to_numpy()
    return result


def _intervals(intervals: Intervals, of_row: Ints, count: int) -> tuple[Ints, Ints]:
    """For each place the first row and the offset of the interval that lasts (-1: none), and the highest one before."""
    rows = intervals.rows
    place = of_row[rows[:, incomplete.BEGIN]]
    lasts = rows[:, incomplete.END] < 0
    current = np.full((count, 2), UNKNOWN, np.int64)
    current[place[lasts]] = rows[lasts][:, [incomplete.BEGIN, incomplete.FIRST]]
    highest = np.full(count, UNKNOWN, np.int64)
    np.maximum.at(highest, place[~lasts], rows[~lasts, incomplete.FIRST])
    return current, highest


def _writes(intervals: Intervals, of_row: Ints, earlier: Ints) -> Ints:
    """For each row of the history the log time of the last write of its place before it; -1: none."""
    records = intervals.records
    written = np.where(records[:, incomplete.IS_WRITE] > 0, np.arange(len(records)), UNKNOWN)
    newest = np.maximum.accumulate(written) if len(written) else written
    before = np.append(UNKNOWN, newest[:-1])[: len(newest)]
    begins = np.flatnonzero(np.diff(of_row, prepend=-1))
    first = np.repeat(begins, np.diff(np.append(begins, len(of_row)))) if len(begins) else begins
    inside = before >= first
    return np.where(inside, records[np.maximum(before, 0), incomplete.TIME], earlier[of_row])


def _last_of_earlier_life(intervals: Intervals, of_row: Ints, last: Ints, here: Ints) -> Ints:
    """For each place that has rows the log offset of the last record of the life before the one at its end; -1: none.

    A tombstone belongs to no life: at a tombstone, the life before is the one that it ended.
    """
    offset, life = intervals.records[:, incomplete.OFFSET], intervals.records[:, incomplete.LIFE]
    at_end = np.full(int(of_row.max(initial=-1)) + 1, UNKNOWN, np.int64)
    at_end[here] = life[last]
    other = (life >= 0) & (life != at_end[of_row])
    rows = np.where(other, np.arange(len(life)), UNKNOWN)
    newest = np.full(len(at_end), UNKNOWN, np.int64)
    np.maximum.at(newest, of_row, rows)
    return np.where(newest[here] >= 0, offset[np.maximum(newest[here], 0)], UNKNOWN)


def _or_null(values: Ints, valid: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, pa.int64(), mask=~valid)
