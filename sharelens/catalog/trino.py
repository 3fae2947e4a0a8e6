"""Views of a lake in Trino's SQL, for a catalog of its Delta Lake connector."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from sharelens.catalog.views import NOW, View, literal, type_name
from sharelens.lake.snapshot import Snapshot
from sharelens.lake.tables import TABLES, TIME
from sharelens.lake.view_columns import NAMES, no_rows_query, quoted, view_query

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
    registered: set[str] = set()
    schemas = [name for view in views for name in [view.schema_name, *([f"{view.prefix}silver"] if view.names else [])]]
    for schema in dict.fromkeys(schemas):
        yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
    for view in views:
        tables = {view.table.name: view.snapshot, NAMES: view.names}
        for name, snapshot in tables.items():
            if snapshot is not None and name not in registered:
                registered.add(name)
                yield _registration(view.prefix, name, snapshot)
        yield _view(view, "", _rows(view), run)
        if view.is_history:
            yield _view(view, NOW, f"{_selected(view)}\nFROM {view.qualified}\nWHERE {view.now_condition}", run)


def _view(view: View, suffix: str, query: str, run: int) -> str:
    meaning = literal(f"{view.table.comment}; cut of run {run}")
    return f"CREATE OR REPLACE VIEW {view.qualified}{suffix}\nCOMMENT {meaning}\nAS {query}"


def _registration(prefix: str, name: str, snapshot: Snapshot) -> str:
    layer, _, short = name.partition(".")
    place = literal(f"file://{snapshot.storage.root}")
    return (
        f"CALL system.register_table(schema_name => {literal(prefix + layer)}, "
        f"table_name => {literal(short + DELTA)}, table_location => {place})"
    )


def _rows(view: View) -> str:
    if view.snapshot is None:
        return no_rows_query(view.schema, _type)
    where = "" if view.condition is None else f" WHERE {view.condition}"
    rows = f"(SELECT * FROM {view.qualified}{DELTA} FOR VERSION AS OF {view.snapshot.version}{where})"  # noqa: S608
    names = view.names
    name_rows = (
        f"({no_rows_query(TABLES[NAMES].schema, _type)})"
        if names is None
        else f"{view.prefix}{NAMES}{DELTA} FOR VERSION AS OF {names.version}"
    )
    return view_query(view.table, rows, name_rows)


def _selected(view: View) -> str:
    return "SELECT " + ", ".join(quoted(field.name) for field in view.schema)


def _type(kind: pa.DataType) -> str:
    return type_name(kind, TYPES, "array({})", "row({})".format)
