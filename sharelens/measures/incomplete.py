"""The first incomplete offset of a share partition over time: the first at or above the start offset that isn't done.

    logged   start 100 |  ACKNOWLEDGED 100-104  | 105 AVAILABLE/2 |  ACKNOWLEDGED 106-199  |
                                                  ^ first incomplete offset; 94 finished behind it

The logged start offset trails the broker's by a write, and stays behind when a group comes to rest (share-partition
§8), so progress is judged on this offset. Three kinds of holes between logged ranges are no record that waits: offsets
absent from the topic, which the broker skips; records of aborted transactions, which it archives in memory for a group
that reads committed records and never logs; and control records that it counts as complete although no range says so.
The last two are passed when the group is known to read committed records (aborted only), or when the logged delivery
complete count is larger than the ranges account for, by at least as much.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.headers import ABORTED, ABSENT, REASONS, spans_of
from sharelens.measures.histories import (
    RANGE_COUNT,
    RANGE_FIRST,
    RANGE_FROM,
    RANGE_LAST,
    RANGE_STATE,
    RANGE_TO,
    UNKNOWN,
    Histories,
)
from sharelens.measures.places import Places
from sharelens.measures.searching import position
from sharelens.measures.topics import TopicPartition, topic_partitions
from state_model.columnar.kernels import kernel, leaf
from state_model.columnar.ranges import grown

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
ACKNOWLEDGED_STATE, ARCHIVED_STATE = 2, 4
ABSENT_CODE, ABORTED_CODE = REASONS.index(ABSENT), REASONS.index(ABORTED)
# Columns of an interval, as the kernel writes them.
(
    BEGIN, LATEST, END, FIRST, LAST, STATE, COUNT, BEHIND, TOP, THROTTLED, WRITTEN, SHOWN, SINCE, SINCE_MS,
    WRITTEN_BEFORE,
) = range(15)  # fmt: skip
WIDTH = 15
# What is known of a place before its first row.
(PAST_SINCE, PAST_SINCE_MS, PAST_SHOWN, PAST_WRITTEN_BEFORE, PAST_WRITTEN) = range(5)
PAST_COLUMNS = ["since_log_offset", "since_ms", "shown_ms", "earlier_write_ms", "last_write_ms"]
"""The columns of PROGRESS rows with these values."""
# Columns of a record.
(OFFSET, TIME, START, COMPLETE, LIFE, IS_WRITE, READS_COMMITTED, SLOWED_FROM) = range(8)


@leaf
def _passed(holes: np.ndarray, first: int, last: int, aborted_too: bool, budget: int) -> tuple[int, int]:
    """The first offset from `first` to `last` that isn't passed (`last` + 1: all are), and the budget left."""
    at = np.searchsorted(holes[:, 1], first)
    end = holes.shape[0]
    while first <= last and at < end and holes[at, 0] <= first:
        until = min(holes[at, 1], last)
        free = holes[at, 2] == ABSENT_CODE or (holes[at, 2] == ABORTED_CODE and aborted_too)
        if not free:
            if until - first + 1 > budget:
                return first, budget
            budget -= until - first + 1
        first = until + 1
        at += 1
    return first, budget


@leaf
def _tail(holes: np.ndarray, first: int, aborted_too: bool) -> int:
    """The first offset from `first` on that may wait: beyond all that was logged, control records never do."""
    at = np.searchsorted(holes[:, 1], first)
    while at < holes.shape[0] and holes[at, 0] <= first and (holes[at, 2] != ABORTED_CODE or aborted_too):
        first = holes[at, 1] + 1
        at += 1
    return first


@leaf
def _is_done(ranges: np.ndarray, row: int) -> bool:
    return ranges[row, RANGE_STATE] in (ACKNOWLEDGED_STATE, ARCHIVED_STATE)


@leaf
def _offsets(ranges: np.ndarray, row: int, start: int) -> int:
    """The number of offsets of a range at or above `start`."""
    return int(max(0, ranges[row, RANGE_LAST] - max(ranges[row, RANGE_FIRST], start) + 1))


