"""The command `sql`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

import click

from sharelens.cli.asking import parameters
from sharelens.cli.memory import bounded_memory
from sharelens.cli.options.common import Duration, Size, examples
from sharelens.output import Shown, show
from sharelens.question_table.shared import LAKE, OUTPUT, STORAGE_OPTION
from state_model.errors import SharelensError, UsageError

if TYPE_CHECKING:
    from sharelens.lake.scan import Cut


@click.command(
    short_help="One SELECT over the tables, or a named query.",
    epilog=examples(
        'sharelens sql --lake ./lake "SELECT group_id, count(*) FROM gold.share_partition_state GROUP BY ALL"',
        "sharelens sql --lake ./lake --file slow.sql --output csv",
        "sharelens sql --list",
        "sharelens sql --lake ./lake --query poison_by_topic --param group=orders-workers",
    ),
)
@click.argument("query", required=False)
@parameters(LAKE, STORAGE_OPTION)
@click.option(
    "--file", "file", type=click.File("r", encoding="utf-8"), help="Read the query from a file; - is standard input."
)
@click.option("--query", "named", metavar="NAME", help="A named query; --list shows them.")
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True, help="With --query: a parameter. Repeatable.")
@click.option("--list", "list_them", is_flag=True, help="List the named queries; with --output json also their SQL.")
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    show_default=True,
    help="The engine that runs the query.",
)
@click.option(
    "--memory",
    type=Size(),
    default="1G",
    show_default=True,
    envvar="SHARELENS_SQL_MEMORY",
    help="Memory that DuckDB may use.",
)
@click.option(
    "--spill",
    type=Size(),
    default="10G",
    show_default=True,
    envvar="SHARELENS_SQL_SPILL",
    help="Disk that DuckDB may use for larger results, in a private temporary folder.",
)
@click.option(
    "--timeout",
    type=Duration(bare_unit="s"),
    default="60s",
    show_default=True,
    envvar="SHARELENS_SQL_TIMEOUT",
    help="How long DuckDB may compute.",
)
@parameters(*OUTPUT)
def sql(
    query: str | None,
    lake: str | None,
    file: TextIO | None,
    named: str | None,
    params: tuple[str, ...],
    list_them: bool,
    engine: str,
    memory: int,
    spill: int,
    timeout: int,
    shown: Shown,
) -> None:
    """One SELECT over the tables at the published cut, as bronze.x, silver.x, gold.x; no file or network access.

    Named queries use SQL that both engines run; values of their parameters are bound.
    """
    query_count = [choice is not None for choice in (query, file, named)].count(True)
    if list_them:
        if query_count or params:
            raise UsageError("sql: --list excludes a query; leave the query out")
        from sharelens.questions.queries.named import listed

        show(listed(), shown)
        return
    if query_count != 1:
        raise UsageError("sql: give either the query or --file FILE, or --query NAME; --list shows the named ones")
    if params and named is None:
        raise UsageError("sql: --param goes with --query NAME")
    if lake is None:
        raise UsageError("sql: give --lake DIR, the lake that `sharelens run` wrote")
    from sharelens.lake.scan import open_lake
    from sharelens.questions.queries.named import named_query

    text = query or "" if file is None else _text_of(file)
    text.encode()  # a command line may have other text
    chosen = None if named is None else named_query(named)
    values = {} if chosen is None else chosen.values(params)
    opened = open_lake(lake)
    if engine == "spark":
        _show_by_spark(opened, text if chosen is None else chosen.spark_sql, values, shown)
        return
    from sharelens.questions.queries import sql

    limits = sql.Limits(memory_bytes=memory, spill_bytes=spill, time_ms=timeout)
    text = text if chosen is None else chosen.duckdb_sql
    with (
        bounded_memory(memory),
        sql.sql(opened, text, values, row_limit=shown.row_limit, limits=limits) as answer,
    ):
        show(answer, shown)


def _text_of(file: TextIO) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as error:
        raise SharelensError(
            f"sql: --file: can't read {file.name}: it is no text in UTF-8; give a file with one SELECT"
        ) from error


def _show_by_spark(opened: "Cut", text: str, values: Mapping[str, str | int | None], shown: Shown) -> None:
    from sharelens.configuration.settings import load_settings
    from sharelens.questions.queries.spark_sql import spark_sql
    from sharelens.spark.session import spark_session

    show(spark_sql(spark_session("sql", load_settings()), opened, text, values, row_limit=shown.row_limit), shown)


COMMANDS = (sql,)
