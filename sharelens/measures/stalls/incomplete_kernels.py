"""Kernels that walk the records of share partitions and write the intervals of their first incomplete offsets.

`sharelens.measures.stalls.incomplete` says what such an offset is.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sharelens.measures.histories.numbers import (
    RANGE_COUNT,
    RANGE_FIRST,
    RANGE_FROM,
    RANGE_LAST,
    RANGE_STATE,
    RANGE_TO,
    UNKNOWN,
)
from sharelens.measures.ranges.searching import position
from sharelens.measures.topics.headers import ABORTED, ABSENT, REASONS
from state_model.columnar.kernels import kernel, leaf
from state_model.columnar.ranges import grown

Ints = npt.NDArray[np.int64]
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
# Columns of a record.
(OFFSET, TIME, START, COMPLETE, LIFE, IS_WRITE, READS_COMMITTED, SLOWED_FROM) = range(8)
# Sums of offsets over active ranges: finished ones, and others that were delivered THRESHOLD times or more.
(DONE, SLOW, THRESHOLD) = range(3)


class Place(NamedTuple):
    """The records of one share partition in log order, rows of OFFSET to SLOWED_FROM; `first_record`: the row of the
    first among those of all. `past`: PAST_SINCE to PAST_WRITTEN before it.
    """

    records: Ints
    first_record: int
    past: Ints


@leaf
def _passed(holes: np.ndarray, first: int, last: int, aborted_too: bool, budget: int) -> tuple[int, int]:
    """The first offset from `first` to `last` that isn't passed (`last` + 1: all are), and the budget left."""
    # Holes ascend and don't overlap: the search finds the first one that reaches `first`, and each turn puts `first`
    # behind a hole. What the budget must pay for, it pays for as a whole or not at all.
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
def _beyond_finished(active: np.ndarray, count: int, ranges: np.ndarray, start: int, complete: int) -> int:
    """What the complete count has beyond the finished ranges: offsets without a range."""
    for i in range(count):
        complete -= _offsets(ranges, active[i], start) if _is_done(ranges, active[i]) else 0
    return complete


