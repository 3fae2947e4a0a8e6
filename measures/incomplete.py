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

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from measures.headers import ABORTED, ABSENT, REASONS, spans_of
from state_model.columnar.kernels import kernel
from state_model.columnar.keys import KEY, number_keys

Ints = npt.NDArray[np.int64]
ACKNOWLEDGED_STATE, ARCHIVED_STATE = 2, 4
ABSENT_CODE, ABORTED_CODE = REASONS.index(ABSENT), REASONS.index(ABORTED)
UNKNOWN = -1
HISTORY_COLUMNS = [
    "state_partition",
    *KEY,
    "log_offset",
    "log_time_ms",
    "record_type",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
    "life_log_offset",
    "completeness",
    "completeness_reason",
]
DELIVERY_COLUMNS = [
    "state_partition",
    *KEY,
    "life_log_offset",
    "first_offset",
    "last_offset",
    "delivery_state",
    "delivery_state_name",
    "delivery_count",
    "valid_from_log_offset",
    "valid_from_ms",
    "valid_to_log_offset",
    "is_open",
]
"""What measures read of SHARE_PARTITION_HISTORY and DELIVERY_HISTORY."""
PLACE = ("state_partition", *KEY)

# Columns of an interval, as the kernel writes them.
(BEGIN, LATEST, END, FIRST, LAST, STATE, COUNT, BEHIND, TOP, THROTTLED, WRITTEN, SHOWN) = range(12)
WIDTH = 12
# Columns of a record.
(OFFSET, TIME, START, COMPLETE, LIFE, IS_WRITE) = range(6)
# Columns of a range.
(RANGE_FIRST, RANGE_LAST, RANGE_STATE, RANGE_COUNT, FROM, TO) = range(6)


@kernel
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


@kernel
def _tail(holes: np.ndarray, first: int, aborted_too: bool) -> int:
    """The first offset from `first` on that may wait: beyond all that was logged, control records never do."""
    at = np.searchsorted(holes[:, 1], first)
    while at < holes.shape[0] and holes[at, 0] <= first and (holes[at, 2] != ABORTED_CODE or aborted_too):
        first = holes[at, 1] + 1
        at += 1
    return first


@kernel
def _is_done(ranges: np.ndarray, row: int) -> bool:
    return ranges[row, RANGE_STATE] in (ACKNOWLEDGED_STATE, ARCHIVED_STATE)


@kernel
def _offsets(ranges: np.ndarray, row: int, start: int) -> int:
    """How many offsets of a range lie at or above `start`."""
    return int(max(0, ranges[row, RANGE_LAST] - max(ranges[row, RANGE_FIRST], start) + 1))


