from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.group_topics import TopicMetadata
from state_model.streams.coordinator import delayed_target, fence, group_tombstones, heartbeat, leave
from state_model.streams.group import apply
from state_model.streams.heartbeat import ErrorCode, Heartbeat, HeartbeatError
from state_model.streams.soft_state import Settings, SoftState
from state_model.streams.topology import StatusCode
from state_model.streams.values import (
    NO_TASKS,
    NO_TASKS_BY_TYPE,
    Endpoint,
    MemberState,
    Subtopology,
    TaskId,
    TasksByType,
    TopicInfo,
    Topology,
)

TOPOLOGY = Topology(0, (Subtopology("0", ("in",)), Subtopology("1", ("in",), (), (TopicInfo("log"),))))
AT_ONCE = Settings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)


class World:
    """A streams group, its topics and its clients, each of which knows its epoch and its tasks."""

    def __init__(self, settings=AT_ONCE, **partitions):
        self.settings = settings
        self.topics = {}
        self.group, self.soft, self.log, self.now_ms = None, SoftState(), [], 1_000
        self.epochs, self.owned, self.waiting = {}, {}, {}
        for name, count in (partitions or {"in": 2, "log": 2}).items():
            self.topics[name] = TopicMetadata(name, bytes(16), count)

    def join(self, member, process=None, topology=TOPOLOGY, **fields):
        fields = {"process_id": process or member[0], "rebalance_timeout_ms": 60_000, "client_tags": ()} | fields
        self.owned[member] = NO_TASKS_BY_TYPE
        return self._beat(member, 0, NO_TASKS_BY_TYPE, topology=topology, **fields)

    def beat(self, member, *, says_owned=True, **fields):
        owned = self.owned[member] if says_owned else None
        return self._beat(member, self.epochs[member], owned, **fields)

    def _beat(self, member, epoch, owned, **fields):
        active, standby, warmup = owned or (None, None, None)
        request = Heartbeat(
            "g", member, epoch, "c", "/h", active_tasks=active, standby_tasks=standby, warmup_tasks=warmup, **fields
        )
        outcome = heartbeat(self.group, self.soft, request, self.topics.get, self.settings, self.now_ms)
        self._take(outcome)
        self.epochs[member] = outcome.answer.member_epoch
        if outcome.answer.tasks is not None:
            self.waiting[member] = outcome.answer.tasks
        return outcome

    def revoke_and_assign(self, member):
        """The client takes over the tasks of its last answer."""
        self.owned[member] = self.waiting.get(member, NO_TASKS_BY_TYPE)

    def leave(self, member):
        self._take(leave(self.group, self.soft, Heartbeat("g", member, -1)))
        self.owned.pop(member, None)

    def fence(self, member):
        self._take(fence("g", self.group, self.soft, member))

    def _take(self, outcome):
        assert reduce(apply, outcome.records, self.group) == outcome.group
        self.log += outcome.records
        self.group, self.soft = outcome.group, outcome.soft

    def settle(self, *members):
        for _ in range(6):
            for member in members:
                self.revoke_and_assign(member)
                self.beat(member)


def types(outcome):
    return [(record.record_type, record.is_tombstone) for record in outcome.records]


def written(*numbers):
    return [(number, False) for number in numbers]


def test_the_first_member_gets_its_tasks_at_once_without_a_delay():
    world = World()
    outcome = world.join("a1")
    assert types(outcome) == written(19, 23, 17, 21, 20, 22)
    assert outcome.answer.member_epoch == 2
    assert len(outcome.answer.tasks.active) == 4
    assert types(world.beat("a1")) == []


def test_members_that_join_during_the_initial_delay_wait_in_epoch_one():
    world = World(Settings())
    first, second = world.join("a1"), world.join("b1")
    assert (types(first), types(second)) == (written(19, 23, 17, 22), written(19, 17, 22))
    assert (first.starts_delay, second.starts_delay) == (True, False)
    assert (second.answer.member_epoch, second.answer.tasks) == (1, NO_TASKS_BY_TYPE)
    assert [status.code for status in second.answer.statuses] == [StatusCode.ASSIGNMENT_DELAYED]
    records = delayed_target("g", world.group, world.soft, world.settings, world.now_ms)
    assert [record.record_type for record in records] == [21, 21, 20]
    world.group, world.soft = reduce(apply, records, world.group), world.soft._replace(is_delayed=False)
    outcome = world.beat("a1")
    assert types(outcome) == written(22)
    assert (outcome.answer.member_epoch, len(outcome.answer.tasks.active)) == (3, 2)


def test_standby_replicas_that_change_in_the_initial_delay_count_with_the_next_heartbeat():
    world = World(Settings())
    world.join("a1")
    world.join("b1")
    world.settings = world.settings._replace(num_standby_replicas=1)
    records = delayed_target("g", world.group, world.soft, world.settings, world.now_ms)
    world.group, world.soft = reduce(apply, records, world.group), world.soft._replace(is_delayed=False)
    assert [len(world.group.targets[member].standby) for member in ("a1", "b1")] == [0, 0]
    world.now_ms += 1_000
    assert {record.record_type for record in world.beat("a1").records} >= {17, 20, 21}
    assert [len(world.group.targets[member].standby) for member in ("a1", "b1")] == [1, 1]


