"""Rules about share partitions whose first incomplete offset stands."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.findings import stalls
from sharelens.findings.finding import ERROR, INFO, Finding
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import Thresholds
from sharelens.measures.settings.over_time import LOCK_DURATION, GroupSettings
from tests.findings import NOW_MS, TOPIC, signs_with, stall

SECOND_MS = 1_000
MEMBERS = ({"group_id": "g", "state": "STABLE"},)
NOBODY = ({"group_id": "g", "state": "EMPTY"},)


def lock_of(duration_ms: int) -> Thresholds:
    return Thresholds(settings=GroupSettings(broker={f"group.{LOCK_DURATION}": str(duration_ms)}))


def stuck(read: Signs, thresholds: Thresholds = Thresholds()) -> list[Finding]:  # noqa: B008
    return list(stalls.stuck(read, thresholds))


@pytest.mark.parametrize(
    ("lock_ms", "duration_ms", "is_found"),
    [(1_500, 10_000, True), (1_500, 9_999, False), (30_000, 89_999, False), (30_000, 90_000, True)],
)
def test_three_locks_are_a_stall_and_ten_seconds_at_least(lock_ms: int, duration_ms: int, is_found: bool) -> None:
    findings = stuck(signs_with(stalls=[stall(duration_ms)], groups=MEMBERS), lock_of(lock_ms))
    assert [(row.severity, row.remedy) for row in findings] == ([(ERROR, None)] if is_found else [])


def test_without_the_lock_it_is_judged_from_three_minutes_on() -> None:
    def results(duration_ms: int) -> list[str | None]:
        return [row.remedy for row in stuck(signs_with(stalls=[stall(duration_ms)], groups=MEMBERS))]

    assert results(9_999) == []
    assert results(19_500) == ["--broker-config FILE or --settings DIR"]
    assert results(180_000) == [None]


def test_where_now_is_unknown_how_long_it_lasts_is_unknown() -> None:
    read = signs_with(stalls=[stall(20_000)], groups=MEMBERS, is_now_known=False)
    (row,) = stuck(read, lock_of(30_000))
    assert row.remedy == "--now TIME"
    assert row.text == (
        "not judged: 1 share partition unmoved for at least 20 s, finished records behind; how long is not known"
    )
    (row,) = stuck(signs_with(stalls=[stall(90_000)], groups=MEMBERS, is_now_known=False), lock_of(30_000))
    assert (row.remedy, "at least" in row.text) == (None, True)


def test_a_least_duration_of_the_caller_needs_no_lock() -> None:
    read = signs_with(stalls=[stall(1_000)], groups=MEMBERS)
    assert [row.remedy for row in stuck(read, Thresholds(min_duration_ms=1_000))] == [None]


def test_silence_needs_to_know_the_members() -> None:
    silent = stall(200_000, kind="silent_with_backlog", finished_behind=0)
    assert [row.remedy for row in stuck(signs_with(stalls=[silent], groups=MEMBERS))] == [None]
    assert stuck(signs_with(stalls=[silent], groups=NOBODY)) == []
    (row,) = stuck(signs_with(stalls=[silent], groups=None))
    assert row.remedy == "copy __consumer_offsets-3"


@pytest.mark.parametrize(
    ("changes", "idle_ms", "is_unjudged"),
    [
        ({}, 180_000, True),
        ({}, 179_999, False),
        ({"lag": None, "lag_recounted": 3}, 180_000, True),
        ({"lag": 2}, 180_000, False),
        ({"lag": None}, 180_000, False),
    ],
)
def test_records_that_wait_in_silence_are_not_judged_without_headers(
    changes: dict[str, int | None], idle_ms: int, is_unjudged: bool
) -> None:
    row = {"lag": 3, "log_time_ms": NOW_MS - idle_ms} | changes
    read = signs_with(lag=[row], groups=MEMBERS, with_headers=frozenset())
    assert [row.remedy for row in stuck(read)] == (["copy the topics' folders"] if is_unjudged else [])
    for other in (
        signs_with(lag=[row], groups=MEMBERS),
        signs_with(lag=[row], groups=NOBODY, with_headers=frozenset()),
    ):
        assert stuck(other) == []


def test_what_stands_in_a_group_without_members_is_information() -> None:
    (row,) = stuck(signs_with(stalls=[stall(200_000)], groups=NOBODY))
    assert (row.severity, row.text.endswith("; the group has no members")) == (INFO, True)


@pytest.mark.soak
@given(
    durations_ms=st.lists(st.integers(0, 400_000), min_size=1, max_size=4),
    lock_ms=st.none() | st.integers(1_000, 60_000),
    groups=st.sampled_from([MEMBERS, NOBODY]),
    kinds=st.lists(
        st.sampled_from(["blocked_by_record", "window_full", "silent_with_backlog"]), min_size=4, max_size=4
    ),
    is_now_known=st.booleans(),
)
def test_an_input_less_makes_no_clear_one_of_a_finding_and_none_of_a_clear_one(
    durations_ms: list[int], lock_ms: int | None, groups: Any, kinds: list[str], is_now_known: bool
) -> None:
    rows = [
        stall(duration_ms, kind=kind, partition=number)
        for number, (duration_ms, kind) in enumerate(zip(durations_ms, kinds, strict=False))
    ]
    thresholds = Thresholds() if lock_ms is None else lock_of(lock_ms)
    full = stuck(signs_with(stalls=rows, groups=groups, is_now_known=is_now_known), thresholds)
    for fewer in (
        stuck(signs_with(stalls=rows, groups=None, is_now_known=is_now_known), thresholds),
        stuck(signs_with(stalls=rows, groups=groups, is_now_known=is_now_known)),
        stuck(signs_with(stalls=rows, groups=groups, is_now_known=False), thresholds),
    ):
        if any(row.remedy is None for row in full):
            assert fewer
        if not full:
            assert all(row.remedy is not None for row in fewer)


def test_a_window_that_fills_behind_an_unmoved_offset_is_a_warning() -> None:
    row = stall(90_000, window_used=1_600, window_limit=2_000)
    (finding,) = stalls.window_filling(signs_with(stalls=[row], groups=MEMBERS), lock_of(30_000))
    assert finding.text == "orders-0 uses 1,600 of 2,000 record locks behind offset 5"
    for harmless in (row | {"window_used": 1_599}, row | {"finished_behind": 0}, row | {"duration_ms": 89_999}):
        assert list(stalls.window_filling(signs_with(stalls=[harmless]), lock_of(30_000))) == []
    assert list(stalls.window_filling(signs_with(stalls=[row]), Thresholds())) == []


def test_records_that_retention_will_delete_are_a_warning() -> None:
    read = signs_with(stalls=[stall(800 * SECOND_MS)], retention_ms={TOPIC: 1_000 * SECOND_MS})
    (row,) = stalls.retention_near(read, Thresholds())
    assert row.text == "offset 5 of orders-0 waits for 13 min 20 s, and retention.ms is 16 min 40 s"
    assert list(stalls.retention_near(signs_with(stalls=[stall(800 * SECOND_MS)]), Thresholds())) == []
