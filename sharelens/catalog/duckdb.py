"""Views of a lake in DuckDB's SQL: the Parquet files of the cut, so that no extension is needed.

Files of a published cut never change; `sharelens maintain` deletes those that no recent cut has.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sharelens.catalog.views import AS_OF, MOMENT, NOW, View, as_of_condition, literal, type_name
from sharelens.lake.snapshot import Snapshot
from sharelens.lake.tables import TABLES, TIME, Table
from sharelens.lake.view_columns import NAMES, no_rows_query, quoted, view_query
from state_model.columnar.schemas import comment

TYPES = {
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    TIME: "TIMESTAMP WITH TIME ZONE",
    pa.float64(): "DOUBLE",
}


def statements(views: Sequence[View], run: int) -> Iterator[str]:
    """Statements in the order to run them, each of them repeatable."""
    for schema in dict.fromkeys(view.schema_name for view in views):
        yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
    for view in views:
        yield from _view(view, "", _rows(view), run)
        if view.is_history:
            selected = f"SELECT *\nFROM {view.qualified}\nWHERE"
            yield from _view(view, NOW, f"{selected} {view.now_condition}", run)
            where = as_of_condition(f"epoch_ms({MOMENT})")
            yield f"CREATE OR REPLACE MACRO {view.qualified}{AS_OF}({MOMENT}) AS TABLE {selected} {where}"


def _view(view: View, suffix: str, query: str, run: int) -> Iterator[str]:
    yield f"CREATE OR REPLACE VIEW {view.qualified}{suffix} AS {query}"
    yield f"COMMENT ON VIEW {view.qualified}{suffix} IS {literal(f'{view.table.comment}; cut of run {run}')}"
    for field in view.schema:
        yield f"COMMENT ON COLUMN {view.qualified}{suffix}.{quoted(field.name)} IS {literal(comment(field))}"


def _rows(view: View) -> str:
    if view.snapshot is None or not view.snapshot.files:
        return no_rows_query(view.schema, _type)
    where = "" if view.condition is None else f"\nWHERE {view.condition}"
    rows = f"(\n{_of_files(view.table, view.snapshot)}{where}\n)"
    return view_query(view.table, rows, _name_rows(view.names))


def _name_rows(names: Snapshot | None) -> str:
    table = TABLES[NAMES]
    if names is None or not names.files:
        return f"({no_rows_query(table.schema, _type)})"
    return f"(\n{_of_files(table, names)}\n)"


def _of_files(table: Table, snapshot: Snapshot) -> str:
    """The rows of the files; partition values are columns."""
    files: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in snapshot.files:
        path = os.path.join(snapshot.storage.root, str(file["path"]))
        files[tuple(_value(table, file, name) for name in table.partition_by)].append(path)
    parts = "\nUNION ALL BY NAME\n".join(_of_partition(table, *part) for part in sorted(files.items()))
    return f"FROM (\n{parts}\n)"


def _value(table: Table, file: Mapping[str, Any], name: str) -> str:
    value = file[f"partition.{name}"]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"CAST({literal(text)} AS {_type(table.schema.field(name).type)})"


def _of_partition(table: Table, values: Sequence[str], paths: Sequence[str]) -> str:
    constants = "".join(f", {value} AS {quoted(name)}" for name, value in zip(table.partition_by, values, strict=True))
    listed = ",\n  ".join(map(literal, paths))
    return f"SELECT *{constants}\nFROM read_parquet([\n  {listed}\n], hive_partitioning = false)"


def _type(kind: pa.DataType) -> str:
    return type_name(kind, TYPES, "{}[]", "STRUCT({})".format)
