"""What the group coordinator's records say of share groups."""

from typing import Any

from sharelens.findings.signs import ShareCoordination
from sharelens.findings.thresholds import HOUR_MS, MINUTE_MS
from sharelens.groups.moment import groups_at
from sharelens.questions.findings.group_signs import share_coordination
from tests.logs.group_logs import CREATED, DELETED, epoch, group_log, initialized

NOW_MS = 10 * HOUR_MS


def coordination(*entries: Any, times_ms: list[int] | None = None, as_of_ms: int | None = None) -> ShareCoordination:
    records = group_log(*entries, timestamps_ms=times_ms)
    (group,) = share_coordination(records, groups_at(records, as_of_ms), NOW_MS, as_of_ms)
    return group


def test_members_and_what_they_have() -> None:
    group = coordination(*CREATED, initialized(0, 1, 2))
    assert (group.members, group.changed_ms) == (1, 105)
    assert group.assigned == {("T", 0), ("T", 1)}
    assert group.initialized == {("T", 0), ("T", 1), ("T", 2)}


def test_initializations_last_at_least_since_the_newest_record_of_them() -> None:
    group = coordination(*CREATED, initialized(0, initializing=(1,)), epoch(3))
    assert group.initializing == [("T", 1, "INITIALIZING")]
    assert (group.initialized_ms, group.changed_ms) == (105, 106)
    assert coordination(*CREATED, initialized(deleting=True)).initializing == [("T", -1, "DELETING")]


def test_a_partition_that_comes_into_initialization_three_times_an_hour_is_noted() -> None:
    begun, done = initialized(initializing=(4,)), initialized()
    entries = [begun, done, begun, done, begun]
    lately = [NOW_MS - HOUR_MS + number for number in range(5)]
    assert coordination(*entries, times_ms=lately).repeated == [("T", 4)]
    assert coordination(*entries[2:], times_ms=lately[2:]).repeated == []
    old = [NOW_MS - HOUR_MS - 1, *lately[1:]]
    assert coordination(*entries, times_ms=old).repeated == []
    assert coordination(begun, begun, begun, times_ms=lately[:3]).repeated == []


def test_epochs_of_the_last_minutes_are_listed() -> None:
    times_ms = [NOW_MS - 6 * MINUTE_MS, NOW_MS - 5 * MINUTE_MS, NOW_MS]
    assert coordination(epoch(1), epoch(2), epoch(3), times_ms=times_ms).epochs_ms == times_ms[1:]


def test_a_deleted_group_has_none_and_an_earlier_moment_its_own() -> None:
    records = group_log(*CREATED, *DELETED)
    assert share_coordination(records, groups_at(records), NOW_MS, None) == ()
    assert coordination(*CREATED, *DELETED, as_of_ms=104).members == 1
