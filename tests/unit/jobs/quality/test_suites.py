"""Every expectation is met by good rows and found broken by the one row, or fact, that breaks it."""

import functools
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from jobs.quality.checkpoints import Judge, Verdict
from jobs.quality.rule import BLOCKING, FACTS, KINDS, ROWS, WARNING, Rule
from jobs.quality.slices import pieces
from jobs.quality.suites import field_text, rules_of
from sharelens.configuration.limits import Limits
from sharelens.lake.commit import required_columns
from sharelens.lake.scan import UNLISTED
from sharelens.lake.tables import TABLES
from tests.quality_rows import bad_row, frame, good_row, row_rules

LIMITS = Limits(stale_ms=172_800_000)
EVERYWHERE = pc.field("run_id").is_valid() | ~pc.field("run_id").is_valid()
BROKEN_FACTS = {
    "key_is_unique": ["a", "a"],
    "stage_is_done": [1],
    "volume_is_usual": [0.01],
    "evidence_is_fresh": [LIMITS.fresh_ms, LIMITS.fresh_ms + 1],
    "evidence_is_not_stale": [172_800_001],
}


@functools.cache
def judge() -> Judge:
    """One for all tests: it keeps nothing of what it has judged."""
    return Judge()


def judged(view: str, rules: Sequence[Rule], frames: list[pa.Table]) -> dict[str, Verdict]:
    """Verdicts by rule."""
    return {verdict.rule.name: verdict for verdict in judge().judge(view, rules, frames)}


def test_every_table_has_a_suite_of_every_kind() -> None:
    for name in TABLES:
        rules = rules_of(name)
        assert len({rule.name for rule in rules}) == len(rules)
        expected_kinds = {"shape", "nullability", "keys", "ranges"} | (set() if name in UNLISTED else {"volume"})
        if name.startswith(("silver.", "gold.")) and name not in UNLISTED:
            expected_kinds.add("stage")
        assert expected_kinds <= {rule.kind for rule in rules} <= set(KINDS)
        assert {rule.level for rule in rules if rule.kind in ("shape", "nullability", "keys", "stage")} == {BLOCKING}


@pytest.mark.one_in(6)
@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_each_bad_row_breaks_its_own_expectation_and_no_other(table: str) -> None:
    """A value below its lowest also lies below what it must not lie below: pairs are told so, too."""
    rules = row_rules(table)
    rows = [good_row(table), *(bad_row(rule) for rule in rules), good_row(table)]
    results = judged(ROWS, rules, list(pieces(ds.dataset(frame(table, rows)), EVERYWHERE, table, rules)))
    lowered = [rule.column for rule in rules if rule.expectation == "ExpectColumnValuesToBeBetween"]
    expected = {rule.name: 1 + lowered.count(str(rule.arguments.get("column_A"))) for rule in rules}
    assert {name: verdict.unexpected for name, verdict in results.items()} == expected
    assert not any(verdict.success for verdict in results.values())
    good = judged(ROWS, rules, list(pieces(ds.dataset(frame(table, rows[:1])), EVERYWHERE, table, rules)))
    assert {name for name, verdict in good.items() if not verdict.success} == set()


@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize("table", TABLES)
def test_each_bad_fact_breaks_its_own_expectation(table: str) -> None:
    rules = [rule for rule in rules_of(table, LIMITS) if rule.about_facts and rule.kind != "shape"]
    good: dict[str, pa.Array] = {}
    bad: dict[str, pa.Array] = {}
    for rule in rules:
        broken = BROKEN_FACTS.get(rule.name, [1])
        bad[rule.column] = pa.array(broken) if rule.column not in bad else pa.array([172_800_001])
        good[rule.column] = pa.array(["a"] if rule.kind == "keys" else [1.0] if rule.kind == "volume" else [0])
    padded = {name: pa.concat_arrays([values, pa.nulls(2 - len(values), values.type)]) for name, values in bad.items()}
    assert {name for name, verdict in judged(FACTS, rules, [pa.table(good)]).items() if not verdict.success} == set()
    assert {name for name, verdict in judged(FACTS, rules, [pa.table(padded)]).items() if verdict.success} == set()


@pytest.mark.slow
@pytest.mark.parametrize("table", ["bronze.log_record", "gold.quality_result"])
def test_a_column_too_many_one_too_few_and_one_of_another_type_are_found(table: str) -> None:
    rules = [rule for rule in rules_of(table) if rule.kind == "shape"]
    declared = [field_text(field) for field in TABLES[table].schema]
    changed = [declared[0].replace(" not null", ""), *declared[1:]]
    cases = {
        (): declared,
        ("columns_are_known",): [*declared, "surprise string"],
        ("columns_are_there",): declared[1:],
        ("columns_are_known", "columns_are_there"): changed,
    }
    for broken, fields in cases.items():
        results = judged(FACTS, rules, [pa.table({"field": fields})])
        assert tuple(sorted(name for name, verdict in results.items() if not verdict.success)) == broken


@pytest.mark.slow
@pytest.mark.parametrize("table", ["silver.group_record", "gold.member_history"])
def test_a_table_of_an_older_lake_may_lack_later_columns_and_no_other(table: str) -> None:
    rules = [rule for rule in rules_of(table) if rule.kind == "shape"]
    required = [field_text(field) for field in required_columns(table)]
    assert 0 < len(TABLES[table].schema) - len(required) < 6
    for broken, fields in (([], required), (["columns_are_there"], required[1:])):
        results = judged(FACTS, rules, [pa.table({"field": fields})])
        assert [name for name, verdict in results.items() if not verdict.success] == broken


@pytest.mark.slow
def test_what_a_rule_says_in_pieces_it_says_of_the_whole() -> None:
    rules = [rule for rule in row_rules("silver.name") if rule.level == BLOCKING]
    good, bad = good_row("silver.name"), {**good_row("silver.name"), "topic": None}
    frames = [frame("silver.name", rows) for rows in ([good, bad], [good], [bad, bad])]
    results = {values.rule.name: values for values in Judge().judge(ROWS, rules, frames)}
    assert (results["topic_is_not_null"].success, results["topic_is_not_null"].unexpected) == (False, 3)
    assert [name for name, verdict in results.items() if not verdict.success] == ["topic_is_not_null"]


def test_record_types_and_delivery_states_of_a_later_kafka_close_no_gate() -> None:
    later = {"record_type_is_known", "delivery_state_is_known", "delivery_state_name_is_known"}
    rules = [rule for name in TABLES for rule in rules_of(name) if rule.name in later]
    assert {rule.name for rule in rules} == later
    assert {rule.level for rule in rules} == {WARNING}
