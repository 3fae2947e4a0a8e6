"""Headings of every answer correspond to fields of its JSON, one to one."""

import shlex
import shutil
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.output import Answer, Report, Shown, Stream, writing
from sharelens.output.chosen import field_names, text_columns
from sharelens.output.layouts import Layout
from sharelens.question_table.references import load
from sharelens.question_table.table import QUESTIONS
from tests.unit.sharelens.output.test_screens import COMMANDS, LAKE, places

ROWS: dict[str, list[Layout]] = {
    question.name: list(map(load, question.rows.values())) for group in QUESTIONS.values() for question in group
}
"""The layouts of the answers to each question."""
COPY = "copy"
"""A lake of one's own, for a command that writes."""

MORE_COMMANDS = """
trace --log-dir dlq --group gd-auto --topic tasks --partition 0 --offset 7 --members
account --log-dir dlq --class archived
lag --log-dir basic --as-of 2026-11-21T03:12:45Z
status --lake lake
check --lake copy --table silver.name
tables --lake lake
doctor
overview --log-dir dlq
audit --log-dir edge --limit 5
"""


def answers(command: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[Answer | Stream]:
    """The answers that a command shows."""
    written: list[Answer | Stream] = []

    def record(answer: Answer | Stream | Report, shown: Shown) -> Answer | Stream | Report:
        written.extend(answer.parts.values() if isinstance(answer, Report) else [answer])
        return answer

    monkeypatch.setattr(writing, "with_chosen_columns", record)
    first, *words = shlex.split(command)
    named = places()
    if COPY in words:
        named[COPY] = str(shutil.copytree(named[LAKE], folder / COPY))
    main([first, *(named.get(word, word) for word in words)])
    return written


def fits(answer: Answer | Stream, layout: Layout) -> bool:
    """Whether the rows and the columns of an answer are those that the table of questions declares."""
    fields, declared = field_names(answer), layout.schema.names
    if set(fields) - set(declared) or (fields != declared and not layout.varies):
        return False
    return layout.varies != "" or [column.heading for column in text_columns(answer)] == [
        column.heading for column in layout.columns()
    ]


@pytest.mark.one_in(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [line for line in (COMMANDS + MORE_COMMANDS).splitlines() if line and "--columns" not in line]
)
def test_every_heading_has_fields_of_its_own(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shown = answers(command, monkeypatch, tmp_path)
    assert shown
    for answer in shown:
        fields, columns = field_names(answer), text_columns(answer)
        headings = {column.heading.lower().replace("-", "_"): column for column in columns}
        assert len(headings) == len(columns)
        assert [column.heading for column in columns if not column.fields or set(column.fields) - set(fields)] == []
        assert command.split()[0] not in ROWS or any(fits(answer, layout) for layout in ROWS[command.split()[0]])
        first_fields = [column.fields[0] for column in columns]
        assert len(set(first_fields)) == len(first_fields)
        same_name = {name: headings[name].fields[0] for name in headings if name in fields}
        assert same_name == dict(zip(same_name, same_name, strict=True))
    capsys.readouterr()