@leaf
def _find(
    active: np.ndarray, count: int, ranges: np.ndarray, start: int, complete: int, holes: np.ndarray,
    aborted_too: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """Writes FIRST, LAST, STATE, COUNT and TOP of an interval's row from the active ranges at or above `start`."""
    budget = complete
    for i in range(count):
        budget -= _offsets(ranges, active[i], start) if _is_done(ranges, active[i]) else 0
    out[FIRST : TOP + 1] = UNKNOWN
    out[TOP] = ranges[active[count - 1], RANGE_LAST] if count > 0 else UNKNOWN
    at = start
    for i in range(count):
        first, last = ranges[active[i], RANGE_FIRST], ranges[active[i], RANGE_LAST]
        if last < at:
            continue
        if first > at:
            at, budget = _passed(holes, at, first - 1, aborted_too, budget)
        out[FIRST] = at
        if at < first:
            out[LAST] = first - 1
            return
        if not _is_done(ranges, active[i]):
            out[LAST] = last
            out[STATE] = ranges[active[i], RANGE_STATE]
            out[COUNT] = ranges[active[i], RANGE_COUNT]
            return
        at = last + 1
    out[FIRST] = _tail(holes, at, aborted_too)


@leaf
def _sum_up(active: np.ndarray, count: int, ranges: np.ndarray, threshold: int, out: np.ndarray) -> None:
    """Writes BEHIND and THROTTLED of an interval's row, whose FIRST is known."""
    behind, slowed = 0, 0
    for i in range(count):
        if _is_done(ranges, active[i]):
            behind += _offsets(ranges, active[i], out[FIRST])
        elif ranges[active[i], RANGE_COUNT] >= threshold:
            slowed += _offsets(ranges, active[i], out[FIRST])
    out[BEHIND] = behind
    out[THROTTLED] = slowed if threshold > 0 else UNKNOWN


@leaf
def _refill(
    active: np.ndarray, count: int, alive: np.ndarray, opened: np.ndarray, ranges: np.ndarray, spare: np.ndarray
) -> int:
    """Merges what is still alive of `active` with the ranges that were opened, by first offset, into `spare`."""
    length, at, new = 0, 0, 0
    while at < count or new < opened.shape[0]:
        if at < count and not alive[active[at]]:
            at += 1
        elif new < opened.shape[0] and not alive[opened[new]]:
            new += 1
        elif at < count and (
            new >= opened.shape[0] or ranges[active[at], RANGE_FIRST] <= ranges[opened[new], RANGE_FIRST]
        ):
            spare[length] = active[at]
            length += 1
            at += 1
        else:
            spare[length] = opened[new]
            length += 1
            new += 1
    return length


@kernel
def _by_record(values: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of `values` by the first record at or behind them, and where each record's begin.

    Values below 0, and those behind the last record, belong to none.
    """
    begins, at, near = np.zeros(offsets.shape[0] + 2, np.int64), np.empty(values.shape[0], np.int64), 0
    for i in range(values.shape[0]):
        if values[i] < 0:
            at[i] = offsets.shape[0]
        else:
            near = position(offsets, values[i], near)
            at[i] = near
        begins[at[i] + 1] += 1
    for record in range(offsets.shape[0] + 1):
        begins[record + 1] += begins[record]
    rows = np.empty(values.shape[0], np.int64)
    filled = begins.copy()
    for i in range(values.shape[0]):
        rows[filled[at[i]]] = i
        filled[at[i]] += 1
    return rows, begins


@leaf
def _note(
    out: np.ndarray, current: int, interval_count: int, row: np.ndarray, records: np.ndarray, record: int,
    first_record: int, past: np.ndarray, written_before: int,
) -> int:  # fmt: skip
    """Extends the current interval, or ends it and begins the one at `interval_count`; returns the current interval."""
    same = (
        current >= 0
        and out[current, FIRST] == row[FIRST]
        and records[out[current, BEGIN] - first_record, LIFE] == records[record, LIFE]
    )
    if not same:
        if current >= 0:
            out[current, END] = first_record + record
        current = interval_count
        out[current, BEGIN] = first_record + record
        out[current, END] = UNKNOWN
        out[current, SHOWN] = UNKNOWN
        out[current, SINCE] = records[record, OFFSET]
        out[current, SINCE_MS] = records[record, TIME]
        out[current, WRITTEN_BEFORE] = written_before
        if record == 0 and past[PAST_SINCE] >= 0:
            out[current, SINCE] = past[PAST_SINCE]
            out[current, SINCE_MS] = past[PAST_SINCE_MS]
            out[current, SHOWN] = past[PAST_SHOWN]
            out[current, WRITTEN_BEFORE] = past[PAST_WRITTEN_BEFORE]
    for column in range(FIRST, THROTTLED + 1):
        out[current, column] = row[column]
    out[current, LATEST] = first_record + record
    if out[current, SHOWN] < 0 and row[TOP] >= row[FIRST]:
        out[current, SHOWN] = records[record, TIME]
    return current


@kernel
def _walk(
    records: np.ndarray, first_record: int, ranges: np.ndarray, holes: np.ndarray, past: np.ndarray, out: np.ndarray,
    interval_count: int,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Adds the intervals of one share partition to `out`, which holds `interval_count`; grown where needed.

    `ranges` that a record began come by first offset.
    """
    opening, open_begins = _by_record(ranges[:, RANGE_FROM], records[:, OFFSET])
    closing, close_begins = _by_record(ranges[:, RANGE_TO], records[:, OFFSET])
    at_first = opening[: open_begins[1]]  # begun by the first record, or by earlier ones in any order of offsets
    at_first[:] = at_first[np.argsort(ranges[at_first, RANGE_FIRST])]
    alive = np.ones(ranges.shape[0], np.bool_)
    active, spare = np.empty(ranges.shape[0], np.int64), np.empty(ranges.shape[0], np.int64)
    row = np.empty(WIDTH, np.int64)
    count, current, written = 0, -1, past[PAST_WRITTEN]
    for record in range(records.shape[0]):
        written_before = written
        closed = closing[close_begins[record] : close_begins[record + 1]]
        opened = opening[open_begins[record] : open_begins[record + 1]]
        for i in range(closed.shape[0]):
            alive[closed[i]] = False
        if closed.shape[0] > 0 or opened.shape[0] > 0:
            count = _refill(active, count, alive, opened, ranges, spare)
            active, spare = spare, active
        if records[record, IS_WRITE]:
            written = records[record, TIME]
        if records[record, START] < 0 or records[record, LIFE] < 0:
            if current >= 0:
                out[current, END] = first_record + record
            current = -1
            continue
        start, complete = records[record, START], records[record, COMPLETE]
        _find(active, count, ranges, start, complete, holes, records[record, READS_COMMITTED] > 0, row)
        _sum_up(active, count, ranges, records[record, SLOWED_FROM], row)
        out = grown(out, interval_count + 1)
        current = _note(out, current, interval_count, row, records, record, first_record, past, written_before)
        interval_count = max(interval_count, current + 1)
        out[current, WRITTEN] = written
    return out, interval_count


@kernel
def _walk_all(
    records: np.ndarray, record_begins: np.ndarray, ranges: np.ndarray, range_begins: np.ndarray, holes: np.ndarray,
    hole_spans: np.ndarray, past: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The intervals of all share partitions, one after the other."""
    out = np.empty((64, WIDTH), np.int64)
    interval_count = 0
    for place in range(record_begins.shape[0] - 1):
        begin = record_begins[place]
        out, interval_count = _walk(
            records[begin : record_begins[place + 1]],
            begin,
            ranges[range_begins[place] : range_begins[place + 1]],
            holes[hole_spans[place, 0] : hole_spans[place, 1]],
            past[place],
            out,
            interval_count,
        )
    return out[:interval_count]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How long each first incomplete offset stood: rows that point into the history of `histories`.

    `records`: that history as the kernel reads it (OFFSET to SLOWED_FROM).
    `rows` (int64, one row an interval, columns BEGIN to WRITTEN_BEFORE): BEGIN and LATEST are the first and the last
    record of the interval, END the record that ended it. FIRST to THROTTLED are as of LATEST: first and last incomplete
    offset, delivery state and count there, offsets finished behind it, the highest offset logged, offsets delivered so
    often that the broker slows down. WRITTEN: log time of the last write that was no cold snapshot. SHOWN: log time of
    the first record that spoke of the offset or of one behind it. SINCE, SINCE_MS: log offset and time of the first
    record, which lies before BEGIN where the history begins inside the interval. WRITTEN_BEFORE: log time of the last
    write before that record. -1: absent or unknown.
    """

    histories: Histories
    records: Ints
    rows: Ints

    @property
    def history(self) -> pa.Table:
        """The rows that `rows` points into."""
        return self.histories.history


def first_incomplete(
    histories: Histories,
    no_records: pa.Table,
    *,
    reads_committed: Flags | None = None,
    slowed_from: Ints | None = None,
    earlier: pa.Table | None = None,
) -> Intervals:
    """The intervals of all share partitions, by share partition and state partition, in log order.

    Args:
        histories: of whole share partitions.
        no_records: sharelens.measures.headers.NO_RECORD rows of their user partitions, as far as known.
        reads_committed: for each record of the history whether its group is known to have had
            share.isolation.level=read_committed then. None: of no record.
        slowed_from: for each record, the delivery count from which the broker slowed delivery down; 0: unknown.
        earlier: PROGRESS rows of share partitions whose rows begin later than their log.

    Of such a share partition the delivery history has the ranges that were part of the state from the first row on.
    The interval at its first row began there, or, if `since_log_offset` lies before it, at that record.
    """
    places, records = histories.lookup, records_of(histories.history)
    if reads_committed is not None:
        records[:, READS_COMMITTED] = reads_committed
    if slowed_from is not None:
        records[:, SLOWED_FROM] = slowed_from
    holes, hole_spans = _holes(no_records, places)
    rows = _walk_all(
        records,
        histories.begins,
        histories.ranges,
        histories.range_begins,
        holes,
        hole_spans,
        _past(earlier, histories, records),
    )
    return Intervals(histories=histories, records=records, rows=rows)


def _holes(no_records: pa.Table, places: Places) -> tuple[Ints, Ints]:
    """The ranges of offsets without records (first, last, place in REASONS), and the slice of each place."""
    spans = spans_of(no_records)
    at: dict[TopicPartition, tuple[int, int]] = {}
    parts = [np.empty((0, 3), np.int64)]
    end = 0
    for place, span in spans.items():
        parts.append(np.stack(span, axis=1).astype(np.int64))
        at[place] = (end, end + len(parts[-1]))
        end += len(parts[-1])
    if not at:
        return parts[0], np.zeros((places.count, 2), np.int64)
    of_place = [at.get(place, (0, 0)) for place in topic_partitions(places.keys)]
    return np.concatenate(parts), np.array(of_place, np.int64).reshape(-1, 2)


def _past(earlier: pa.Table | None, histories: Histories, records: Ints) -> Ints:
    """PAST_COLUMNS of each place: the interval at its first row, if it began before that row; -1: unknown.

    Of other places PAST_WRITTEN alone: log time of the last write before the first row.
    """
    past = np.full((histories.places.num_rows, len(PAST_COLUMNS)), UNKNOWN, np.int64)
    if earlier is None or earlier.num_rows == 0 or len(records) == 0:
        return past
    at = histories.lookup.of(earlier)
    values = [pc.fill_null(earlier.column(name), UNKNOWN).to_numpy() for name in PAST_COLUMNS]
    past[at[at >= 0]] = np.stack(values, axis=1)[at >= 0]
    first = records[np.minimum(histories.begins[:-1], len(records) - 1), OFFSET]
    begins = past[:, PAST_SINCE] >= first
    past[begins, PAST_WRITTEN] = past[begins, PAST_WRITTEN_BEFORE]
    past[begins, :PAST_WRITTEN] = UNKNOWN
    return past


def records_of(history: pa.Table) -> Ints:
    """SHARE_PARTITION_HISTORY rows as the kernel reads them, the columns of settings unknown (0).

    A cold snapshot repeats the state and is no write.
    """
    update = pc.equal(history.column("record_type"), "update")
    fresh = pc.and_(
        pc.equal(history.column("record_type"), "snapshot"),
        pc.equal(history.column("create_timestamp_ms"), history.column("write_timestamp_ms")),
    )
    gone = pc.equal(history.column("record_type"), "tombstone")
    columns = [
        history.column("log_offset"),
        history.column("log_time_ms"),
        pc.fill_null(history.column("start_offset"), UNKNOWN),
        pc.fill_null(history.column("delivery_complete_count"), UNKNOWN),
        pc.if_else(gone, UNKNOWN, pc.fill_null(history.column("life_log_offset"), 0)),
        pc.or_(update, pc.fill_null(fresh, False)),
    ]
    records = np.zeros((history.num_rows, SLOWED_FROM + 1), np.int64)
    for number, column in enumerate(columns):
        records[:, number] = pc.cast(column, pa.int64()).to_numpy()
    return records
