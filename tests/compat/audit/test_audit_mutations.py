"""Every illegal log is found with an expected rule at the right place, and no legal one has an error."""

from collections import Counter

import pytest

from state_model.audit.table import RULES, is_tested
from tests.audit.histories import History
from tests.audit.judge import illegal_offsets
from tests.audit.mutations import PAGE, SEEDS, audited, detection, page
from tests.audit.operators import OPERATORS

pytestmark = pytest.mark.slow
ELSEWHERE = {
    "misplaced_share_partition",
    "state_partition_count_changed",
    "odd_record_batch",
    "log_starts_inside_history",
    "needed_snapshot_pruned",
    "replay_disagrees",
    "archiving_too_long",
    "state_topic_created_again",
}
"""Rules about places, batch headers, the log start, the replay and the end of the log have small logs of their own."""
LEAVES_LEGAL_LOGS = {
    "tail of the log lost",
    "update appended twice",
    "update without a start offset",
    "batch of a cold snapshot in two",
}


@pytest.mark.parametrize("seed", range(20, 40))
def test_a_legal_history_has_no_finding_and_the_judge_agrees(seed):
    history = History(seed).run(200).entries
    assert illegal_offsets(history) == []
    assert audited(history) == []


@pytest.mark.one_in(4)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_damage_is_found_where_the_judge_sees_it(operator):
    result = detection(operator)
    assert result.mistakes == []
    assert result.legal + result.illegal + result.by_counter >= len(SEEDS) - 2
    if operator.name not in LEAVES_LEGAL_LOGS:
        assert result.detected >= 3
    if operator.invisible:
        assert result.detected < result.illegal


@pytest.mark.soak
def test_every_rule_of_a_single_state_partition_is_broken_by_three_damages_at_least():
    tested = [rule for rule in RULES if is_tested(rule, "4.4", frozenset()) and rule.severity_for("4.4") != "info"]
    broken = sum((detection(operator).rules for operator in OPERATORS), Counter())
    assert {rule.code for rule in tested if broken[rule.code] < 3} == ELSEWHERE


@pytest.mark.soak
def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.audit.mutations"
