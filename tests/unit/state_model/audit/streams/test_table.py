"""Every rule on streams groups speaks of what breaks it, and of nothing that is near."""

import pytest

from state_model.audit.streams.table import RULES
from tests.audit_cases import FEWEST, cases_of
from tests.audit_streams_case_tables import STREAMS
from tests.audit_streams_changes import basic, ended

CASES = cases_of(*STREAMS)
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_rule_names_what_breaks_it_and_nothing_near(case):
    findings = case.make().findings()
    if case.breaks:
        assert case.rule in findings
    else:
        assert findings == []


def test_every_rule_has_cases():
    counts = {rule: tuple(map(len, pair)) for table in STREAMS for rule, pair in table.items()}
    assert counts.keys() == {rule.code for rule in RULES}
    assert min(min(pair) for pair in counts.values()) >= FEWEST


def test_the_recorded_logs_are_legal():
    assert basic().findings() == ended().findings() == []
    assert len(basic().entries) > 200
