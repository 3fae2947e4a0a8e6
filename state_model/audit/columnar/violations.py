"""Violations: records that violate a rule, as rows of numbers."""

from typing import Final

import numpy as np
import pyarrow as pa

from state_model.columnar.keys import Ints

NONE: Final = -1
VIOLATION: Final = pa.schema(
    [
        pa.field("rule", pa.int64()),
        pa.field("share_partition", pa.int64()),
        pa.field("log_offset", pa.int64()),
        pa.field("log_time_ms", pa.int64()),
        pa.field("field", pa.int64()),
        pa.field("at", pa.int64()),
        pa.field("expected", pa.int64()),
        pa.field("seen", pa.int64()),
        pa.field("snapshot_log_offset", pa.int64()),
        pa.field("previous_log_offset", pa.int64()),
    ]
)
"""A record that violates a rule: numbers of rule.Rule.id, of `Auditor.keys` (-1: no share partition), of rule.Field."""
GROUPED: Final = ("rule", "share_partition")
FIRST: Final = ("field", "at", "expected", "seen", "snapshot_log_offset", "previous_log_offset")
COUNTED: Final = pa.schema(
    [
        *(VIOLATION.field(name) for name in (*GROUPED, *FIRST)),
        pa.field("first_log_offset", pa.int64()),
        pa.field("last_log_offset", pa.int64()),
        pa.field("first_ms", pa.int64()),
        pa.field("last_ms", pa.int64()),
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("violations", pa.int64()),
    ]
)
"""A rule that a share partition violates: how often, the values and proving records of the first time.

`first_offset`, `last_offset`: the record offsets that all of the violations can have affected (affected_columns).
"""


NO_VIOLATIONS: Final = VIOLATION.empty_table()
NONE_COUNTED: Final = COUNTED.empty_table()


def violation_rows(**columns: Ints | int) -> pa.Table:
    """VIOLATION rows from columns of equal length, or one value for all; columns that are left out are -1."""
    length = max((len(column) for column in columns.values() if not isinstance(column, int)), default=1)
    full = {
        name: np.full(length, columns.get(name, NONE), np.int64)
        if isinstance(columns.get(name, NONE), int)
        else columns[name]
        for name in VIOLATION.names
    }
    return pa.table(full, schema=VIOLATION)
