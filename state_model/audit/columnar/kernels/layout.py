"""What the audit's kernels share: columns of matrices (int64), and records of arrays."""

from typing import Final, NamedTuple

import numpy as np

# The state of a share partition: one row a share partition.
(
    STANDING,
    SNAPSHOT_EPOCH,
    STATE_EPOCH,
    LEADER_EPOCH,
    START,
    DCC,
    CREATE,
    WRITE,
    UPDATES,
    SNAPSHOT_AT,
    LAST_AT,
    ARCHIVING_MS,
    TERMINAL_OFFSETS,
    BEGIN,
    SIZE,
    SLOT,
    SLOT_ROOM,
    LOSSES_SEEN,
    LIMIT,
    LARGEST_START,
) = range(20)
STATE_COLUMNS: Final = 20
"""BEGIN, SIZE: its breakpoints in the pool; SLOT, SLOT_ROOM: the place that is reserved for them.

LARGEST_START: the largest start offset since its initialization; MAX_OFFSET: not known.
"""

# A record's value: SNAPSHOT_EPOCH to WRITE of the state, less this.
VALUE: Final = SNAPSHOT_EPOCH

# A violation: one row each.
HIT_RULE, HIT_ROW, HIT_FIELD, HIT_AT, HIT_EXPECTED, HIT_SEEN, HIT_SNAPSHOT, HIT_PREVIOUS = range(8)
HIT_COLUMNS: Final = 8
HITS_A_RECORD: Final = 64
"""More than there are rules."""

# Offsets without an outcome that the start offset of a record passes: one row a range of them.
PASSED_ROW, PASSED_FIRST, PASSED_LAST, PASSED_SNAPSHOT, PASSED_PREVIOUS = range(5)
PASSED_COLUMNS: Final = 5

# What is known of the record that is checked, for the rows of its violations.
MARK_ROW, MARK_SNAPSHOT, MARK_PREVIOUS = range(3)

SNAPSHOT, UPDATE, TOMBSTONE = range(3)
UNKNOWN, NEW, DELETED, LIVE, ORPHAN = range(5)
NO_SNAPSHOT, COLD, INIT, WRITTEN, EITHER = range(5)


class AuditedRecords(NamedTuple):
    """The n records of one log in log order, an entry each. `keys`: their rows of the matrix of states.

    `rows`: n rows of a value's columns SNAPSHOT_EPOCH to WRITE. `batch_at`: n + 1 positions into the state batches.
    """

    kinds: np.ndarray
    keys: np.ndarray
    log_offsets: np.ndarray
    times: np.ndarray
    rows: np.ndarray
    batch_at: np.ndarray


class Record(NamedTuple):
    """One record. `snapshot`: the kind of a snapshot, else NO_SNAPSHOT. `row`: its row of AuditedRecords.

    `low`, `high`: its state batches [low, high).
    """

    kind: int
    snapshot: int
    log_offset: int
    time_ms: int
    row: np.ndarray
    low: int
    high: int


class StateBatches(NamedTuple):
    """The state batches of records, one behind the other, an entry each: first and last offset, state, count."""

    first: np.ndarray
    last: np.ndarray
    states: np.ndarray
    counts: np.ndarray
