"""Violations counted by rule and share partition; the first and the last of each are kept."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.affected import affected_columns
from state_model.audit.columnar.violations import COUNTED, FIRST, GROUPED, NONE_COUNTED

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
    """Counts VIOLATION rows of one state partition; memory grows with share partitions times rules.

    `between_ms`: log times from the first up to, and without, the second; None puts no bound.
    """

    def __init__(self, between_ms: tuple[int | None, int | None] = (None, None)) -> None:
        self.counted = NONE_COUNTED
        self._between_ms = between_ms

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
        both = pa.concat_tables([self.counted, counted])
        grouped = both.group_by(list(GROUPED), use_threads=False).aggregate(list(AGGREGATED))
        names = [name.rpartition("_")[0] if name not in GROUPED else name for name in grouped.column_names]
        self.counted = grouped.rename_columns(names).select(COUNTED.names)
