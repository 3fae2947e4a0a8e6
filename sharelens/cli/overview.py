"""How `sharelens overview`, the first screen of an incident, is shown."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import click

from sharelens.output import Form, Report, Shown, say_warnings, show, tell
from state_model.errors import UsageError

COLORS = {"error": "red", "warning": "yellow", "info": "cyan", "not judged": "magenta"}
FINDINGS_SHOWN, GROUPS_SHOWN = 8, 12
"""So many fit a screen of 80 columns and 40 lines."""


def show_overview(
    once: Callable[[], AbstractContextManager[Report]], shown: Shown, values: Mapping[str, Any]
) -> Report:
    """Shows the overview, with --watch again and again; the last one."""
    watch: int | None = values["watch"]
    if watch is not None and shown.form is not Form.TEXT:
        raise UsageError("--watch shows text; leave out --output, or --watch")
    is_colored = not values["no_color"] and not os.environ.get("NO_COLOR")
    answer = _report(once)
    while True:
        _show(answer, shown, is_colored=is_colored)
        if watch is None:
            return answer
        sys.stdout.flush()
        time.sleep(watch / 1000)
        answer = _report(once)
        click.clear()


def _report(once: Callable[[], AbstractContextManager[Report]]) -> Report:
    with once() as answer:
        return answer


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
    tell("\n".join(prose(answered.headline or "")))
    tell("")
    for severity, sentence, command in rows[:finding_limit]:
        _tell_finding(severity, sentence, command, is_colored=is_colored)
    if len(rows) > finding_limit:
        tell(f"... {len(rows) - finding_limit} more findings; --limit {len(rows)} shows them all")
    tell("")
    for groups in [answered.parts["groups"], *filter(None, [answered.parts.get("consumer_groups")])]:
        show(groups, replace(shown, limit=shown.limit or GROUPS_SHOWN))
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
