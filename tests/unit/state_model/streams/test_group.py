from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.group_records import GroupRecord
from state_model.group_targets import TargetMetadata
from state_model.streams.group import apply
from state_model.streams.records import record_of
from state_model.streams.values import (
    LEFT_ASSIGNMENT,
    GroupMetadata,
    GroupState,
    MemberAssignment,
    MemberMetadata,
    MemberState,
    StreamsGroup,
    StreamsMember,
    Subtopology,
    TaskId,
    TasksByType,
    Topology,
)

TASKS = TasksByType(active=frozenset({TaskId("0", 1)}))
CLIENT = MemberMetadata(None, None, "c", "/h", 300_000, 0, "p")
TOPOLOGY = Topology(0, (Subtopology("0", ("t",)),))


def member(name="m", client=CLIENT):
    return record_of(19, "g", client, name)


def target(name="m", tasks=TASKS):
    return record_of(21, "g", tasks, name)


def assignment(name="m", epoch=2, state=MemberState.STABLE):
    return record_of(22, "g", MemberAssignment(state, epoch, 0, TASKS, {TaskId("0", 1): epoch}), name)


def epoch(number, validated=0):
    return record_of(17, "g", GroupMetadata(number, 7, validated))


def target_epoch(number):
    return record_of(20, "g", TargetMetadata(number, 99))


def after(*records, group=None):
    return reduce(apply, records, group)


STARTED = (member(), record_of(23, "g", TOPOLOGY), epoch(2), target(), target_epoch(2), assignment())
LEAVING = (record_of(22, "g", None, "m"), record_of(21, "g", None, "m"), record_of(19, "g", None, "m"), epoch(3))


def test_a_group_has_what_its_records_say():
    group = after(*STARTED)
    assert group == StreamsGroup(
        metadata=GroupMetadata(2, 7, 0),
        target=TargetMetadata(2, 99),
        topology=TOPOLOGY,
        targets={"m": TASKS},
        members={"m": StreamsMember(CLIENT, MemberAssignment(MemberState.STABLE, 2, 0, TASKS, {TaskId("0", 1): 2}))},
    )
    assert (group.group_epoch, group.target_assignment_epoch, group.validated_topology_epoch) == (2, 2, 0)


def test_a_new_group_begins_at_epoch_one_without_records_of_its_epochs():
    group = after(member())
    assert (group.group_epoch, group.target_assignment_epoch, group.validated_topology_epoch) == (1, 1, 0)
    assert group.members["m"] == StreamsMember(CLIENT, None)


def test_states_are_those_of_the_first_condition_that_holds():
    states = []
    group = None
    for record in (*STARTED, *LEAVING):
        group = apply(group, record)
        states.append(group.state)
    assert states == [
        GroupState.NOT_READY,  # no topology
        GroupState.RECONCILING,  # group and target epoch 1
        GroupState.ASSIGNING,
        GroupState.ASSIGNING,
        GroupState.RECONCILING,
        GroupState.STABLE,
        GroupState.RECONCILING,  # the tombstone of the assignment
        GroupState.RECONCILING,
        GroupState.EMPTY,
        GroupState.EMPTY,
    ]
    assert after(*STARTED, epoch(3, validated=-1)).state is GroupState.NOT_READY
    unreleased = assignment(state=MemberState.UNRELEASED_TASKS)
    assert after(*STARTED, unreleased).state is GroupState.RECONCILING


def test_a_member_that_left_is_gone_and_the_topology_stays():
    group = after(*STARTED, *LEAVING)
    assert (dict(group.members), dict(group.targets), group.topology) == ({}, {}, TOPOLOGY)


def test_the_tombstone_of_an_assignment_leaves_the_member():
    group = after(*STARTED, LEAVING[0])
    assert group.members["m"] == StreamsMember(CLIENT, LEFT_ASSIGNMENT)


def test_the_tombstone_of_the_group_removes_it_and_later_ones_are_ignored():
    assert after(*STARTED, record_of(20, "g", None)).target_assignment_epoch == -1
    assert after(*STARTED, record_of(20, "g", None), record_of(17, "g", None), record_of(23, "g", None)) is None


@pytest.mark.parametrize("record_type", [17, 19, 20, 21, 22, 23])
def test_tombstones_of_what_is_unknown_change_nothing(record_type):
    member_id = "other" if record_type in (19, 21, 22) else None
    assert apply(None, record_of(record_type, "g", None, member_id)) is None
    if member_id:
        group = after(*STARTED)
        assert apply(group, record_of(record_type, "g", None, member_id)) == group


def test_an_assignment_of_an_unknown_member_creates_it():
    assert after(assignment("other")).members["other"].metadata is None


def test_a_value_of_an_unknown_version_changes_nothing():
    record = GroupRecord(record_type=17, name="", key={"group_id": "g"}, version=1, undecoded=b"x")
    assert apply(None, record) is None
    group = after(*STARTED)
    assert apply(group, record) is group


RECORDS = st.sampled_from(
    [
        *STARTED,
        *LEAVING,
        *(member(name) for name in "ab"),
        *(assignment(name, 3, state) for name in "ab" for state in (1, 2, 3, 99)),
        *(record_of(kind, "g", None) for kind in (17, 20, 23)),
        *(record_of(kind, "g", None, name) for kind in (19, 21, 22) for name in "ab"),
    ]
)


@given(st.lists(RECORDS), st.lists(RECORDS))
def test_any_records_in_any_order_give_a_state_and_leave_the_one_before_as_it_was(first, second):
    group = after(*first)
    text = repr(group)
    final_group = after(*second, group=group)
    assert repr(group) == text
    assert final_group == after(*first, *second)
    assert final_group is None or final_group.state in GroupState
