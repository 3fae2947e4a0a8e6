"""The audit names a rule between logs, and its place, exactly where an independent judge does."""

from collections import Counter

import pytest
from hypothesis import given

from tests.audit.between_detection import INVISIBLE, QUICK, named, outcome
from tests.audit.between_judge import JUDGED, judge
from tests.audit.random_worlds import DAMAGED, DAMAGES, OPERATIONS, damaged_world, legal_world
from tests.audit.rule_cases.case_tables import BETWEEN
from tests.audit.rule_cases.cases import audited_once, cases_of
from tests.audit.world import audited
from tests.depths import examples, in_soak

JUDGED_TABLES = BETWEEN[2:]
"""The cases whose logs lie in one state partition and one partition of __consumer_offsets."""
BEYOND_THE_JUDGE = {
    "window_over_locks",
    "log_of_other_cluster",
    "misplaced_group",
    "group_in_many_partitions",
    "preview_record_type",
    "undecodable_group_record",
}
"""Rules that other judges decide (test_audit_places_and_settings)."""


@given(OPERATIONS)
@examples("table", shrink=False)
def test_legal_logs_have_no_finding_and_the_judge_agrees(operations):
    world = legal_world(operations)
    assert audited(world) == []
    assert judge(world) == set()


@pytest.mark.soak
@given(OPERATIONS, DAMAGED)
@examples("cluster", shrink=False)
def test_the_audit_names_what_the_judge_calls_illegal_and_nothing_else(operations, damages):
    world = damaged_world(operations, damages)
    assert named(audited(world)) == judge(world)


@pytest.mark.soak
def test_the_judge_agrees_on_each_case():
    broken = Counter()
    for case in cases_of(*JUDGED_TABLES):
        if case.rule in BEYOND_THE_JUDGE or case.name == "no such topic":  # it knows one user topic
            continue
        judged = judge(case.make())
        assert (case.rule in {violation.rule for violation in judged}) == case.breaks, case.title
        assert named(audited_once(case, audited)) == judged, case.title
        broken[case.rule] += case.breaks
    assert broken.keys() == JUDGED


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", sorted(DAMAGES))
@pytest.mark.parametrize("step", [QUICK, *in_soak(1)])
def test_a_damage_of_the_table_is_found_where_the_judge_sees_it(name, step):
    result = outcome(name, step)
    assert result.mistakes == []
    assert result.detected == result.illegal
    assert result.illegal or name in INVISIBLE
