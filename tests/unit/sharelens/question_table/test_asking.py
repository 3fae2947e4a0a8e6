"""A question of the table is asked without the command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sharelens.output import Answer, Shown
from sharelens.parameters.filters import KeyFilter
from sharelens.question_table.asking import Surface, arguments, ask, findings, function_of
from sharelens.question_table.figures import LAG
from sharelens.question_table.incidents import POISON, REDELIVERED
from sharelens.question_table.question import Question
from sharelens.question_table.states import RECORDS, STATE
from sharelens.questions.lag import checked_lag, lag_over_time
from sharelens.source.request import DEFAULT_MAX_BYTES, CutChoice
from state_model.errors import UsageError
from tests.logs.state_logs import snapshot, update, write_log_directory

STORY = [snapshot(), update(start=0, batches=[(3, 5, 4, 1)])]


@pytest.fixture
def logs(tmp_path: Path) -> str:
    return str(write_log_directory(tmp_path / "logs", STORY))


def values_of(question: Question, logs: str, **typed: Any) -> dict[str, Any]:
    """The values of all parameters, where those of `typed` were typed."""
    values = {
        each.key: () if each.is_repeatable else False if each.kind.value is bool else each.default
        for each in question.parameters
    }
    return {**values, "log_dir": (logs,), "max_bytes": DEFAULT_MAX_BYTES, **typed}


def answer_of(question: Question, values: Mapping[str, Any], **surface: Any) -> Answer:
    with ask(question, values, arguments(question, values), Surface(**surface)) as answer:
        assert isinstance(answer, Answer)
        return answer


def test_values_become_the_arguments_of_the_function(logs: str) -> None:
    values = values_of(STATE, logs, groups=("g",), as_of_ms=7, verbose=True)
    named_arguments = arguments(STATE, values)
    assert named_arguments["source"].log_dirs == (logs,)
    assert named_arguments["key_filter"] == KeyFilter(groups=frozenset(["g"]))
    assert named_arguments["cut"] == CutChoice(as_of_ms=7)
    assert named_arguments["verbose"] is True
    assert named_arguments["shown"] == Shown()


def test_a_parameter_that_nobody_typed_is_left_to_the_function(logs: str) -> None:
    assert "kinds" not in arguments(REDELIVERED, values_of(REDELIVERED, logs))
    assert arguments(REDELIVERED, values_of(REDELIVERED, logs, kinds=("retry",)))["kinds"] == ("retry",)


def test_the_answer_is_that_of_the_function(logs: str) -> None:
    answer = answer_of(STATE, values_of(STATE, logs))
    assert answer.table.column("group_id").to_pylist() == ["g"]


def test_a_variant_answers_where_its_parameter_has_a_value(logs: str) -> None:
    at_one_moment, over_time = values_of(LAG, logs), values_of(LAG, logs, every_ms=60_000)
    assert answer_of(LAG, at_one_moment).table.num_rows == 1
    assert answer_of(LAG, over_time).columns != answer_of(LAG, at_one_moment).columns
    assert (function_of(LAG, at_one_moment), function_of(LAG, over_time)) == (checked_lag, lag_over_time)


def test_the_surface_says_how_many_rows_it_shows(logs: str) -> None:
    answer = answer_of(POISON, values_of(POISON, logs), row_limit=1)
    assert findings(POISON, answer, fail_on=True).count == answer.row_count == 1


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"from_ms": 2, "to_ms": 1}, "records: --to lies before --from; exchange them"),
        ({"from_offset": 0, "is_early_draft": True}, "records: --early-draft takes --group, --topic and --partition"),
        ({"lake": "./lake"}, "give either --lake DIR"),
    ],
)
def test_values_that_break_a_rule_are_refused_before_anything_is_read(typed: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        arguments(RECORDS, values_of(RECORDS, "no-such-folder", **typed))
