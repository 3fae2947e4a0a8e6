"""The share coordinator's rule for snapshots, over the operations of one state partition, as a kernel."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from state_model.columnar.kernels import kernel

WRITE, INITIALIZE, COLD_SNAPSHOT, FIRST_COLD_SNAPSHOT, DELETE = range(5)
"""Operations: Kafka's Write (or its Read that raised the leader epoch), Initialize, the cold snapshot job, Delete.

FIRST_COLD_SNAPSHOT: of the job, and the first record of the share partition in the log, so no replay derives it.
"""
# Columns of a share partition's figures.
(RECORDS, SNAPSHOTS, COLD_SNAPSHOTS, UPDATES, BYTES, TO_REPLAY, MOST_TO_REPLAY) = range(7)
FIGURES = ("records", "snapshots", "cold_snapshots", "updates", "bytes", "records_to_replay", "most_records_to_replay")
"""`records_to_replay`: from the newest snapshot on, at the end; `most_…`: the largest number at any time."""
MOST_BYTES, OLDEST_MS = range(len(FIGURES), len(FIGURES) + 2)
"""Columns behind the figures: the largest bytes, and the largest age that a newest snapshot had at any time."""
# Columns of the bytes of an operation: as an update, as a snapshot at least and at most, as logged.
(AS_UPDATE, AS_SNAPSHOT, AS_SNAPSHOT_AT_MOST, AS_LOGGED) = range(4)
# State of a share partition: whether it exists, its update counter, the write time of its newest snapshot, whether that
# one is cold, and the bytes of a snapshot of its state, at least and at most.
(LIVE, COUNT, WRITTEN_MS, IS_COLD, STATE_BYTES, MOST_STATE_BYTES) = range(6)


class Operations(NamedTuple):
    """Operations in log order, an entry each: share partition, kind and time, and a row of AS_UPDATE to AS_LOGGED.

    Share partitions have numbers. COLD_SNAPSHOT is left to the rounds.
    """

    place: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    time_ms: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


@kernel
def replay_operations(
    operations: Operations, counts: np.ndarray, limit: int, rounds: np.ndarray, interval_ms: int, end_ms: int
) -> np.ndarray:
    """FIGURES, MOST_BYTES and OLDEST_MS of each share partition of a state partition under another limit of updates.

    A write appends a snapshot when the counter has reached the limit, else an update; a snapshot of any kind resets a
    counter that has reached it. In each round of the cold snapshot job, share partitions whose newest snapshot is as
    old as the interval get another one, unless the newest snapshot of each is already a cold one.

    Args:
        operations: all of the state partition.
        counts: update counters of the share partitions at the beginning.
        rounds: times of the job's rounds, ascending, up to the end of the history (`end_ms`).
    """
    place, operation, time_ms, sizes = operations
    state = np.zeros((counts.shape[0], 6), np.int64)
    state[:, COUNT] = counts
    figures = np.zeros((counts.shape[0], 9), np.int64)
    next_round = 0
    # Rounds ascend, so each is applied once: before the first operation that is not earlier. One turn more than there
    # are operations applies the rounds behind the last one.
    for row in range(place.shape[0] + 1):
        while next_round < rounds.shape[0] and (row == place.shape[0] or rounds[next_round] <= time_ms[row]):
            _snapshot_cold(state, figures, rounds[next_round], limit, interval_ms)
            next_round += 1
        if row == place.shape[0] or operation[row] == COLD_SNAPSHOT:
            continue
        of = place[row]
        state[of, STATE_BYTES] = sizes[row, AS_SNAPSHOT]
        state[of, MOST_STATE_BYTES] = sizes[row, AS_SNAPSHOT_AT_MOST]
        if operation[row] == DELETE:
            figures[of, RECORDS] += 1
            figures[of, BYTES] += sizes[row, AS_LOGGED]
            figures[of, MOST_BYTES] += sizes[row, AS_LOGGED]
            figures[of, TO_REPLAY] = 0
            _note_age(state, figures, of, time_ms[row])
            state[of] = 0
        elif operation[row] != WRITE or state[of, COUNT] >= limit:
            state[of, IS_COLD] = operation[row] == FIRST_COLD_SNAPSHOT
            figures[of, COLD_SNAPSHOTS] += state[of, IS_COLD]
            _snapshot(state, figures, of, time_ms[row], limit)
        else:
            state[of, LIVE] = 1
            state[of, COUNT] += 1
            figures[of, RECORDS] += 1
            figures[of, UPDATES] += 1
            figures[of, BYTES] += sizes[row, AS_UPDATE]
            figures[of, MOST_BYTES] += sizes[row, AS_UPDATE]
            figures[of, TO_REPLAY] += 1
        figures[of, MOST_TO_REPLAY] = max(figures[of, MOST_TO_REPLAY], figures[of, TO_REPLAY])
    for of in range(state.shape[0]):
        _note_age(state, figures, of, end_ms)
    return figures


@kernel
def _note_age(state: np.ndarray, figures: np.ndarray, of: int, now_ms: int) -> None:
    if state[of, LIVE] == 1:
        figures[of, OLDEST_MS] = max(figures[of, OLDEST_MS], now_ms - state[of, WRITTEN_MS])


@kernel
def _snapshot(state: np.ndarray, figures: np.ndarray, of: int, now_ms: int, limit: int) -> None:
    _note_age(state, figures, of, now_ms)
    state[of, LIVE] = 1
    state[of, WRITTEN_MS] = now_ms
    if state[of, COUNT] >= limit:
        state[of, COUNT] = 0
    figures[of, RECORDS] += 1
    figures[of, SNAPSHOTS] += 1
    figures[of, BYTES] += state[of, STATE_BYTES]
    figures[of, MOST_BYTES] += state[of, MOST_STATE_BYTES]
    figures[of, TO_REPLAY] = 1


@kernel
def _snapshot_cold(state: np.ndarray, figures: np.ndarray, now_ms: int, limit: int, interval_ms: int) -> None:
    # Kafka skips a round when the newest snapshot of every share partition is a cold one (share-group-state-log §6).
    has_other = False
    for of in range(state.shape[0]):
        has_other = has_other or (state[of, LIVE] == 1 and state[of, IS_COLD] == 0)
    for of in range(state.shape[0]):
        if has_other and state[of, LIVE] == 1 and now_ms - state[of, WRITTEN_MS] >= interval_ms:
            _snapshot(state, figures, of, now_ms, limit)
            state[of, IS_COLD] = 1
            figures[of, COLD_SNAPSHOTS] += 1
