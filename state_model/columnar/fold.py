"""The replay kernel: folds decoded records of one state partition, in log order, into states and delivery history.

Rules: share-group-state-log §8 (replay), §9 (state batches: pointwise maximum of (delivery count, delivery state)),
Kafka's ShareCoordinatorShard and PersisterStateBatchCombiner. The algebra of ranges is in ranges.py.
"""

import numpy as np

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

SNAPSHOT, UPDATE, TOMBSTONE, OTHER = 0, 1, 2, 3
CHANGED, SPLIT_OR_JOINED, START_OFFSET_PASSED, RESET, DELETED = 1, 2, 3, 4, 5
COMPLETE, PROVISIONAL, INCOMPLETE, UNCOMMITTED = 0, 1, 2, 3
UNKNOWN_STATE = 10
"""The reason of a state that rests on a delivery state or a record type of a later Kafka."""
GONE, NEW, KEPT, REPLACED = 0, 1, 2, 3

# Columns of the scalar state of a share partition (int64 matrix: one row a key).
(
    PRESENT,
    SNAPSHOT_EPOCH,
    STATE_EPOCH,
    LEADER_EPOCH,
    START,
    DCC,
    CREATE,
    WRITE,
    LEADER_MAX,
    STATE_MAX,
    UPDATES,
    SNAPSHOT_AT,
    LIFE,
    LAST_AT,
    LAST_TIME,
    COMPLETENESS,
    REASON,
    RANGE_AT,
    RANGE_COUNT,
    RANGE_ROOM,
) = range(20)
SCALAR_COUNT = 20

# Columns of the closed ranges (int64 matrix: a row for each column, a column for each range: the layout of Arrow).
(C_KEY, C_FIRST, C_LAST, C_PRIORITY, C_FROM_AT, C_FROM_TIME, C_TO_AT, C_TO_TIME, C_REASON, C_LIFE) = range(10)


@kernel
def with_column_room(columns: np.ndarray, need: int) -> np.ndarray:
    """`columns` with room for at least `need` entries each; contents kept."""
    if need <= columns.shape[1]:
        return columns
    wider = np.empty((columns.shape[0], max(need, columns.shape[1] * 2)), columns.dtype)
    wider[:, : columns.shape[1]] = columns
    return wider


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
    return KEPT if same else REPLACED


@leaf
def close_range(
    closed: np.ndarray, n: int, key: int, ranges: np.ndarray, i: int, life: int, end: np.ndarray, reason: int
) -> None:
    """Fills entry n of `closed` with ranges[i], which ends. `end`: log offset and time of the record."""
    closed[C_KEY, n] = key
    for column in range(FIRST, FROM_TIME + 1):
        closed[C_FIRST + column, n] = ranges[i, column]
    closed[C_TO_AT, n] = end[0]
    closed[C_TO_TIME, n] = end[1]
    closed[C_REASON, n] = reason
    closed[C_LIFE, n] = life


@leaf
def exchange(
    state: np.ndarray,
    key: int,
    pool: np.ndarray,
    low: int,
    high: int,
    new: np.ndarray,
    count: int,
    end: np.ndarray,
    closed: np.ndarray,
    closed_count: int,
) -> int:
    """Dates the canonical list `new`, which replaces pool[low:high]; ranges that end go to `closed`.

    A range that is equal before and after keeps its beginning, unless a life ends; each other range of `new` begins
    at this record. `end`: log offset and time of the record, RESET or DELETED or 0. The new number of closed
    ranges.
    """
    start = state[START]
    life = state[LIFE]
    i = low
    j = 0
    while i < high or j < count:
        fate = fate_of(pool, i, high, new, j, count)
        if fate == KEPT and end[2] == 0:
            new[j, FROM_AT] = pool[i, FROM_AT]  # by element: a slice costs more than what it copies
            new[j, FROM_TIME] = pool[i, FROM_TIME]
        elif fate != GONE:
            new[j, FROM_AT] = end[0]
            new[j, FROM_TIME] = end[1]
        if fate in (GONE, REPLACED) or (fate == KEPT and end[2] != 0):
            reason = end_reason(pool, i, new, count, start, end[2])
            close_range(closed, closed_count, key, pool, i, life, end, reason)
            closed_count += 1
        i += fate != NEW
        j += fate != GONE
    return closed_count


