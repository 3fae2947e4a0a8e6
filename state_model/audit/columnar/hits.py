"""The kernel that adds a violation, and the numbers of its fields."""

import numpy as np

from state_model.audit.columnar.layout import (
    HIT_AT,
    HIT_EXPECTED,
    HIT_FIELD,
    HIT_PREVIOUS,
    HIT_ROW,
    HIT_RULE,
    HIT_SEEN,
    HIT_SNAPSHOT,
    MARK_PREVIOUS,
    MARK_ROW,
    MARK_SNAPSHOT,
)
from state_model.columnar.kernels import leaf

NONE = -1
# Fields of a difference (rule.Field).
(
    F_TYPE, F_SNAPSHOT_EPOCH, F_STATE_EPOCH, F_LEADER_EPOCH, F_START, F_DCC, F_CREATE, F_WRITE, F_BATCHES, F_UPDATES,
    F_FIRST, F_LAST, F_STATE, F_COUNT, F_OFFSET_STATE, F_TERMINAL, F_LOG_OFFSET,
) = range(17)  # fmt: skip


@leaf
def hit(
    hits: np.ndarray, n: int, mark: np.ndarray, rule: int, field: int, expected: int, actual: int, at: int = NONE
) -> int:
    """Adds a violation; the new number."""
    # No check of the room: audit_records reserves HITS_A_RECORD rows before each record.
    hits[n, HIT_RULE] = rule
    hits[n, HIT_ROW] = mark[MARK_ROW]
    hits[n, HIT_FIELD] = field
    hits[n, HIT_AT] = at
    hits[n, HIT_EXPECTED] = expected
    hits[n, HIT_SEEN] = actual
    hits[n, HIT_SNAPSHOT] = mark[MARK_SNAPSHOT]
    hits[n, HIT_PREVIOUS] = mark[MARK_PREVIOUS]
    return n + 1
