"""What there is: status, tables, sql."""

from pathlib import Path
from typing import TextIO

import click

from sharelens.asked import Source
from sharelens.cli.options import evidence_options, examples, output_options
from sharelens.output import Shown, show
from state_model.errors import UsageError

LAKE = click.option("--lake", metavar="DIR", required=True, help="The lake that `sharelens run` wrote.")


@click.command(
    short_help="What the evidence holds and lacks.",
    epilog=examples("sharelens status --lake ./lake", "sharelens status --log-dir /var/kafka-copy --output json"),
)
@evidence_options
@output_options
def status(source: Source, shown: Shown) -> None:
    """What the evidence holds: state partitions and the time they cover, gaps, quarantine, last runs, versions."""
    from sharelens.questions import status

    if source.lake is not None:
        from lake.scan import open_lake

        show(status.lake_status(open_lake(Path(source.lake)), source.cluster_id), shown)
        return
    from sharelens.questions.log_evidence import open_log_evidence

    with open_log_evidence(source) as evidence:
        show(status.log_status(evidence), shown)


@click.command(
    short_help="The tables of a lake and their columns.",
    epilog=examples("sharelens tables --lake ./lake", "sharelens tables silver.share_record"),
)
@click.argument("name", required=False)
@click.option("--lake", metavar="DIR", help="The lake; not needed to list one table's columns.")
@output_options
def tables(name: str | None, lake: str | None, shown: Shown) -> None:
    """The tables with rows, bytes and versions; with NAME the columns of that table."""
    from sharelens.questions import tables

    if name is not None:
        show(tables.table_columns(name), shown)
        return
    if lake is None:
        raise UsageError(
            "tables: give --lake DIR, or the name of a table to see its columns, as in `sharelens tables silver.name`"
        )
    from lake.scan import open_lake

    show(tables.tables(open_lake(Path(lake))), shown)


@click.command(
    short_help="One SELECT over the tables.",
    epilog=examples(
        'sharelens sql --lake ./lake "SELECT group_id, count(*) FROM gold.share_partition_state GROUP BY ALL"',
        "sharelens sql --lake ./lake --file slow.sql --output csv",
    ),
)
@click.argument("query", required=False)
@LAKE
@click.option("--file", "file", type=click.File("r"), help="Read the query from a file; - is standard input.")
@click.option(
    "--engine", type=click.Choice(["duckdb", "spark"]), default="duckdb", show_default=True, help="Whose SQL it is."
)
@output_options
def sql(query: str | None, lake: str, file: TextIO | None, engine: str, shown: Shown) -> None:
    """One SELECT over the tables at the published cut, as bronze.x, silver.x, gold.x; no file or network access."""
    if (query is None) == (file is None):
        raise UsageError("sql: give either the query or --file FILE")
    text = query or ""
    if file is not None:
        text = file.read()
    from lake.scan import open_lake

    opened = open_lake(Path(lake))
    if engine == "spark":
        from jobs.session import spark_session
        from jobs.settings import load_settings
        from sharelens.questions.spark_sql import spark_sql

        show(spark_sql(spark_session("sql", load_settings()), opened, text), shown)
        return
    from sharelens.questions import sql

    show(sql.sql(opened, text), shown)


COMMANDS = (status, tables, sql)
