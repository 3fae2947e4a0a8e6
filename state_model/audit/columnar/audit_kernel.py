"""The kernel that walks the records of a state partition: checks each, then applies it to its share partition."""

import numpy as np

from state_model.audit.columnar.batch_kernels import check_counts, check_limit, check_order, check_ranges, check_states
from state_model.audit.columnar.hits import F_LOG_OFFSET, F_OFFSET_STATE, NONE, hit
from state_model.audit.columnar.layout import (
    ARCHIVING_MS,
    BEGIN,
    COLD,
    DCC,
    DELETED,
    HIT_COLUMNS,
    HITS_A_RECORD,
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
)
from state_model.audit.columnar.rule_kernels import (
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
from state_model.audit.columnar.step_kernels import (
    MAX_OFFSET,
    MIN_OFFSET,
    NO_STATE,
    NOTE_COUNT,
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
    """`rows` with room for at least `need` of them; contents kept."""
    if need <= rows.shape[0]:
        return rows
    larger_rows = np.empty((max(need, 2 * rows.shape[0]), rows.shape[1]), rows.dtype)
    larger_rows[: rows.shape[0]] = rows
    return larger_rows


@kernel
def with_entries(entries: np.ndarray, need: int) -> np.ndarray:
    """`entries` with room for at least `need` of them; contents kept."""
    if need <= entries.shape[0]:
        return entries
    larger_entries = np.empty(max(need, 2 * entries.shape[0]), entries.dtype)
    larger_entries[: entries.shape[0]] = entries
    return larger_entries


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
def check_record(
    state: np.ndarray, kind: int, row: np.ndarray, snapshot: int, time_ms: int,
    first: np.ndarray, last: np.ndarray, states: np.ndarray, counts: np.ndarray, low: int, high: int,
    hits: np.ndarray, n: int, mark: np.ndarray,
) -> int:  # fmt: skip
    """Tests the rules on the record alone and on the scalars of the state before it; the number of violations."""
    n = check_sequence(state, kind, row, high - low, hits, n, mark)
    if kind == TOMBSTONE:
        return n
    n = check_scalars(kind, row, time_ms, hits, n, mark)
    if high > low:
        n = check_order(first, last, states, counts, low, high, snapshot, hits, n, mark)
        n = check_ranges(first, last, low, high, row[START - VALUE], hits, n, mark)
        n = check_states(first, states, low, high, hits, n, mark)
        n = check_counts(first, counts, low, high, hits, n, mark)
        if state[LIMIT] != NONE:
            n = check_limit(first, states, counts, low, high, state[LIMIT], hits, n, mark)
    if kind == SNAPSHOT:
        n = check_snapshot_epochs(state, row, snapshot, high - low, hits, n, mark)
    elif state[STANDING] == LIVE:
        n = check_update(state, row, high - low, hits, n, mark)
    if state[STANDING] == LIVE:
        n = check_start(state, row, snapshot, hits, n, mark)
    return n


@leaf
def check_content(
    state: np.ndarray, row: np.ndarray, snapshot: int, at: np.ndarray, values: np.ndarray,
    written_at: np.ndarray, written: np.ndarray, size: int, notes: np.ndarray,
    hits: np.ndarray, n: int, mark: np.ndarray,
) -> int:  # fmt: skip
    """Rules 23, 51 and 52: the content of a snapshot against the known state before it."""
    # The ranges are compared only where the scalars agree: a record violates a rule once.
    begin = state[BEGIN]
    end = begin + state[SIZE]
    count = n
    if snapshot == COLD:
        n = check_cold_scalars(state, row, hits, n, mark)
        if n == count and first_unlike(at, values, begin, end, written_at, written, 0, size, MIN_OFFSET, False, notes):
            n = hit(hits, n, mark, 510, F_OFFSET_STATE, notes[1], notes[2], notes[0])
    elif snapshot == WRITTEN:
        start = row[START - VALUE] if row[START - VALUE] != NONE else MIN_OFFSET
        if first_unlike(at, values, begin, end, written_at, written, 0, size, start, True, notes):
            n = hit(hits, n, mark, 520, F_OFFSET_STATE, notes[1], notes[2], notes[0])
        if row[LEADER_EPOCH - VALUE] > state[LEADER_EPOCH]:
            count = n
            n = check_same_scalars(state, row, hits, n, mark)
            if n == count and first_unlike(
                at, values, begin, end, written_at, written, 0, size, MIN_OFFSET, False, notes
            ):
                n = hit(hits, n, mark, 230, F_OFFSET_STATE, notes[1], notes[2], notes[0])
    return n


@leaf
def take_snapshot(
    state: np.ndarray, row: np.ndarray, log_offset: int, written_at: np.ndarray, written: np.ndarray, size: int
) -> None:
    """Sets the state to a snapshot: its scalars and the number of terminal offsets of its step function."""
    state[STANDING] = LIVE
    for column in range(VALUE, WRITE + 1):
        state[column] = row[column - VALUE]
    state[UPDATES] = 0
    state[SNAPSHOT_AT] = log_offset
    state[ARCHIVING_MS] = NONE
    # A snapshot replaces the function, so its terminal offsets are counted anew; updates then add differences.
    terminal = 0
    for i in range(size):
        if is_terminal(written[i]):
            last = MAX_OFFSET if i + 1 == size else bound_of(written_at, i + 1, size) - 1
            terminal += offsets_from_zero(written_at[i], last)
    state[TERMINAL_OFFSETS] = terminal


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
def has_unknown_state(states: np.ndarray, low: int, high: int) -> bool:
    """Whether one of the batches is in a state of a later Kafka, which may not follow the maximum rule."""
    place = low
    while place < high and 0 <= states[place] <= LARGEST_STATE:
        place += 1
    return place < high


@leaf
def merge(
    state: np.ndarray, at: np.ndarray, values: np.ndarray, used: int,
    written_at: np.ndarray, written: np.ndarray, size: int,
    new_at: np.ndarray, new: np.ndarray, notes: np.ndarray,
) -> int:  # fmt: skip
    """Merges an update's function into a known state, both cut below its start offset; the length of the pool."""
    # `written` is scratch of this record: its first breakpoint may move up to the start offset.
    low = 0
    if state[START] != NONE:
        cut_below(state, at, values, state[START])
        place = last_up_to(written_at, 0, size, state[START])
        if place >= 0:
            low = place if written[place] != NO_STATE else place + 1
            if low == place:
                written_at[place] = state[START]
    for i in range(NOTE_COUNT):
        notes[i] = 0
    if low >= size:
        return used
    first, end, n = raise_by(state, at, values, written_at, written, low, size, new_at, new, notes)
    return splice(state, at, values, used, first, end, new_at, new, n)


@leaf
def check_operation(log: np.ndarray, log_offset: int, write_ms: int, hits: np.ndarray, n: int, mark: np.ndarray) -> int:
    """Rule 59: a cold snapshot follows the one before it of the same operation."""
    if (
        log[COLD_AT] != NONE
        and log[COLD_AT] + 1 != log_offset
        and not is_apart(log[COLD_WRITE_MS], write_ms, OPERATION_MS)
    ):
        n = hit(hits, n, mark, 590, F_LOG_OFFSET, log[COLD_AT] + 1, log_offset)
    log[COLD_AT] = log_offset
    log[COLD_WRITE_MS] = write_ms
    return n


@kernel
def function_of(
    first: np.ndarray, last: np.ndarray, states: np.ndarray, counts: np.ndarray, low: int, high: int,
    out_at: np.ndarray, out: np.ndarray,
) -> int:  # fmt: skip
    """The step function of state batches; its number of breakpoints."""
    if low == high:
        return 0
    if is_ascending(first, last, low, high):
        return of_ascending(first, last, states, counts, low, high, out_at, out)
    return of_any(first, last, states, counts, low, high, out_at, out)


@leaf
def on_snapshot(
    state: np.ndarray, row: np.ndarray, snapshot: int, log_offset: int, at: np.ndarray, values: np.ndarray, used: int,
    written_at: np.ndarray, written: np.ndarray, size: int, log: np.ndarray, notes: np.ndarray,
    hits: np.ndarray, n: int, mark: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Checks the content of a snapshot and takes it over; the new number of violations, the length of the pool."""
    if snapshot == COLD:
        n = check_operation(log, log_offset, row[WRITE - VALUE], hits, n, mark)
    if state[STANDING] == LIVE:
        n = check_content(state, row, snapshot, at, values, written_at, written, size, notes, hits, n, mark)
    take_snapshot(state, row, log_offset, written_at, written, size)
    end = state[BEGIN] + state[SIZE]
    return n, splice(state, at, values, used, state[BEGIN], end, written_at, written, size)


@leaf
def after_record(
    state: np.ndarray, kind: int, dcc: int, time_ms: int, at: np.ndarray, states: np.ndarray, low: int, high: int,
    hits: np.ndarray, n: int, mark: np.ndarray,
) -> int:  # fmt: skip
    """Checks the state after a snapshot or an update, and notes when it was ARCHIVING last."""
    if state[STANDING] == LIVE and has_archiving(states, low, high):
        state[ARCHIVING_MS] = time_ms
    lowest = at[state[BEGIN]] if state[SIZE] > 0 else MAX_OFFSET
    return check_after(state, kind, dcc, lowest, hits, n, mark)


@kernel
def audit_records(
    kinds: np.ndarray, keys: np.ndarray, ats: np.ndarray, times: np.ndarray, rows: np.ndarray,
    batch_at: np.ndarray, first: np.ndarray, last: np.ndarray, states: np.ndarray, counts: np.ndarray,
    losses: np.ndarray, log: np.ndarray, matrix: np.ndarray, at: np.ndarray, values: np.ndarray, used: int,
) -> tuple[np.ndarray, int, np.ndarray, np.ndarray, int]:  # fmt: skip
    """Audits the records of one state partition, in log order; changes `matrix`, `log` and the pool (at, values).

    `rows`: a value's columns SNAPSHOT_EPOCH to WRITE each. `batch_at`: n + 1 positions into the batches. `losses`: rows
    of (log offset, share partition or -1), ascending. Returns the violations with their number, and the pool with its
    length.
    """
    hits = np.empty((2 * HITS_A_RECORD, HIT_COLUMNS), np.int64)
    n = 0
    mark = np.empty(3, np.int64)
    notes = np.zeros(NOTE_COUNT, np.int64)
    written_at, written = np.empty(64, np.int64), np.empty(64, np.int64)
    new_at, new = np.empty(64, np.int64), np.empty(64, np.int64)
    # Records come in log order and each is checked against the state before it, so all checks precede the changes.
    # Leaves can't allocate: each turn first reserves what its record can need, by its batches and the breakpoints of
    # its state. Memory goes by the bytes of the log, never by the offsets that a record claims.
    for record in range(kinds.shape[0]):
        kind, log_offset, row = kinds[record], ats[record], rows[record]
        low, high = batch_at[record], batch_at[record + 1]
        apply_losses(losses, log_offset, log, matrix)
        state = matrix[keys[record]]
        catch_up(state, log)
        hits = with_rows(hits, n + HITS_A_RECORD)
        room = 2 * (state[SIZE] + 2 * (high - low) + 4)
        written_at, written = with_entries(written_at, room), with_entries(written, room)
        new_at, new = with_entries(new_at, room), with_entries(new, room)
        at, values = with_entries(at, used + room + 8), with_entries(values, used + room + 8)
        mark[MARK_ROW] = record
        mark[MARK_SNAPSHOT] = state[SNAPSHOT_AT]
        mark[MARK_PREVIOUS] = state[LAST_AT]
        snapshot = snapshot_kind(state, row, high - low) if kind == SNAPSHOT else NO_SNAPSHOT
        n = check_record(
            state, kind, row, snapshot, times[record], first, last, states, counts, low, high, hits, n, mark
        )
        size = function_of(first, last, states, counts, low, high, written_at, written)
        if kind == SNAPSHOT:
            n, used = on_snapshot(
                state, row, snapshot, log_offset, at, values, used, written_at, written, size, log, notes, hits, n, mark
            )
        elif kind == UPDATE:
            take_update(state, row)
            if state[STANDING] == LIVE:
                used = merge(state, at, values, used, written_at, written, size, new_at, new, notes)
                n = check_cells(notes, hits, n, mark)
        else:
            forget(state, DELETED)
        # The state of a later Kafka may not follow the maximum rule: what follows can't be compared up to the next
        # snapshot.
        if has_unknown_state(states, low, high):
            forget(state, UNKNOWN)
        state[LAST_AT] = log_offset
        if kind != TOMBSTONE:
            n = after_record(state, kind, row[DCC - VALUE], times[record], at, states, low, high, hits, n, mark)
    return hits, n, at, values, used