@kernel
def _find(
    active: np.ndarray, count: int, ranges: np.ndarray, start: int, complete: int, holes: np.ndarray,
    aborted_too: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """Writes FIRST, LAST, STATE, COUNT and TOP of an interval's row: what the active ranges say from `start` on."""
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


@kernel
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


@kernel
def _refill(
    active: np.ndarray, count: int, alive: np.ndarray, opened: int, opened_end: int, ranges: np.ndarray,
    spare: np.ndarray,
) -> int:  # fmt: skip
    """Merges what is still alive of `active` with the ranges that were opened, by first offset, into `spare`."""
    length = 0
    at = 0
    while at < count or opened < opened_end:
        if at < count and not alive[active[at]]:
            at += 1
        elif at < count and (opened >= opened_end or ranges[active[at], 0] <= ranges[opened, 0]):
            spare[length] = active[at]
            length += 1
            at += 1
        else:
            spare[length] = opened
            length += 1
            opened += 1
    return length


@kernel
def _opened_until(ranges: np.ndarray, opened: int, offset: int) -> int:
    """The first range from `opened` on that begins after the record."""
    while opened < ranges.shape[0] and ranges[opened, FROM] <= offset:
        opened += 1
    return opened


@kernel
def _closed_until(ranges: np.ndarray, closing: np.ndarray, closed: int, offset: int, alive: np.ndarray) -> int:
    """Takes the ranges that end by the record out of `alive`; the place in `closing` of the next one."""
    while closed < closing.shape[0] and ranges[closing[closed], TO] <= offset:
        alive[closing[closed]] = False
        closed += 1
    return closed


@kernel
def _note(out: np.ndarray, current: int, made: int, row: np.ndarray, records: np.ndarray, record: int) -> int:
    """Goes on with the current interval, or ends it and begins the one at `made`; the one that is current then."""
    same = (
        current >= 0
        and out[current, FIRST] == row[FIRST]
        and records[out[current, BEGIN], LIFE] == records[record, LIFE]
    )
    if not same:
        if current >= 0:
            out[current, END] = record
        current = made
        out[current, BEGIN] = record
        out[current, END] = UNKNOWN
        out[current, SHOWN] = UNKNOWN
    out[current, FIRST : THROTTLED + 1] = row[FIRST : THROTTLED + 1]
    out[current, LATEST] = record
    if out[current, SHOWN] < 0 and row[TOP] >= row[FIRST]:
        out[current, SHOWN] = records[record, TIME]
    return current


@kernel
def _walk(
    records: np.ndarray, ranges: np.ndarray, closing: np.ndarray, holes: np.ndarray, aborted_too: bool,
    threshold: int, out: np.ndarray,
) -> int:  # fmt: skip
    """The intervals of one share partition; how many there are.

    `ranges` by beginning, then first offset; `closing`: places in `ranges` of those that end, by end.
    """
    alive = np.ones(ranges.shape[0], np.bool_)
    active, spare = np.empty(ranges.shape[0], np.int64), np.empty(ranges.shape[0], np.int64)
    row = np.empty(WIDTH, np.int64)
    count, opened, closed, made, current = 0, 0, 0, 0, -1
    written = np.int64(UNKNOWN)
    for record in range(records.shape[0]):
        offset = records[record, OFFSET]
        closed_now = _closed_until(ranges, closing, closed, offset, alive)
        opened_now = _opened_until(ranges, opened, offset)
        if closed_now > closed or opened_now > opened:
            count = _refill(active, count, alive, opened, opened_now, ranges, spare)
            active, spare = spare, active
            closed, opened = closed_now, opened_now
        if records[record, IS_WRITE]:
            written = records[record, TIME]
        if records[record, START] < 0 or records[record, LIFE] < 0:
            if current >= 0:
                out[current, END] = record
            current = -1
            continue
        complete = records[record, COMPLETE]
        _find(active, count, ranges, records[record, START], complete, holes, aborted_too, row)
        _sum_up(active, count, ranges, threshold, row)
        current = _note(out, current, made, row, records, record)
        made = max(made, current + 1)
        out[current, WRITTEN] = written
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How long each first incomplete offset stood: `history` by share partition, and rows that point into it.

    `rows` (int64, one row an interval, columns BEGIN to SHOWN): BEGIN and LATEST are the first and the last record of
    the interval, END the record that ended it. FIRST to THROTTLED are as of LATEST: first and last incomplete offset,
    delivery state and count there, offsets finished behind it, the highest offset logged, offsets delivered so often
    that the broker slows down. WRITTEN: log time of the last write that was no cold snapshot. SHOWN: log time of the
    first record that spoke of the offset or of one behind it. -1 stands for what is not there or not known.
    """

    history: pa.Table
    rows: Ints


def first_incomplete(
    history: pa.Table,
    deliveries: pa.Table,
    no_records: pa.Table,
    *,
    reads_committed: frozenset[str] = frozenset(),
    slowed_from: Mapping[str, int] | None = None,
) -> Intervals:
    """The intervals of all share partitions, by state partition and share partition, in log order.

    Args:
        history: SHARE_PARTITION_HISTORY rows, whole share partitions.
        deliveries: DELIVERY_HISTORY rows of the same share partitions and the same cut.
        no_records: measures.headers.NO_RECORD rows of their user partitions, as far as known.
        reads_committed: groups known to have share.isolation.level=read_committed.
        slowed_from: by group, the delivery count from which the broker slows delivery down; absent: unknown.
    """
    history = history.sort_by([(name, "ascending") for name in (*PLACE, "log_offset")]).combine_chunks()
    (own, others), _ = number_keys(history, deliveries)
    places = _places(history, own)
    order = _ordered(deliveries, others)
    range_places = _places(deliveries, others)[order]
    records, ranges = _records(history), _ranges(deliveries)[order]
    holes = {place: np.stack(spans, axis=1).astype(np.int64) for place, spans in spans_of(no_records).items()}
    nowhere = np.empty((0, 3), np.int64)
    range_begins, by_place = np.unique(range_places, return_index=True)
    spans = dict(zip(range_begins.tolist(), itertools.pairwise([*by_place.tolist(), len(ranges)]), strict=True))
    found = [np.empty((0, WIDTH), np.int64)]
    cuts = [*np.flatnonzero(np.diff(places, prepend=places[:1] - 1)).tolist(), len(places)]
    for begin, end in itertools.pairwise(cuts):
        key = {name: history.column(name)[begin].as_py() for name in KEY}
        mine = slice(*spans.get(int(places[begin]), (0, 0)))
        out = np.empty((end - begin, WIDTH), np.int64)
        closing = np.flatnonzero(ranges[mine, TO] >= 0)
        made = _walk(
            records[begin:end],
            ranges[mine],
            closing[np.argsort(ranges[mine][closing, TO], kind="stable")],
            holes.get((key["topic_id"], key["partition"]), nowhere),
            key["group_id"] in reads_committed,
            (slowed_from or {}).get(key["group_id"], 0),
            out,
        )
        rows = out[:made].copy()
        rows[:, [BEGIN, LATEST]] += begin
        rows[:, END] = np.where(rows[:, END] < 0, UNKNOWN, rows[:, END] + begin)
        found.append(rows)
    return Intervals(history=history, rows=np.concatenate(found))


def _places(table: pa.Table, codes: Ints) -> Ints:
    """One number for a share partition in a state partition."""
    numbers: Ints = table.column("state_partition").to_numpy().astype(np.int64)
    return (numbers << 32) | codes


def _ordered(deliveries: pa.Table, codes: Ints) -> Ints:
    firsts, begins = (deliveries.column(name).to_numpy() for name in ("first_offset", "valid_from_log_offset"))
    order: Ints = np.lexsort((firsts, begins, _places(deliveries, codes)))
    return order


def _records(history: pa.Table) -> Ints:
    """What the kernel reads of SHARE_PARTITION_HISTORY rows; a cold snapshot (made of what was there) is no write."""
    update = pc.equal(history.column("record_type"), "update")
    fresh = pc.equal(history.column("create_timestamp_ms"), history.column("write_timestamp_ms"))
    gone = pc.equal(history.column("record_type"), "tombstone")
    columns = [
        history.column("log_offset"),
        history.column("log_time_ms"),
        pc.fill_null(history.column("start_offset"), UNKNOWN),
        pc.fill_null(history.column("delivery_complete_count"), UNKNOWN),
        pc.if_else(gone, UNKNOWN, pc.fill_null(history.column("life_log_offset"), 0)),
        pc.or_(update, pc.fill_null(fresh, False)),
    ]
    return np.stack([pc.cast(part, pa.int64()).to_numpy() for part in columns], axis=1)


def _ranges(deliveries: pa.Table) -> Ints:
    columns = [
        *(
            deliveries.column(name)
            for name in ("first_offset", "last_offset", "delivery_state", "delivery_count", "valid_from_log_offset")
        ),
        pc.fill_null(deliveries.column("valid_to_log_offset"), UNKNOWN),
    ]
    return np.stack([pc.cast(part, pa.int64()).to_numpy() for part in columns], axis=1)
