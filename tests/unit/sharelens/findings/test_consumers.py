"""Rules about consumer groups, and when they count."""

from typing import Any

import pytest

from sharelens.findings import consumers
from sharelens.findings.finding import ERROR, INFO, WARNING
from sharelens.findings.signs import ConsumerSign, Lag, WaitingMember
from sharelens.findings.thresholds import MINUTE_MS, SECOND_MS, Thresholds
from sharelens.findings.verdict import first_line, judge
from tests.findings import NOW_MS, signs_with

THRESHOLDS = Thresholds()


def sign(**values: Any) -> ConsumerSign:
    """A stable consumer group without lag, whose two members have three partitions."""
    default: dict[str, Any] = {
        "group_id": "app",
        "now_ms": NOW_MS,
        "state": "STABLE",
        "members": 2,
        "since_ms": NOW_MS - 20 * MINUTE_MS,
        "epochs": 0,
        "unsettled_ms": 0,
        "window_ms": NOW_MS - 10 * MINUTE_MS,
        "window_epochs": 0,
        "lag": Lag(records=0, unknown=0, partitions=3),
        "partitions": 3,
        "idle_members": 0,
        "without_owner": (),
        "waiting": (),
        "rebalance_timeout_ms": 5 * MINUTE_MS,
        "epochs_ms": (),
    }
    return ConsumerSign(**default | values)


def waiting(lasts_ms: int, **values: Any) -> ConsumerSign:
    """A group of which a member waits for two partitions."""
    member = WaitingMember(member_id="slow", since_ms=NOW_MS - lasts_ms, partitions=2)
    return sign(state="RECONCILING", waiting=(member,), **values)


@pytest.mark.parametrize(
    ("lasts_ms", "timeout_ms", "is_found"),
    [
        (5 * MINUTE_MS + 45 * SECOND_MS, 5 * MINUTE_MS, False),
        (5 * MINUTE_MS + 46 * SECOND_MS, 5 * MINUTE_MS, True),
        (5 * MINUTE_MS, 10 * SECOND_MS, False),
        (5 * MINUTE_MS + 1, 10 * SECOND_MS, True),
        (5 * MINUTE_MS + 1, None, True),
        (10 * MINUTE_MS, 20 * MINUTE_MS, False),
    ],
)
def test_a_member_waits_as_long_as_another_may_keep_its_partitions_and_5_minutes(
    lasts_ms: int, timeout_ms: int | None, is_found: bool
) -> None:
    stuck = waiting(lasts_ms, rebalance_timeout_ms=timeout_ms)
    rows = consumers.reconciliation_stuck(signs_with(consumers=[stuck]), THRESHOLDS)
    assert [(row.severity, row.size, row.remedy) for row in rows] == [(ERROR, 1, None)] * is_found


def test_a_shorter_wait_is_not_judged_where_now_is_unknown() -> None:
    signs = signs_with(consumers=[waiting(MINUTE_MS)], is_now_known=False)
    (row,) = consumers.reconciliation_stuck(signs, THRESHOLDS)
    assert (row.remedy, row.text) == (
        "--now TIME",
        "not yet judged: waiting for partitions for at least 1 min: slow lacks or must give up 2 partitions",
    )


def test_a_caller_sets_how_long_a_wait_is() -> None:
    signs = signs_with(consumers=[waiting(MINUTE_MS)])
    (row,) = consumers.reconciliation_stuck(signs, Thresholds(min_duration_ms=0))
    assert row.options == ("--group=app", "--members")


@pytest.mark.parametrize(
    ("values", "severities"),
    [
        ({"without_owner": [("orders", 1)]}, [ERROR]),
        ({"without_owner": [("orders", 1)], "idle_members": 1}, [ERROR, INFO]),
        ({"partitions": 0, "idle_members": 2}, [WARNING]),
        ({"idle_members": 1}, [INFO]),
        ({}, []),
        ({"without_owner": [("orders", 1)], "since_ms": NOW_MS - MINUTE_MS}, []),
        ({"without_owner": [("orders", 1)], "state": "RECONCILING"}, []),
        ({"idle_members": 0, "members": 0, "state": "EMPTY", "partitions": 0}, []),
    ],
)
def test_partitions_and_members_without_each_other_are_unassigned(
    values: dict[str, Any], severities: list[str]
) -> None:
    rows = consumers.unassigned(signs_with(consumers=[sign(**values)]), THRESHOLDS)
    assert sorted(row.severity for row in rows) == sorted(severities)


def test_a_finding_names_five_partitions() -> None:
    group = sign(without_owner=[("orders", number) for number in range(7)])
    (row,) = consumers.unassigned(signs_with(consumers=[group]), THRESHOLDS)
    assert row.text.endswith(": orders-0, orders-1, orders-2, orders-3, orders-4 and 2 more")


@pytest.mark.parametrize(("records", "severity"), [(9, ERROR), (2, WARNING)])
def test_a_group_without_members_has_records_to_do(records: int, severity: str) -> None:
    group = sign(state="EMPTY", members=0, lag=Lag(records=records, unknown=0, partitions=1))
    (row,) = consumers.no_members(signs_with(consumers=[group]), THRESHOLDS)
    assert (row.severity, row.group_type) == (severity, "consumer")


@pytest.mark.parametrize(("seconds", "is_found"), [(10, True), (11, False)])
def test_six_epochs_in_each_of_five_minutes_are_a_loop(seconds: int, is_found: bool) -> None:
    times = [NOW_MS - 1 - number * seconds * SECOND_MS for number in range(30)]
    rows = consumers.epoch_loop(signs_with(consumers=[sign(epochs_ms=times)]), THRESHOLDS)
    assert len(rows) == is_found


def test_consumer_groups_count_where_somebody_asks_for_all_groups() -> None:
    signs = signs_with(consumers=[waiting(10 * MINUTE_MS)])
    without, with_all = (judge(signs, THRESHOLDS, all_groups=all_groups) for all_groups in (False, True))
    assert first_line(without, signs) == "nothing is wrong: 1 group, 0 share partitions"
    assert [row.kind for row in without.findings] == []
    assert [row.kind for row in with_all.findings] == ["reconciliation_stuck"]
    assert first_line(with_all, signs).startswith("ERROR: app: 1 member waits for partitions since ")


def test_a_clear_verdict_counts_them_as_groups_only_then() -> None:
    signs = signs_with(consumers=[sign()])
    lines = [first_line(judge(signs, THRESHOLDS, all_groups=each), signs) for each in (False, True)]
    assert [line.split(",")[0] for line in lines] == ["nothing is wrong: 1 group", "nothing is wrong: 2 groups"]


def test_the_list_of_groups_has_kinds_of_errors_and_warnings_alone() -> None:
    groups = [waiting(10 * MINUTE_MS), sign(group_id="idle", idle_members=1), waiting(MINUTE_MS, group_id="young")]
    assert consumers.kinds_by_group(groups, THRESHOLDS, is_now_known=True) == {"app": ["reconciliation_stuck"]}
    assert consumers.kinds_by_group(groups, THRESHOLDS, is_now_known=False) == {
        "app": ["reconciliation_stuck"],
        "young": ["reconciliation_stuck:unknown"],
    }
