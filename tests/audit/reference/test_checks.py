"""The reference form names rules by their codes, and has none of a rule that is never a finding."""

from state_model.audit.table import BY_CODE
from tests.audit.reference.checks import CHECKS
from tests.audit.reference.violations import CHECKED


def test_each_key_is_the_code_of_a_rule_that_can_have_findings():
    assert not CHECKS.keys() - BY_CODE.keys()
    assert tuple(CHECKS) == tuple(rule.code for rule in CHECKED)
    assert not any(BY_CODE[code].is_legal for code in CHECKS)


def test_each_rule_has_a_check_of_its_own():
    assert len(set(CHECKS.values())) == len(CHECKS) == 44
