"""Addresses of pages and the words of command lines."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.cli.app import COMMANDS
from sharelens.pages.address import SESSION, Address, Session, by_key, names_of, path
from sharelens.question_table.table import QUESTIONS, question_of
from state_model.errors import UsageError

QUESTION_LIST = [question for questions in QUESTIONS.values() for question in questions]
SESSION_OF_A_LAKE = Session({"--lake": ["./lake"], "--dlq-topic": ["a", "b"]})


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), min_size=1, max_size=4))
def test_any_names_come_back_from_a_path(names: list[str]) -> None:
    place = path(*names)
    assert names_of(place) == tuple(names)
    assert all(segment not in ("", ".", "..") for segment in place[1:].split("/"))
    assert place.isascii()


@pytest.mark.parametrize("question", QUESTION_LIST, ids=lambda question: question.name)
def test_no_address_names_a_source_or_a_file(question) -> None:
    common = {parameter.option for parameter in SESSION}
    for parameter in by_key(question).values():
        assert parameter.option not in common
        assert parameter.metavar not in ("FILE", "DIR")


def test_words_have_the_session_and_the_options_as_whole_words() -> None:
    words = Address("dlq", (("group", "-x"), ("bursts", "on"), ("from", "-1h"))).words(SESSION_OF_A_LAKE)
    assert words == ["--lake=./lake", "--dlq-topic=a", "--dlq-topic=b", "--group=-x", "--bursts", "--from=-1h"]
    with COMMANDS["dlq"].make_context("dlq", list(words)) as context:
        assert context.params["groups"] == ("-x",)
        assert context.params["dlq_topic"] == ("a", "b")


def test_a_question_gets_the_parameters_of_the_session_that_it_has() -> None:
    assert Address("lag").words(SESSION_OF_A_LAKE) == ["--lake=./lake"]
    assert Address("lag").command_line(SESSION_OF_A_LAKE) == "sharelens lag --lake=./lake"


@pytest.mark.parametrize("option", ["lake", "log_dir", "end_offsets", "settings", "output", "fail_on", "nonsense"])
def test_what_an_address_may_not_name_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match=f"lag: no parameter '{option}'; there are group, "):
        Address("lag", ((option, "x"),)).words(SESSION_OF_A_LAKE)


@given(st.text(max_size=20))
def test_a_text_is_never_read_as_an_option(text: str) -> None:
    words = Address("lag", (("group", text),)).words(SESSION_OF_A_LAKE)
    with click.Context(COMMANDS["lag"]) as context:
        values, rest, _ = COMMANDS["lag"].make_parser(context).parse_args(list(words))
    assert (values["groups"], rest) == ([text], [])
    assert question_of("lag").name == "lag"
