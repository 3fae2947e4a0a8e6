"""Rules about the members of share groups and the work that waits for them."""

from dataclasses import replace

import pytest

from sharelens.findings import members
from sharelens.findings.finding import ERROR, INFO, WARNING, Finding
from sharelens.findings.signs import LagSample, Signs
from sharelens.findings.thresholds import DAY_MS, HOUR_MS, MINUTE_MS, Thresholds
from sharelens.measures.settings.over_time import AUTO_OFFSET_RESET, GroupSettings, Setting
from sharelens.questions.findings.measured_signs import EARLIER_LAG
from sharelens.tables.missing import MissingEvidence
from tests.findings import NOW_MS, TOPIC, coordination, rows, signs_with

THRESHOLDS = Thresholds()


def empty_for(duration_ms: int) -> tuple[dict[str, object]]:
    return ({"group_id": "g", "state": "EMPTY", "last_change_ms": NOW_MS - duration_ms},)


def memberless(read: Signs) -> list[Finding]:
    return list(members.no_members(read, THRESHOLDS))


@pytest.mark.parametrize(
    ("duration_ms", "lag", "is_active", "severity"),
    [
        (5 * MINUTE_MS - 1, 9, True, INFO),
        (5 * MINUTE_MS, 9, True, ERROR),
        (5 * MINUTE_MS, 9, False, WARNING),
        (5 * MINUTE_MS, 2, True, WARNING),
        (7 * DAY_MS, 9, True, INFO),
    ],
)
def test_a_group_without_members_is_as_bad_as_what_it_did_before(
    duration_ms: int, lag: int, is_active: bool, severity: str
) -> None:
    done = [{"hour_ms": NOW_MS, "offsets": 4}] if is_active else []
    read = signs_with(lag=[{"lag": lag}], groups=empty_for(duration_ms), attempts=done)
    assert [row.severity for row in memberless(read)] == [severity]


def test_partitions_to_copy_are_named_while_they_are_few() -> None:
    lags = [{"lag": 9, "group_id": group} for group in "ghij"]
    assert {row.remedy for row in memberless(signs_with(lag=lags[:2], groups=None))} == {
        "copy __consumer_offsets-3, __consumer_offsets-4"
    }
    assert {row.remedy for row in memberless(signs_with(lag=lags, groups=None))} == {"copy __consumer_offsets-*"}


@pytest.mark.parametrize(
    ("duration_ms", "lag", "severity", "remedy"),
    [
        (4 * MINUTE_MS, 9, ERROR, "--now TIME"),
        (4 * MINUTE_MS, 2, WARNING, "--now TIME"),
        (5 * MINUTE_MS, 9, ERROR, None),
        (7 * DAY_MS, 9, INFO, None),
    ],
)
def test_a_group_that_has_just_closed_is_not_judged_where_now_is_unknown(
    duration_ms: int, lag: int, severity: str, remedy: str | None
) -> None:
    done = [{"hour_ms": NOW_MS, "offsets": 4}]
    read = signs_with(lag=[{"lag": lag}], groups=empty_for(duration_ms), attempts=done, is_now_known=False)
    assert [(row.severity, row.remedy) for row in memberless(read)] == [(severity, remedy)]


def test_a_lag_that_kafka_does_not_count_is_counted_again() -> None:
    lag = {"lag": None, "lag_recounted": 378, "unknown_reason": "delivery_complete_count_not_logged"}
    (row,) = memberless(signs_with(lag=[lag], groups=empty_for(10 * MINUTE_MS)))
    assert row.text.startswith("lag at most 378, no members since ")


def test_members_are_not_judged_without_the_partition_of_the_group() -> None:
    (row,) = memberless(signs_with(lag=[{"lag": 9}], groups=None))
    assert (row.severity, row.remedy) == (ERROR, "copy __consumer_offsets-3")
    assert [row.severity for row in memberless(signs_with(lag=[{"lag": 2}], groups=None))] == [WARNING]
    assert memberless(signs_with(lag=[{"lag": 0}], groups=None)) == []


def test_a_lag_is_not_judged_without_the_end_of_the_topic() -> None:
    lag = {"lag": None, "lag_recounted": None, "unknown_reason": "end_offset_unknown"}
    (row,) = memberless(signs_with(lag=[lag], groups=empty_for(10 * MINUTE_MS)))
    assert row.remedy is not None
    assert row.remedy.startswith("copy replication-offset-checkpoint")
    assert memberless(signs_with(lag=[lag], groups=({"group_id": "g", "state": "STABLE"},))) == []


@pytest.mark.parametrize(
    ("reset", "newest_batch_ms", "severity"),
    [
        ("earliest", None, WARNING),
        ("latest", NOW_MS - 200_000, INFO),
        ("latest", NOW_MS - 50_000, WARNING),
        (None, NOW_MS - 200_000, INFO),
        (None, NOW_MS - 50_000, WARNING),
    ],
)
def test_a_group_has_not_begun_if_it_gets_the_records(
    reset: str | None, newest_batch_ms: int | None, severity: str
) -> None:
    row = {"log_time_ms": NOW_MS - 100_000, "has_records": True, "newest_batch_ms": newest_batch_ms}
    groups = {} if reset is None else {"g": {AUTO_OFFSET_RESET: Setting(value=reset)}}
    settings = GroupSettings(groups=groups) if groups else GroupSettings()
    (finding,) = members.not_started(signs_with(not_started=[row]), Thresholds(settings=settings))
    assert finding.severity == severity