@leaf
def move(rows: np.ndarray, source: int, target: int, count: int) -> None:
    """Copies ranges inside the pool, where source and target may overlap."""
    if source > target:
        for i in range(count):
            for column in range(FIRST, FROM_TIME + 1):
                rows[target + i, column] = rows[source + i, column]
    elif source < target:
        for i in range(count - 1, -1, -1):
            for column in range(FIRST, FROM_TIME + 1):
                rows[target + i, column] = rows[source + i, column]


@leaf
def splice(
    state: np.ndarray, pool: np.ndarray, used: int, drop: int, low: int, high: int, new: np.ndarray, count: int
) -> int:
    """Replaces a key's ranges [low, high) by `new` and drops its first `drop` ranges; the pool's length.

    Ranges that no longer fit move to the end of the pool, with room for twice as many.
    """
    begin = state[RANGE_AT]
    old_count = state[RANGE_COUNT]
    left = low - drop
    total = left + count + old_count - high
    target = begin
    if total > state[RANGE_ROOM]:
        room = max(4, 2 * total)
        target = used
        used += room
        state[RANGE_AT] = target
        state[RANGE_ROOM] = room
    move(pool, begin + drop, target, left)
    move(pool, begin + high, target + left + count, old_count - high)
    for i in range(count):
        for column in range(FIRST, FROM_TIME + 1):
            pool[target + left + i, column] = new[i, column]
    state[RANGE_COUNT] = total
    return used


@leaf
def combine(
    state: np.ndarray,
    key: int,
    pool: np.ndarray,
    used: int,
    update: np.ndarray,
    count: int,
    scratch: np.ndarray,
    end: np.ndarray,
    closed: np.ndarray,
    closed_count: int,
) -> tuple[int, int]:
    """Merges an update's canonical list `update` into a key's ranges; only those that it can change are touched.

    These are the ranges that the start offset passes or cuts, and those that overlap or touch the update:

        old    |--1--|--0--|   |-1-|--0--|-1-|
        start             ^
        update                       |-2-|
               passed  cut         [ window  ]

    The pool's length and the number of closed ranges. `scratch` is overwritten, `end` as in `exchange`, room as in
    `splice`.
    """
    begin = state[RANGE_AT]
    stop = begin + state[RANGE_COUNT]
    start = state[START]
    drop = begin if start == NONE else first_reaching(pool, begin, stop, start)
    for i in range(begin, drop):
        close_range(closed, closed_count, key, pool, i, state[LIFE], end, START_OFFSET_PASSED)
        closed_count += 1
    low = drop
    high = drop
    if count > 0:
        low, high = rows_touching(pool, drop, stop, update[0, FIRST], update[count - 1, LAST])
    if drop < stop and start != NONE and pool[drop, FIRST] < start and (low > drop or high == drop):
        close_range(closed, closed_count, key, pool, drop, state[LIFE], end, SPLIT_OR_JOINED)
        closed_count += 1
        pool[drop, FIRST] = start
        pool[drop, FROM_AT] = end[0]
        pool[drop, FROM_TIME] = end[1]
        low = max(low, drop + 1)
        high = max(high, drop + 1)
    count = merged(pool, low, high, update, count, start, scratch)
    closed_count = exchange(state, key, pool, low, high, scratch, count, end, closed, closed_count)
    used = splice(state, pool, used, drop - begin, low - begin, high - begin, scratch, count)
    return used, closed_count


@leaf
def begins_new_life(
    state: np.ndarray,
    snapshot_epoch: int,
    state_epoch: int,
    leader_epoch: int,
    start: int,
    dcc: int,
    no_batches: bool,
) -> bool:
    """Whether a snapshot over a live state re-creates or resets it (audit-invariants P3, by scalars alone)."""
    if snapshot_epoch == 0:
        return True
    if state[SNAPSHOT_AT] == NONE:  # a provisional state has no certain value to compare with
        return False
    if state_epoch != state[STATE_EPOCH] or leader_epoch < state[LEADER_EPOCH]:
        return True
    if start == NONE and state[START] >= 0:
        return True
    init_shape = no_batches and leader_epoch == 0 and dcc == (NONE if start == NONE else 0)
    return init_shape and start < state[START]


@leaf
def replace_values(state: np.ndarray, row: np.ndarray) -> None:
    """Sets the scalars from a record's value. `row`: see `fold`."""
    for column in range(SNAPSHOT_EPOCH, WRITE + 1):
        state[column] = row[column - SNAPSHOT_EPOCH]


