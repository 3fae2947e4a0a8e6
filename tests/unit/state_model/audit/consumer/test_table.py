"""Every rule on consumer groups speaks of what breaks it, and of nothing that is near."""

import pytest

from state_model.audit.consumer.table import RULES
from tests.audit.consumer_changes import ORDERS, PAYMENTS, expressed, scaled, target, with_topics
from tests.audit.model_group_detection import first_change
from tests.audit.model_group_log import GroupLog, recorded
from tests.audit.rule_cases.cases import FEWEST, audited_once, cases_of
from tests.audit.rule_cases.consumer_case_tables import CONSUMER

CASES = cases_of(*CONSUMER)
GROUPS = {
    "consumer": ("assigned", "bounced", "expressed", "kept", "killed", "preferring", "scaled", "transactional"),
    "consumer-migration": ("converted", "cooperative", "eager", "expiring", "killed", "static"),
}
"""The groups of recorded logs with records of types 3 to 8 and 16."""
pytestmark = pytest.mark.slow


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_rule_names_what_breaks_it_at_its_place_and_nothing_near(case):
    findings = audited_once(case, GroupLog.audited)
    if not case.breaks:
        assert findings == []
        return
    places = [row["first_log_offset"] for row in findings if row["rule"] == case.rule]
    assert places
    assert min(places) >= first_change(case.make())


def test_every_rule_has_cases():
    counts = {rule: tuple(map(len, pair)) for table in CONSUMER for rule, pair in table.items()}
    assert counts.keys() == {rule.code for rule in RULES}
    assert min(min(pair) for pair in counts.values()) >= FEWEST


def test_the_recorded_logs_are_legal():
    logs = [recorded(scenario, group_id) for scenario, groups in GROUPS.items() for group_id in groups]
    assert [(log.group_id, log.findings()) for log in logs if log.findings()] == []
    assert sum(len(log.entries) for log in logs) > 500


@pytest.mark.parametrize(
    ("log", "rule", "actual"),
    [
        (with_topics(scaled().cut(5), orders=7), "consumer_partition_without_target", f"10 ({ORDERS}-6)"),
        (
            scaled().cut(15).change(12, topic_partitions=target((PAYMENTS, [0, 1]))),
            "consumer_partition_with_two_targets",
            f"2 ({PAYMENTS}-0)",
        ),
        (
            expressed().cut(12).put(10, expressed().entries[10]._replace(member_id="x.*")),
            "consumer_expression_without_subscriber",
            "1 (x.*)",
        ),
    ],
)
def test_a_finding_names_the_partitions_and_expressions_that_it_counts(log, rule, actual):
    assert {row["seen"] for row in log.audited() if row["rule"] == rule} == {actual}
