"""Views of a lake in Trino's SQL, for a catalog of its Delta Lake connector."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from sharelens.catalog.views import NOW, View, literal, quoted, type_name
from sharelens.lake.tables import TIME

DELTA = "_delta"
"""Behind the name of a table that the connector reads at its newest version; the views read it at the cut's."""
TYPES = {
    pa.string(): "varchar",
    pa.binary(): "varbinary",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    TIME: "timestamp(6) with time zone",
    pa.float64(): "double",
}
HEADER = """-- Run it with: trino --catalog CATALOG --file FILE
-- CATALOG is one of the Delta Lake connector with delta.register-table-procedure.enabled=true.
-- register_table fails for a table that is registered already: repeat the script with --ignore-errors.
-- Rows that are valid at T (epoch ms): WHERE valid_from_ms <= T AND (valid_to_ms IS NULL OR valid_to_ms > T)"""


def statements(views: Sequence[View], run: int) -> Iterator[str]:
    """Statements in the order to run them."""
    for schema in dict.fromkeys(view.schema_name for view in views):
        yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
    for view in views:
        if view.snapshot is not None:
            place = literal(f"file://{view.snapshot.storage.root}")
            yield (
                f"CALL system.register_table(schema_name => {literal(view.schema_name)}, "
                f"table_name => {literal(view.name + DELTA)}, table_location => {place})"
            )
        yield _view(view, "", _rows(view), run)
        if view.is_history:
            yield _view(view, NOW, f"{_selected(view)}\nFROM {view.qualified}\nWHERE {view.now_condition}", run)


def _view(view: View, suffix: str, query: str, run: int) -> str:
    meaning = literal(f"{view.table.comment}; cut of run {run}")
    return f"CREATE OR REPLACE VIEW {view.qualified}{suffix}\nCOMMENT {meaning}\nAS {query}"


def _rows(view: View) -> str:
    if view.snapshot is None:
        columns = ", ".join(f"CAST(NULL AS {_type(field.type)}) AS {quoted(field.name)}" for field in view.table.schema)
        return f"SELECT {columns} WHERE false"
    where = "" if view.condition is None else f"\nWHERE {view.condition}"
    return f"{_selected(view)}\nFROM {view.qualified}{DELTA} FOR VERSION AS OF {view.snapshot.version}{where}"


def _selected(view: View) -> str:
    return "SELECT " + ", ".join(quoted(field.name) for field in view.table.schema)


def _type(kind: pa.DataType) -> str:
    return type_name(kind, TYPES, "array({})", "row({})".format)
