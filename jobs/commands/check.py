"""The command `check`: the quality gates of a lake."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from jobs.commands.refusals import FINDINGS
from jobs.commands.stages import SKIP
from sharelens.cli.asking import parameters
from sharelens.cli.moments import dated
from sharelens.cli.options.common import LOCK_TIMEOUT, Duration, NewPath, Time, examples
from sharelens.output import Shown, say, show
from sharelens.question_table.shared import LAKE, OUTPUT, lake
from state_model.errors import UsageError


@click.command(
    short_help="Checks the tables before they are published.",
    epilog=examples(
        "sharelens check --lake ./lake",
        "sharelens check --lake ./lake --published --whole --data-docs ./data-docs",
        "sharelens check --lake ./old-copy --skip freshness --skip volume --table silver.share_record",
    ),
)
@parameters(*lake(LAKE.help, is_required=True))
@click.option("--published", is_flag=True, help="Check the published cut, not the newest versions.")
@click.option("--whole", is_flag=True, help="Check all rows, not only those of runs since the last cut.")
@click.option(
    "--level",
    type=click.Choice(["blocking", "warning", "all"]),
    default="all",
    show_default=True,
    help="Only expectations of this level.",
)
@click.option("--table", metavar="NAME", multiple=True, help="Only this table, as layer.name. Repeatable.")
@SKIP
@click.option(
    "--fresh-within",
    type=Duration(),
    metavar="DURATION",
    help="Warn if the evidence is older: 90s, 2h  [default: conf, 2h]",
)
@click.option(
    "--stale-after",
    type=Duration(),
    metavar="DURATION",
    help="Close the gate if the evidence is older  [default: conf, never]",
)
@click.option(
    "--audit-blocks",
    type=click.Choice(["error", "warning", "none"]),
    help="Findings of the audit that close the gate  [default: conf, none]",
)
@click.option("--now", "now_ms", type=Time(), metavar="TIME", help="The moment for ages of evidence  [default: now]")
@click.option("--data-docs", type=NewPath(), metavar="DIR", help="Also write the results as pages: DIR/index.html.")
@LOCK_TIMEOUT
@parameters(*OUTPUT)
def check(lake: str, shown: Shown, **params: Any) -> None:
    """Checks the rows since the last cut against the expectations of every table, and stores the results.

    An unmet blocking expectation closes the gate of its table (exit 3): nothing is published until a later check meets
    it. The results are rows of gold.quality_result.
    """
    from jobs.commands.progress import progress_bars
    from jobs.quality.check import CheckOptions
    from jobs.quality.check import check as run_check
    from jobs.quality.rule import LEVELS
    from sharelens.configuration.settings import load_settings
    from sharelens.lake.lake import Lake
    from sharelens.lake.tables import TABLES
    from sharelens.questions.gates import answer
    from sharelens.tables.ends import GOES_ON

    unknown = [name for name in params["table"] if name not in TABLES]
    if unknown:
        raise UsageError(f"--table {unknown[0]}: no such table; tables: {', '.join(TABLES)}")
    if params["data_docs"] is not None and Path(params["data_docs"]).is_file():
        raise UsageError(f"--data-docs: {params['data_docs']} is no folder; name another one for the pages")
    limits = load_settings().limits()
    options = CheckOptions(
        lake=Lake(lake),
        published=params["published"],
        all_rows=params["whole"],
        levels=LEVELS if params["level"] == "all" else (params["level"],),
        tables=params["table"] or tuple(TABLES),
        skip=params["skip"],
        data_docs=None if params["data_docs"] is None else Path(params["data_docs"]),
        limits=replace(
            limits,
            fresh_ms=params["fresh_within"] or limits.fresh_ms,
            stale_ms=params["stale_after"] or limits.stale_ms,
            audit_blocks=_audit_blocks(params["audit_blocks"], limits.audit_blocks),
        ),
        now_ms=dated({"moment": params["now_ms"]}, GOES_ON)["moment"],
        lock_timeout_s=params["lock_timeout"],
    )
    with progress_bars() as progress:
        checked = run_check(options, progress)
    show(answer(checked.results, checked.slice, checked.closed), shown)
    if checked.failed:
        say(f"sharelens: gates closed: {', '.join(checked.failed)}; `sharelens runbook RUNBOOK` has remedies")
        raise click.exceptions.Exit(FINDINGS)


def _audit_blocks(typed: str | None, configured: str | None) -> str | None:
    """The severity that closes the gate; None: no finding does."""
    if typed is None:
        return configured
    return None if typed == "none" else typed


COMMANDS = (check,)
