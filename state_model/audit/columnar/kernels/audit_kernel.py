"""The kernel that walks the records of a state partition: checks each, then applies it to its share partition."""

import numpy as np

from state_model.audit.columnar.kernels.batch_kernels import (
    check_counts,
    check_limit,
    check_order,
    check_ranges,
    check_states,
)
from state_model.audit.columnar.kernels.hits import F_LOG_OFFSET, F_OFFSET_STATE, NONE, Hits, hit
from state_model.audit.columnar.kernels.layout import (
    ARCHIVING_MS,
    BEGIN,
    COLD,
    DCC,
    DELETED,
    HIT_COLUMNS,
    HITS_A_RECORD,
    LARGEST_START,
    LAST_AT,
    LEADER_EPOCH,
    LIMIT,
    LIVE,
    LOSSES_SEEN,
    MARK_PREVIOUS,
    MARK_ROW,
    MARK_SNAPSHOT,
    NO_SNAPSHOT,
    ORPHAN,
    PASSED_COLUMNS,
    SIZE,
    SNAPSHOT,
    SNAPSHOT_AT,
    STANDING,
    START,
    TERMINAL_OFFSETS,
    TOMBSTONE,
    UNKNOWN,
    UPDATE,
    UPDATES,
    VALUE,
    WRITE,
    WRITTEN,
    AuditedRecords,
    Record,
    StateBatches,
)
from state_model.audit.columnar.kernels.passed_kernels import (
    largest_start,
    note_passed,
)
from state_model.audit.columnar.kernels.rule_kernels import (
    OPERATION_MS,
    check_after,
    check_cells,
    check_cold_scalars,
    check_same_scalars,
    check_scalars,
    check_sequence,
    check_snapshot_epochs,
    check_start,
    check_update,
    is_apart,
    snapshot_kind,
)
from state_model.audit.columnar.kernels.step_kernels import (
    MAX_OFFSET,
    MIN_OFFSET,
    NO_STATE,
    NOTE_COUNT,
    Breakpoints,
    bound_of,
    cut_below,
    first_unlike,
    is_ascending,
    is_terminal,
    last_up_to,
    of_any,
    of_ascending,
    offsets_from_zero,
    raise_by,
    splice,
)
from state_model.columnar.kernels import kernel, leaf

ARCHIVING, LARGEST_STATE = 3, 4
# The log of a state partition between calls: the cold snapshot before; the losses of this call and of all calls that
# were applied; the number of the last one that touched all share partitions.
COLD_AT, COLD_WRITE_MS, LOSSES, LOSS_COUNT, LAST_OF_ALL = range(5)


@kernel
def with_rows(rows: np.ndarray, need: int) -> np.ndarray:
    """A copy of `rows` with room for `need` of them and for twice as many as before."""
    larger_rows = np.empty((max(need, 2 * rows.shape[0]), rows.shape[1]), rows.dtype)
    larger_rows[: rows.shape[0]] = rows
    return larger_rows


@kernel
def with_room(breakpoints: Breakpoints, need: int) -> Breakpoints:
    """A copy of `breakpoints` with room for `need` of them and for twice as many as before."""
    size = breakpoints.at.shape[0]
    at = np.empty(max(need, 2 * size), np.int64)
    values = np.empty(max(need, 2 * size), np.int64)
    at[:size] = breakpoints.at
    values[:size] = breakpoints.values
    return Breakpoints(at, values)


@leaf
def forget(state: np.ndarray, standing: int) -> None:
    """Drops the state of a share partition."""
    state[STANDING] = standing
    state[SIZE] = 0
    state[TERMINAL_OFFSETS] = 0
    state[UPDATES] = 0
    state[SNAPSHOT_AT] = NONE
    state[LAST_AT] = NONE
    state[ARCHIVING_MS] = NONE


