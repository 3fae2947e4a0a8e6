"""Share partitions at work: a share coordinator's records for a stream of events, in one compiled pass.

A share partition holds a window of ranges that follow each other without holes. A write takes new ranges into it or
delivers open ones once more, each with an outcome: acknowledged, archived or available again; the last delivery ends a
range. Then the start offset moves over what is finished. What each event appends (snapshot or update, its scalars and
state batches) follows share-group-state-log §5-6 by the rules that 4.3 and 4.4 share.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from state_model.columnar.kernels import kernel

INITIALIZE, WRITE, READ, COLD = range(4)

SNAPSHOT, UPDATE = 0, 1
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
SNAPSHOT_LIMIT = 500
COLD_INTERVAL_MS = 300_000

# Scalars of a share partition: one row each, one column a share partition.
(PRESENT, SNAPSHOT_EPOCH, STATE_EPOCH, LEADER_EPOCH, START, DCC, CREATE, WRITTEN, UPDATES, NEXT_OFFSET, RANGES) = range(
    11
)
SCALARS = 11
# Columns of a range of the window.
FIRST, LAST, STATE, COUNT, TOUCHED = range(5)
RANGE_COLUMNS = 5
# Rows of the output: one column a record; then one column a state batch.
(O_EVENT, O_KIND, O_SNAPSHOT_EPOCH, O_STATE_EPOCH, O_LEADER_EPOCH) = range(5)
(O_START, O_DCC, O_CREATE, O_WRITE, O_BATCH_END) = range(5, 10)
OUTPUTS = 10


class Habits(NamedTuple):
    """What the members of a shape do: changes in a write, and in percent how a delivery ends.

    `again`: changes that deliver an open range once more. `acknowledged`, `archived`: outcomes of a delivery. `limit`:
    the delivery that ends a range. `longest`: offsets of a range at most.
    """

    actions: int = 8
    again: int = 25
    acknowledged: int = 70
    archived: int = 5
    limit: int = 3
    longest: int = 10


class Events(NamedTuple):
    """A stretch of the stream: share partition, operation and time of each event; times never fall."""

    keys: npt.NDArray[np.int64]
    operations: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]


@kernel
def drawn(seed: np.ndarray) -> int:
    """The next number of a splitmix64 sequence whose position is `seed[0]`: 0 to 2^31 - 1."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = seed[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int(mixed >> np.uint64(33))


@kernel
def deliver(window: np.ndarray, at: int, habits: Habits, seed: np.ndarray) -> None:
    """One more delivery of the range at `at`, with its outcome; the last delivery ends it."""
    window[at, COUNT] += 1
    window[at, TOUCHED] = 1
    chance = drawn(seed) % 100
    if chance < habits.acknowledged:
        window[at, STATE] = ACKNOWLEDGED
    elif chance < habits.acknowledged + habits.archived or window[at, COUNT] >= habits.limit:
        window[at, STATE] = ARCHIVED


@kernel
def open_range(window: np.ndarray, ranges: int, seed: np.ndarray) -> int:
    """A range of the window that is available and was not touched by this write, found from a random place; else -1."""
    begin = drawn(seed) % max(1, ranges)
    for step in range(ranges):
        at = (begin + step) % ranges
        if window[at, STATE] == AVAILABLE and not window[at, TOUCHED]:
            return at
    return -1


@kernel
def change_window(state: np.ndarray, key: int, window: np.ndarray, habits: Habits, seed: np.ndarray) -> None:
    """The changes of one write: new ranges and further deliveries; a full window settles its oldest range first."""
    ranges = state[RANGES, key]
    window[:ranges, TOUCHED] = 0
    for _ in range(habits.actions):
        at = -1
        if ranges == window.shape[0]:
            at = 0 if window[0, STATE] == AVAILABLE and not window[0, TOUCHED] else -2
        elif drawn(seed) % 100 < habits.again:
            at = open_range(window, ranges, seed)
        if at == -2:
            break
        if at == -1:
            at = ranges
            window[at, FIRST] = state[NEXT_OFFSET, key]
            window[at, LAST] = state[NEXT_OFFSET, key] + drawn(seed) % habits.longest
            window[at, STATE] = AVAILABLE
            window[at, COUNT] = 0
            state[NEXT_OFFSET, key] = window[at, LAST] + 1
            ranges += 1
        elif at == 0 and ranges == window.shape[0]:
            window[at, COUNT] = habits.limit - 1  # several deliveries between two writes, of which this is the last
        deliver(window, at, habits, seed)
    state[RANGES, key] = ranges