def sampled(*lags: int, finished: int = 0) -> Signs:
    *earlier, now = lags
    samples = [
        LagSample(at_ms=NOW_MS - (2 - number) * 5 * MINUTE_MS, rows=rows(EARLIER_LAG, {"lag": lag}))
        for number, lag in enumerate(earlier)
    ]
    done = {"hour_ms": NOW_MS // HOUR_MS * HOUR_MS, "offsets": finished}
    return signs_with(lag=[{"lag": now}], samples=samples, attempts=[done], first_ms=NOW_MS - 10 * MINUTE_MS)


@pytest.mark.parametrize(("finished", "is_found"), [(2_650, True), (2_651, False)])
def test_growth_by_what_a_group_has_in_hand_is_none(finished: int, is_found: bool) -> None:
    read = sampled(44, 50, 97, finished=finished)
    assert len(members.lag_growing(read, THRESHOLDS)) == is_found


@pytest.mark.parametrize(
    ("lags", "is_growing"),
    [((10, 20, 40), True), ((10, 9, 40), False), ((10, 40, 40), False), ((30, 31, 32), False), ((20, 40), False)],
)
def test_a_lag_grows_over_three_samples(lags: tuple[int, ...], is_growing: bool) -> None:
    assert len(members.lag_growing(sampled(*lags), THRESHOLDS)) == is_growing


@pytest.mark.parametrize(("finished", "is_unjudged"), [(4_850, True), (4_851, False)])
def test_growth_is_not_judged_without_headers_where_the_lag_is_large_enough(finished: int, is_unjudged: bool) -> None:
    read = replace(sampled(0, 0, 97, finished=finished), with_headers=frozenset())
    unknown = [replace(sample, rows=rows(EARLIER_LAG, {"lag": None})) for sample in read.samples]
    judged = members.lag_growing(replace(read, samples=unknown), THRESHOLDS)
    assert [row.remedy for row in judged] == (["copy the topics' folders"] if is_unjudged else [])


def test_an_initialization_without_an_end_is_an_error() -> None:
    group = coordination(initializing=[(TOPIC, 0, "INITIALIZING")], initialized_ms=NOW_MS - MINUTE_MS)
    (row,) = members.initialising_stuck(signs_with(coordination=[group]), THRESHOLDS)
    assert row.severity == ERROR
    assert row.text.startswith("orders-0 is initialized since ")
    fresh = coordination(initializing=[(TOPIC, 0, "INITIALIZING")], initialized_ms=NOW_MS - MINUTE_MS + 1)
    assert list(members.initialising_stuck(signs_with(coordination=[fresh]), THRESHOLDS)) == []


def test_an_initialization_that_begins_again_and_again_is_an_error() -> None:
    group = coordination(repeated=[(TOPIC, 0), (TOPIC, 1)])
    (row,) = members.initialising_stuck(signs_with(coordination=[group]), THRESHOLDS)
    assert row.text == (
        "orders-0 came into initialization 3 times or more in the last hour, and 1 more share partition"
    )


def test_a_partition_with_a_lag_that_no_member_has_is_an_error() -> None:
    old = NOW_MS - 2 * MINUTE_MS
    idle = coordination(changed_ms=old, assigned=frozenset())
    (row,) = members.unassigned(signs_with(lag=[{"lag": 9}], coordination=[idle]), THRESHOLDS)
    assert row.text == "orders-0 is nobody's for 2 min, with 1 member in the group"
    for group in (coordination(changed_ms=old), coordination(changed_ms=old + 1, assigned=frozenset())):
        assert list(members.unassigned(signs_with(lag=[{"lag": 9}], coordination=[group]), THRESHOLDS)) == []
    assert list(members.unassigned(signs_with(lag=[{"lag": 0}], coordination=[idle]), THRESHOLDS)) == []


def test_epochs_all_the_time_are_a_loop() -> None:
    every_ten_seconds = list(range(NOW_MS - 5 * MINUTE_MS, NOW_MS, 10_000))
    (row,) = members.epoch_loop(signs_with(coordination=[coordination(epochs_ms=every_ten_seconds)]), THRESHOLDS)
    assert row.text == "30 group epochs in 5 min: members come and go"
    calm = coordination(epochs_ms=every_ten_seconds[:-1])
    assert list(members.epoch_loop(signs_with(coordination=[calm]), THRESHOLDS)) == []


def test_a_lag_of_which_share_partitions_are_missing_is_a_lower_bound() -> None:
    missing = MissingEvidence(initialized=4, by_group={"g": 2})
    (row,) = memberless(signs_with(lag=[{"lag": 177}], groups=empty_for(10 * MINUTE_MS), missing=missing))
    assert row.text.startswith("lag at least 177, no members since ")
