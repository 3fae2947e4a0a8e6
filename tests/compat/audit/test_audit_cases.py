"""Each error and warning rule has three mutations that break it and three near ones that do not; each is one test."""

import pytest

from state_model.audit.table import BY_CODE
from state_model.errors import DecodeError
from state_model.share_records import ShareRecord, decode_record
from tests.audit.judge import illegal_offsets
from tests.audit.reference.steps import steps
from tests.audit.reference.violations import CHECKED, violations
from tests.audit.rule_cases.case_tables import BETWEEN, OF_STATE_LOG
from tests.audit.rule_cases.cases import FEWEST, NOT_BREAKABLE, audited_once, cases_of, gaps
from tests.audit.script import audited, partition_audit
from tests.audit.world import audited as audited_world

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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", cases_of(*OF_STATE_LOG), ids=lambda case: case.title)
def test_a_state_log(case):
    script = case.make()
    rows = audited(script)
    illegal = illegal_offsets(script.entries, limit=None)
    if not case.breaks:
        assert [row["rule"] for row in rows] == []
        assert illegal == [] or script.first_offset or script.log_start_offset  # the judge begins at offset 0
        return
    rule_rows = [row for row in rows if row["rule"] == case.rule]
    assert rule_rows, [row["rule"] for row in rows]
    if BY_CODE[case.rule].severity_for(script.version) == "error" and case.rule not in NOT_JUDGED:
        places = {row[name] for row in rule_rows for name in ("first_log_offset", "last_log_offset")}
        assert places & set(illegal)


def reference(script):
    """By rule the log offsets of the records that violate it, in the reference form; None: it can't read the log."""
    entries = []
    for number, entry in enumerate(script.entries):
        try:
            record = decode_record(entry.key, entry.value)
        except DecodeError:
            return None
        if not isinstance(record, ShareRecord) or entry.log_offset != script.first_offset + number:
            return None
        entries.append((entry.log_offset, entry.timestamp_ms, record))
    limits = {"g": script.delivery_count_limit} if script.delivery_count_limit else None
    by_rule = {}
    for violation in violations(steps(entries, is_from_zero=script.first_offset == 0, limits=limits)):
        by_rule.setdefault(violation.rule_id, []).append(violation.log_offset)
    return by_rule


@pytest.mark.soak
def test_the_reference_form_says_the_same_of_each_log():
    checked = {rule.id: rule.code for rule in CHECKED}
    compared = set()
    for case in cases_of(*OF_STATE_LOG):
        expected = reference(case.make())
        if expected is None:
            continue
        counted = partition_audit(case.make()).tally.counted.to_pylist()
        places_by_rule = {}
        for row in counted:
            if row["rule"] in checked:
                places = places_by_rule.setdefault(row["rule"], [0, row["first_log_offset"], row["last_log_offset"]])
                places[0] += row["violations"]
                places[1:] = min(places[1], row["first_log_offset"]), max(places[2], row["last_log_offset"])
        assert places_by_rule == {rule: [len(at), min(at), max(at)] for rule, at in expected.items()}, case.title
        compared |= {checked[rule] for rule in expected}
    assert {rule.code for rule in CHECKED if rule.severity in ("error", "warning")} <= compared


@pytest.mark.one_in(8)
@pytest.mark.parametrize("case", cases_of(*BETWEEN), ids=lambda case: case.title)
def test_logs_of_a_cluster(case):
    rules = [row["rule"] for row in audited_once(case, audited_world)]
    if case.breaks:
        assert case.rule in rules
    else:
        assert rules == []
