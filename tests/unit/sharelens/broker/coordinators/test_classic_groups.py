"""Classic groups: who is let in, how a generation comes about, what ends a membership, what a restart keeps."""

import pytest
from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_group import GroupState
from sharelens.broker.coordinators.classic_groups import MemberCall
from state_model.group_records import decode_record
from state_model.group_schemas import GroupKind
from tests.broker_parts.broker_groups import Coordinator, settle
from tests.broker_parts.broker_memory import DISK_FULL, ManualTimers, MemoryCluster

TOPIC = "__consumer_offsets"


@pytest.fixture
def timers():
    return ManualTimers()


@pytest.fixture
def coordinator(timers):
    return Coordinator(MemoryCluster(timers, internal_partitions=3), timers)


def written(coordinator):
    """Kind and member count of each record of the log, -1 for a tombstone."""
    records = [record for batch in coordinator.cluster.batches(TOPIC) for record in batch]
    return [
        (decode_record(record.key, record.value).name, -1 if record.value is None else len(record.value))
        for record in records
    ]


class TestJoining:
    def test_a_newcomer_is_given_an_id_first_and_joins_with_it(self, coordinator):
        member = coordinator.member()
        member.join()
        assert member.member_id == "client-1"
        assert member.joined is None

    def test_a_newcomer_of_an_old_version_joins_at_once(self, coordinator, timers):
        member = coordinator.member(requires_known_member=False)
        member.join()
        timers.advance(3_000)
        assert member.joined.member_id == "client-1"

    def test_the_first_generation_waits_for_others_as_long_as_they_keep_coming(self, coordinator, timers):
        first, second, third = (coordinator.member() for _ in range(3))
        first.join()
        timers.advance(2_900)
        second.join()
        timers.advance(2_900)
        third.join()
        assert first.joined is None
        timers.advance(2_900)
        assert first.joined is None
        timers.advance(3_000)
        assert {member.generation for member in (first, second, third)} == {1}
        assert [len(member.joined.members) for member in (first, second, third)] == [3, 0, 0]

    def test_everybody_gets_what_the_leader_shared_out(self, coordinator):
        members = [coordinator.member() for _ in range(3)]
        settle(*members)
        assert [member.synced.assignment.decode() for member in members] == [each.member_id for each in members]
        assert coordinator.groups.get("g").state is GroupState.STABLE

    def test_who_is_not_shared_anything_gets_nothing(self, coordinator, timers):
        member = coordinator.member()
        member.join()
        timers.advance(3_000)
        assert member.sync({"somebody else": b"x"}).assignment == b""

    def test_the_protocol_with_the_most_votes_among_those_all_speak_is_chosen(self, coordinator, timers):
        both_protocols = (("range", b"r"), ("sticky", b"s"))
        members = [
            coordinator.member(protocols=both_protocols),
            coordinator.member(protocols=both_protocols[::-1]),
            coordinator.member(protocols=(("cooperative", b"c"), *both_protocols[::-1])),
        ]
        settle(*members)
        assert {member.joined.protocol_name for member in members} == {"sticky"}
        assert {member.metadata for member in members[0].joined.members} == {b"s"}

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"group_id": ""}, "invalid_group_id"),
            ({"session_timeout_ms": 5_999}, "invalid_session_timeout"),
            ({"session_timeout_ms": 1_800_001}, "invalid_session_timeout"),
            ({"member_id": "made up"}, "unknown_member_id"),
            ({"protocols": ()}, "inconsistent_group_protocol"),
            ({"protocol_type": ""}, "inconsistent_group_protocol"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, coordinator, changes, error):
        assert coordinator.member().join(**changes).error_code.name == error

    def test_a_protocol_that_others_do_not_speak_is_refused(self, coordinator):
        settle(coordinator.member())
        stranger = coordinator.member(protocols=(("other", b""),))
        assert stranger.join().error_code is ErrorCode.inconsistent_group_protocol

    def test_the_id_of_a_share_group_is_refused(self, coordinator):
        coordinator.log.ids.claim("g", GroupKind.SHARE)
        assert coordinator.member().join().error_code is ErrorCode.inconsistent_group_protocol
        assert coordinator.groups.get("g") is None

    def test_a_full_group_refuses_new_members(self, timers):
        coordinator = Coordinator(MemoryCluster(timers, internal_partitions=3), timers, group_max_size=1)
        settle(coordinator.member())
        assert coordinator.member().join().error_code is ErrorCode.group_max_size_reached

    def test_an_id_that_was_handed_out_and_never_used_is_forgotten(self, coordinator, timers):
        member = coordinator.member(session_timeout_ms=6_000)
        handed_out = member.ask_for_id()
        timers.advance(5_999)
        assert coordinator.groups.get("g").pending_joins.keys() == {handed_out}
        timers.advance(1)
        assert member.join(member_id=handed_out).error_code is ErrorCode.unknown_member_id

    def test_a_rebalance_waits_for_an_id_that_was_handed_out(self, coordinator):
        first, second = coordinator.member(), coordinator.member()
        settle(first)
        handed_out = second.ask_for_id()
        assert first.join() is None
        second.join(member_id=handed_out)
        assert first.generation == second.generation == 2