@leaf
def delete(state: np.ndarray) -> None:
    """Applies a tombstone."""
    if state[PRESENT] == 0:  # a tombstone without a state: the marks of an earlier life are cleared
        state[LIFE] = NONE
        state[COMPLETENESS] = COMPLETE
        state[REASON] = 0
    state[PRESENT] = 0
    state[UPDATES] = 0


@leaf
def fold_scalars(state: np.ndarray, kind: int, row: np.ndarray, at: int, no_batches: bool, limit: int) -> int:
    """Applies a record's scalars to one key's state; 0, RESET or DELETED when a life ends. `row`: see `fold`."""
    if kind == TOMBSTONE:
        delete(state)
        return DELETED
    if kind == OTHER:
        return 0
    ending = 0
    if kind == SNAPSHOT:
        live = state[PRESENT] == 1
        if live and begins_new_life(state, row[0], row[1], row[2], row[3], row[4], no_batches):
            ending = RESET
        state[LEADER_MAX] = max(state[LEADER_MAX], row[2]) if live else row[2]
        state[STATE_MAX] = max(state[STATE_MAX], row[1]) if live and state[SNAPSHOT_AT] != NONE else row[1]
        if not live:
            state[UPDATES] = 0
            state[LIFE] = at
        elif state[UPDATES] >= limit:
            state[UPDATES] = 0
        replace_values(state, row)
        state[SNAPSHOT_AT] = at
        state[COMPLETENESS] = COMPLETE
        state[REASON] = 0
    elif state[PRESENT] == 1:
        state[LEADER_MAX] = max(state[LEADER_MAX], row[2])
        state[UPDATES] += 1
        if row[2] != NONE:
            state[LEADER_EPOCH] = row[2]
        if row[3] != NONE:
            state[START] = row[3]
        state[DCC] = row[4]
    else:
        replace_values(state, row)
        state[STATE_EPOCH] = 0
        state[CREATE] = 0
        state[WRITE] = 0
        state[LEADER_MAX] = row[2]
        state[STATE_MAX] = NONE
        state[UPDATES] = 1
        state[SNAPSHOT_AT] = NONE
        state[LIFE] = at
        state[COMPLETENESS] = PROVISIONAL
        state[REASON] = 1
    state[PRESENT] = 1
    return ending


@kernel
def reaches(losses: np.ndarray) -> np.ndarray:
    """For each loss, the last offset that it or an earlier loss takes from all share partitions; NONE without one."""
    reach = np.empty(losses.shape[0], np.int64)
    furthest = np.int64(NONE)
    for n in range(losses.shape[0]):
        if losses[n, 3] == NONE:
            furthest = max(furthest, losses[n, 1])
        reach[n] = furthest
    return reach


@leaf
def mark(state: np.ndarray, reason: int) -> None:
    """Marks a complete or uncommitted state as incomplete."""
    if state[PRESENT] == 1 and (state[COMPLETENESS] == COMPLETE or state[COMPLETENESS] == UNCOMMITTED):
        state[COMPLETENESS] = INCOMPLETE
        state[REASON] = reason


@leaf
def mark_uncommitted(state: np.ndarray) -> None:
    """Marks a complete state as uncommitted: it depends on a record at or above the high watermark."""
    if state[COMPLETENESS] == COMPLETE:
        state[COMPLETENESS] = UNCOMMITTED
        state[REASON] = 2


@leaf
def mark_by_record(state: np.ndarray, uncommitted: bool, unknown: bool) -> None:
    """Marks the state after a record that is uncommitted, or of which something is unknown: that hides a loss."""
    if state[PRESENT] == 0:
        return
    if uncommitted:
        mark_uncommitted(state)
    if unknown and state[COMPLETENESS] != PROVISIONAL:
        state[COMPLETENESS] = INCOMPLETE
        state[REASON] = UNKNOWN_STATE


@leaf
def mark_incomplete(state: np.ndarray, losses: np.ndarray, reach: np.ndarray, seen: int) -> None:
    """Marks a state whose snapshot is older than one of the first `seen` losses, with the reason of the first."""
    if seen == 0 or reach[seen - 1] <= state[SNAPSHOT_AT]:
        return
    mark(state, losses[np.searchsorted(reach[:seen], state[SNAPSHOT_AT], side="right"), 2])


