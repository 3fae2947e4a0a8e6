"""Violations counted by rule and share partition; the first and the last of each are kept."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.affected import affected_columns
from state_model.audit.columnar.violations import COUNTED, FIRST, GROUPED, NONE, NONE_COUNTED

AGGREGATED: Final = (
    *((name, "first") for name in FIRST),
    ("first_log_offset", "first"),
    ("last_log_offset", "last"),
    ("first_ms", "first"),
    ("last_ms", "last"),
    ("first_offset", "min"),
    ("last_offset", "max"),
    ("violations", "sum"),
)


class Tally:
    """Counts VIOLATION rows of an audit; memory grows with share partitions times rules.

    `counted`: COUNTED rows, one for each rule and share partition; `resumed`: those that an earlier audit counted.
    `between_ms`: log times from the first up to, and without, the second; None puts no bound.
    """

    def __init__(self, between_ms: tuple[int | None, int | None] = (None, None)) -> None:
        self.counted = self.resumed = NONE_COUNTED
        self._between_ms = between_ms

    def resume(self, counted: pa.Table) -> None:
        """Takes over the COUNTED rows of an earlier audit."""
        self.counted = self.resumed = counted

    def add(self, violations: pa.Table) -> None:
        """Counts rows that follow the ones before in the log."""
        from_ms, to_ms = self._between_ms
        if from_ms is not None:
            violations = violations.filter(pc.field("log_time_ms") >= from_ms)
        if to_ms is not None:
            violations = violations.filter(pc.field("log_time_ms") < to_ms)
        if violations.num_rows == 0:
            return
        columns = {name: violations.column(name) for name in (*GROUPED, *FIRST)}
        offsets, times = violations.column("log_offset"), violations.column("log_time_ms")
        columns |= {"first_log_offset": offsets, "last_log_offset": offsets, "first_ms": times, "last_ms": times}
        columns |= affected_columns(violations)
        columns["violations"] = pa.repeat(pa.scalar(1, pa.int64()), violations.num_rows)
        self.add_counted(pa.table(columns, schema=COUNTED))

    def add_counted(self, counted: pa.Table, violations: int | None = None) -> None:
        """Adds COUNTED rows; `violations`: how many violations each of them stands for."""
        if violations is not None:
            index = COUNTED.get_field_index("violations")
            numbers = pa.repeat(pa.scalar(violations, pa.int64()), counted.num_rows)
            counted = counted.set_column(index, COUNTED.field(index), numbers)
        if counted.num_rows == 0:
            return
        all_counted = pa.concat_tables([self.counted, counted])
        grouped = all_counted.group_by(list(GROUPED), use_threads=False).aggregate(list(AGGREGATED))
        names = [name.rpartition("_")[0] if name not in GROUPED else name for name in grouped.column_names]
        self.counted = grouped.rename_columns(names).select(COUNTED.names)


def below(counted: pa.Table, begin: int) -> pa.Table:
    """The COUNTED rows whose first violation, or the state that it was compared with, lies below a log offset.

    One that goes on above counts its first violation alone.
    """
    is_below = pc.field("first_log_offset") < begin
    for name in ("snapshot_log_offset", "previous_log_offset"):
        is_below |= (pc.field(name) != NONE) & (pc.field(name) < begin)
    rows = counted.filter(is_below)
    goes_on = pc.greater_equal(rows.column("last_log_offset"), begin)
    for name, first in (("last_log_offset", "first_log_offset"), ("last_ms", "first_ms"), ("violations", None)):
        index = COUNTED.get_field_index(name)
        value = pa.scalar(1, pa.int64()) if first is None else rows.column(first)
        rows = rows.set_column(index, COUNTED.field(index), pc.if_else(goes_on, value, rows.column(name)))
    return rows