@leaf
def apply_losses(losses: np.ndarray, before: int, log: np.ndarray, matrix: np.ndarray) -> None:
    """Applies the losses (log offset, share partition or -1 for all) that begin below a log offset."""
    # Losses ascend, so each is applied once. One of all share partitions is only numbered here; `catch_up` applies it
    # at the next record of each: no cost of losses times share partitions.
    while log[LOSSES] < losses.shape[0] and losses[log[LOSSES], 0] < before:
        key = losses[log[LOSSES], 1]
        log[LOSSES] += 1
        log[LOSS_COUNT] += 1
        if key == NONE:
            log[LAST_OF_ALL] = log[LOSS_COUNT]
        else:
            forget(matrix[key], UNKNOWN)
            matrix[key, LOSSES_SEEN] = log[LOSS_COUNT]


@leaf
def catch_up(state: np.ndarray, log: np.ndarray) -> None:
    """Forgets a state whose log lost records of all share partitions since the last look."""
    if state[LOSSES_SEEN] < log[LAST_OF_ALL]:
        forget(state, UNKNOWN)
    state[LOSSES_SEEN] = log[LOSS_COUNT]


@leaf
def check_record(state: np.ndarray, record: Record, batches: StateBatches, hits: Hits, n: int) -> int:
    """Tests the rules on the record alone and on the scalars of the state before it; the number of violations."""
    row, snapshot, low, high = record.row, record.snapshot, record.low, record.high
    n = check_sequence(state, record.kind, row, high - low, hits, n)
    if record.kind == TOMBSTONE:
        return n
    n = check_scalars(record.kind, row, record.time_ms, hits, n)
    if high > low:
        n = check_order(batches, low, high, snapshot, hits, n)
        n = check_ranges(batches, low, high, row[START - VALUE], hits, n)
        n = check_states(batches, low, high, hits, n)
        n = check_counts(batches, low, high, hits, n)
        if state[LIMIT] != NONE:
            n = check_limit(batches, low, high, state[LIMIT], hits, n)
    if record.kind == SNAPSHOT:
        n = check_snapshot_epochs(state, row, snapshot, high - low, hits, n)
    elif state[STANDING] == LIVE:
        n = check_update(state, row, high - low, hits, n)
    if state[STANDING] == LIVE:
        n = check_start(state, row, snapshot, hits, n)
    return n


@leaf
def check_content(
    state: np.ndarray, record: Record, pool: Breakpoints, written: Breakpoints, notes: np.ndarray, hits: Hits, n: int
) -> int:
    """Rules 23, 51 and 52: the content of a snapshot against the known state before it."""
    # The ranges are compared only where the scalars agree: a record violates a rule once.
    row = record.row
    begin = state[BEGIN]
    end = begin + state[SIZE]
    before = Breakpoints(pool.at[begin:end], pool.values[begin:end])
    count = n
    if record.snapshot == COLD:
        n = check_cold_scalars(state, row, hits, n)
        if n == count and first_unlike(before, written, MIN_OFFSET, False, notes):
            n = hit(hits, n, 510, F_OFFSET_STATE, notes[1], notes[2], notes[0])
    elif record.snapshot == WRITTEN:
        start = row[START - VALUE] if row[START - VALUE] != NONE else MIN_OFFSET
        if first_unlike(before, written, start, True, notes):
            n = hit(hits, n, 520, F_OFFSET_STATE, notes[1], notes[2], notes[0])
        if row[LEADER_EPOCH - VALUE] > state[LEADER_EPOCH]:
            count = n
            n = check_same_scalars(state, row, hits, n)
            if n == count and first_unlike(before, written, MIN_OFFSET, False, notes):
                n = hit(hits, n, 230, F_OFFSET_STATE, notes[1], notes[2], notes[0])
    return n


@leaf
def take_snapshot(state: np.ndarray, record: Record, pool: Breakpoints, used: int, written: Breakpoints) -> int:
    """Sets the state to a snapshot: its scalars, its function and its terminal offsets; the length of the pool."""
    state[STANDING] = LIVE
    for column in range(VALUE, WRITE + 1):
        state[column] = record.row[column - VALUE]
    state[UPDATES] = 0
    state[SNAPSHOT_AT] = record.log_offset
    state[ARCHIVING_MS] = NONE
    # A snapshot replaces the function, so its terminal offsets are counted again; updates then add differences.
    terminal = 0
    size = written.at.shape[0]
    for i in range(size):
        if is_terminal(written.values[i]):
            last = MAX_OFFSET if i + 1 == size else bound_of(written.at, i + 1, size) - 1
            terminal += offsets_from_zero(written.at[i], last)
    state[TERMINAL_OFFSETS] = terminal
    return splice(state, pool, used, state[BEGIN], state[BEGIN] + state[SIZE], written, size)


