"""Views of a lake in Spark's SQL: Delta tables by path, at the versions of the cut."""

from collections.abc import Iterator, Sequence

from sharelens.catalog.views import AS_OF, MOMENT, NOW, View, as_of_condition
from sharelens.lake.snapshot import Snapshot
from sharelens.lake.tables import TABLES
from sharelens.lake.view_columns import NAMES, no_rows_query, view_query
from sharelens.questions.queries.definitions import spark_type, text_literal
from state_model.columnar.schemas import comment

RUN_PROPERTY = "sharelens.run_id"
"""Property of each view: the run whose cut it shows."""


def statements(views: Sequence[View], run: int) -> Iterator[str]:
    """Statements in the order to run them, each of them repeatable.

    Functions that return rows: Spark finds them by a name without a schema only, so callers `USE` the schema first.
    """
    for schema in dict.fromkeys(view.schema_name for view in views):
        yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
    for view in views:
        yield _view(view, "", _rows(view), run)
        if view.is_history:
            yield _view(view, NOW, f"{_selected(view)}\nFROM {view.qualified}\nWHERE {view.now_condition}", run)
            yield _function(view)


def _view(view: View, suffix: str, query: str, run: int) -> str:
    columns = ",\n".join(f"  `{field.name}` COMMENT {text_literal(comment(field))}" for field in view.schema)
    meaning = view.table.comment + ("; the rows that are valid at the end of the cut" if suffix == NOW else "")
    return (
        f"CREATE OR REPLACE VIEW {view.qualified}{suffix} (\n{columns}\n)\nCOMMENT {text_literal(meaning)}\n"
        f"TBLPROPERTIES ('{RUN_PROPERTY}' = '{run}')\nAS {query}"
    )


def _rows(view: View) -> str:
    if view.snapshot is None:
        return no_rows_query(view.schema, spark_type, _quoted)
    where = "" if view.condition is None else f" WHERE {view.condition}"
    rows = f"(SELECT * FROM {_version(view.snapshot)}{where})"  # noqa: S608  # our own names
    name_rows = (
        f"({no_rows_query(TABLES[NAMES].schema, spark_type, _quoted)})" if view.names is None else _version(view.names)
    )
    return view_query(view.table, rows, name_rows, _quoted)


def _version(snapshot: Snapshot) -> str:
    path = snapshot.storage.root.replace("`", "``")
    return f"delta.`{path}` VERSION AS OF {snapshot.version}"


def _quoted(name: str) -> str:
    return f"`{name}`"


def _selected(view: View) -> str:
    return "SELECT " + ", ".join(f"`{field.name}`" for field in view.schema)


def _function(view: View) -> str:
    columns = ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in view.schema)
    where = as_of_condition(f"unix_millis({view.name}{AS_OF}.{MOMENT})")
    meaning = f"{view.table.comment}; the rows that are valid at the moment"
    return (
        f"CREATE OR REPLACE FUNCTION {view.qualified}{AS_OF}({MOMENT} TIMESTAMP)\nRETURNS TABLE ({columns})\n"
        f"COMMENT {text_literal(meaning)}\nRETURN {_selected(view)}\nFROM {view.qualified}\nWHERE {where}"
    )
