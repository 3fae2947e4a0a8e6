"""Retention: every table has a rule or says why it needs none."""

from jobs.retained import GROUPS, STAYS
from jobs.upkeep.retention import CUT_BY, RULES
from sharelens.lake.tables import TABLES


def test_every_table_has_a_rule_or_a_reason_to_stay() -> None:
    assert set(RULES) | set(STAYS) == set(TABLES)
    assert not set(RULES) & set(STAYS)
    assert all(STAYS.values())


def test_every_group_that_an_age_can_be_given_for_has_tables() -> None:
    assert {rule.group for rule in RULES.values()} == set(GROUPS)
    assert all(RULES[name].group == group for group, names in CUT_BY.items() for name in names)
