"""Every illegal log is found with an expected rule at the right place, and no legal one has an error."""

import pytest

from tests.audit_histories import History
from tests.audit_judge import illegal_offsets
from tests.audit_mutations import OPERATORS, PAGE, SEEDS, audited, detection, page

pytestmark = pytest.mark.slow
LEAVES_LEGAL_LOGS = {"tail of the log lost", "update appended twice"}


@pytest.mark.parametrize("seed", range(20, 40))
def test_a_legal_history_has_no_finding_and_the_judge_agrees(seed):
    history = History(seed).run(200).entries
    assert illegal_offsets(history) == []
    assert audited(history) == []


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_damage_is_found_where_the_judge_sees_it(operator):
    result = detection(operator)
    assert result.mistakes == []
    assert result.legal + result.illegal + result.by_counter >= len(SEEDS) - 1
    if operator.name not in LEAVES_LEGAL_LOGS:
        assert result.detected >= 3
    if operator.invisible:
        assert result.detected < result.illegal


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.audit_mutations"
