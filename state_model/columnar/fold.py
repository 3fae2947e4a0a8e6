"""The replay kernel: folds decoded records of one state partition, in log order, into states and delivery history.

Rules: share-group-state-log §8 (replay), §9 (state batches: pointwise maximum of (delivery count, delivery state)),
Kafka's ShareCoordinatorShard and PersisterStateBatchCombiner. The algebra of ranges is in ranges.py.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from state_model.columnar.kernels import kernel, leaf
from state_model.columnar.ranges import (
    FIRST,
    FROM_AT,
    FROM_TIME,
    LAST,
    MAX_OFFSET,
    NONE,
    PRIORITY,
    canonical,
    first_reaching,
    grown,
    merged,
    rows_touching,
)
from state_model.columnar.soft_state import (
    LAST_AT,
    LAST_TIME,
    LIFE,
    OTHER,
    PRESENT,
    RANGE_AT,
    RANGE_BASE,
    RANGE_COUNT,
    RANGE_ROOM,
    RESET,
    SCALAR_COUNT,
    START,
    TOMBSTONE,
    UPDATE,
    fold_scalars,
    mark_by_record,
    mark_incomplete,
    note_losses,
    reaches,
)

CHANGED, SPLIT_OR_JOINED, START_OFFSET_PASSED = 1, 2, 3
GONE, NEW, UNCHANGED, REPLACED = 0, 1, 2, 3

# Columns of the closed ranges (int64 matrix: one row a range).
(C_KEY, C_FIRST, C_LAST, C_PRIORITY, C_FROM_AT, C_FROM_TIME, C_TO_AT, C_TO_TIME, C_REASON, C_LIFE) = range(10)
# Entries of `end`, what a record says of the ranges that end with it: its log offset and time; RESET or DELETED when it
# ends a life, else 0; the number of its share partition.
(END_AT, END_TIME, ENDING, END_KEY) = range(4)
LOW, HIGH, NEW_COUNT = range(3)


class Records(NamedTuple):
    """Decoded records of one state partition, an entry or a row each, by ascending log offset (`ats`).

    `keys`: the share partition by number. `values`: rows of snapshot epoch, state epoch, leader epoch, start offset,
    delivery complete count, create and write timestamp. `unknown`: a delivery state or the record type is unknown.
    `no_batches`: no state batches logged. `batch_at`: one entry more than there are records, positions into `batches`
    (rows as in ranges.py), which a replay overwrites.
    """

    kinds: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    ats: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    uncommitted: npt.NDArray[np.bool_]
    unknown: npt.NDArray[np.bool_]
    no_batches: npt.NDArray[np.bool_]
    batch_at: npt.NDArray[np.int64]
    batches: npt.NDArray[np.int64]


class Scratch(NamedTuple):
    """Lists that each record overwrites: the canonical list of an update, new ranges, and what these replace.

    `stretches`: rows of LOW to NEW_COUNT, ascending: the rows of the pool, and how many of `new` take their place.
    """

    update: npt.NDArray[np.int64]
    new: npt.NDArray[np.int64]
    stretches: npt.NDArray[np.int64]


class Closed(NamedTuple):
    """Ranges that ended, by their end: `rows` (C_KEY to C_LIFE) are filled up to `used`, which is one number."""

    rows: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]


@kernel
def with_room(scratch: Scratch, updates: int, news: int) -> Scratch:
    """`scratch` with room for at least so many rows of an update, and of new ranges; contents kept."""
    update, stretches = grown(scratch.update, updates), grown(scratch.stretches, updates)
    return Scratch(update, grown(scratch.new, news), stretches)


@leaf
def end_reason(old: np.ndarray, i: int, new: np.ndarray, count: int, start: int, ending: int) -> int:
    """The reason why the range old[i] is not in the canonical list `new`; `ending` is RESET, DELETED or 0."""
    if ending != 0:
        return ending
    first = old[i, FIRST]
    if start != NONE:
        if old[i, LAST] < start:
            return START_OFFSET_PASSED
        first = max(first, start)
    # The offsets kept their priority when one new range covers the rest of the old one: then only its bounds changed.
    n = first_reaching(new, 0, count, first)
    covered = n < count and new[n, FIRST] <= first and new[n, LAST] >= old[i, LAST]
    return SPLIT_OR_JOINED if covered and new[n, PRIORITY] == old[i, PRIORITY] else CHANGED


@leaf
def fate_of(old: np.ndarray, i: int, old_end: int, new: np.ndarray, j: int, count: int) -> int:
    """The first of an old and a new range: GONE (only the old one), NEW (only the new one), KEPT (equal), REPLACED."""
    if j >= count or (i < old_end and old[i, FIRST] < new[j, FIRST]):
        return GONE
    if i >= old_end or new[j, FIRST] < old[i, FIRST]:
        return NEW
    same = old[i, LAST] == new[j, LAST] and old[i, PRIORITY] == new[j, PRIORITY]
    return UNCHANGED if same else REPLACED


@leaf
def close_range(closed: Closed, ranges: np.ndarray, i: int, life: int, end: np.ndarray, reason: int) -> None:
    """Adds ranges[i], which ends, to `closed`, which has room for it, or for none."""
    rows, n = closed.rows, closed.used[0]
    if rows.shape[0] == 0:
        return
    rows[n, C_KEY] = end[END_KEY]
    for column in range(FIRST, FROM_TIME + 1):
        rows[n, C_FIRST + column] = ranges[i, column]
    rows[n, C_TO_AT] = end[END_AT]
    rows[n, C_TO_TIME] = end[END_TIME]
    rows[n, C_REASON] = reason
    rows[n, C_LIFE] = life
    closed.used[0] = n + 1


@leaf
def exchange(
    state: np.ndarray,
    pool: np.ndarray,
    low: int,
    high: int,
    new: np.ndarray,
    count: int,
    end: np.ndarray,
    closed: Closed,
) -> None:
    """Dates the canonical list `new`, which replaces pool[low:high]; ranges that end go to `closed`.

    A range that is equal before and after keeps its beginning, unless a life ends; each other range of `new` begins
    at this record. `end`: END_AT to END_KEY.
    """
    # Both lists ascend and are disjoint, so one pass pairs them by first offset: each turn advances i, j or both. An
    # old range is closed at most once, so the caller reserves one entry of `closed` for each.
    start = state[START]
    life = state[LIFE]
    i = low
    j = 0
    while i < high or j < count:
        fate = fate_of(pool, i, high, new, j, count)
        if fate == UNCHANGED and end[ENDING] == 0:
            new[j, FROM_AT] = pool[i, FROM_AT]  # by element: a slice costs more than what it copies
            new[j, FROM_TIME] = pool[i, FROM_TIME]
        elif fate != GONE:
            new[j, FROM_AT] = end[END_AT]
            new[j, FROM_TIME] = end[END_TIME]
        if fate in (GONE, REPLACED) or (fate == UNCHANGED and end[ENDING] != 0):
            close_range(closed, pool, i, life, end, end_reason(pool, i, new, count, start, end[ENDING]))
        i += fate != NEW
        j += fate != GONE


@leaf
def move(rows: np.ndarray, source: int, target: int, count: int) -> None:
    """Copies ranges inside the pool, where source and target may overlap."""
    # The order in which no row is overwritten before it is copied.
    if source > target:
        for i in range(count):
            for column in range(FIRST, FROM_TIME + 1):
                rows[target + i, column] = rows[source + i, column]
    elif source < target:
        for i in range(count - 1, -1, -1):
            for column in range(FIRST, FROM_TIME + 1):
                rows[target + i, column] = rows[source + i, column]


@leaf
def make_room(state: np.ndarray, pool: np.ndarray, used: int, added: int) -> int:
    """Makes place for `added` ranges (negative: fewer) behind a key's ranges; the pool's length.

    Dropped ranges leave their place in front. Where none is left behind, the ranges move down, or, when they take
    most of their room, to the end of the pool, with room for twice as many.
    """
    total = state[RANGE_COUNT] + added
    if state[RANGE_AT] + total <= state[RANGE_BASE] + state[RANGE_ROOM]:
        return used
    # A leaf can't allocate: the caller has reserved this room. A quarter of the room is free after each move, so moves
    # cost no more than what is added; and the room grows by half, so the places that it left take at most twice it.
    if 4 * total > 3 * state[RANGE_ROOM]:
        state[RANGE_BASE] = used
        state[RANGE_ROOM] = max(4, 2 * total)
        used += state[RANGE_ROOM]
    move(pool, state[RANGE_AT], state[RANGE_BASE], state[RANGE_COUNT])
    state[RANGE_AT] = state[RANGE_BASE]
    return used


@leaf
def replace(state: np.ndarray, pool: np.ndarray, used: int, scratch: Scratch, stretches: int) -> int:
    """Puts the first `stretches` of `scratch` into a key's ranges; the pool's length."""
    bounds = scratch.stretches
    delta = 0
    for n in range(stretches):
        delta += bounds[n, NEW_COUNT] - (bounds[n, HIGH] - bounds[n, LOW])
    moved = -state[RANGE_AT]
    used = make_room(state, pool, used, delta)
    moved += state[RANGE_AT]
    stop = state[RANGE_AT] + state[RANGE_COUNT]
    state[RANGE_COUNT] += delta
    # What lies between two stretches moves by what those before it grow. Sources and targets ascend alike, so
    # what moves down can only overwrite what moves down before it, and what moves up only what moves up behind it.
    for n in range(stretches - 1, -1, -1):
        high = bounds[n, HIGH] + moved
        until = stop if n + 1 == stretches else bounds[n + 1, LOW] + moved
        if delta > 0:
            move(pool, high, high + delta, until - high)
        delta -= bounds[n, NEW_COUNT] - (bounds[n, HIGH] - bounds[n, LOW])
    source = 0
    for n in range(stretches):
        low, high = bounds[n, LOW] + moved + delta, bounds[n, HIGH] + moved
        delta += bounds[n, NEW_COUNT] - (bounds[n, HIGH] - bounds[n, LOW])
        until = stop if n + 1 == stretches else bounds[n + 1, LOW] + moved
        if delta < 0:
            move(pool, high, high + delta, until - high)
        for i in range(bounds[n, NEW_COUNT]):
            for column in range(FIRST, FROM_TIME + 1):
                pool[low + i, column] = scratch.new[source + i, column]
        source += bounds[n, NEW_COUNT]
    return used


@leaf
def touches_before(pool: np.ndarray, low: int, high: int, update: np.ndarray, n: int) -> bool:
    """Whether update[n] touches the range of the update before it, or the last one of pool[low:high]."""
    # No range that another one follows ends at the largest offset, or begins at the smallest.
    first = update[n, FIRST] - 1
    return bool(update[n - 1, LAST] == first or (high > low and pool[high - 1, LAST] >= first))


@leaf
def combine(
    state: np.ndarray, pool: np.ndarray, used: int, scratch: Scratch, count: int, end: np.ndarray, closed: Closed
) -> int:
    """Merges the first `count` ranges of `scratch.update`, a canonical list, into a key's ranges; the pool's length.

    Only those that it can change are compared: those that the start offset passes or cuts, and the stretches of them
    that ranges of the update overlap or touch:

        old    |--1--|--0--|   |-1-|--0--|-1-|   |-1-|-0-|   |-1-|
        start             ^
        update                       |-2-|                 |-2-|
               passed  cut         [ stretch ]             [stretch]

    `end` as in `exchange`; room as `merged` and `make_room` need it.
    """
    # Ranges ascend, so those below the start offset are a prefix, and stretches are found by binary search: an update
    # pays for what it changes, not for all ranges of the share partition.
    update, bounds = scratch.update, scratch.stretches
    start = state[START]
    begin = state[RANGE_AT]
    stop = begin + state[RANGE_COUNT]
    drop = begin if start == NONE else first_reaching(pool, begin, stop, start)
    for i in range(begin, drop):
        close_range(closed, pool, i, state[LIFE], end, START_OFFSET_PASSED)
    state[RANGE_AT] = drop
    state[RANGE_COUNT] = stop - drop
    n = 0 if start == NONE else first_reaching(update, 0, count, start)
    low, high = drop, drop
    if n < count:
        low, high = rows_touching(pool, drop, stop, update[n, FIRST], update[n, LAST])
    # The start offset cuts a range outside all stretches: it is closed and begins again here. A cut range in one is
    # handled by `merged` and `exchange`.
    if drop < stop and start != NONE and pool[drop, FIRST] < start and (low > drop or high == drop):
        close_range(closed, pool, drop, state[LIFE], end, SPLIT_OR_JOINED)
        pool[drop, FIRST] = start
        pool[drop, FROM_AT] = end[END_AT]
        pool[drop, FROM_TIME] = end[END_TIME]
    length, stretches = 0, 0
    while n < count:
        # Ranges of the update that touch the same old range, or each other, belong to one stretch.
        following = n + 1
        while following < count and touches_before(pool, low, high, update, following):
            _, high = rows_touching(pool, high, stop, update[following, FIRST], update[following, LAST])
            following += 1
        new = scratch.new[length:]
        new_count = merged(pool, low, high, update[n:], following - n, start, new)
        exchange(state, pool, low, high, new, new_count, end, closed)
        bounds[stretches, LOW] = low
        bounds[stretches, HIGH] = high
        bounds[stretches, NEW_COUNT] = new_count
        length += new_count
        stretches += 1
        n = following
        if n < count:
            low, high = rows_touching(pool, high, stop, update[n, FIRST], update[n, LAST])
    return replace(state, pool, used, scratch, stretches)


@leaf
def keep_state_after(state: np.ndarray, end: np.ndarray, after: np.ndarray, n: int) -> None:
    """Records the last record applied, and copies the state after it to row n, if there are rows; `end`: `exchange`."""
    if end[ENDING] == RESET:
        state[LIFE] = end[END_AT]
    state[LAST_AT] = end[END_AT]
    state[LAST_TIME] = end[END_TIME]
    for column in range(SCALAR_COUNT if after.shape[0] > 0 else 0):
        after[n, column] = state[column]


@kernel
def fold(
    records: Records,
    losses: np.ndarray,
    limit: int,
    scalars: np.ndarray,
    pool: np.ndarray,
    used: int,
    with_history: bool,
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray, int]:
    """Folds records into `scalars` (a row a key) and `pool` (used up to `used`), which are changed in place.

    `losses`: rows of (first, last, reason, key), ascending by first; key -1 touches all keys. Returns the scalar state
    after each record and the closed ranges with their number, none without `with_history`, and the pool with its
    length.
    """
    # Out of the record once: an access inside the loop costs a reference count for each of its arrays.
    kinds, keys, ats, times, values, uncommitted, unknown, no_batches, batch_at, batches = records
    # Memory goes by records and their batches, never by the offsets that a batch claims.
    n = kinds.shape[0]
    after = np.empty((n if with_history else 0, SCALAR_COUNT), np.int64)
    room = 16 + n + 2 * batches.shape[0] if with_history else 0
    closed = Closed(np.empty((room, 10), np.int64), np.zeros(1, np.int64))
    scratch = Scratch(np.empty((32, 5), np.int64), np.empty((64, 5), np.int64), np.empty((32, 3), np.int64))
    end = np.empty(4, np.int64)
    applied_count, reach = 0, reaches(losses)
    for n_record in range(n):
        key = keys[n_record]
        at = ats[n_record]
        kind = kinds[n_record]
        applied_count = note_losses(losses, reach, applied_count, at, scalars)
        state = scalars[key]  # one view a record: each view costs a reference count
        mark_incomplete(state, losses, reach, applied_count)
        # Leaves can't allocate, so all room is made before them: `canonical` gives at most 2 * size ranges, a merge at
        # most two pieces for each range of both lists, `make_room` may need twice that at the end of the pool, and each
        # old range closes at most once.
        size = batch_at[n_record + 1] - batch_at[n_record]
        old_count = state[RANGE_COUNT]
        room = 2 * (old_count + 2 * size) + 4
        if 2 * size + 2 > scratch.update.shape[0] or room > scratch.new.shape[0]:
            scratch = with_room(scratch, 2 * size + 2, room)
        if used + 2 * room > pool.shape[0]:
            pool = grown(pool, used + 2 * room)
        if with_history and closed.used[0] + old_count > closed.rows.shape[0]:
            closed = Closed(grown(closed.rows, closed.used[0] + old_count), closed.used)
        record_batches = batches[batch_at[n_record] : batch_at[n_record + 1]]
        combines = kind == UPDATE and state[PRESENT] == 1
        end[END_KEY] = key
        end[END_AT] = at
        end[END_TIME] = times[n_record]
        end[ENDING] = fold_scalars(state, kind, values[n_record], at, no_batches[n_record], limit)
        mark_by_record(state, uncommitted[n_record], unknown[n_record])
        if combines:
            count = canonical(record_batches, size, scratch.update)
            used = combine(state, pool, used, scratch, count, end, closed)
        elif kind != OTHER:
            count = 0 if kind == TOMBSTONE else canonical(record_batches, size, scratch.new)
            begin = state[RANGE_AT]
            exchange(state, pool, begin, begin + old_count, scratch.new, count, end, closed)
            scratch.stretches[0, LOW] = begin
            scratch.stretches[0, HIGH] = begin + old_count
            scratch.stretches[0, NEW_COUNT] = count
            used = replace(state, pool, used, scratch, 1)
        keep_state_after(state, end, after, n_record)
    # Losses behind the last record, and states that no record touched since a loss.
    applied_count = note_losses(losses, reach, applied_count, MAX_OFFSET, scalars)
    for key in range(scalars.shape[0]):
        mark_incomplete(scalars[key], losses, reach, applied_count)
    return after, closed.rows, closed.used[0], pool, used
