"""The command `upgrade`."""

from typing import TYPE_CHECKING

import click

from jobs.commands.stages import LOCK_TIMEOUT
from sharelens.cli.asking import parameters
from sharelens.cli.options.common import becomes, examples, stacked
from sharelens.cli.options.spark import SPARK, engine_settings, session_of
from sharelens.output import Answer, Shown, by_importance, name_column, number_column, show, text_column
from sharelens.question_table.shared import OUTPUT, lake
from sharelens.shell import lake_command
from state_model.errors import UsageError

if TYPE_CHECKING:
    from jobs.upkeep.upgrade import Upgraded
    from sharelens.configuration.settings import Settings


@parameters(*OUTPUT)
def _upgrade(lake: str, dry_run: bool, execute: bool, shown: Shown, settings: "Settings") -> None:
    """Converts the tables of an older lake to this version; --dry-run lists the work.

    The command reads only the lake. Until its last commit, the older sharelens can read the lake. If the command was
    killed, run it again to continue.
    """
    if dry_run == execute:
        raise UsageError("upgrade: give --dry-run to list the work, or --execute to do it")
    from jobs.commands.progress import progress_bars
    from jobs.upkeep.upgrade import UpgradeOptions, upgrade
    from sharelens.lake.lake import Lake
    from sharelens.spark.session import in_process_bytes

    options = UpgradeOptions(
        lake=Lake(lake),
        dry_run=dry_run,
        lock_timeout_s=settings.lock_timeout_s,
        in_process_bytes=in_process_bytes(settings),
    )
    with progress_bars() as progress:
        done = upgrade(options, session_of("upgrade", settings), progress)
    show(_answer(done, lake), shown)


def _answer(done: "Upgraded", lake: str) -> Answer:
    """A row a table."""
    import pyarrow as pa

    from sharelens.lake.tables import SCHEMA_VERSION

    rows = [
        {
            "table": need.table,
            "written_version": need.written,
            "schema_version": SCHEMA_VERSION,
            "needs": need.kind.value,
            "columns": need.detail or None,
            "rows": need.rows,
            "size_bytes": need.size_bytes,
        }
        for need in done.needs
    ]
    names = [("table", pa.string()), ("written_version", pa.int64()), ("schema_version", pa.int64())]
    names += [("needs", pa.string()), ("columns", pa.string()), ("rows", pa.int64()), ("size_bytes", pa.int64())]
    columns = (
        name_column("TABLE", "table"),
        number_column("WRITTEN-VERSION", "written_version"),
        number_column("SCHEMA-VERSION", "schema_version"),
        text_column("NEEDS", "needs"),
        text_column("COLUMNS", "columns"),
        number_column("ROWS", "rows"),
        number_column("BYTES", "size_bytes"),
    )
    return Answer(
        table=pa.Table.from_pylist(rows, schema=pa.schema(names)),
        columns=by_importance(columns, "TABLE NEEDS ROWS COLUMNS BYTES"),
        summary=_summary(done, lake),
    )


def _summary(done: "Upgraded", lake: str) -> str:
    """The last line of the answer."""
    if not done.is_needed:
        return "nothing to do: the lake is of this version"
    rebuild = "no table is recomputed but the histories of groups"
    if done.stage is not None:
        rebuild = f"tables are recomputed as by `run --rebuild {done.stage}`"
    if done.dry_run:
        return f"{rebuild}; do it with `{lake_command('upgrade', lake, '--execute')}`"
    published = "nothing to publish" if done.run_id is None else f"published as run {done.run_id}"
    return f"upgraded; {rebuild}; {published}"


upgrade = click.command(
    "upgrade",
    short_help="Converts an older lake to this version.",
    epilog=examples("sharelens upgrade --lake ./lake --dry-run", "sharelens upgrade --lake ./lake --execute"),
)(
    stacked(
        _upgrade,
        [
            parameters(*lake("The lake that an older `sharelens run` wrote.", is_required=True)),
            click.option("--dry-run", is_flag=True, help="Only list the work."),
            click.option("--execute", is_flag=True, help="Do it."),
            becomes("settings", engine_settings, LOCK_TIMEOUT, *SPARK),
        ],
    )
)
COMMANDS = (upgrade,)
