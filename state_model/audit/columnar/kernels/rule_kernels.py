"""Kernels of the rules: one record of a share partition at a time, against the state before it (audit-invariants §2-7).

The names of the rules are in the table; here they are their ids. `row`: the record's value, the columns SNAPSHOT_EPOCH
to WRITE. `hits`: violations so far, of which there are `n`; each function returns their new number.
"""

import numpy as np

from state_model.audit.columnar.kernels.hits import (
    F_BATCHES,
    F_CREATE,
    F_DCC,
    F_FIRST,
    F_LEADER_EPOCH,
    F_OFFSET_STATE,
    F_SNAPSHOT_EPOCH,
    F_START,
    F_STATE_EPOCH,
    F_TYPE,
    F_UPDATES,
    F_WRITE,
    NONE,
    Hits,
    hit,
)
from state_model.audit.columnar.kernels.layout import (
    COLD,
    CREATE,
    DCC,
    DELETED,
    EITHER,
    INIT,
    LEADER_EPOCH,
    LIVE,
    NEW,
    NO_SNAPSHOT,
    ORPHAN,
    SNAPSHOT,
    SNAPSHOT_EPOCH,
    STANDING,
    START,
    STATE_EPOCH,
    TERMINAL_OFFSETS,
    UPDATE,
    UPDATES,
    VALUE,
    WRITE,
    WRITTEN,
)
from state_model.audit.columnar.kernels.step_kernels import (
    FIRST_AT,
    FIRST_VALUE,
    HAS_CELLS,
    IS_AFTER_OUTCOME,
    IS_LOWER,
    IS_REPEATED,
    LOWER_AT,
    LOWER_BEFORE,
    LOWER_WRITTEN,
    MAX_OFFSET,
    OUTCOME_AT,
    OUTCOME_BEFORE,
    OUTCOME_WRITTEN,
)
from state_model.columnar.kernels import leaf

MOST_UPDATES = 500
LARGEST_EPOCH = (1 << 31) - 1
LOWEST_EPOCH = -(1 << 31)
CLOCK_MS = 1000
OPERATION_MS = 5


@leaf
def is_apart(left_value: int, right_value: int, max_difference: int) -> bool:
    """Whether two numbers differ by more than `max_difference`; their difference may need 64 bits without a sign."""
    return bool(
        np.uint64(max(left_value, right_value)) - np.uint64(min(left_value, right_value)) > np.uint64(max_difference)
    )


@leaf
def has_init_count(row: np.ndarray) -> bool:
    """Whether the delivery complete count is that of Initialize; -1 always is (P5)."""
    dcc = row[DCC - VALUE]
    return bool(dcc == NONE or (dcc == 0 and row[START - VALUE] != NONE))


@leaf
def has_write_shape(row: np.ndarray, batches: int) -> bool:
    """Whether Initialize can't have written the snapshot."""
    return batches > 0 or row[LEADER_EPOCH - VALUE] > 0 or not has_init_count(row)


@leaf
def snapshot_kind(state: np.ndarray, row: np.ndarray, batches: int) -> int:
    """COLD, INIT, WRITTEN or EITHER (P3)."""
    # Only the cold snapshot job keeps the create time and renews the write time.
    if row[CREATE - VALUE] != row[WRITE - VALUE]:
        return COLD
    if state[STANDING] == NEW or state[STANDING] == DELETED:
        return INIT
    # Writes keep the state epoch, never lower the leader epoch and never remove a start offset: only Initialize does.
    if state[STANDING] == LIVE and (
        row[STATE_EPOCH - VALUE] != state[STATE_EPOCH]
        or row[LEADER_EPOCH - VALUE] < state[LEADER_EPOCH]
        or (row[START - VALUE] == NONE and state[START] >= 0)
    ):
        return INIT
    return WRITTEN if has_write_shape(row, batches) else EITHER


@leaf
def check_scalars(kind: int, row: np.ndarray, time_ms: int, hits: Hits, n: int) -> int:
    """Rules 25 (epochs), 56, 58 (timestamps) and 60 (delivery complete count), of the record alone."""
    if row[SNAPSHOT_EPOCH - VALUE] < 0:
        n = hit(hits, n, 250, F_SNAPSHOT_EPOCH, 0, row[SNAPSHOT_EPOCH - VALUE])
    elif row[LEADER_EPOCH - VALUE] < 0:
        n = hit(hits, n, 250, F_LEADER_EPOCH, 0, row[LEADER_EPOCH - VALUE])
    elif kind == SNAPSHOT and row[STATE_EPOCH - VALUE] < 0:
        n = hit(hits, n, 250, F_STATE_EPOCH, 0, row[STATE_EPOCH - VALUE])
    if row[DCC - VALUE] < NONE:
        n = hit(hits, n, 600, F_DCC, 0, row[DCC - VALUE])
    if kind == SNAPSHOT:
        written = row[WRITE - VALUE]
        if row[CREATE - VALUE] > written:
            n = hit(hits, n, 560, F_CREATE, written, row[CREATE - VALUE])
        if is_apart(written, time_ms, CLOCK_MS):
            n = hit(hits, n, 580, F_WRITE, time_ms, written)
    return n


