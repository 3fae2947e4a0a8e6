"""Views of a lake in DuckDB's SQL: the Parquet files of the cut, so that no extension is needed.

Files of a published cut never change; `sharelens maintain` deletes those that no recent cut has.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sharelens.catalog.views import AS_OF, MOMENT, NOW, View, as_of_condition, literal, quoted, type_name
from sharelens.lake.snapshot import Snapshot
from sharelens.lake.tables import TIME
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
    for field in view.table.schema:
        yield f"COMMENT ON COLUMN {view.qualified}{suffix}.{quoted(field.name)} IS {literal(comment(field))}"


def _rows(view: View) -> str:
    names = ", ".join(quoted(field.name) for field in view.table.schema)
    if view.snapshot is None or not view.snapshot.files:
        columns = ", ".join(f"CAST(NULL AS {_type(field.type)}) AS {quoted(field.name)}" for field in view.table.schema)
        return f"SELECT {columns} WHERE false"
    where = "" if view.condition is None else f"\nWHERE {view.condition}"
    parts = "\nUNION ALL BY NAME\n".join(_of_partition(view, *part) for part in _partitions(view, view.snapshot))
    return f"SELECT {names}\nFROM (\n{parts}\n){where}"


def _partitions(view: View, snapshot: Snapshot) -> list[tuple[tuple[str, ...], list[str]]]:
    """The files by their partition values, as SQL: those columns are not in the files."""
    files: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in snapshot.files:
        path = os.path.join(snapshot.storage.root, str(file["path"]))
        files[tuple(_value(view, file, name) for name in view.table.partition_by)].append(path)
    return sorted(files.items())


def _value(view: View, file: Mapping[str, Any], name: str) -> str:
    value = file[f"partition.{name}"]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"CAST({literal(text)} AS {_type(view.table.schema.field(name).type)})"


def _of_partition(view: View, values: Sequence[str], paths: Sequence[str]) -> str:
    constants = "".join(
        f", {value} AS {quoted(name)}" for name, value in zip(view.table.partition_by, values, strict=True)
    )
    listed = ",\n  ".join(map(literal, paths))
    return f"SELECT *{constants}\nFROM read_parquet([\n  {listed}\n], hive_partitioning = false)"


def _type(kind: pa.DataType) -> str:
    return type_name(kind, TYPES, "{}[]", "STRUCT({})".format)
