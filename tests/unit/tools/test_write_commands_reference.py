"""The page of commands is the one of the code."""

import re

from sharelens.question_table.references import load
from sharelens.question_table.table import QUESTIONS
from state_model.columnar.schemas import comment
from tools import write_commands_reference


def test_the_page_is_up_to_date() -> None:
    assert write_commands_reference.main(["--check"]) == 0, "run: python -m tools.write_commands_reference"


def test_each_command_and_subcommand_has_one_heading() -> None:
    headings = re.findall(r"^### (.*)$", write_commands_reference.page(), re.MULTILINE)
    assert {"run", "broker start", "evidence", "tables", "state"} <= set(headings)
    assert len(headings) == len(set(headings))


def test_each_field_of_an_answer_has_a_meaning() -> None:
    layouts = [load(rows) for group in QUESTIONS.values() for question in group for rows in question.rows.values()]
    assert [field.name for layout in layouts for field in layout.schema if not comment(field)] == []
