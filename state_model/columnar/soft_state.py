"""The soft state of a share partition as kernels have it: its columns, how records change them, its completeness."""

import numpy as np

from state_model.columnar.kernels import kernel, leaf
from state_model.columnar.ranges import NONE

SNAPSHOT, UPDATE, TOMBSTONE, OTHER = 0, 1, 2, 3
COMPLETE, PROVISIONAL, INCOMPLETE, UNCOMMITTED = 0, 1, 2, 3
RESET, DELETED = 4, 5
"""Reasons of an end, as in codes.END_REASONS, that end a life."""
UNKNOWN_STATE = 10
"""The reason of a state that rests on a delivery state or a record type of a later Kafka."""

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
    RANGE_BASE,
) = range(21)
SCALAR_COUNT = 21


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
    # Each snapshot raises the snapshot epoch; only the first one after a (re-)creation has 0.
    if snapshot_epoch == 0:
        return True
    if state[SNAPSHOT_AT] == NONE:  # a provisional state has no certain value to compare with
        return False
    # A snapshot of a write or of the cold job keeps the state epoch, keeps or raises the leader epoch and never removes
    # a start offset (share-group-state-log §5-6): only Initialize does.
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
    """Deletes a share partition's state, as a tombstone does."""
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
    # LEADER_MAX and STATE_MAX fence requests: they only grow until a tombstone, and may exceed the epochs of the state.
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
        # A cold snapshot or Initialize below the limit doesn't reset Kafka's counter (§6).
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
        # No snapshot of this life was read before its update: what the update doesn't carry is unknown.
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
    # Losses ascend by their first offset, not by their last: the running maximum makes `reach` ascend, so that it can
    # be searched.
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
    """Marks the state after an uncommitted record, or one with an unknown state or type, which may hide a loss."""
    if state[PRESENT] == 0:
        return
    if uncommitted:
        mark_uncommitted(state)
    if unknown and state[COMPLETENESS] != PROVISIONAL:
        state[COMPLETENESS] = INCOMPLETE
        state[REASON] = UNKNOWN_STATE


@leaf
def mark_incomplete(state: np.ndarray, losses: np.ndarray, reach: np.ndarray, applied_count: int) -> None:
    """Marks a state whose snapshot is older than one of the first `applied_count` losses; its reason is the first's."""
    # A snapshot carries the whole state, so only losses behind it count. `reach` ascends: the search finds the first.
    if applied_count == 0 or reach[applied_count - 1] <= state[SNAPSHOT_AT]:
        return
    mark(state, losses[np.searchsorted(reach[:applied_count], state[SNAPSHOT_AT], side="right"), 2])


@leaf
def note_losses(losses: np.ndarray, reach: np.ndarray, applied_count: int, before: int, scalars: np.ndarray) -> int:
    """Applies the losses that begin below `before`; how many are applied by now.

    A loss of a single share partition marks it at once, after the earlier losses of all share partitions.
    """
    # `seen` only grows: each loss is looked at once in a fold. A loss of all share partitions isn't written to each of
    # them here, which would cost losses times share partitions; `mark_incomplete` finds it at their next record.
    while applied_count < losses.shape[0] and losses[applied_count, 0] < before:
        key = losses[applied_count, 3]
        if key != NONE:
            mark_incomplete(scalars[key], losses, reach, applied_count)
            if scalars[key, SNAPSHOT_AT] < losses[applied_count, 1]:
                mark(scalars[key], losses[applied_count, 2])
        applied_count += 1
    return applied_count