@leaf
def _find(
    active: np.ndarray, count: int, ranges: np.ndarray, start: int, complete: int, holes: np.ndarray,
    aborted_too: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """Writes FIRST, LAST, STATE, COUNT and TOP of an interval's row from the active ranges at or above `start`."""
    # The budget bounds the holes to pass, so it is counted once there is one.
    budget, is_counted = 0, holes.shape[0] == 0
    out[FIRST : TOP + 1] = UNKNOWN
    out[TOP] = ranges[active[count - 1], RANGE_LAST] if count > 0 else UNKNOWN
    # Active ranges ascend and don't overlap. All offsets from `start` to below `at` are finished or passed, so the
    # first range or hole that stops the walk has the answer.
    at = start
    for i in range(count):
        first, last = ranges[active[i], RANGE_FIRST], ranges[active[i], RANGE_LAST]
        if last < at:
            continue
        if first > at and not is_counted:
            budget, is_counted = _beyond_finished(active, count, ranges, start, complete), True
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
def _add(sums: np.ndarray, ranges: np.ndarray, row: int, sign: int) -> None:
    """Adds a range to the sums over active ranges, or takes it away; sums wrap around, and differences of them fit."""
    size = sign * (ranges[row, RANGE_LAST] - ranges[row, RANGE_FIRST] + 1)
    if _is_done(ranges, row):
        sums[DONE] += size
    elif ranges[row, RANGE_COUNT] >= sums[THRESHOLD]:
        sums[SLOW] += size


@leaf
def _sum_up(active: np.ndarray, count: int, ranges: np.ndarray, sums: np.ndarray, out: np.ndarray) -> None:
    """Writes BEHIND and THROTTLED of an interval's row: what the sums have at or above its first incomplete offset."""
    first = out[FIRST]
    behind, slowed = sums[DONE], sums[SLOW]
    at = 0
    while at < count and ranges[active[at], RANGE_FIRST] < first:
        size = min(ranges[active[at], RANGE_LAST], first - 1) - ranges[active[at], RANGE_FIRST] + 1
        if _is_done(ranges, active[at]):
            behind -= size
        elif ranges[active[at], RANGE_COUNT] >= sums[THRESHOLD]:
            slowed -= size
        at += 1
    out[BEHIND] = behind
    out[THROTTLED] = slowed if sums[THRESHOLD] > 0 else UNKNOWN


@leaf
def _place_of(active: np.ndarray, count: int, ranges: np.ndarray, first: int) -> int:
    """The first of the active ranges that does not begin below `first`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ranges[active[middle], RANGE_FIRST] < first:
            low = middle + 1
        else:
            high = middle
    return low


@leaf
def _end(active: np.ndarray, count: int, ranges: np.ndarray, row: int, sums: np.ndarray) -> int:
    """Takes a range out of `active`, unless another one took its place; how many are active."""
    at = _place_of(active, count, ranges, ranges[row, RANGE_FIRST])
    if at == count or active[at] != row:
        return count
    _add(sums, ranges, row, -1)
    for i in range(at, count - 1):
        active[i] = active[i + 1]
    return count - 1


@leaf
def _begin(active: np.ndarray, count: int, ranges: np.ndarray, row: int, sums: np.ndarray) -> int:
    """Puts a range into `active`, instead of one with the same first offset, which ends; how many are active."""
    at = _place_of(active, count, ranges, ranges[row, RANGE_FIRST])
    _add(sums, ranges, row, 1)
    if at < count and ranges[active[at], RANGE_FIRST] == ranges[row, RANGE_FIRST]:
        _add(sums, ranges, active[at], -1)
        active[at] = row
        return count
    for i in range(count, at, -1):
        active[i] = active[i - 1]
    active[at] = row
    return count + 1


@kernel
def _by_record(values: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of `values` by the first record at or behind them, and where each record's begin.

    Values below 0, and those behind the last record, belong to none.
    """
    # Counting sort, O(n), which keeps the order of the values of a record. Neighbouring values mostly lie near each
    # other, so each search goes on where the last one ended. The last bucket has the values of no record.
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
    out: np.ndarray, current: int, interval_count: int, row: np.ndarray, place: Place, record: int, written_before: int
) -> int:
    """Extends the current interval, or ends it and begins the one at `interval_count`; returns the current interval."""
    records, first_record, past = place
    # A new life does not continue the waiting of the one before it, also where both have the same first offset.
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
    place: Place, ranges: np.ndarray, holes: np.ndarray, out: np.ndarray, interval_count: int
) -> tuple[np.ndarray, int]:
    """Adds the intervals of one share partition to `out`, which holds `interval_count`; grown where needed.

    `ranges` that a record began come by first offset.
    """
    # `active` has the ranges in force after a record, by first offset, and `sums` what they sum up to. The row is
    # computed for each record, as the start offset and the settings may change without a range.
    records = place.records
    opening, open_begins = _by_record(ranges[:, RANGE_FROM], records[:, OFFSET])
    closing, close_begins = _by_record(ranges[:, RANGE_TO], records[:, OFFSET])
    at_first = opening[: open_begins[1]]  # begun by the first record, or by earlier ones in any order of offsets
    at_first[:] = at_first[np.argsort(ranges[at_first, RANGE_FIRST])]
    active, sums = np.empty(ranges.shape[0], np.int64), np.zeros(THRESHOLD + 1, np.int64)
    row = np.empty(WIDTH, np.int64)
    count, current, written = 0, -1, place.past[PAST_WRITTEN]
    for record in range(records.shape[0]):
        written_before = written
        if records[record, SLOWED_FROM] != sums[THRESHOLD]:
            sums[:] = 0
            sums[THRESHOLD] = records[record, SLOWED_FROM]
            for i in range(count):
                _add(sums, ranges, active[i], 1)
        # Begun before ended: most ranges take the place of one with the same first offset.
        for i in range(open_begins[record], open_begins[record + 1]):
            if not 0 <= ranges[opening[i], RANGE_TO] <= records[record, OFFSET]:
                count = _begin(active, count, ranges, opening[i], sums)
        for i in range(close_begins[record], close_begins[record + 1]):
            count = _end(active, count, ranges, closing[i], sums)
        if records[record, IS_WRITE]:
            written = records[record, TIME]
        if records[record, START] < 0 or records[record, LIFE] < 0:
            # No start offset, or no life: nothing waits until the next record that has both.
            if current >= 0:
                out[current, END] = place.first_record + record
            current = -1
            continue
        start, complete = records[record, START], records[record, COMPLETE]
        _find(active, count, ranges, start, complete, holes, records[record, READS_COMMITTED] > 0, row)
        _sum_up(active, count, ranges, sums, row)
        out = grown(out, interval_count + 1)
        current = _note(out, current, interval_count, row, place, record, written_before)
        interval_count = max(interval_count, current + 1)
        out[current, WRITTEN] = written
    return out, interval_count


