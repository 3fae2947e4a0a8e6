"""Rules about what became of records lately."""

from typing import Any

import pytest

from sharelens.findings import outcomes
from sharelens.findings.finding import ERROR, WARNING
from sharelens.findings.thresholds import HOUR_MS, MINUTE_MS, Thresholds
from sharelens.tables.missing import MissingEvidence, Sample
from tests.findings import NOW_MS, signs_with

THRESHOLDS = Thresholds()
THIS_HOUR_MS = NOW_MS // HOUR_MS * HOUR_MS


def given_up(
    records: int, cause: str = "delivery_limit", age_ms: int = MINUTE_MS, delivery_count: int = 5
) -> dict[str, object]:
    moment_ms = NOW_MS - age_ms
    times = {"last_outcome_ms": moment_ms, "hour_ms": moment_ms // HOUR_MS * HOUR_MS}
    return {"records": records, "cause": cause, "delivery_count": delivery_count, **times}


@pytest.mark.parametrize(
    ("records", "outcome_count", "severity"),
    [(9, 10, None), (10, 201, None), (10, 200, WARNING), (10, 20, ERROR), (11, 0, ERROR)],
)
def test_records_at_the_limit_are_a_burst(records: int, outcome_count: int, severity: str | None) -> None:
    done = {"hour_ms": THIS_HOUR_MS, "offsets": outcome_count}
    rows = list(outcomes.limit_burst(signs_with(archived=[given_up(records)], attempts=[done]), THRESHOLDS))
    assert [row.severity for row in rows] == ([] if severity is None else [severity])


def test_a_burst_of_unknown_cause_is_not_judged_and_rejected_records_are_none() -> None:
    (row,) = outcomes.limit_burst(signs_with(archived=[given_up(6), given_up(6, "unknown")]), THRESHOLDS)
    assert (row.severity, row.remedy) == (WARNING, "--broker-config FILE or --settings DIR")
    first_try = given_up(12, "unknown", delivery_count=1)
    for rows in ([given_up(12, "rejected")], [given_up(12, age_ms=6 * MINUTE_MS)], [first_try]):
        assert list(outcomes.limit_burst(signs_with(archived=rows), THRESHOLDS)) == []


def test_archived_offsets_may_be_markers_where_no_header_says_so() -> None:
    (row,) = outcomes.archived(signs_with(archived=[given_up(3)]), THRESHOLDS)
    assert row.text.startswith("archived 3 records since ")
    (row,) = outcomes.archived(signs_with(archived=[given_up(3)], with_headers=frozenset()), THRESHOLDS)
    assert row.text.startswith("archived up to 3 offsets since ")
    assert row.text.endswith(", markers of transactions included")


@pytest.mark.parametrize(
    ("marker", "is_found"),
    [({"delivery_count": 1}, False), ({"delivery_count": 2}, True), ({"delivery_count": 1, "cause": "rejected"}, True)],
)
def test_offsets_that_may_all_be_markers_are_not_judged(marker: dict[str, Any], is_found: bool) -> None:
    read = signs_with(archived=[given_up(126, "unknown") | marker], with_headers=frozenset())
    (row,) = outcomes.archived(read, THRESHOLDS)
    assert (row.severity, row.remedy) == (WARNING, None if is_found else "copy the topics' folders")


@pytest.mark.parametrize(("deliveries", "again", "is_found"), [(100, 10, True), (100, 9, False), (101, 10, False)])
def test_many_repeated_deliveries_are_a_finding(deliveries: int, again: int, is_found: bool) -> None:
    done = {"hour_ms": THIS_HOUR_MS, "offsets": 5, "deliveries": deliveries, "extra_deliveries": again}
    old = {"hour_ms": THIS_HOUR_MS - 2 * HOUR_MS, "offsets": 5, "deliveries": 90, "extra_deliveries": 90}
    assert len(list(outcomes.redelivered(signs_with(attempts=[done, old]), THRESHOLDS))) == is_found


def test_letters_are_missing_or_nobody_knows() -> None:
    rows = [
        {"group_id": "h", "records": 69, "reason": "dead_letter_topic_not_in_evidence"},
        {"group_id": "i", "records": 1, "reason": "no_dead_letter_topic_known"},
    ]
    read = signs_with(missing_letters=[{"records": 4}], unjudged_letters=rows)
    missing, unjudged, nameless = outcomes.missing_letters(read, THRESHOLDS)
    assert (missing.text, missing.remedy) == ("4 dead letters missing", None)
    assert unjudged.text == (
        "whereabouts of 69 records given up not judged: the dead-letter topic is not in the evidence"
    )
    assert unjudged.remedy == "copy the folders of the dead-letter topic"
    assert nameless.remedy is not None
    assert nameless.remedy.startswith("--group-configs FILE")


def test_a_share_of_all_that_a_group_did_is_not_judged_where_the_state_of_some_is_missing() -> None:
    done = {"hour_ms": THIS_HOUR_MS, "offsets": 20, "deliveries": 100, "extra_deliveries": 60}
    missing = MissingEvidence(by_group={"g": 1}, state_partitions=Sample(count=1, items=(2,)))
    read = signs_with(archived=[given_up(12)], attempts=[done], missing=missing)
    rows = [*outcomes.redelivered(read, THRESHOLDS), *outcomes.limit_burst(read, THRESHOLDS)]
    assert [row.remedy for row in rows] == ["copy __share_group_state-2"] * 2
