"""Committed offsets: who may commit, what is kept, what a restart and the passing of time leave."""

import pytest
from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_groups import MemberCall
from sharelens.broker.coordinators.classic_records import CommittedOffset
from sharelens.broker.ports import TopicPartition
from state_model.group_schemas import GroupKind
from tests.broker_parts.broker_groups import Coordinator, settle
from tests.broker_parts.broker_memory import DISK_FULL, ManualTimers, MemoryCluster

TOPIC = "__consumer_offsets"
AT = TopicPartition("orders", 0)
ALSO = TopicPartition("orders", 1)
OTHER = TopicPartition("audit", 0)
NOBODY = MemberCall(group_id="g", member_id="", generation_id=-1)
DAY_MS = 86_400_000


@pytest.fixture
def timers():
    return ManualTimers()


@pytest.fixture
def coordinator(timers):
    return Coordinator(MemoryCluster(timers, internal_partitions=3), timers)


def commit(coordinator, call=NOBODY, at=AT, offset=5, version=9, **fields):
    committed = CommittedOffset(offset=offset, commit_timestamp_ms=coordinator.timers.now_ms(), **fields)
    return coordinator.commits.commit(call, {at: committed}, version=version)[at].name


def committed_offset(coordinator, at=AT):
    actual = coordinator.groups.offsets.get("g", at)
    return None if actual is None else actual.offset


def test_a_group_that_only_keeps_offsets_needs_no_members(coordinator):
    assert commit(coordinator) == "none"
    coordinator.restart()
    assert committed_offset(coordinator) == 5
    assert coordinator.log.ids.kind("g") is GroupKind.CLASSIC


def test_the_newest_commit_counts(coordinator):
    for offset in (5, 9, 7):
        commit(coordinator, offset=offset, metadata=f"at {offset}", leader_epoch=2)
    coordinator.restart()
    assert coordinator.groups.offsets.of_group("g")[AT].metadata == "at 7"
    assert coordinator.groups.offsets.of_group("g")[AT].leader_epoch == 2


def test_a_member_commits_in_its_generation(coordinator):
    member = coordinator.member()
    settle(member)
    assert commit(coordinator, member.call()) == "none"
    assert commit(coordinator, member.call(generation_id=7)) == "illegal_generation"
    assert commit(coordinator, member.call(member_id="other")) == "unknown_member_id"
    assert commit(coordinator, NOBODY) == "unknown_member_id"


def test_a_commit_is_a_sign_of_life(coordinator, timers):
    member = coordinator.member()
    settle(member)
    timers.advance(9_000)
    commit(coordinator, member.call())
    timers.advance(9_000)
    assert member.heartbeat() == "none"


def test_a_commit_between_the_join_and_the_sync_is_refused(coordinator, timers):
    member = coordinator.member()
    member.join()
    timers.advance(3_000)
    assert commit(coordinator, member.call()) == "rebalance_in_progress"


@pytest.mark.parametrize(("version", "error"), [(8, "illegal_generation"), (9, "group_id_not_found")])
def test_a_member_of_a_group_that_is_not_there_is_refused(coordinator, version, error):
    assert commit(coordinator, MemberCall(group_id="g", member_id="m", generation_id=1), version=version) == error


def test_a_share_group_has_no_committed_offsets(coordinator):
    coordinator.log.ids.claim("g", GroupKind.SHARE)
    assert commit(coordinator) == "group_id_not_found"


def test_long_metadata_is_refused_and_the_rest_is_committed(coordinator):
    offsets = {AT: CommittedOffset(offset=1, metadata="x" * 4_097), ALSO: CommittedOffset(offset=2)}
    codes = coordinator.commits.commit(NOBODY, offsets)
    assert (codes[AT], codes[ALSO]) == (ErrorCode.offset_metadata_too_large, ErrorCode.none)
    assert (committed_offset(coordinator), committed_offset(coordinator, ALSO)) == (None, 2)


