"""What Arrow shows to be met by a frame, and what Great Expectations would say it observed there.

Great Expectations judges the other rules. An expectation costs it a hundredth of a second, whatever it looks at; nearly
all rules are met, and Arrow tells so in microseconds.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.quality.rule import BETWEEN, CONTAIN_SET, IN_SET, MAX_BETWEEN, NOT_BELOW, NOT_NULL, UNIQUE, Rule

NO_VALUE = "nothing"
"""What an expectation observed that names no value."""


def observed_if_met(rule: Rule, frame: pa.Table) -> str | None:
    """What a rule that a frame meets observed; None where it does not meet it, or Arrow can't tell."""
    look = LOOKS.get(rule.expectation)
    return None if look is None else look(rule.arguments, frame)


def _without_null(arguments: Mapping[str, Any], frame: pa.Table) -> str | None:
    column = frame.column(arguments["column"])
    return _all_as_expected(column) if column.null_count == 0 else None


def _between(arguments: Mapping[str, Any], frame: pa.Table) -> str | None:
    column = frame.column(arguments["column"])
    return _all_as_expected(column) if _is_between(arguments, column) else None


def _is_between(arguments: Mapping[str, Any], column: pa.ChunkedArray) -> bool:
    bounds = (("min_value", pc.greater_equal), ("max_value", pc.less_equal))
    return all(_all(compare(column, arguments[name])) for name, compare in bounds if name in arguments)


def _in_set(arguments: Mapping[str, Any], frame: pa.Table) -> str | None:
    column = frame.column(arguments["column"]).drop_null()
    return _all_as_expected(column) if _all(pc.is_in(column, _set(arguments, column))) else None


def _contains_set(arguments: Mapping[str, Any], frame: pa.Table) -> str | None:
    column = frame.column(arguments["column"])
    return NO_VALUE if _all(pc.is_in(_set(arguments, column), column.combine_chunks())) else None


def _set(arguments: Mapping[str, Any], column: pa.ChunkedArray) -> pa.Array:
    return pa.array(arguments["value_set"], column.type)


def _unique(arguments: Mapping[str, Any], frame: pa.Table) -> str | None:
    column = frame.column(arguments["column"]).drop_null()
    return _all_as_expected(column) if pc.count_distinct(column).as_py() == len(column) else None


def _max_between(arguments: Mapping[str, Any], frame: pa.Table) -> str | None:
    largest = pc.max(frame.column(arguments["column"]))
    is_met = largest.is_valid and _is_between(arguments, pa.chunked_array([pa.array([largest.as_py()], largest.type)]))
    return str(largest) if is_met else None


def _not_below(arguments: Mapping[str, Any], frame: pa.Table) -> str | None:
    if not arguments.get("or_equal") or arguments.get("ignore_row_if") != "either_value_is_missing":
        return None
    compared = pc.greater_equal(frame.column(arguments["column_A"]), frame.column(arguments["column_B"]))
    return _all_as_expected(compared) if _all(compared) else None


def _all(conditions: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a condition holds in every row that has one."""
    return bool(pc.all(conditions, min_count=0).as_py())


def _all_as_expected(column: pa.ChunkedArray) -> str:
    return unexpected_text(0, len(column) - int(column.null_count))


def unexpected_text(count: int, judged: int) -> str:
    """How many of the values that a rule judged did not meet it."""
    return f"{count} of {judged} unexpected"


LOOKS: Mapping[str, Callable[[Mapping[str, Any], pa.Table], str | None]] = {
    NOT_NULL: _without_null,
    BETWEEN: _between,
    MAX_BETWEEN: _max_between,
    IN_SET: _in_set,
    CONTAIN_SET: _contains_set,
    UNIQUE: _unique,
    NOT_BELOW: _not_below,
}
"""Classes of Great Expectations whose rules Arrow can tell to be met."""
