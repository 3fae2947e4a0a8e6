import pytest

from sharelens.broker.coordinators.member_timers import MemberTimers
from tests.broker_parts.broker_memory import ManualTimers


@pytest.fixture
def timers():
    return ManualTimers()


@pytest.fixture
def expired():
    return []


@pytest.fixture
def sessions(timers, expired):
    return MemberTimers(timers, lambda group_id, member_id: expired.append((group_id, member_id)))


def test_a_member_with_a_heartbeat_in_time_stays(timers, sessions, expired):
    for _ in range(5):
        sessions.restart("g", "m", 100)
        timers.advance(99)
    assert expired == []
    timers.advance(1)
    assert expired == [("g", "m")]
    timers.advance(1_000)
    assert expired == [("g", "m")]


def test_a_member_that_left_does_not_expire(timers, sessions, expired):
    sessions.restart("g", "m", 100)
    sessions.stop("g", "m")
    sessions.stop("g", "m")
    timers.advance(1_000)
    assert expired == []


def test_a_shorter_session_ends_sooner(timers, sessions, expired):
    sessions.restart("g", "m", 1_000)
    sessions.restart("g", "m", 10)
    sessions.restart("g", "other", 1_000)
    timers.advance(10)
    assert expired == [("g", "m")]
    timers.advance(990)
    assert expired == [("g", "m"), ("g", "other")]


def test_a_member_that_expired_may_come_back(timers, sessions, expired):
    sessions.restart("g", "m", 10)
    timers.advance(10)
    sessions.restart("g", "m", 10)
    timers.advance(10)
    assert expired == [("g", "m"), ("g", "m")]