@kernel
def walk_all(
    records: np.ndarray, record_begins: np.ndarray, ranges: np.ndarray, range_begins: np.ndarray, holes: np.ndarray,
    hole_spans: np.ndarray, past: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The intervals of all share partitions, one after the other."""
    out = np.empty((64, WIDTH), np.int64)
    interval_count = 0
    for place in range(record_begins.shape[0] - 1):
        begin = record_begins[place]
        out, interval_count = _walk(
            Place(records[begin : record_begins[place + 1]], begin, past[place]),
            ranges[range_begins[place] : range_begins[place + 1]],
            holes[hole_spans[place, 0] : hole_spans[place, 1]],
            out,
            interval_count,
        )
    return out[:interval_count]


@kernel
def _in_force_from(ranges: np.ndarray, offset: int) -> np.ndarray:
    """The rows of the ranges that a record at a log offset, or one behind it, did not find ended."""
    rows = np.empty(ranges.shape[0], np.int64)
    count = 0
    for i in range(ranges.shape[0]):
        if ranges[i, RANGE_TO] < 0 or ranges[i, RANGE_TO] > offset:
            rows[count] = i
            count += 1
    chosen = np.empty((count, ranges.shape[1]), np.int64)
    for i in range(count):
        chosen[i] = ranges[rows[i]]
    return chosen


@leaf
def _written_before(place: Place, record: int) -> int:
    """Log time of the last write before a record of a place."""
    for i in range(record - 1, -1, -1):
        if place.records[i, IS_WRITE]:
            return int(place.records[i, TIME])
    return int(place.past[PAST_WRITTEN])


@kernel
def _walk_from(place: Place, begin: int, ranges: np.ndarray, holes: np.ndarray) -> tuple[np.ndarray, int]:
    """The intervals of one share partition from record `begin` on, as `_walk` writes them."""
    out = np.empty((64, WIDTH), np.int64)
    if begin == 0:
        return _walk(place, ranges, holes, out, 0)
    past = np.full(place.past.shape[0], UNKNOWN, np.int64)
    past[PAST_WRITTEN] = _written_before(place, begin)
    rest = Place(place.records[begin:], place.first_record + begin, past)
    return _walk(rest, _in_force_from(ranges, place.records[begin, OFFSET]), holes, out, 0)


@kernel
def walk_last(
    records: np.ndarray, record_begins: np.ndarray, ranges: np.ndarray, range_begins: np.ndarray, holes: np.ndarray,
    hole_spans: np.ndarray, past: np.ndarray, few: int,
) -> np.ndarray:  # fmt: skip
    """Those intervals of `walk_all` that no record ended: at most one of each share partition.

    `few`: so many of its last records are walked at first.
    """
    result = np.empty((record_begins.shape[0], WIDTH), np.int64)
    count = 0
    for n in range(record_begins.shape[0] - 1):
        place = Place(records[record_begins[n] : record_begins[n + 1]], record_begins[n], past[n])
        place_ranges = ranges[range_begins[n] : range_begins[n + 1]]
        place_holes = holes[hole_spans[n, 0] : hole_spans[n, 1]]
        total, walked = place.records.shape[0], few
        while total > 0:
            # The last records have the interval that lasts, unless it began before them: then four times as many.
            begin = max(0, total - walked)
            out, interval_count = _walk_from(place, begin, place_ranges, place_holes)
            last = interval_count - 1
            lasts = interval_count > 0 and out[last, END] < 0
            if begin == 0 or not lasts or out[last, BEGIN] > place.first_record + begin:
                if lasts:
                    result[count] = out[last]
                    count += 1
                break
            walked *= 4
    return result[:count]
