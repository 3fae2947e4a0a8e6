"""Share sessions: epochs, limits, and which partitions come first."""

import pytest

from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.sessions import MAX_PARTITIONS, ShareSessionError, ShareSessions

LARGEST_EPOCH = (1 << 31) - 1


def code_of(call):
    with pytest.raises(ShareSessionError) as raised:
        call()
    return raised.value.code


def test_a_new_session_is_at_epoch_one_and_goes_on_one_by_one():
    sessions = ShareSessions(10)
    session = sessions.open("g", "m", 1)
    assert session.epoch == 1
    assert sessions.go_on("g", "m", 1) is session
    assert session.epoch == 2


def test_after_the_largest_epoch_comes_one():
    sessions = ShareSessions(10)
    session = sessions.open("g", "m", 1)
    session.epoch = LARGEST_EPOCH
    sessions.go_on("g", "m", LARGEST_EPOCH)
    assert session.epoch == 1


def test_another_epoch_is_refused_and_changes_nothing():
    sessions = ShareSessions(10)
    session = sessions.open("g", "m", 1)
    assert code_of(lambda: sessions.go_on("g", "m", 2)) is ShareErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert session.epoch == 1


def test_without_a_session_there_is_none():
    sessions = ShareSessions(10)
    assert code_of(lambda: sessions.go_on("g", "m", 1)) is ShareErrorCode.SHARE_SESSION_NOT_FOUND
    assert code_of(lambda: sessions.get("g", "m")) is ShareErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_member_that_opens_again_loses_its_old_session():
    sessions = ShareSessions(10)
    old = sessions.open("g", "m", 1)
    new = sessions.open("g", "m", 2)
    assert old.is_closed
    assert sessions.get("g", "m") is new
    assert sessions.of_connection(1) == []
    assert len(sessions) == 1


def test_there_is_a_largest_number_of_sessions_but_each_member_may_open_its_own_again():
    sessions = ShareSessions(2)
    sessions.open("g", "a", 1)
    sessions.open("g", "b", 1)
    assert sessions.open("g", "c", 1) is None
    assert sessions.open("g", "a", 1) is not None


def test_a_group_is_known_while_any_member_has_a_session():
    sessions = ShareSessions(10)
    a, b = sessions.open("g", "a", 1), sessions.open("g", "b", 2)
    sessions.close(a)
    sessions.close(a)
    assert sessions.has_group("g")
    sessions.close(b)
    assert not sessions.has_group("g")


def test_another_partition_is_first_with_each_request():
    sessions = ShareSessions(10)
    session = sessions.open("g", "m", 1)
    session.update([("t", 0), ("t", 1), ("u", 0)], [])
    firsts = []
    for epoch in range(1, 7):
        sessions.go_on("g", "m", epoch)
        firsts.append(session.rotated()[0])
    assert firsts == [("u", 0), ("t", 0), ("t", 1)] * 2


def test_partitions_come_and_go():
    session = ShareSessions(10).open("g", "m", 1)
    session.update([("t", 0), ("t", 1)], [])
    session.update([("t", 2), ("t", 0)], [("t", 1), ("u", 9)])
    assert list(session.partitions) == [("t", 0), ("t", 2)]


def test_what_a_session_remembers_ends_somewhere():
    session = ShareSessions(10).open("g", "m", 1)
    many = [("t", number) for number in range(MAX_PARTITIONS + 1)]
    assert code_of(lambda: session.update(many, [])) is ShareErrorCode.INVALID_REQUEST
    assert len(session.partitions) == MAX_PARTITIONS
