"""Conditions on rows as Arrow expressions; None stands for no condition."""

import pyarrow as pa
import pyarrow.compute as pc


def all_of(*conditions: pc.Expression | None) -> pc.Expression | None:
    """The conjunction; None when every part is None."""
    together: pc.Expression | None = None
    for condition in conditions:
        if condition is not None:
            together = condition if together is None else together & condition
    return together


def filter_rows(table: pa.Table, condition: pc.Expression | None) -> pa.Table:
    """The rows that meet the condition, in their order."""
    return table if condition is None else table.filter(condition)


def with_value(table: pa.Table, column: str, value: int | str) -> pa.Table:
    """The rows that have a value in a column, in their order; faster than a condition on small tables."""
    return table.filter(pc.equal(table.column(column), value))
