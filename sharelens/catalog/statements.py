"""The views of a lake as a script for an engine."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from sharelens.catalog import duckdb, spark, trino
from sharelens.catalog.views import View, views
from sharelens.lake.scan import Cut

Statements = Callable[[Sequence[View], int], Iterator[str]]
STATEMENTS: Mapping[str, Statements] = {
    "spark": spark.statements,
    "trino": trino.statements,
    "duckdb": duckdb.statements,
}
HEADERS = {"trino": trino.HEADER}


def script(engine: str, lake: Cut, name: str | None = None, prefix: str = "") -> str:
    """The statements of an engine (a key of STATEMENTS) for all tables, or for one; each ends with `;`.

    Raises:
        UsageError: no such table, or a prefix that is no identifier.
    """
    run = int(str(lake.publication["run_id"]))
    statements = STATEMENTS[engine](views(lake, name, prefix), run)
    header = f"{HEADERS[engine]}\n" if engine in HEADERS else ""
    return header + ";\n\n".join(statements) + ";"
