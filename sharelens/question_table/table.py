"""All questions, by the headings of `sharelens --help`."""

from collections.abc import Mapping

from sharelens.question_table.figures import FIGURES, STATUS
from sharelens.question_table.groups import GROUPS_AND_SETTINGS
from sharelens.question_table.incidents import INCIDENTS
from sharelens.question_table.question import Question
from sharelens.question_table.states import STATES_AND_RECORDS

QUESTIONS: Mapping[str, tuple[Question, ...]] = {
    "An incident": INCIDENTS,
    "States and records": STATES_AND_RECORDS,
    "Groups and figures": (*GROUPS_AND_SETTINGS, *FIGURES),
    "A lake and its tables": (STATUS,),
}
"""Heading -> its questions, in the order of a day's work."""


def question_of(name: str) -> Question:
    """The question of a name. Raises KeyError: there is none."""
    return {question.name: question for questions in QUESTIONS.values() for question in questions}[name]
