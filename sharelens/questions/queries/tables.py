"""The tables of a lake and their columns, from the one definition that they were created by."""

import pyarrow as pa

from sharelens.lake.scan import UNLISTED, Cut
from sharelens.lake.tables import TABLES
from sharelens.output import Answer, Column, by_importance, name_column, number_column, text_column
from sharelens.questions.queries.definitions import table_named
from state_model.columnar.schemas import comment

LISTING = pa.schema(
    [
        pa.field("table", pa.string()),
        pa.field("version", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("key", pa.list_(pa.string())),
        pa.field("comment", pa.string()),
    ]
)
COLUMNS = pa.schema(
    [
        pa.field("column", pa.string()),
        pa.field("type", pa.string()),
        pa.field("nullable", pa.bool_()),
        pa.field("in_key", pa.bool_()),
        pa.field("comment", pa.string()),
    ]
)


def tables(lake: Cut) -> Answer:
    """Every table at the published cut with its rows and bytes, by the files' own statistics."""
    rows = []
    for name, table in TABLES.items():
        size = _size(lake, name)
        rows.append(
            {
                "table": name,
                "version": lake.versions.get(name),
                "rows": size[0],
                "bytes": size[1],
                "key": list(table.key),
                "comment": table.comment,
            }
        )
    columns = (
        name_column("TABLE", "table"),
        number_column("VERSION", "version"),
        number_column("ROWS", "rows"),
        number_column("BYTES", "bytes"),
        text_column("COMMENT", "comment"),
    )
    ranked = by_importance(columns, "TABLE ROWS COMMENT BYTES")
    return Answer(table=pa.Table.from_pylist(rows, schema=LISTING), columns=ranked)


def _size(lake: Cut, name: str) -> tuple[int | None, int | None]:
    """Rows and bytes of a table; None when the cut has no such table."""
    version = lake.versions.get(name)
    if version is None and (name not in UNLISTED or not lake.lake.exists(name)):
        return None, None
    snapshot = lake.lake.snapshot(name, version)
    return snapshot.record_count, snapshot.size_bytes


def table_columns(name: str) -> Answer:
    """The columns of one table with their comments.

    Raises:
        UsageError: no such table; the message lists those there are.
    """
    table = table_named(name)
    rows = [
        {
            "column": field.name,
            "type": str(field.type),
            "nullable": field.nullable,
            "in_key": field.name in table.key,
            "comment": comment(field),
        }
        for field in table.schema
    ]
    columns = (
        name_column("COLUMN", "column"),
        Column(heading="TYPE", cell=lambda row: str(row["type"]), fields=("type",)),
        Column(heading="NULLABLE", cell=lambda row: "yes" if row["nullable"] else "no", fields=("nullable",)),
        Column(heading="KEY", cell=lambda row: "yes" if row["in_key"] else "-", fields=("in_key",)),
        text_column("COMMENT", "comment"),
    )
    ranked = by_importance(columns, "COLUMN TYPE COMMENT KEY")
    return Answer(table=pa.Table.from_pylist(rows, schema=COLUMNS), columns=ranked)
