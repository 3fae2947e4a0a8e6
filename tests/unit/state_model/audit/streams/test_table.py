"""Every rule on streams groups speaks of what breaks it, and of nothing that is near."""

import pytest

from state_model.audit.streams.table import RULES
from tests.audit.model_group_log import GroupLog, targets
from tests.audit.rule_cases.cases import FEWEST, audited_once, cases_of
from tests.audit.rule_cases.streams_case_tables import STREAMS
from tests.audit.streams_changes import basic, ended, with_topics

CASES = cases_of(*STREAMS)
pytestmark = pytest.mark.slow


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_rule_names_what_breaks_it_and_nothing_near(case):
    findings = audited_once(case, GroupLog.audited)
    if case.breaks:
        assert case.rule in {row["rule"] for row in findings}
    else:
        assert findings == []


def test_every_rule_has_cases():
    counts = {rule: tuple(map(len, pair)) for table in STREAMS for rule, pair in table.items()}
    assert counts.keys() == {rule.code for rule in RULES}
    assert min(min(pair) for pair in counts.values()) >= FEWEST


def test_the_recorded_logs_are_legal():
    assert basic().findings() == ended().findings() == []
    assert len(basic().entries) > 200


@pytest.mark.parametrize(
    ("log", "rule", "actual"),
    [
        (with_topics(count=6), "streams_task_without_target", "10 (0_5)"),
        (
            basic().cut(19).change(16, active_tasks=targets(("0", [4]), ("1", [1, 3, 4]))),
            "streams_task_with_two_targets",
            "2 (1_1)",
        ),
        (
            basic().change(233, validated_topology_epoch=-1),
            "streams_target_while_not_ready",
            "10 (0_0, 0_1, 0_2, 0_3, 0_4 and 5 more)",
        ),
        (basic().cut(47).change(45, standby_tasks=targets(("0", [0]))), "streams_too_many_standby_tasks", "1 (0_0)"),
    ],
)
def test_a_finding_names_the_tasks_that_it_counts(log, rule, actual):
    assert {row["seen"] for row in log.audited() if row["rule"] == rule} == {actual}
