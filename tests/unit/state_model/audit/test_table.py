"""The table of rules: complete, without contradictions, and switched off where evidence is missing."""

import pytest

from state_model.audit.explanation import explanation, severity_text
from state_model.audit.rule import DECODE_REASONS, Need
from state_model.audit.severities import SEVERITIES, VERSIONS
from state_model.audit.table import BY_CODE, BY_ID, RULES, SECTIONS, is_tested, rules_named, untested_by_need
from state_model.columnar.decode import REASONS
from state_model.errors import UsageError
from tests.audit.reference.violations import CHECKED


def test_every_number_of_the_specification_has_a_rule():
    of_groups = {f"{name}-{number}" for name, end in (("ST", 38), ("CG", 31), ("CL", 4)) for number in range(1, end)}
    assert {rule.label for rule in RULES} == {*map(str, range(1, 77)), *of_groups}
    assert len(BY_ID) == len(BY_CODE) == len(RULES) == sum(map(len, SECTIONS.values()))


def test_severities_are_known_ones():
    for rule in RULES:
        assert {rule.severity_for(version) for version in (None, *VERSIONS)} <= {None, *SEVERITIES}


def test_an_unknown_version_has_the_lowest_severity():
    going_back = BY_CODE["start_offset_goes_back"]
    assert [going_back.severity_for(version) for version in ("4.3", "4.4", None)] == ["warning", "error", "warning"]
    assert BY_CODE["complete_count_falls"].severity_for(None) is None
    assert BY_CODE["unknown_delivery_state"].severity_for(None) == "info"
    assert BY_CODE["unknown_delivery_state"].severity_for("4.2") == "error"


def test_rules_without_their_evidence_are_named():
    untested = untested_by_need(RULES, None, frozenset())
    rules = {rule.code for group in untested.values() for rule in group}
    assert {rule.code for rule in RULES if not rule.is_legal and not is_tested(rule, None, frozenset())} == rules
    with_limit = untested_by_need(RULES, "4.4", {Need.DELIVERY_COUNT_LIMIT})
    assert "count_over_limit" in rules - {rule.code for group in with_limit.values() for rule in group}
    assert Need.KAFKA_VERSION not in {need for needs in with_limit for need in needs}


def test_legal_behaviour_is_never_tested():
    legal = [rule for rule in RULES if rule.is_legal]
    assert [rule.number for rule in legal] == [22, 28, 30, 38, 53]
    assert not any(rule in CHECKED or is_tested(rule, version, set(Need)) for rule in legal for version in VERSIONS)


def test_rules_have_codes_and_numbers():
    assert rules_named("10") == (BY_CODE["snapshot_epoch_skips"],)
    assert len(rules_named("40")) == 3
    assert rules_named("ST-4") == rules_named("st-4") == (BY_CODE["streams_assignment_epoch_stale"],)
    for text in ("77", "104", "ST-38", "ST-04"):
        with pytest.raises(UsageError, match=f"'{text}' is no rule"):
            rules_named(text)


def test_an_explanation_names_versions_and_evidence():
    assert severity_text(BY_CODE["archiving_before_4_4"]) == "error up to 4.3, not tested from 4.4 on"
    text = "\n".join(explanation(BY_CODE["count_over_limit"]))
    assert "what to do:" in text
    assert "--group-configs" in text


def test_reasons_of_decoding_are_those_of_the_decoder():
    assert DECODE_REASONS == REASONS
