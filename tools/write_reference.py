"""Writes docs/reference/tables.md from the table definitions: python -m tools.write_reference [--check]."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from jobs.retained import STAYS
from jobs.upkeep.retention import RULES
from sharelens.lake.tables import TABLES, Table
from sharelens.questions.queries.definitions import spark_type
from state_model.columnar.schemas import comment
from tools.written_pages import write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "tables.md"
HEAD = """# Tables

Written by `python -m tools.write_reference` from `sharelens/lake/tables.py`. Rows are sorted by the clustering
columns in every file. Views (`sharelens sql`, other engines) have the column `topic` beside every `topic_id`, and the
names of columns from before [version 9](../how-to/upgrade.md#columns-with-new-names). Times are epoch milliseconds; a
gold `…_time` column shows the same as a timestamp. What is dropped by age, and
only when asked for: [keep the lake small](../how-to/keep-the-lake-small.md).
"""


def reference() -> str:
    """The page."""
    return "\n".join([HEAD, *(_section(table) for table in TABLES.values())])


def _section(table: Table) -> str:
    facts = [f"key: {_names(table.key)}", f"sorted by: {_names(table.clustering)}"]
    if table.partition_by:
        facts.append(f"partitioned by: {_names(table.partition_by)}")
    facts.append(_retention(table.name))
    lines = [f"## {table.name}", "", f"{table.comment[0].upper()}{table.comment[1:]}. {'; '.join(facts)}.", ""]
    lines += ["| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [_row(field) for field in table.schema]
    return "\n".join([*lines, ""])


def _retention(name: str) -> str:
    """The age at which rows of a table are dropped, or the reason why none are."""
    return f"dropped by the age of: `{RULES[name].group}`" if name in RULES else f"never dropped: {STAYS[name]}"


def _row(field: pa.Field) -> str:
    return f"| `{field.name}` | {spark_type(field.type)} | {'yes' if field.nullable else 'no'} | {comment(field)} |"


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page, or with --check says whether it is as it should be."""
    return write_or_check({TARGET: reference()}, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
