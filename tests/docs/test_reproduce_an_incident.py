"""The commands of docs/how-to/reproduce-an-incident.md and of the README exist as they stand, and so do the faults."""

import re
import shlex
from pathlib import Path

import click
import pytest

from sharelens.broker.faults import parse_fault
from sharelens.cli.app import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "reproduce-an-incident.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.partition("sharelens ")[2].partition("  #")[0].strip()
    for line in (PAGE + README).splitlines()
    if re.match(r"\$ (\.venv/bin/)?sharelens ", line)
]


@pytest.mark.parametrize("text", sorted(set(COMMANDS)))
def test_a_command_of_the_pages_is_understood(text: str) -> None:
    command: click.Command = cli
    words = shlex.split(text)
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(text, words)


def test_the_faults_of_the_page_are_rules() -> None:
    rules = re.findall(r"`((?:api|append)=[^`]+)`", PAGE)
    assert len(rules) > 5
    assert {parse_fault(rule).action.value for rule in rules} >= {
        "lose",
        "drop",
        "delay",
        "error",
        "crash_after",
        "torn",
    }


def test_readme_fits_on_one_screen() -> None:
    assert len(README.splitlines()) <= 64
