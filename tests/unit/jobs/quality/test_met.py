"""What Arrow shows to be met, Great Expectations finds met, with the same counts."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.quality import checkpoints
from jobs.quality.checkpoints import Judge
from jobs.quality.met import LOOKS, observed_if_met
from jobs.quality.rule import (
    BETWEEN,
    CONTAIN_SET,
    IN_SET,
    MAX_BETWEEN,
    NOT_BELOW,
    NOT_NULL,
    RANGES,
    UNIQUE,
    WARNING,
    Rule,
)
from tests.depths import examples

PAIR: dict[str, Any] = {"or_equal": True, "ignore_row_if": "either_value_is_missing"}
ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    *((NOT_NULL, {"column": name}) for name in ("low", "high", "ratio", "text")),
    (BETWEEN, {"column": "low", "min_value": 0}),
    (BETWEEN, {"column": "high", "min_value": -1, "max_value": 2}),
    (BETWEEN, {"column": "high", "max_value": 1}),
    (BETWEEN, {"column": "ratio", "min_value": 0.1, "max_value": 10.0}),
    (IN_SET, {"column": "text", "value_set": ["COMMIT", "ABORT"]}),
    (IN_SET, {"column": "low", "value_set": [0, 1, 2]}),
    (CONTAIN_SET, {"column": "text", "value_set": ["ABORT"]}),
    (UNIQUE, {"column": "text"}),
    (MAX_BETWEEN, {"column": "low", "min_value": 0, "max_value": 1}),
    (MAX_BETWEEN, {"column": "high", "min_value": 0, "max_value": 2}),
    (NOT_BELOW, {"column_A": "high", "column_B": "low", **PAIR}),
]
RULES = [
    Rule(
        table="silver.t", name=f"rule_{number}", kind=RANGES, level=WARNING, expectation=name, arguments=arguments,
        meaning="",
    )
    for number, (name, arguments) in enumerate(ARGUMENTS)
]  # fmt: skip
NUMBERS = st.integers(-1, 2) | st.none()
SCHEMA = pa.schema([("low", pa.int64()), ("high", pa.int64()), ("ratio", pa.float64()), ("text", pa.string())])
ROWS = st.fixed_dictionaries(
    {
        "low": st.integers(0, 2) | NUMBERS,
        "high": NUMBERS,
        "ratio": st.sampled_from([0.1, 1.0, 10.0, 11.0, float("nan"), None]),
        "text": st.sampled_from(["COMMIT", "ABORT", "OTHER", None]),
    }
)


@pytest.mark.slow
@examples("page")
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_the_verdicts_are_those_of_the_library(rows: list[dict[str, Any]]) -> None:
    frame = pa.Table.from_pylist(rows, schema=SCHEMA)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpoints, "observed_if_met", lambda _rule, _frame: None)
        expected = Judge().judge("rows", RULES, [frame])
    assert Judge().judge("rows", RULES, [frame]) == expected
    for rule, verdict in zip(RULES, expected, strict=True):
        assert (observed_if_met(rule, frame) is None) >= (not verdict.success)


def test_a_good_frame_needs_no_library() -> None:
    row = {"low": 1, "high": 1, "ratio": 1.0, "text": "ABORT"}
    frame = pa.Table.from_pylist([row, {**row, "low": 0, "text": "COMMIT"}], schema=SCHEMA)
    observed = [observed_if_met(rule, frame) for rule in RULES]
    assert {rule.expectation for rule in RULES} == set(LOOKS)
    assert observed == ["0 of 2 unexpected"] * 10 + ["nothing", "0 of 2 unexpected", "1", "1", "0 of 2 unexpected"]


def test_a_rule_of_another_class_or_meaning_is_the_librarys() -> None:
    frame = pa.Table.from_pylist([{"low": 1, "high": 2}], schema=SCHEMA)
    of_minima = replace(RULES[0], expectation="ExpectColumnMinToBeBetween")
    above = replace(RULES[-1], arguments={**RULES[-1].arguments, "or_equal": False})
    assert [observed_if_met(rule, frame) for rule in (RULES[-1], of_minima, above)] == ["0 of 1 unexpected", None, None]
