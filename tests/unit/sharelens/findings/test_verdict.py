"""The order of findings and the first line."""

from datetime import date

import pytest

from sharelens.findings.finding import ERROR, INFO, IS_FOUND, NOT_JUDGED, WARNING
from sharelens.findings.rules import ORDER, RULES, about_trouble
from sharelens.findings.signs import InternalPartition
from sharelens.findings.suppressed import Suppressions, without_kind
from sharelens.findings.thresholds import MINUTE_MS, Thresholds
from sharelens.findings.verdict import first_line, judge
from sharelens.tables.missing import MissingEvidence
from state_model.audit.suppression import Suppression
from tests.findings import NOW_MS, signs_with, stall

THRESHOLDS = Thresholds()
ALL = len(about_trouble())
EMPTY = ({"group_id": "g", "state": "EMPTY", "last_change_ms": NOW_MS - 10 * MINUTE_MS},)
ENDLESS = {"lag": None, "lag_recounted": None, "unknown_reason": "end_offset_unknown"}
UNWRITABLE = InternalPartition(
    topic="__share_group_state", partition=3, why="it has no leader", since_ms=NOW_MS - MINUTE_MS
)


def test_every_kind_has_a_place_in_the_order() -> None:
    for rule in RULES:
        for severity in rule.severities:
            if rule.kind not in ("no_state_log", "state_log_unreadable"):
                assert any(rule.kind in kinds for kinds in ORDER[severity]), (severity, rule.kind)


def test_kinds_without_a_finding_count_as_none() -> None:
    counts = judge(signs_with(lag=[ENDLESS], groups=EMPTY, unwritable=[UNWRITABLE]), THRESHOLDS).counts()
    assert {kind: number for kind, number in counts.items() if number} == {
        (ERROR, "coordination_unwritable", IS_FOUND): 1,
        (ERROR, "no_members", NOT_JUDGED): 1,
    }
    for rule in RULES:
        assert {(severity, rule.kind, IS_FOUND) for severity in rule.severities} <= counts.keys()
        assert ((ERROR, rule.kind, NOT_JUDGED) in counts) == (ERROR in rule.severities)
    assert (INFO, "stuck", NOT_JUDGED) not in counts


def test_nothing_is_wrong_only_where_that_is_known() -> None:
    assert first_line(judge(signs_with(), THRESHOLDS), signs_with()) == "nothing is wrong: 1 group, 0 share partitions"
    blind = signs_with(is_now_known=False)
    assert first_line(judge(blind, THRESHOLDS), blind).startswith(
        "nothing is wrong: 1 group, 0 share partitions, by the last record at "
    )


def test_an_error_comes_before_what_is_not_judged_and_that_before_warnings() -> None:
    archived = {"records": 1, "cause": "rejected", "last_outcome_ms": NOW_MS, "hour_ms": NOW_MS}
    read = signs_with(lag=[ENDLESS], groups=EMPTY, archived=[archived], unwritable=[UNWRITABLE])
    verdict = judge(read, THRESHOLDS)
    assert [(row.severity, row.result == NOT_JUDGED) for row in verdict.findings] == [
        (ERROR, False), (ERROR, True), (WARNING, False),
    ]  # fmt: skip
    assert first_line(verdict, read).startswith("ERROR: __share_group_state-3 can't be written to since ")
    without_error = signs_with(lag=[ENDLESS], groups=EMPTY, archived=[archived])
    line = first_line(judge(without_error, THRESHOLDS), without_error)
    assert line.startswith(
        f"no error found by {ALL - 1} of {ALL} rules; g: no members, and the lag of 1 share partition is unknown ("
    )
    assert line.endswith("; 1 warning")


def test_share_partitions_without_a_state_log_have_no_verdict() -> None:
    read = signs_with(missing=MissingEvidence(initialized=9, has_state_log=False))
    line = first_line(judge(read, THRESHOLDS), read)
    assert line == (
        "NO VERDICT: 9 initialized share partitions, and no folder of the state log; copy __share_group_state-*"
    )


def test_what_is_not_judged_of_many_groups_is_one_line_a_remedy() -> None:
    groups = [row | {"group_id": f"g{number}"} for number in range(30) for row in EMPTY]
    read = signs_with(groups=groups, lag=[ENDLESS | {"group_id": row["group_id"]} for row in groups])
    (row,) = judge(read, THRESHOLDS).unjudged
    assert row.text.startswith("members of 30 groups not judged; g0: no members")
    assert row.group_id is None


def test_information_alone_is_nothing_wrong() -> None:
    read = signs_with(lag=[{"lag": 4}], groups=({"group_id": "g", "state": "EMPTY"},))
    verdict = judge(read, THRESHOLDS)
    assert [row.severity for row in verdict.findings] == [INFO]
    assert first_line(verdict, read) == "nothing is wrong: 1 group, 1 share partition"


@pytest.mark.parametrize(("today", "is_found"), [(date(2026, 12, 31), False), (date(2027, 1, 1), True)])
def test_a_finding_that_is_known_does_not_count_until_its_last_day(today: date, is_found: bool) -> None:
    entry = Suppression(number=1, rules=("stuck",), reason="INC-1", until=date(2026, 12, 31), group="g", topic="orders")
    read = signs_with(stalls=[stall(200_000)], groups=({"group_id": "g"},))
    verdict = judge(read, THRESHOLDS, Suppressions(entries=(entry,), today=today))
    assert (len(verdict.findings), verdict.suppressed, len(verdict.warnings)) == (is_found, not is_found, is_found)


def test_a_suppression_of_another_place_covers_nothing() -> None:
    read = signs_with(stalls=[stall(200_000)], groups=({"group_id": "g"},))
    for place in ({"group": "h"}, {"topic": "other"}, {"partition": 1}):
        entry = Suppression(number=1, rules=("stuck",), reason="INC-1", until=date(2026, 12, 31), **place)
        assert judge(read, THRESHOLDS, Suppressions(entries=(entry,), today=date(2026, 1, 1))).suppressed == 0


def test_a_suppression_of_no_kind_is_refused() -> None:
    entry = Suppression(number=2, rules=("stuk",), reason="INC-1", until=date(2026, 12, 31))
    assert without_kind([entry], ["stuck"]) == entry
    assert without_kind([entry], ["stuk"]) is None