@leaf
def check_creation(row: np.ndarray, batches: int, rule: int, hits: Hits, n: int) -> int:
    """Rule 8 or 9: the shape of a creation."""
    if row[SNAPSHOT_EPOCH - VALUE] != 0:
        return hit(hits, n, rule, F_SNAPSHOT_EPOCH, 0, row[SNAPSHOT_EPOCH - VALUE])
    if batches > 0:
        return hit(hits, n, rule, F_BATCHES, 0, batches)
    if row[LEADER_EPOCH - VALUE] != 0:
        return hit(hits, n, rule, F_LEADER_EPOCH, 0, row[LEADER_EPOCH - VALUE])
    return n


@leaf
def check_sequence(state: np.ndarray, kind: int, row: np.ndarray, batches: int, hits: Hits, n: int) -> int:
    """Rules 8 to 11, 15 and 16: the record type and snapshot epoch that may follow the state."""
    standing = state[STANDING]
    if standing == NEW:
        if kind != SNAPSHOT:
            return hit(hits, n, 80, F_TYPE, SNAPSHOT, kind)
        return check_creation(row, batches, 80, hits, n)
    if standing == DELETED:
        if kind != SNAPSHOT:
            return hit(hits, n, 160 if kind == UPDATE else 150, F_TYPE, SNAPSHOT, kind)
        return check_creation(row, batches, 90, hits, n)
    # Without a known state before it, there is no epoch to compare with.
    if standing != LIVE:
        return n
    epoch = row[SNAPSHOT_EPOCH - VALUE]
    following = state[SNAPSHOT_EPOCH] + 1 if state[SNAPSHOT_EPOCH] != LARGEST_EPOCH else LOWEST_EPOCH
    if kind == SNAPSHOT and epoch != following:
        n = hit(hits, n, 100, F_SNAPSHOT_EPOCH, following, epoch)
    if kind == UPDATE and epoch != state[SNAPSHOT_EPOCH]:
        n = hit(hits, n, 110, F_SNAPSHOT_EPOCH, state[SNAPSHOT_EPOCH], epoch)
    return n


@leaf
def check_init_shape(row: np.ndarray, batches: int, rule: int, hits: Hits, n: int) -> int:
    """Rule 19 or 55: the shape that Initialize writes."""
    if batches > 0:
        return hit(hits, n, rule, F_BATCHES, 0, batches)
    if row[LEADER_EPOCH - VALUE] != 0:
        return hit(hits, n, rule, F_LEADER_EPOCH, 0, row[LEADER_EPOCH - VALUE])
    if not has_init_count(row):
        expected = NONE if row[START - VALUE] == NONE else 0
        return hit(hits, n, rule, F_DCC, expected, row[DCC - VALUE])
    return n


@leaf
def check_snapshot_epochs(state: np.ndarray, row: np.ndarray, snapshot: int, batches: int, hits: Hits, n: int) -> int:
    """Rules 18, 19, 54 and 55: the epochs of a snapshot."""
    epoch = row[STATE_EPOCH - VALUE]
    is_live = state[STANDING] == LIVE
    if is_live and epoch < state[STATE_EPOCH]:
        n = hit(hits, n, 180, F_STATE_EPOCH, state[STATE_EPOCH], epoch)
    if is_live and epoch != state[STATE_EPOCH]:
        if snapshot == COLD:
            n = hit(hits, n, 190, F_CREATE, row[WRITE - VALUE], row[CREATE - VALUE])
        else:
            n = check_init_shape(row, batches, 190, hits, n)
    if is_live and snapshot != COLD and has_write_shape(row, batches):
        if epoch != state[STATE_EPOCH]:
            n = hit(hits, n, 540, F_STATE_EPOCH, state[STATE_EPOCH], epoch)
        elif row[LEADER_EPOCH - VALUE] < state[LEADER_EPOCH]:
            n = hit(hits, n, 540, F_LEADER_EPOCH, state[LEADER_EPOCH], row[LEADER_EPOCH - VALUE])
    if snapshot == INIT:
        n = check_init_shape(row, batches, 550, hits, n)
    return n


@leaf
def check_update(state: np.ndarray, row: np.ndarray, batches: int, hits: Hits, n: int) -> int:
    """Rules 21, 23, 39 and 64: the scalars of an update of a known state."""
    epoch = row[LEADER_EPOCH - VALUE]
    dcc = row[DCC - VALUE]
    if epoch != NONE and epoch < state[LEADER_EPOCH]:
        n = hit(hits, n, 210, F_LEADER_EPOCH, state[LEADER_EPOCH], epoch)
    if epoch > state[LEADER_EPOCH]:
        if batches > 0:
            n = hit(hits, n, 230, F_BATCHES, 0, batches)
        else:
            n = check_same_scalars(state, row, hits, n)
    elif batches == 0:
        n = hit(hits, n, 390, F_BATCHES, 1, 0)
    if row[START - VALUE] == state[START] and NONE < dcc < state[DCC]:
        n = hit(hits, n, 640, F_DCC, state[DCC], dcc)
    return n