class TestRebalance:
    def test_a_newcomer_makes_the_others_join_again(self, coordinator):
        first, second = coordinator.member(), coordinator.member()
        settle(first)
        second.join()
        assert first.heartbeat() == "rebalance_in_progress"
        first.join()
        assert (first.generation, second.generation) == (2, 2)
        assert second.joined.leader == first.member_id

    def test_who_does_not_join_again_in_time_is_out(self, coordinator, timers):
        first, second = coordinator.member(), coordinator.member()
        settle(first)
        second.join()
        for _ in range(6):
            timers.advance(5_000)
            first.heartbeat()
        assert second.joined.leader == second.member_id
        assert first.heartbeat() == "unknown_member_id"

    def test_a_follower_that_joins_unchanged_gets_its_generation_again(self, coordinator):
        leader, follower = coordinator.member(), coordinator.member()
        settle(leader, follower)
        assert follower.join().generation_id == 1
        assert coordinator.groups.get("g").state is GroupState.STABLE

    def test_a_leader_that_joins_unchanged_starts_a_rebalance(self, coordinator):
        leader, follower = coordinator.member(), coordinator.member()
        settle(leader, follower)
        assert leader.join() is None
        assert follower.heartbeat() == "rebalance_in_progress"
        follower.join()
        assert leader.generation == 2

    def test_a_follower_with_other_topics_starts_a_rebalance(self, coordinator):
        leader, follower = coordinator.member(), coordinator.member()
        settle(leader, follower)
        assert follower.join(protocols=(("range", b"more topics"),)) is None
        leader.join()
        assert follower.generation == 2

    def test_a_member_that_waits_for_its_assignment_gets_an_error_on_a_new_rebalance(self, coordinator, timers):
        first, second = coordinator.member(), coordinator.member()
        first.join()
        second.join()
        timers.advance(6_000)
        follower = second if first.is_leader() else first
        follower.sync()
        coordinator.member().join()
        assert follower.synced.error_code is ErrorCode.rebalance_in_progress

    def test_who_joined_and_never_syncs_is_out(self, coordinator, timers):
        first, second = coordinator.member(), coordinator.member()
        first.join()
        second.join()
        timers.advance(6_000)
        leader, mute = (first, second) if first.is_leader() else (second, first)
        leader.sync()
        for _ in range(7):
            timers.advance(4_500)
            leader.heartbeat()
            mute.heartbeat()
        assert leader.heartbeat() == "rebalance_in_progress"
        assert mute.heartbeat() == "unknown_member_id"

    def test_a_refused_write_of_the_assignment_makes_everybody_join_again(self, coordinator, timers):
        member = coordinator.member()
        member.join()
        timers.advance(3_000)
        coordinator.cluster.refuse_appends(TOPIC, DISK_FULL)
        assert member.sync().error_code is ErrorCode.coordinator_not_available
        coordinator.cluster.refuse_appends(TOPIC)
        assert member.heartbeat() == "rebalance_in_progress"
        member.join()
        assert member.sync().assignment == member.member_id.encode()


class TestMembership:
    def test_silence_ends_it(self, coordinator, timers):
        first, second = coordinator.member(), coordinator.member()
        settle(first, second)
        timers.advance(9_000)
        assert second.heartbeat() == "none"
        timers.advance(1_001)
        assert second.heartbeat() == "rebalance_in_progress"
        assert first.heartbeat() == "unknown_member_id"

    def test_waiting_for_an_answer_is_no_silence(self, coordinator, timers):
        first, second = coordinator.member(), coordinator.member(rebalance_timeout_ms=200_000)
        settle(first, second)
        third = coordinator.member()
        third.join()
        first.join()
        for _ in range(10):
            timers.advance(9_000)
            second.heartbeat()
        assert first.joined is None
        second.join()
        assert first.joined.error_code is ErrorCode.none
        assert third.joined.error_code is ErrorCode.none

    def test_leaving_ends_the_membership_and_starts_a_rebalance(self, coordinator):
        first, second = coordinator.member(), coordinator.member()
        settle(first, second)
        assert first.leave() == "none"
        assert first.leave() == "unknown_member_id"
        assert second.heartbeat() == "rebalance_in_progress"
        second.join()
        assert second.is_leader()

    def test_a_group_that_everybody_left_is_empty_and_says_so_in_the_log(self, coordinator):
        member = coordinator.member()
        settle(member)
        member.leave()
        group = coordinator.groups.get("g")
        assert (group.state, group.generation, group.leader) == (GroupState.EMPTY, 2, None)
        names = [name for name, _ in written(coordinator)]
        assert names == ["GroupMetadata"] * 3

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"generation_id": 5}, "illegal_generation"),
            ({"member_id": "other"}, "unknown_member_id"),
            ({"group_id": "other"}, "unknown_member_id"),
            ({"group_id": ""}, "invalid_group_id"),
        ],
    )
    def test_a_heartbeat_must_come_from_a_member_of_this_generation(self, coordinator, changes, error):
        member = coordinator.member()
        settle(member)
        assert coordinator.groups.heartbeat(member.call(**changes)).name == error

    def test_a_sync_with_another_protocol_is_refused(self, coordinator):
        member = coordinator.member()
        settle(member)
        answers = []
        coordinator.groups.sync(member.call(), {}, answers.append, protocol_type="consumer", protocol_name="other")
        assert answers[0].error_code is ErrorCode.inconsistent_group_protocol


