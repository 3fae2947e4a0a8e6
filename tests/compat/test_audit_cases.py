"""Each error and warning rule has three mutations that break it and three near ones that do not; each is one test."""

import pytest

from state_model.audit.table import BY_CODE
from tests.audit_case_tables import BETWEEN, OF_STATE_LOG
from tests.audit_cases import FEWEST, NOT_BREAKABLE, cases_of, gaps
from tests.audit_judge import illegal_offsets
from tests.audit_script import audited
from tests.audit_world import audited as audited_world

NOT_JUDGED = {"odd_record_batch", "needed_snapshot_pruned", "archiving_before_4_4"}
"""Rules on batch headers, the log start and other versions; the judge knows the records of Kafka 4.4."""


def test_every_rule_has_enough_cases_of_each_kind():
    assert gaps(*OF_STATE_LOG, *BETWEEN) == {}
    assert NOT_BREAKABLE.keys() <= BY_CODE.keys()


def test_a_rule_without_enough_cases_is_named():
    assert gaps(*OF_STATE_LOG)["assigned_unevenly"] == (0, 0)
    (rule, (breaking, near)), *_ = BETWEEN[0].items()
    few = dict(list(near.items())[: FEWEST - 1])
    assert gaps(*OF_STATE_LOG, {rule: (breaking, few)}, *BETWEEN[1:])[rule] == (len(breaking), FEWEST - 1)


@pytest.mark.parametrize("case", cases_of(*OF_STATE_LOG), ids=lambda case: case.title)
def test_a_state_log(case):
    script = case.make()
    rows = audited(script)
    illegal = illegal_offsets(script.entries, limit=None)
    if not case.breaks:
        assert [row["rule"] for row in rows] == []
        assert illegal == [] or script.first_offset or script.log_start_offset  # the judge begins at offset 0
        return
    own = [row for row in rows if row["rule"] == case.rule]
    assert own, [row["rule"] for row in rows]
    if BY_CODE[case.rule].severity_for(script.version) == "error" and case.rule not in NOT_JUDGED:
        places = {row[name] for row in own for name in ("first_log_offset", "last_log_offset")}
        assert places & set(illegal)


@pytest.mark.parametrize("case", cases_of(*BETWEEN), ids=lambda case: case.title)
def test_logs_of_a_cluster(case):
    rules = [row["rule"] for row in audited_world(case.make())]
    if case.breaks:
        assert case.rule in rules
    else:
        assert rules == []