@leaf
def note_losses(losses: np.ndarray, reach: np.ndarray, seen: int, before: int, scalars: np.ndarray) -> int:
    """Applies the losses that begin below `before`; how many are applied by now.

    A loss of a single share partition marks it at once, after the earlier losses of all share partitions.
    """
    while seen < losses.shape[0] and losses[seen, 0] < before:
        key = losses[seen, 3]
        if key != NONE:
            mark_incomplete(scalars[key], losses, reach, seen)
            if scalars[key, SNAPSHOT_AT] < losses[seen, 1]:
                mark(scalars[key], losses[seen, 2])
        seen += 1
    return seen


@leaf
def keep_state_after(state: np.ndarray, end: np.ndarray, after: np.ndarray, n: int) -> None:
    """Records the last record applied, and copies the state after it to row n. `end`: see `exchange`."""
    if end[2] == RESET:
        state[LIFE] = end[0]
    state[LAST_AT] = end[0]
    state[LAST_TIME] = end[1]
    for column in range(SCALAR_COUNT):
        after[n, column] = state[column]


@kernel
def fold(
    kinds: np.ndarray,
    keys: np.ndarray,
    ats: np.ndarray,
    times: np.ndarray,
    values: np.ndarray,
    uncommitted: np.ndarray,
    unknown: np.ndarray,
    no_batches: np.ndarray,
    batch_at: np.ndarray,
    batches: np.ndarray,
    losses: np.ndarray,
    limit: int,
    scalars: np.ndarray,
    pool: np.ndarray,
    used: int,
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray, int]:
    """Folds n records (ascending `ats`) of one state partition into `scalars` and `pool` (both changed in place).

    `values`: n rows of snapshot epoch, state epoch, leader epoch, start offset, delivery complete count, create and
    write timestamp. `unknown`: a delivery state or the record type is unknown. `no_batches`: no state batches logged.
    `batch_at`: n + 1 positions into `batches`, whose rows are overwritten. `losses`: rows of (first, last, reason,
    key), ascending by first; key -1 touches all keys. Returns the scalar state after each record, the closed ranges
    with their number, and the pool with its length.
    """
    n = kinds.shape[0]
    after = np.empty((n, SCALAR_COUNT), np.int64)
    closed = np.empty((10, 16 + n + 2 * batches.shape[0]), np.int64)
    closed_count = 0
    update = np.empty((32, 5), np.int64)
    new = np.empty((64, 5), np.int64)
    end = np.empty(3, np.int64)
    seen = 0
    reach = reaches(losses)
    for n_record in range(n):
        key = keys[n_record]
        at = ats[n_record]
        kind = kinds[n_record]
        seen = note_losses(losses, reach, seen, at, scalars)
        state = scalars[key]  # one view a record: each view costs a reference count
        mark_incomplete(state, losses, reach, seen)
        size = batch_at[n_record + 1] - batch_at[n_record]
        old_count = state[RANGE_COUNT]
        room = 2 * (old_count + 2 * size) + 4
        if 2 * size + 2 > update.shape[0]:
            update = grown(update, 2 * size + 2)
        if room > new.shape[0]:
            new = grown(new, room)
        if used + 2 * room > pool.shape[0]:
            pool = grown(pool, used + 2 * room)
        if closed_count + old_count > closed.shape[1]:
            closed = with_column_room(closed, closed_count + old_count)
        record_batches = batches[batch_at[n_record] : batch_at[n_record + 1]]
        combines = kind == UPDATE and state[PRESENT] == 1
        end[0] = at
        end[1] = times[n_record]
        end[2] = fold_scalars(state, kind, values[n_record], at, no_batches[n_record], limit)
        mark_by_record(state, uncommitted[n_record], unknown[n_record])
        if combines:
            count = canonical(record_batches, size, update)
            used, closed_count = combine(state, key, pool, used, update, count, new, end, closed, closed_count)
        elif kind != OTHER:
            count = 0 if kind == TOMBSTONE else canonical(record_batches, size, new)
            begin = state[RANGE_AT]
            closed_count = exchange(state, key, pool, begin, begin + old_count, new, count, end, closed, closed_count)
            used = splice(state, pool, used, 0, 0, old_count, new, count)
        keep_state_after(state, end, after, n_record)
    seen = note_losses(losses, reach, seen, MAX_OFFSET, scalars)
    for key in range(scalars.shape[0]):
        mark_incomplete(scalars[key], losses, reach, seen)
    return after, closed, closed_count, pool, used
