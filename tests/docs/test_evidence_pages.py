"""The pages about evidence name every table, event and code, and their commands exist as they stand."""

import re
import shlex
from pathlib import Path

import click
import pytest

from sharelens.cli.app import cli
from sharelens.evidence_folder import events, tables, verify

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "evidence.md").read_text(encoding="utf-8")
HOW_TO = (DOCS / "how-to" / "collect-evidence.md").read_text(encoding="utf-8")
COMMANDS = [line.removeprefix("$ sharelens ") for line in HOW_TO.splitlines() if line.startswith("$ sharelens ")]


def test_the_reference_has_a_line_for_each_table_in_order() -> None:
    for listed_tables in (tables.TABLES, tables.STREAMS_TABLES):
        assert "\n".join(f"| `{table.name}` | {table.one_row} |" for table in listed_tables) in REFERENCE


def test_the_reference_has_a_line_for_each_event_and_each_code_of_verify() -> None:
    assert "\n".join(f"| {event} | {meaning} |" for event, meaning in events.MEANING.items()) in REFERENCE
    kinds = {code: "finding" if code in verify.FINDINGS else "note" for code in verify.MEANING}
    assert (
        "\n".join(f"| `{code}` | {kinds[code]} | {meaning} |" for code, meaning in verify.MEANING.items()) in REFERENCE
    )


def test_the_reference_names_every_note() -> None:
    source = (Path(verify.__file__).parent / "notes.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'code="(\w+)"', source)) | {"state_before_incomplete", "state_after_incomplete", "warning"}
    assert len(codes) > 5
    assert {code for code in codes if f"`{code}`" not in REFERENCE} == set()


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_of_the_how_to_is_understood(text: str) -> None:
    name, *words = shlex.split(text)
    command = cli.commands[name]
    assert isinstance(command, click.Command)
    command.make_context(name, words)
