"""The named queries of jobs/sql: title, parameters, and text in the SQL of both engines.

A file begins with comments: a title, what else to know, `column:` lines, and a `param:` line for each parameter:

    -- Records given up, by group, topic and cause.
    -- column: records = offsets
    -- param: group text = null; only this group

In the text a parameter is `:name`. Its value is bound by the engine and never becomes SQL.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import pyarrow as pa

from sharelens.output import Answer, by_importance, name_column, text_column
from sharelens.questions.queries.spark_sql import PARAMETERS
from state_model.errors import UsageError

Value = str | int | None
PARAM = re.compile(r"(?P<name>[a-z_]+) (?P<kind>text|integer) = (?P<default>[^;]*); (?P<text>.+)")
MARKER = re.compile(r":([a-z_]+)\b")
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
LISTED = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("title", pa.string()),
        pa.field("parameters", pa.string()),
        pa.field("columns", pa.string()),
        pa.field("about", pa.string()),
        pa.field("sql", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter: `kind` is text or integer; null as the default puts no condition."""

    name: str
    kind: str
    default: Value
    text: str

    @property
    def usage(self) -> str:
        """How it is given, as help shows it."""
        return f"{self.name}={'TEXT' if self.kind == 'text' else self.default}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery:
    """A query of jobs/sql; `sql` has `:name` where a parameter stands."""

    name: str
    title: str
    about: str
    columns: str
    parameters: tuple[Parameter, ...]
    sql: str

    def values(self, assignments: Sequence[str]) -> dict[str, Value]:
        """The value of every parameter, from words as `group=orders`.

        Raises:
            UsageError: not NAME=VALUE, an unknown or repeated parameter, or no integer for an integer parameter.
        """
        parameter_by_name = {parameter.name: parameter for parameter in self.parameters}
        values: dict[str, Value] = {}
        for word in assignments:
            name, equals, text = word.partition("=")
            if not equals:
                raise UsageError(f"sql: --param: {word!r} is not NAME=VALUE")
            if name not in parameter_by_name:
                there = ", ".join(parameter_by_name) or "none"
                raise UsageError(f"sql: --param: {self.name} has no parameter {name!r}; parameters: {there}")
            if name in values:
                raise UsageError(f"sql: --param: {name} is given twice")
            values[name] = _value(parameter_by_name[name], text)
        return {name: values.get(name, parameter.default) for name, parameter in parameter_by_name.items()}

    @property
    def duckdb_sql(self) -> str:
        """The text with parameters as DuckDB writes them."""
        return MARKER.sub(r"$\1", self.sql)

    @property
    def spark_sql(self) -> str:
        """The text with parameters as columns of a view of one row (`spark_sql.PARAMETERS`)."""
        return MARKER.sub(rf"(SELECT `\1` FROM {PARAMETERS})", self.sql)  # noqa: S608  # names of our own files


def _value(parameter: Parameter, text: str) -> Value:
    if parameter.kind == "text":
        return text
    if WHOLE_NUMBER.fullmatch(text) is None:
        raise UsageError(f"sql: --param: {parameter.name} is an integer, and {text!r} is none")
    return int(text)


def names() -> list[str]:
    """The names of all queries, sorted."""
    folder = files("jobs").joinpath("sql")
    return sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql"))


def named_query(name: str) -> NamedQuery:
    """The query of a name.

    Raises:
        UsageError: there is none.
    """
    there = names()
    if name not in there:
        raise UsageError(f"sql: --query: no query {name!r}; queries: {', '.join(there)}")
    return parse(name, files("jobs").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> NamedQuery:
    """A query from the text of its file.

    Raises:
        ValueError: a `param:` line is malformed, or markers and parameters differ; a fault of the file, not of a user.
    """
    lines = text.splitlines()
    size = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    head = [line.removeprefix("--").strip() for line in lines[:size]]
    facts = [line.partition(": ") for line in head if line.startswith(("column: ", "param: "))]
    plain = [line for line in head if not line.startswith(("column: ", "param: "))]
    parameters = tuple(_parameter(text) for kind, _, text in facts if kind == "param")
    sql = "\n".join(lines[size:]).strip()
    if set(MARKER.findall(sql)) != {parameter.name for parameter in parameters}:
        raise ValueError(f"{name}.sql: its parameters are not those of its head")
    columns = " ".join(text for kind, _, text in facts if kind == "column")
    return NamedQuery(
        name=name, title=plain[0], about=" ".join(plain[1:]), columns=columns, parameters=parameters, sql=sql
    )


def _parameter(text: str) -> Parameter:
    match = PARAM.fullmatch(text)
    if match is None:
        raise ValueError(f"malformed parameter: {text}")
    default = match["default"]
    value: Value = None if default == "null" else int(default) if match["kind"] == "integer" else default
    return Parameter(name=match["name"], kind=match["kind"], default=value, text=match["text"])


def listed() -> Answer:
    """One row a query."""
    rows = [
        {
            "name": query.name,
            "title": query.title,
            "parameters": " ".join(parameter.usage for parameter in query.parameters),
            "columns": query.columns,
            "about": query.about,
            "sql": query.sql,
        }
        for query in map(named_query, names())
    ]
    columns = (name_column("NAME", "name"), text_column("PARAMETERS", "parameters"), text_column("TITLE", "title"))
    ranked = by_importance(columns, "NAME TITLE PARAMETERS")
    return Answer(table=pa.Table.from_pylist(rows, schema=LISTED), columns=ranked)
