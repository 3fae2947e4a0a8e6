"""Rules about streams groups."""

from typing import Any

import pytest

from sharelens.findings import streams
from sharelens.findings.finding import ERROR, INFO, WARNING
from sharelens.findings.signs import Lag, StreamsSign
from sharelens.findings.thresholds import MINUTE_MS, Thresholds
from tests.findings import NOW_MS, signs_with

THRESHOLDS = Thresholds()


def sign(lag: Lag, **values: Any) -> StreamsSign:
    """A stable streams group with one member and a lag, ten minutes after the moment before."""
    default: dict[str, Any] = {
        "group_id": "app",
        "now_ms": NOW_MS,
        "state": "STABLE",
        "members": 1,
        "since_ms": NOW_MS - 20 * MINUTE_MS,
        "epochs": 0,
        "unsettled_ms": 0,
        "window_ms": NOW_MS - 10 * MINUTE_MS,
        "window_epochs": 0,
        "topology_epoch": 0,
        "validated_topology_epoch": 0,
        "tasks": 2,
        "without_owner": {},
        "lag": lag,
    }
    return StreamsSign(**default | values)


@pytest.mark.parametrize(("finished", "is_found"), [(1_000, True), (1_001, False)])
def test_growth_by_what_is_finished_between_two_commits_is_none(finished: int, is_found: bool) -> None:
    lag = Lag(records=90, unknown=0, partitions=2, growth=50, finished=finished)
    assert len(streams.lag_growing(signs_with(streams=[sign(lag)]), THRESHOLDS)) == is_found


@pytest.mark.parametrize(
    ("minutes", "records", "is_now_known", "severity", "remedy"),
    [
        (1, 9, True, INFO, None),
        (1, 9, False, ERROR, "--now TIME"),
        (1, 2, False, WARNING, "--now TIME"),
        (5, 9, False, ERROR, None),
        (5, 2, True, WARNING, None),
    ],
)
def test_a_group_that_has_just_closed_is_not_judged_where_now_is_unknown(
    minutes: int, records: int, is_now_known: bool, severity: str, remedy: str | None
) -> None:
    lag = Lag(records=records, unknown=0, partitions=2)
    closed = sign(lag, state="EMPTY", members=0, since_ms=NOW_MS - minutes * MINUTE_MS)
    judged = streams.no_members(signs_with(streams=[closed], is_now_known=is_now_known), THRESHOLDS)
    assert [(row.severity, row.remedy) for row in judged] == [(severity, remedy)]


def test_a_duration_is_a_lower_bound_where_now_is_unknown() -> None:
    waiting = sign(Lag(records=None, unknown=0, partitions=0), state="NOT_READY", since_ms=NOW_MS - 2 * MINUTE_MS)
    (row,) = streams.not_ready(signs_with(streams=[waiting], is_now_known=False), THRESHOLDS)
    assert "(at least 2 min)" in row.text
