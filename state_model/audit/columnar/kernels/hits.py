"""The kernel that adds a violation, and the numbers of its fields."""

from typing import NamedTuple

import numpy as np

from state_model.audit.columnar.kernels.layout import (
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


class Hits(NamedTuple):
    """Room for violations. `rows`: one each, HIT_COLUMNS wide. `mark`: MARK_* of the record that is checked."""

    rows: np.ndarray
    mark: np.ndarray


@leaf
def hit(hits: Hits, n: int, rule: int, field: int, expected: int, actual: int, at: int = NONE) -> int:
    """Adds a violation; the new number."""
    # No check of the room: audit_records reserves HITS_A_RECORD rows before each record.
    hits.rows[n, HIT_RULE] = rule
    hits.rows[n, HIT_ROW] = hits.mark[MARK_ROW]
    hits.rows[n, HIT_FIELD] = field
    hits.rows[n, HIT_AT] = at
    hits.rows[n, HIT_EXPECTED] = expected
    hits.rows[n, HIT_SEEN] = actual
    hits.rows[n, HIT_SNAPSHOT] = hits.mark[MARK_SNAPSHOT]
    hits.rows[n, HIT_PREVIOUS] = hits.mark[MARK_PREVIOUS]
    return n + 1