@kernel
def move_start(state: np.ndarray, key: int, window: np.ndarray) -> None:
    """Move the start offset over finished ranges and count the finished offsets that stay in the window."""
    ranges, gone = state[RANGES, key], 0
    while gone < ranges and window[gone, STATE] != AVAILABLE:
        gone += 1
    for at in range(gone, ranges):
        window[at - gone] = window[at]
    state[RANGES, key] = ranges - gone
    state[START, key] = window[0, FIRST] if gone < ranges else state[NEXT_OFFSET, key]
    finished = 0
    for at in range(ranges - gone):
        if window[at, STATE] != AVAILABLE:
            finished += window[at, LAST] - window[at, FIRST] + 1
    state[DCC, key] = finished


@kernel
def put_batches(window: np.ndarray, ranges: int, only_touched: bool, batches: np.ndarray, row: int) -> int:
    """Copy ranges to the output from `row` on, equal neighbours joined; the row behind them."""
    first = row
    for at in range(ranges):
        if only_touched and not window[at, TOUCHED]:
            continue
        if (
            row > first
            and batches[LAST, row - 1] + 1 == window[at, FIRST]
            and batches[STATE, row - 1] == window[at, STATE]
            and batches[COUNT, row - 1] == window[at, COUNT]
        ):
            batches[LAST, row - 1] = window[at, LAST]
            continue
        for column in range(TOUCHED):
            batches[column, row] = window[at, column]
        row += 1
    return row


@kernel
def initialize(state: np.ndarray, key: int, now: int) -> None:
    """Creation (start offset not determined) or, of a present key, an alteration that resets it to its next offset."""
    again = state[PRESENT, key]
    state[SNAPSHOT_EPOCH, key] = state[SNAPSHOT_EPOCH, key] + 1 if again else 0
    state[STATE_EPOCH, key] = state[STATE_EPOCH, key] + 2 if again else 2
    state[LEADER_EPOCH, key] = 0
    state[START, key] = state[NEXT_OFFSET, key] if again else -1
    state[DCC, key] = 0 if again else -1
    state[CREATE, key] = now
    state[RANGES, key] = 0
    state[PRESENT, key] = 1
    put_snapshot_time(state, key, now)


@kernel
def put_snapshot_time(state: np.ndarray, key: int, now: int) -> None:
    """A snapshot is written now; it resets the update counter only when the limit was reached."""
    state[WRITTEN, key] = now
    if state[UPDATES, key] >= SNAPSHOT_LIMIT:
        state[UPDATES, key] = 0


@kernel
def apply(
    state: np.ndarray, key: int, window: np.ndarray, operation: int, now: int, habits: Habits, seed: np.ndarray
) -> int:
    """Do one operation; SNAPSHOT or UPDATE for the appended record, -1 for none."""
    if operation == INITIALIZE or not state[PRESENT, key]:
        initialize(state, key, now)
        return SNAPSHOT
    if operation == COLD:
        if now - state[WRITTEN, key] < COLD_INTERVAL_MS:
            return -1
        state[SNAPSHOT_EPOCH, key] += 1
        put_snapshot_time(state, key, now)
        return SNAPSHOT
    if operation == WRITE:
        change_window(state, key, window, habits, seed)
        move_start(state, key, window)
    else:
        state[LEADER_EPOCH, key] += 1
        window[: state[RANGES, key], TOUCHED] = 0
    if state[UPDATES, key] < SNAPSHOT_LIMIT:
        state[UPDATES, key] += 1
        return UPDATE
    state[SNAPSHOT_EPOCH, key] += 1
    state[CREATE, key] = now
    put_snapshot_time(state, key, now)
    return SNAPSHOT


@kernel
def simulate(
    events: Events,
    state: np.ndarray,
    windows: np.ndarray,
    habits: Habits,
    seed: np.ndarray,
    records: np.ndarray,
    batches: np.ndarray,
) -> tuple[int, int, int]:
    """(events done, records, state batches) of a stream of events; stops early when there is no room for one more.

    `records[O_EVENT]` says which event appended a record, `records[O_BATCH_END]` where its state batches end.
    """
    # No event writes more state batches than a window has ranges: room for these is room for the event.
    keys, operations, times = events
    row, batch = 0, 0
    for event in range(keys.shape[0]):
        key = keys[event]
        if row == records.shape[1] or batches.shape[1] - batch < windows.shape[1]:
            return event, row, batch
        kind = apply(state, key, windows[key], operations[event], times[event], habits, seed)
        if kind < 0:
            continue
        batch = put_batches(windows[key], state[RANGES, key], kind == UPDATE, batches, batch)
        records[O_EVENT, row] = event
        records[O_KIND, row] = kind
        for column in range(SNAPSHOT_EPOCH, WRITTEN + 1):
            records[O_SNAPSHOT_EPOCH + column - SNAPSHOT_EPOCH, row] = state[column, key]
        records[O_BATCH_END, row] = batch
        row += 1
    return keys.shape[0], row, batch