def test_within_the_assignment_interval_a_new_member_waits_in_the_old_epoch():
    world = World(Settings(initial_rebalance_delay_ms=0))
    world.join("a1")
    outcome = world.join("b1")
    assert types(outcome) == written(19, 17, 22)
    assert (outcome.answer.member_epoch, outcome.answer.tasks) == (2, NO_TASKS_BY_TYPE)
    world.now_ms += 1_000
    assert types(world.beat("a1")) == written(21, 21, 20, 22)


def test_a_task_moves_after_its_owner_has_revoked_it():
    world = World()
    world.join("a1")
    world.revoke_and_assign("a1")
    assert world.join("b1").answer.tasks == NO_TASKS_BY_TYPE
    outcome = world.beat("a1")
    assert outcome.revocation == (2, 60_000)
    assert world.group.members["a1"].assignment.state == MemberState.UNREVOKED_TASKS
    assert world.beat("b1").answer.tasks is None
    world.revoke_and_assign("a1")
    assert world.beat("a1").ends_revocation
    assert len(world.beat("b1").answer.tasks.active) == 2
    world.settle("a1", "b1")
    assert world.group.state.value == "Stable"


def test_a_member_that_leaves_writes_tombstones_and_no_target():
    world = World()
    world.join("a1")
    world.join("b1")
    before = len(world.log)
    world.leave("a1")
    ended = [(record.record_type, record.is_tombstone) for record in world.log[before:]]
    assert ended == [(22, True), (21, True), (19, True), (17, False)]
    assert types(world.beat("b1"))[:2] == written(21, 20)


def test_a_configuration_of_standby_tasks_rebalances_at_the_next_heartbeat():
    world = World()
    world.join("a1")
    world.join("b1")
    world.settle("a1", "b1")
    world.settings = AT_ONCE._replace(num_standby_replicas=1)
    assert types(world.beat("a1"))[:4] == written(17, 21, 21, 20)
    world.settle("a1", "b1")
    for member in world.group.members.values():
        active, standby, _ = member.assignment.assigned
        assert set(standby) == {TaskId("1", 0), TaskId("1", 1)} - active


def test_a_deleted_source_topic_empties_the_targets_until_it_is_back():
    world = World()
    world.join("a1")
    source = world.topics.pop("in")
    world.soft = world.soft._replace(is_stale=True)
    outcome = world.beat("a1")
    assert types(outcome) == written(17, 21, 20, 22)
    assert (world.group.validated_topology_epoch, world.group.state.value) == (-1, "NotReady")
    assert [status.code for status in outcome.answer.statuses] == [StatusCode.MISSING_SOURCE_TOPICS]
    world.topics["in"] = source
    world.soft = world.soft._replace(is_stale=True)
    world.revoke_and_assign("a1")
    world.settle("a1")
    assert world.group.state.value == "Stable"


def test_missing_internal_topics_are_to_be_created():
    world = World(**{"in": 3})
    outcome = world.join("a1")
    assert outcome.soft.configured.missing_topics == (TopicInfo("log", 3),)
    assert [status.code for status in outcome.answer.statuses] == [StatusCode.MISSING_INTERNAL_TOPICS]


def test_the_shutdown_of_the_application_is_announced_until_the_group_is_empty():
    world = World()
    world.join("a1")
    world.join("b1")
    world.beat("a1", shutdown_application=True)
    assert [status.code for status in world.beat("b1").answer.statuses] == [StatusCode.SHUTDOWN_APPLICATION]
    world.leave("a1")
    assert world.soft.shutdown_member_id == "a1"
    world.leave("b1")
    assert world.soft.shutdown_member_id is None


def test_endpoints_are_sent_to_clients_that_know_another_epoch():
    world = World(**{"in": 2, "log": 2})
    outcome = world.join("a1", user_endpoint=Endpoint("h", 1))
    assert outcome.answer.endpoint_information_epoch == 0
    assert outcome.answer.endpoints[0].active == (("in", (0, 1)), ("in", (0, 1)))
    assert world.beat("a1", endpoint_information_epoch=0).answer.endpoints is None


def refused(code, call, *arguments, **fields):
    with pytest.raises(HeartbeatError) as error:
        call(*arguments, **fields)
    assert error.value.code is code
    return error.value.text


def test_epochs_of_members_are_fenced_and_a_lost_answer_is_repeated():
    world = World()
    world.join("a1")
    world.revoke_and_assign("a1")
    world.join("b1")
    world.beat("a1")
    world.revoke_and_assign("a1")
    world.beat("a1")
    assert world.epochs["a1"] == 3
    world.epochs["a1"] = 2
    assert world.beat("a1").answer.member_epoch == 3
    for epoch, text in ((2, "smaller"), (1, "smaller"), (9, "greater")):
        world.epochs["a1"] = epoch
        assert text in refused(ErrorCode.FENCED_MEMBER_EPOCH, world.beat, "a1", says_owned=False)


