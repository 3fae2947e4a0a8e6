"""The record offsets that violations can have affected, for VIOLATION rows: impact.affected_offsets over Arrow."""

from typing import Final

import numpy as np
import pyarrow as pa

from state_model.audit.impact import NO_LAST, Affected
from state_model.audit.rule import RECORD_OFFSETS
from state_model.audit.table import RULES

ANY: Final = -1
"""The first offset of a violation that can have affected any record of the share partition; the last is NO_LAST."""
FROM, BETWEEN = (
    np.array([rule.id for rule in RULES if rule.affected is affected], np.int64)
    for affected in (Affected.FROM, Affected.BETWEEN)
)
OFFSET_FIELDS: Final = np.array(sorted(RECORD_OFFSETS), np.int64)


def affected_columns(violations: pa.Table) -> dict[str, pa.Array]:
    """The columns first_offset and last_offset (inclusive) of VIOLATION rows."""
    rule, field, at, expected, actual = (
        violations.column(name).to_numpy() for name in ("rule", "field", "at", "expected", "seen")
    )
    smaller, larger = np.minimum(expected, actual), np.maximum(expected, actual)
    is_between = np.isin(rule, BETWEEN)
    is_limited = is_between | np.isin(rule, FROM)
    is_at = is_limited & (at >= 0)
    is_range = is_limited & ~is_at & np.isin(field, OFFSET_FIELDS) & (smaller >= 0)
    first = np.where(is_at, at, np.where(is_range, smaller, ANY))
    last = np.where(is_range & is_between, larger - 1, NO_LAST)
    return {"first_offset": pa.array(first), "last_offset": pa.array(last)}