@leaf
def take_update(state: np.ndarray, row: np.ndarray) -> None:
    """Applies the scalars of an update; `merge` applies its batches."""
    if state[STANDING] != LIVE:
        state[UPDATES] = state[UPDATES] + 1 if state[STANDING] == ORPHAN else 1
        state[STANDING] = ORPHAN
        return
    state[UPDATES] += 1
    if row[LEADER_EPOCH - VALUE] != NONE:
        state[LEADER_EPOCH] = row[LEADER_EPOCH - VALUE]
    if row[START - VALUE] != NONE:
        state[START] = row[START - VALUE]
    state[DCC] = row[DCC - VALUE]


@leaf
def has_archiving(states: np.ndarray, low: int, high: int) -> bool:
    """Whether one of the batches is ARCHIVING."""
    place = low
    while place < high and states[place] != ARCHIVING:
        place += 1
    return place < high


@leaf
def forget_unknown_state(state: np.ndarray, states: np.ndarray, low: int, high: int) -> None:
    """Drops the state of a share partition where one of the record's batches is in a state of a later Kafka."""
    # Such a state may not follow the maximum rule: what follows can't be compared up to the next snapshot.
    place = low
    while place < high and 0 <= states[place] <= LARGEST_STATE:
        place += 1
    if place < high:
        forget(state, UNKNOWN)


@leaf
def merge(
    state: np.ndarray, pool: Breakpoints, used: int, written: Breakpoints, new: Breakpoints, notes: np.ndarray
) -> int:
    """Merges an update's function into a known state, both cut below its start offset; the length of the pool."""
    # `written` is scratch of this record: its first breakpoint may move up to the start offset.
    size = written.at.shape[0]
    low = 0
    if state[START] != NONE:
        cut_below(state, pool, state[START])
        place = last_up_to(written.at, 0, size, state[START])
        if place >= 0:
            low = place if written.values[place] != NO_STATE else place + 1
            if low == place:
                written.at[place] = state[START]
    for i in range(NOTE_COUNT):
        notes[i] = 0
    if low >= size:
        return used
    first, end, n = raise_by(state, pool, Breakpoints(written.at[low:], written.values[low:]), new, notes)
    return splice(state, pool, used, first, end, new, n)


@leaf
def check_operation(log: np.ndarray, log_offset: int, write_ms: int, hits: Hits, n: int) -> int:
    """Rule 59: a cold snapshot follows the one before it of the same operation."""
    if (
        log[COLD_AT] != NONE
        and log[COLD_AT] + 1 != log_offset
        and not is_apart(log[COLD_WRITE_MS], write_ms, OPERATION_MS)
    ):
        n = hit(hits, n, 590, F_LOG_OFFSET, log[COLD_AT] + 1, log_offset)
    log[COLD_AT] = log_offset
    log[COLD_WRITE_MS] = write_ms
    return n


@kernel
def function_of(batches: StateBatches, low: int, high: int, out: Breakpoints) -> int:
    """The step function of the state batches [low, high); its number of breakpoints."""
    if low == high:
        return 0
    if is_ascending(batches, low, high):
        return of_ascending(batches, low, high, out)
    return of_any(batches, low, high, out)


@leaf
def check_snapshot(
    state: np.ndarray, record: Record, pool: Breakpoints, written: Breakpoints, log: np.ndarray, notes: np.ndarray,
    hits: Hits, n: int,
) -> int:  # fmt: skip
    """Tests the rules on a snapshot's operation and content, before `take_snapshot`; the number of violations."""
    if record.snapshot == COLD:
        n = check_operation(log, record.log_offset, record.row[WRITE - VALUE], hits, n)
    if state[STANDING] == LIVE:
        n = check_content(state, record, pool, written, notes, hits, n)
    return n