@leaf
def check_same_scalars(state: np.ndarray, row: np.ndarray, hits: Hits, n: int) -> int:
    """Rule 23: a record that raises the leader epoch repeats delivery complete count and start offset."""
    if row[DCC - VALUE] != state[DCC]:
        return hit(hits, n, 230, F_DCC, state[DCC], row[DCC - VALUE])
    if row[START - VALUE] != state[START]:
        return hit(hits, n, 230, F_START, state[START], row[START - VALUE])
    return n


@leaf
def check_start(state: np.ndarray, row: np.ndarray, snapshot: int, hits: Hits, n: int) -> int:
    """Rules 26 and 27: the start offset of a record of a known state. `snapshot`: NO_SNAPSHOT for an update."""
    start = row[START - VALUE]
    if snapshot != INIT and snapshot != EITHER:
        if start < NONE and state[START] >= NONE:
            n = hit(hits, n, 260, F_START, NONE, start)
        elif snapshot != NO_SNAPSHOT and start == NONE and state[START] >= 0:
            n = hit(hits, n, 260, F_START, 0, start)
    is_write = snapshot in (NO_SNAPSHOT, WRITTEN)
    if is_write and 0 <= start < state[START]:
        n = hit(hits, n, 270, F_START, state[START], start)
    return n


@leaf
def check_cold_scalars(state: np.ndarray, row: np.ndarray, hits: Hits, n: int) -> int:
    """Rule 51: the scalars that a cold snapshot repeats."""
    if row[START - VALUE] != state[START]:
        return hit(hits, n, 510, F_START, state[START], row[START - VALUE])
    if row[DCC - VALUE] != state[DCC]:
        return hit(hits, n, 510, F_DCC, state[DCC], row[DCC - VALUE])
    if row[LEADER_EPOCH - VALUE] != state[LEADER_EPOCH]:
        return hit(hits, n, 510, F_LEADER_EPOCH, state[LEADER_EPOCH], row[LEADER_EPOCH - VALUE])
    if row[STATE_EPOCH - VALUE] != state[STATE_EPOCH]:
        return hit(hits, n, 510, F_STATE_EPOCH, state[STATE_EPOCH], row[STATE_EPOCH - VALUE])
    if row[CREATE - VALUE] != state[CREATE]:
        return hit(hits, n, 510, F_CREATE, state[CREATE], row[CREATE - VALUE])
    return n


@leaf
def check_cells(notes: np.ndarray, hits: Hits, n: int) -> int:
    """Rules 47 (stale write), 48 (repeated write) and 49 (delivered after its outcome), from the notes of an update."""
    if notes[HAS_CELLS] and notes[IS_REPEATED]:
        n = hit(hits, n, 480, F_OFFSET_STATE, notes[FIRST_VALUE], notes[FIRST_VALUE], notes[FIRST_AT])
    if notes[IS_LOWER]:
        n = hit(hits, n, 470, F_OFFSET_STATE, notes[LOWER_BEFORE], notes[LOWER_WRITTEN], notes[LOWER_AT])
    if notes[IS_AFTER_OUTCOME]:
        n = hit(hits, n, 490, F_OFFSET_STATE, notes[OUTCOME_BEFORE], notes[OUTCOME_WRITTEN], notes[OUTCOME_AT])
    return n


@leaf
def check_after(state: np.ndarray, kind: int, dcc: int, first: int, hits: Hits, n: int) -> int:
    """Rules 12, 34, 62 and 63: the state after a snapshot or an update. `first`: its first offset; -1 of none."""
    if kind == UPDATE and state[UPDATES] > MOST_UPDATES and (state[STANDING] == LIVE or state[STANDING] == ORPHAN):
        n = hit(hits, n, 120, F_UPDATES, MOST_UPDATES, state[UPDATES])
    if state[STANDING] != LIVE:
        return n
    if state[START] >= 0 and first < state[START]:
        n = hit(hits, n, 340, F_FIRST, state[START], first)
    # 2^63 terminal offsets wrap to a negative number; no delivery complete count reaches them.
    if dcc > NONE:
        terminal = state[TERMINAL_OFFSETS] if state[TERMINAL_OFFSETS] >= 0 else MAX_OFFSET
        if dcc < terminal:
            n = hit(hits, n, 620, F_DCC, terminal, dcc)
        elif dcc > terminal:
            n = hit(hits, n, 630, F_DCC, terminal, dcc)
    return n