class TestStaticMembers:
    def test_one_that_comes_back_takes_its_place_without_a_rebalance(self, coordinator):
        first = coordinator.member(group_instance_id="one")
        second = coordinator.member(group_instance_id="two")
        settle(first, second)
        again = coordinator.member(group_instance_id="two")
        answer = again.join()
        assert (answer.generation_id, answer.error_code) == (1, ErrorCode.none)
        assert again.sync().assignment == second.member_id.encode()
        assert second.heartbeat() == "fenced_instance_id"
        assert first.heartbeat() == "none"

    def test_a_leader_that_comes_back_need_not_share_out_again(self, coordinator):
        leader = coordinator.member(group_instance_id="one")
        settle(leader)
        again = coordinator.member(group_instance_id="one")
        answer = again.join()
        assert (answer.skip_assignment, answer.leader, len(answer.members)) == (True, again.member_id, 1)
        older = coordinator.member(group_instance_id="one", can_skip_assignment=False)
        assert older.join().leader == again.member_id != older.member_id

    def test_a_static_member_that_rejoins_with_other_protocols_starts_a_rebalance(self, coordinator):
        both_protocols = (("range", b""), ("sticky", b""))
        first = coordinator.member(group_instance_id="one", protocols=both_protocols)
        settle(first)
        again = coordinator.member(group_instance_id="one", protocols=both_protocols[1:])
        assert again.join().generation_id == 2

    def test_one_is_not_put_out_by_a_rebalance_that_it_misses(self, coordinator, timers):
        static, other = coordinator.member(group_instance_id="one", session_timeout_ms=60_000), coordinator.member()
        settle(static, other)
        coordinator.member().join()
        timers.advance(1_000)
        other.join()
        timers.advance(30_000)
        assert static.member_id in coordinator.groups.get("g").members
        assert other.generation == 2

    def test_an_administrator_removes_one_by_its_instance_id(self, coordinator):
        member = coordinator.member(group_instance_id="one")
        settle(member)
        assert coordinator.groups.leave("g", "", "one") is ErrorCode.none
        assert coordinator.groups.leave("g", "", "one") is ErrorCode.unknown_member_id


class TestGroups:
    def test_a_restart_keeps_members_and_assignments_without_a_rebalance(self, coordinator, timers):
        first, second = coordinator.member(), coordinator.member()
        settle(first, second)
        coordinator.restart()
        assert (first.heartbeat(), second.heartbeat()) == ("none", "none")
        assert first.sync({}).assignment == first.member_id.encode()
        timers.advance(10_001)
        assert coordinator.groups.get("g").state is GroupState.EMPTY

    def test_only_an_empty_group_can_be_deleted(self, coordinator):
        member = coordinator.member()
        settle(member)
        assert coordinator.groups.delete("g") is ErrorCode.non_empty_group
        member.leave()
        coordinator.cluster.refuse_appends(TOPIC, DISK_FULL)
        assert coordinator.groups.delete("g") is ErrorCode.coordinator_not_available
        coordinator.cluster.refuse_appends(TOPIC)
        assert coordinator.groups.delete("g") is ErrorCode.none
        assert coordinator.groups.delete("g") is ErrorCode.group_id_not_found
        assert coordinator.log.ids.kind("g") is None
        coordinator.restart()
        assert coordinator.groups.get("g") is None

    def test_a_group_that_cannot_be_written_is_not_made(self, coordinator):
        coordinator.cluster.refuse_appends(TOPIC, DISK_FULL)
        assert coordinator.member().join().error_code is ErrorCode.coordinator_not_available
        assert coordinator.groups.get("g") is None
        assert coordinator.log.ids.kind("g") is None

    def test_a_call_without_a_group_is_one_of_a_stranger(self, coordinator):
        call = MemberCall(group_id="none", member_id="m", generation_id=1)
        assert coordinator.groups.heartbeat(call) is ErrorCode.unknown_member_id
        assert coordinator.groups.leave("none", "m") is ErrorCode.unknown_member_id


def test_the_id_of_a_deleted_group_is_free_also_after_a_restart(coordinator, timers):
    member = coordinator.member()
    member.join()
    timers.advance(3_000)
    coordinator.groups.leave("g", member.member_id)
    timers.advance(30_000)
    assert coordinator.groups.delete("g") is ErrorCode.none
    coordinator.restart()
    assert coordinator.log.ids.claim("g", GroupKind.SHARE)
