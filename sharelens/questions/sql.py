"""Ad hoc SQL by DuckDB: one SELECT over the tables of the published cut, without access to files or the network."""

import re
from collections.abc import Mapping

import duckdb

from lake.scan import Cut
from lake.tables import TABLES
from sharelens.output import Answer
from sharelens.questions.published import readable
from state_model.errors import SharelensError, UsageError

LAYERS = ("bronze", "silver", "gold")
ABOUT_ALL = re.compile(r"\b(show|describe|summarize|information_schema|pg_catalog|duckdb_\w+)\b", re.IGNORECASE)
AS_SPARK = "CREATE MACRO explode(items) AS unnest(items)"
"""Spark's name for it, so that one text suits both engines."""
LOCKS = (
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


def sql(lake: Cut, query: str, parameters: Mapping[str, str | int | None] | None = None) -> Answer:
    """The result of a query; `parameters` are the values of its `$name` markers.

    Raises:
        UsageError: not exactly one SELECT, or SQL that DuckDB refuses.
        SharelensError: the query failed while it ran.
    """
    with duckdb.connect(":memory:") as connection:
        ensure_one_select(query)
        connection.execute(AS_SPARK)
        _offer_tables(connection, lake, query)
        for lock in LOCKS:
            connection.execute(lock)
        try:
            return Answer(table=connection.sql(query, params=dict(parameters or {})).to_arrow_table(), none="no rows")
        except (
            duckdb.ParserException,
            duckdb.CatalogException,
            duckdb.BinderException,
            duckdb.PermissionException,
        ) as error:
            raise UsageError(f"sql: {_first_line(error)}") from error
        except duckdb.Error as error:
            raise SharelensError(f"sql: {_first_line(error)}") from error


def ensure_one_select(query: str) -> None:
    """UsageError for anything but one SELECT (WITH, VALUES, FROM-first and DESCRIBE count as one)."""
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"sql: {_first_line(error)}") from error
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        found = ", ".join(kinds) or "nothing"
        raise UsageError(f"sql: only one SELECT is taken, this is: {found}")


def _offer_tables(connection: duckdb.DuckDBPyConnection, lake: Cut, query: str) -> None:
    """Views layer.table over the tables that the query can mean; the others are not even opened."""
    for layer in LAYERS:
        connection.execute(f"CREATE SCHEMA {layer}")
    words = set(re.findall(r"\w+", query.lower()))
    about_all = ABOUT_ALL.search(query) is not None
    for name in TABLES:
        layer, _, short = name.partition(".")
        if not about_all and short not in words:
            continue
        found = readable(lake, name)
        held = TABLES[name].schema.empty_table() if found is None else found
        connection.register(f"_{layer}_{short}", held)
        connection.execute(f"CREATE VIEW {layer}.{short} AS FROM _{layer}_{short}")  # our own names, not the user's


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\n", 1)[0].split())
