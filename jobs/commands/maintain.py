"""The command `maintain`: compaction, retention and vacuum of a lake."""

from typing import TYPE_CHECKING

import click

from jobs.commands.ages import Ages
from jobs.commands.refusals import refuse_closed
from sharelens.cli.asking import parameters
from sharelens.cli.options.common import LOCK_TIMEOUT, Duration, examples
from sharelens.output import Answer, Form, Shown, by_importance, json_text, name_column, number_column, show, tell
from sharelens.question_table.shared import LAKE, lake
from state_model.errors import UsageError

if TYPE_CHECKING:
    from jobs.upkeep.maintain import Upkeep

TEXT, JSON = "text", "json"


@click.command(
    short_help="Compacts small files, drops old rows, removes old files.",
    epilog=examples(
        "sharelens maintain --lake ./lake --dry-run --output text",
        "sharelens maintain --lake ./lake --execute",
        "sharelens maintain --lake ./lake --retain bronze=90d,silver=90d,history=400d --execute",
    ),
)
@parameters(*lake(LAKE.help, is_required=True))
@click.option(
    "--retain",
    type=Ages(),
    default="",
    metavar="AGES",
    help="Drop older rows: bronze=D,silver=D,history=D,measures=D,checks=D, any of them  [default: none]",
)
@click.option(
    "--window",
    type=Duration(),
    default="7d",
    show_default=True,
    metavar="DURATION",
    help="Time for which old cuts stay readable.",
)
@click.option("--dry-run", is_flag=True, help="Only list the work.")
@click.option("--execute", is_flag=True, help="Do it.")
@LOCK_TIMEOUT
@click.option(
    "--output", "-o", type=click.Choice([TEXT, JSON]), default=JSON, show_default=True, help="Form of the summary."
)
def maintain(
    lake: str, retain: dict[str, int], window: int, dry_run: bool, execute: bool, lock_timeout: float, output: str
) -> None:
    """Keeps a lake small and fast: compacts small files, drops old rows, removes unreferenced files.

    Without --retain, answers do not change. The age of a row is the distance of its log time to the newest record.
    Newest states, open ranges and the last snapshot of every share partition are never dropped. Cuts of the last 7 days
    (--window) stay readable. The summary is one line of JSON on stdout.
    """
    if dry_run == execute:
        raise UsageError("maintain: give --dry-run to list the work, or --execute to do it")
    from jobs.commands.progress import progress_bars
    from jobs.upkeep.maintain import MaintainOptions
    from jobs.upkeep.maintain import maintain as run_maintain
    from sharelens.lake.lake import Lake

    options = MaintainOptions(
        lake=Lake(lake), dry_run=dry_run, retain=retain, window_ms=window, lock_timeout_s=lock_timeout
    )
    with progress_bars() as progress:
        done = run_maintain(options, progress)
    if done.closed:
        refuse_closed(done.closed)
    if output == TEXT:
        show(_answer(done), Shown(form=Form.TEXT))
    else:
        tell(json_text({"command": "maintain", "lake": lake, **done.as_dict()}))


def _answer(done: "Upkeep") -> Answer:
    """A row a table that has files, or had."""
    import pyarrow as pa

    shown = ("files_before", "files_after", "bytes_before", "bytes_after", "dropped_rows", "vacuumed_files")
    rows = [
        {"table": table.table, **{name: getattr(table, name) for name in shown}, "seconds": round(table.seconds, 3)}
        for table in done.tables
        if table.files_before or table.files_after or table.vacuumed_files
    ]
    columns = [name_column("TABLE", "table")]
    columns += [number_column(name.upper().replace("_", "-"), name) for name in (*shown, "seconds")]
    fields = [("table", pa.string()), *((name, pa.int64()) for name in shown), ("seconds", pa.float64())]
    total = done.as_dict()
    verb = "would rewrite" if done.dry_run else "rewrote"
    published = "nothing to publish" if done.run_id is None else f"published as run {done.run_id}"
    if done.dry_run and any(table.rewritten_files for table in done.tables if table.table != "gold.publication"):
        published = "would publish"
    summary = (
        f"{verb} {total['rewritten_files']} files; {total['dropped_rows']} rows past their age; "
        f"{total['vacuumed_files']} files and {total['log_files']} log entries nobody needs; {published}"
    )
    return Answer(
        table=pa.Table.from_pylist(rows, schema=pa.schema(fields)),
        columns=by_importance(columns, "TABLE"),
        summary=summary,
    )


COMMANDS = (maintain,)
