"""Rows for the quality gates: one that meets all that is expected of a table, and for each rule one that does not."""

from typing import Any

import pyarrow as pa

from jobs.quality.rule import Rule
from jobs.quality.suites import rules_of
from sharelens.lake.tables import TABLES, TIME

NUMBER, TIME_MS = 5, 1_790_000_000_000
FITTING: dict[str, object] = {
    "completeness": "complete",
    "completeness_reason": None,
    "is_open": False,
    "record_type": "update",
}
ALSO: dict[str, dict[str, object]] = {"completeness_is_known": {"completeness_reason": "gap"}}
"""What else has to change, so that only the one rule is broken."""


def good_row(table: str) -> dict[str, object]:
    """A row that meets every expectation about rows."""
    value_by_column = {
        rule.column: rule.arguments["value_set"][0] for rule in row_rules(table) if "value_set" in rule.arguments
    }
    return {
        field.name: FITTING[field.name]
        if field.name in FITTING and pa.types.is_string(field.type) | pa.types.is_boolean(field.type)
        else value_by_column.get(field.name, _fitting(field))
        for field in TABLES[table].schema
    }


def _fitting(field: pa.Field) -> object:
    kind = field.type
    if pa.types.is_integer(kind):
        return TIME_MS if field.name.endswith("_ms") and pa.types.is_int64(kind) else NUMBER
    if pa.types.is_boolean(kind):
        return False
    if pa.types.is_binary(kind):
        return b"bytes"
    if pa.types.is_list(kind):
        return []
    if pa.types.is_floating(kind):
        return 0.5
    return None if kind == TIME or pa.types.is_struct(kind) else "text"


def row_rules(table: str) -> list[Rule]:
    """The rules about rows."""
    return [rule for rule in rules_of(table) if not rule.about_facts]


def bad_row(rule: Rule) -> dict[str, object]:
    """A row that breaks the rule and no other."""
    return {**good_row(rule.table), **_broken(rule), **ALSO.get(rule.name, {})}


def _broken(rule: Rule) -> dict[str, object]:
    arguments = rule.arguments
    if rule.computed is not None:
        return {
            "open_or_ended": {"is_open": True},
            "value_unless_tombstone": {"value_version": None},
            "complete_or_why": {"completeness_reason": "gap"},
        }[rule.name]
    match rule.expectation:
        case "ExpectColumnValuesToNotBeNull":
            return {rule.column: None}
        case "ExpectColumnValuesToBeBetween":
            return {rule.column: arguments["min_value"] - 1}
        case "ExpectColumnValuesToBeInSet":
            return {rule.column: "nonsense" if isinstance(arguments["value_set"][0], str) else 99}
        case "ExpectColumnPairValuesAToBeGreaterThanB":
            low = arguments["column_B"]
            return {low: (TIME_MS if low.endswith("_ms") else NUMBER) + 1}
        case other:
            raise LookupError(f"no bad row is known for {other}")


def frame(table: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of a table in which everything may be null."""
    schema = pa.schema([field.with_nullable(True) for field in TABLES[table].schema])
    return pa.Table.from_pylist(rows, schema=schema)