def test_refused_heartbeats_name_the_error_of_kafka():
    world = World(AT_ONCE._replace(max_size=1))
    world.epochs["a1"] = 3
    assert refused(ErrorCode.GROUP_ID_NOT_FOUND, world.beat, "a1", says_owned=False) == "Streams group g not found."
    world.join("a1")
    assert "maximum capacity of 1" in refused(ErrorCode.GROUP_MAX_SIZE_REACHED, world.join, "a1")
    world.settings = AT_ONCE
    for topology in (Topology(1, TOPOLOGY.subtopologies), Topology(0, TOPOLOGY.subtopologies[:1])):
        text = refused(ErrorCode.INVALID_REQUEST, world.join, "b1", topology=topology)
        assert text == "Topology updates are not supported yet."
    twice = Topology(0, TOPOLOGY.subtopologies[:1] * 2)
    assert refused(ErrorCode.UNKNOWN_SERVER_ERROR, world.join, "b1", topology=twice) is None
    world.owned["a1"] = TasksByType(frozenset({TaskId("1", 7)}))
    assert "Task 7 for subtopology 1 is invalid" in refused(ErrorCode.INVALID_REQUEST, world.beat, "a1")
    world.owned["a1"] = TasksByType(frozenset({TaskId("9", 0)}), NO_TASKS, NO_TASKS)
    assert "Subtopology 9 does not exist" in refused(ErrorCode.INVALID_REQUEST, world.beat, "a1")


MEMBERS = ("a1", "a2", "b1", "c1")
steps = st.lists(
    st.tuples(
        st.sampled_from(["join", "beat", "silent", "work", "leave", "fence", "topic", "restart", "standby"]),
        st.sampled_from(MEMBERS),
    ),
    min_size=5,
    max_size=60,
)


@given(steps, st.sampled_from([0, 1_500]))
def test_any_sequence_keeps_the_rules_of_ownership_and_epochs(history, interval_ms):
    world = World(AT_ONCE._replace(assignment_interval_ms=interval_ms))
    for operation, member in history:
        world.now_ms += 1_000
        before = world.group
        _operate(world, operation, member)
        _check(before, world)
    # Members that go on working get everything.
    world.soft = SoftState()
    world.now_ms += 10_000
    members = list(world.group.members) if world.group else []
    for member in members:
        world.epochs[member] = world.group.members[member].assignment.member_epoch
    world.settings = AT_ONCE
    world.settle(*members)
    if members:
        active = [task for name in members for task in world.group.members[name].assignment.assigned.active]
        assert sorted(active) == sorted(world.soft.configured.tasks)
        assert world.group.state.value == "Stable"


def _operate(world, operation, member):
    is_member = world.group is not None and member in world.group.members
    match operation:
        case "join":
            world.join(member)
        case "beat" | "silent" if is_member:
            world.beat(member, says_owned=operation == "beat")
        case "work":
            world.revoke_and_assign(member)
        case "leave" if is_member:
            world.leave(member)
        case "fence" if is_member:
            world.fence(member)
            # A member that comes back too late is refused, and nothing is written.
            size = len(world.log)
            refused(ErrorCode.UNKNOWN_MEMBER_ID, world.beat, member)
            assert len(world.log) == size
            world.owned[member] = NO_TASKS_BY_TYPE
        case "topic":
            count = world.topics["in"].partitions
            world.topics["in"] = world.topics["in"]._replace(partitions=min(count + 1, 5))
            world.topics["log"] = world.topics["log"]._replace(partitions=min(count + 1, 5))
            world.soft = world.soft._replace(is_stale=True)
        case "restart":
            world.soft = SoftState()
        case "standby":
            replicas = 1 - world.settings.num_standby_replicas
            world.settings = world.settings._replace(num_standby_replicas=replicas)


def _check(before, world):
    group = world.group
    if group is None:
        return
    assert reduce(apply, world.log, None) == group
    active = set()
    by_process = set()
    for name, member in group.members.items():
        previous_member = None if before is None else before.members.get(name)
        if previous_member is not None and previous_member.assignment is not None:
            assert member.assignment.member_epoch >= previous_member.assignment.member_epoch
        assignment = member.assignment
        assert assignment.member_epoch <= max(1, group.target_assignment_epoch)
        assert (assignment.state == MemberState.UNREVOKED_TASKS) == (not assignment.pending.is_empty)
        for task in assignment.assigned.active | assignment.pending.active:
            assert task not in active, "an active task has one owner"
            active.add(task)
            assert 0 < assignment.active_assignment_epochs[task] <= assignment.member_epoch
        for tasks in (*assignment.assigned, *assignment.pending):
            for task in tasks:
                copy = (member.metadata.process_id, task)
                assert copy not in by_process, "a process has a task once"
                by_process.add(copy)
    if before is not None:
        assert group.group_epoch - before.group_epoch in (0, 1)
        assert group.target_assignment_epoch >= before.target_assignment_epoch


def test_the_tombstones_of_a_group_end_it():
    world = World()
    world.join("a1")
    world.leave("a1")
    records = group_tombstones("g")
    assert [record.record_type for record in records] == [20, 17, 23]
    assert reduce(apply, records, world.group) is None
