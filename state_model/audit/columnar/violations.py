"""Violations: records that violate a rule, as rows of numbers."""

from typing import Final, TypeVar

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
"""A record that violates a rule, by rule.Rule.id and rule.Field.

`share_partition`: the number of `Auditor.keys`, or what `of_log` says: the violation is about the log.
"""
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


Log = TypeVar("Log", int, Ints)


def of_log(log: Log) -> Log:
    """The number that stands for a log itself where a violation names no share partition; NONE for log 0."""
    return NONE - log


def log_of_violations(share_partitions: Ints, log_of: Ints) -> Ints:
    """The log of each violation by its number; `log_of`: the log of each share partition."""
    logs = of_log(share_partitions)
    is_keyed = share_partitions >= 0
    logs[is_keyed] = log_of[share_partitions[is_keyed]]
    return logs


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