@leaf
def after_record(
    state: np.ndarray, record: Record, batches: StateBatches, pool: Breakpoints, hits: Hits, n: int
) -> int:
    """Checks the state after a snapshot or an update, and notes when it was ARCHIVING last."""
    if state[STANDING] == LIVE and has_archiving(batches.states, record.low, record.high):
        state[ARCHIVING_MS] = record.time_ms
    lowest = pool.at[state[BEGIN]] if state[SIZE] > 0 else MAX_OFFSET
    return check_after(state, record.kind, record.row[DCC - VALUE], lowest, hits, n)


@kernel
def audit_records(
    records: AuditedRecords, batches: StateBatches, losses: np.ndarray, log: np.ndarray, matrix: np.ndarray,
    pool: Breakpoints, used: int,
) -> tuple[np.ndarray, int, np.ndarray, int, Breakpoints, int]:  # fmt: skip
    """Audits the records of one state partition, in log order; changes `matrix`, `log` and the pool.

    `losses`: rows of (log offset, share partition or -1), ascending. Returns the violations with their number, the
    ranges that start offsets pass without an outcome (PASSED_*) with theirs, and the pool with its length.
    """
    mark = np.empty(3, np.int64)
    hits = Hits(np.empty((2 * HITS_A_RECORD, HIT_COLUMNS), np.int64), mark)
    n = 0
    passed = np.empty((64, PASSED_COLUMNS), np.int64)
    passed_count = 0
    notes = np.zeros(NOTE_COUNT, np.int64)
    room = Breakpoints(np.empty(64, np.int64), np.empty(64, np.int64))
    new = Breakpoints(np.empty(64, np.int64), np.empty(64, np.int64))
    # Records come in log order and each is checked against the state before it, so all checks precede the changes.
    # Leaves can't allocate: each turn first reserves what its record can need, by its batches and the breakpoints of
    # its state. Memory goes by the bytes of the log, never by the offsets that a record claims.
    # Arrays and their tuples are replaced only where they grow: counting their references costs a quarter of the walk.
    for number in range(records.kinds.shape[0]):
        kind, log_offset, row = records.kinds[number], records.log_offsets[number], records.rows[number]
        low, high = records.batch_at[number], records.batch_at[number + 1]
        apply_losses(losses, log_offset, log, matrix)
        state = matrix[records.keys[number]]
        catch_up(state, log)
        need = 2 * (state[SIZE] + 2 * (high - low) + 4)
        if n + HITS_A_RECORD > hits.rows.shape[0]:
            hits = Hits(with_rows(hits.rows, n + HITS_A_RECORD), mark)
        if need > room.at.shape[0]:
            room, new = with_room(room, need), with_room(new, need)
        if used + need + 8 > pool.at.shape[0]:
            pool = with_room(pool, used + need + 8)
        if passed_count + state[SIZE] + 2 > passed.shape[0]:
            passed = with_rows(passed, passed_count + state[SIZE] + 2)
        mark[MARK_ROW] = number
        mark[MARK_SNAPSHOT] = state[SNAPSHOT_AT]
        mark[MARK_PREVIOUS] = state[LAST_AT]
        snapshot = snapshot_kind(state, row, high - low) if kind == SNAPSHOT else NO_SNAPSHOT
        record = Record(kind, snapshot, log_offset, records.times[number], row, low, high)
        n = check_record(state, record, batches, hits, n)
        passed_count = note_passed(state, record, pool, mark, passed, passed_count)
        largest = largest_start(state, record)
        size = function_of(batches, low, high, room)
        written = Breakpoints(room.at[:size], room.values[:size])
        if kind == SNAPSHOT:
            n = check_snapshot(state, record, pool, written, log, notes, hits, n)
            used = take_snapshot(state, record, pool, used, written)
        elif kind == UPDATE:
            take_update(state, row)
            if state[STANDING] == LIVE:
                used = merge(state, pool, used, written, new, notes)
                n = check_cells(notes, hits, n)
        else:
            forget(state, DELETED)
        forget_unknown_state(state, batches.states, low, high)
        state[LAST_AT] = log_offset
        state[LARGEST_START] = largest
        if kind != TOMBSTONE:
            n = after_record(state, record, batches, pool, hits, n)
    return hits.rows, n, passed, passed_count, pool, used
