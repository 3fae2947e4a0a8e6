"""The command `tables`: the tables of a lake, and their definitions for other tools and catalogs."""

from typing import Any

import click

from sharelens.cli.asking import parameters
from sharelens.cli.options.common import examples, stacked
from sharelens.cli.options.spark import SPARK, engine_settings, session_of
from sharelens.output import Shown, say, show, tell
from sharelens.question_table.shared import OUTPUT, lake
from state_model.errors import UsageError

CREATE_TABLES = "tables"
"""The value of --ddl where none stands: Spark's CREATE TABLE."""
ENGINES = ("spark", "trino", "duckdb")
SPARK_NAMES = ("offline", "jars_dir", "master", "conf")


def _tables(
    name: str | None,
    lake: str | None,
    ddl: str | None,
    dbt_sources: bool,
    register: bool,
    schema_prefix: str,
    shown: Shown,
    **spark: Any,
) -> None:
    """The tables with rows, bytes and versions; with NAME the columns of that table."""
    if ddl is not None and name is None and "." in ddl:
        name, ddl = ddl, CREATE_TABLES  # `tables --ddl gold.lag`
    _check_options(lake, ddl, dbt_sources=dbt_sources, register=register, prefix=schema_prefix, shown=shown)
    if any(spark[option] for option in SPARK_NAMES) and not register:
        raise UsageError("tables: options of Spark go with --register")
    if register:
        _register(name, lake, schema_prefix, spark)
    elif ddl in ENGINES:
        _write_views(str(ddl), name, lake, schema_prefix)
    elif ddl is not None or dbt_sources:
        _write_definitions(name, lake, ddl=ddl is not None)
    else:
        _show_tables(name, lake, shown)


def _check_options(
    lake: str | None, ddl: str | None, *, dbt_sources: bool, register: bool, prefix: str, shown: Shown
) -> None:
    if [ddl is not None, dbt_sources, register].count(True) > 1:
        raise UsageError("tables: give --ddl or --dbt-sources, not both, or --register alone")
    if ddl not in (None, CREATE_TABLES, *ENGINES):
        raise UsageError(f"tables: --ddl {ddl}: no such engine; engines: {', '.join(ENGINES)}")
    if (ddl is not None or dbt_sources or register) and shown != Shown():
        raise UsageError("tables: --ddl, --dbt-sources and --register exclude the options of output; leave them out")
    if dbt_sources and lake is not None:
        raise UsageError("tables: --dbt-sources describes the tables of every lake; leave --lake out")
    if prefix and not register and ddl not in ENGINES:
        raise UsageError(f"tables: --schema-prefix goes with --register or --ddl {'|'.join(ENGINES)}")
    if lake is None and (register or ddl in ENGINES):
        raise UsageError("tables: give --lake DIR: the views are those of a lake's published cut")


def _show_tables(name: str | None, lake: str | None, shown: Shown) -> None:
    from sharelens.questions.queries import tables

    if name is not None:
        if lake is not None:
            from sharelens.lake.lake import Lake
            from sharelens.lake.scan import ensure_lake

            ensure_lake(Lake(lake))
        show(tables.table_columns(name), shown)
        return
    if lake is None:
        raise UsageError(
            "tables: give --lake DIR, or the name of a table to see its columns, as in `sharelens tables silver.name`"
        )
    from sharelens.lake.scan import open_lake

    show(tables.tables(open_lake(lake)), shown)


def _write_definitions(name: str | None, lake: str | None, *, ddl: bool) -> None:
    from sharelens.lake.lake import Lake
    from sharelens.lake.scan import ensure_lake
    from sharelens.questions.queries import definitions

    opened = None if lake is None else Lake(lake)
    if opened is not None:
        ensure_lake(opened)
    text = definitions.create_tables(name, opened) if ddl else definitions.dbt_sources(name)
    tell(text.rstrip("\n"))


def _write_views(engine: str, name: str | None, lake: str | None, prefix: str) -> None:
    from sharelens.catalog.statements import script
    from sharelens.lake.scan import open_lake

    cut = open_lake(str(lake))
    tell(script(engine, cut, name, prefix))


def _register(name: str | None, lake: str | None, prefix: str, spark: dict[str, Any]) -> None:
    from sharelens.catalog.registration import ensure_kept, register
    from sharelens.lake.scan import open_lake

    cut = open_lake(str(lake))
    session = session_of("tables", engine_settings(**spark))()
    ensure_kept(session)
    names = register(session, cut, name, prefix)
    say(f"registered {len(names)} tables of {lake} as views at the cut of run {cut.publication['run_id']}")


tables = click.command(
    name="tables",
    short_help="The tables of a lake and their columns.",
    epilog=examples(
        "sharelens tables --lake ./lake",
        "sharelens tables silver.share_record",
        "sharelens tables --lake ./lake --ddl duckdb",
        "sharelens tables --lake ./lake --register --conf spark.sql.catalogImplementation=hive",
        "sharelens tables --dbt-sources",
    ),
)(
    stacked(
        parameters(*OUTPUT)(_tables),
        [
            click.argument("name", required=False),
            parameters(*lake("The lake; not needed to list one table's columns.")),
            click.option(
                "--ddl",
                is_flag=False,
                flag_value=CREATE_TABLES,
                metavar=f"[{'|'.join(ENGINES)}]",
                help="Statements that make views at the published cut, for an engine. Without an engine: Spark's "
                "CREATE TABLE; with --lake for its tables in their places.",
            ),
            click.option(
                "--dbt-sources", is_flag=True, help="A dbt sources file with descriptions, types and tests of columns."
            ),
            click.option("--register", is_flag=True, help="Make the views in the catalog of a Spark session."),
            click.option(
                "--schema-prefix",
                metavar="PREFIX",
                default="",
                help="Begins the names of the schemas bronze, silver and gold in the catalog.",
            ),
            *SPARK,
        ],
    )
)
COMMANDS = (tables,)