def test_a_refused_write_commits_nothing(coordinator):
    commit(coordinator)
    coordinator.cluster.refuse_appends(TOPIC, DISK_FULL)
    assert commit(coordinator, offset=6) == "coordinator_not_available"
    assert committed_offset(coordinator) == 5


def test_offsets_go_with_their_topic(coordinator):
    commit(coordinator)
    commit(coordinator, at=OTHER)
    coordinator.commits.topic_deleted("orders")
    assert (committed_offset(coordinator), committed_offset(coordinator, OTHER)) == (None, 5)
    coordinator.restart()
    assert (committed_offset(coordinator), committed_offset(coordinator, OTHER)) == (None, 5)


def test_offsets_go_with_their_group(coordinator):
    commit(coordinator)
    assert coordinator.groups.delete("g") is ErrorCode.none
    coordinator.restart()
    assert (committed_offset(coordinator), coordinator.groups.get("g")) == (None, None)


def test_an_empty_group_keeps_its_offsets_for_a_week(coordinator, timers):
    commit(coordinator)
    timers.advance(6 * DAY_MS)
    commit(coordinator, at=OTHER)
    timers.advance(DAY_MS - 600_000)
    assert (committed_offset(coordinator), committed_offset(coordinator, OTHER)) == (5, 5)
    timers.advance(1_200_000)
    assert (committed_offset(coordinator), committed_offset(coordinator, OTHER)) == (None, 5)
    timers.advance(6 * DAY_MS)
    assert coordinator.groups.get("g") is None
    coordinator.restart()
    assert coordinator.groups.get("g") is None


def test_a_group_with_members_keeps_its_offsets(coordinator, timers):
    member = coordinator.member(session_timeout_ms=1_800_000)
    settle(member)
    commit(coordinator, member.call())
    for _ in range(8 * 96):
        timers.advance(DAY_MS // 96)
        assert member.heartbeat() == "none"
    assert committed_offset(coordinator) == 5


def subscribing(*topics):
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return (("range", b"\x00\x00" + len(topics).to_bytes(4, "big") + names + b"\xff" * 4),)


def test_offsets_of_a_group_without_members_can_be_deleted(coordinator):
    commit(coordinator)
    commit(coordinator, at=OTHER)
    error, codes = coordinator.commits.delete("g", [AT, ALSO])
    assert (error.name, {code.name for code in codes.values()}) == ("none", {"none"})
    coordinator.restart()
    assert (committed_offset(coordinator), committed_offset(coordinator, OTHER)) == (None, 5)
    assert coordinator.commits.delete("nobody", [AT])[0] is ErrorCode.group_id_not_found


def test_offsets_of_topics_that_members_read_are_not_deleted(coordinator):
    member = coordinator.member(protocols=subscribing("orders"))
    settle(member)
    commit(coordinator, member.call())
    commit(coordinator, member.call(), at=OTHER)
    error, codes = coordinator.commits.delete("g", [AT, OTHER])
    assert error is ErrorCode.none
    assert codes == {AT: ErrorCode.group_subscribed_to_topic, OTHER: ErrorCode.none}
    assert (committed_offset(coordinator), committed_offset(coordinator, OTHER)) == (5, None)


def test_a_group_of_another_protocol_keeps_its_offsets_while_it_has_members(coordinator):
    member = coordinator.member(protocol_type="connect")
    settle(member)
    commit(coordinator, member.call())
    assert coordinator.commits.delete("g", [AT])[0] is ErrorCode.non_empty_group


def test_offsets_that_the_disk_can_not_delete_stay(coordinator):
    commit(coordinator)
    coordinator.cluster.refuse_appends(TOPIC, DISK_FULL)
    error, _ = coordinator.commits.delete("g", [AT])
    assert (error, committed_offset(coordinator)) == (ErrorCode.coordinator_not_available, 5)
