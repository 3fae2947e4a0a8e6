"""The command overview: the first screen of an incident."""

import os
import sys
import time
from dataclasses import replace

import click

from sharelens.cli.forensics import FAIL_ON, fail_on_findings
from sharelens.cli.incidents import MIN_DURATION, settings_options
from sharelens.cli.options.common import Duration, examples, filter_options, output_options
from sharelens.cli.options.now import NOW
from sharelens.cli.options.source import dead_letter_options, evidence_options
from sharelens.output import Form, Report, Shown, say_warnings, show, tell
from sharelens.parameters.filters import KeyFilter
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError

COLORS = {"error": "red", "warning": "yellow", "info": "cyan"}
FINDINGS_SHOWN, GROUPS_SHOWN = 8, 12
"""So many fit a screen of 80 columns and 40 lines."""


@click.command(
    short_help="What is wrong now, the worst first, and one line a group.",
    epilog=examples(
        "sharelens overview --lake ./lake",
        "sharelens overview --log-dir /var/lib/kafka/data --watch 10s",
    ),
)
@evidence_options
@dead_letter_options
@filter_options
@NOW
@MIN_DURATION
@settings_options
@click.option("--watch", type=Duration("s"), metavar="DURATION", help="Show it again after each DURATION, as 10s.")
@click.option("--no-color", is_flag=True, help="No colours on a terminal; the variable NO_COLOR does the same.")
@FAIL_ON
@output_options
def overview(
    source: Source,
    key_filter: KeyFilter,
    now_ms: int | None,
    min_duration_ms: int,
    watch: int | None,
    no_color: bool,
    fail_on: bool,
    shown: Shown,
) -> None:
    """What is wrong now, the worst first: stalls, groups without members, missing dead letters, growing lag, resets,
    archived and repeated records, gaps in the evidence; each with the command that explains it. Then one line a group.

    Recent is the hour before now; a larger lag than ten minutes ago (of a lake: than at an earlier publication) grows.
    """
    if watch is not None and shown.form is not Form.TEXT:
        raise UsageError("--watch shows text; leave out --output, or --watch")

    def once() -> Report:
        from sharelens.questions.findings import overview
        from sharelens.tables import opening

        with opening.open_evidence(replace(source, takes_group_log=True)) as evidence:
            return overview.overview(
                evidence,
                source,
                key_filter,
                CutChoice(now_ms=now_ms),
                evidence.settings.groups,
                min_duration_ms=min_duration_ms,
            )

    answered = once()
    while True:
        _show(answered, shown, is_colored=not no_color and not os.environ.get("NO_COLOR"))
        if watch is None:
            break
        sys.stdout.flush()
        time.sleep(watch / 1000)
        answered = once()
        click.clear()
    if fail_on:
        from sharelens.questions.findings.overview import is_wrong

        fail_on_findings(is_wrong(answered), "findings")


def _show(answered: Report, shown: Shown, *, is_colored: bool) -> None:
    """On a terminal sentences that fit it, unless an option says otherwise; else the tables."""
    plain = shown.wide or shown.vertical or shown.columns or shown.form is not Form.TEXT
    if plain or not sys.stdout.isatty():
        show(answered, shown)
        return
    _show_screen(answered, shown, is_colored=is_colored)


def _show_screen(answered: Report, shown: Shown, *, is_colored: bool) -> None:
    from sharelens.output.screen import prose
    from sharelens.questions.findings.overview import screen

    rows = list(screen(answered))
    finding_limit = FINDINGS_SHOWN if shown.limit is None else shown.limit
    for severity, sentence, command in rows[:finding_limit]:
        _tell_finding(severity, sentence, command, is_colored=is_colored)
    if not rows:
        tell(answered.parts["findings"].none)
    elif len(rows) > finding_limit:
        tell(f"... {len(rows) - finding_limit} more findings; --limit {len(rows)} shows them all")
    tell("")
    show(answered.parts["groups"], replace(shown, limit=shown.limit or GROUPS_SHOWN))
    say_warnings(answered.warnings)
    tell("")
    for line in (answered.summary or "").splitlines():
        tell("\n".join(prose(line)))


def _tell_finding(severity: str, sentence: str, command: str, *, is_colored: bool) -> None:
    """The severity with the sentence beside it, and the command below."""
    from sharelens.output.screen import folded, screen_width

    room = max(map(len, COLORS)) + 2
    mark, blank = severity.ljust(room), " " * room
    if is_colored:
        mark, command = click.style(mark, fg=COLORS[severity], bold=True), click.style(command, dim=True)
    tell(mark + f"\n{blank}".join(folded(sentence, screen_width() - room)))
    tell(blank + command)


COMMANDS = (overview,)
