from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.consumer.group import apply
from state_model.consumer.group_values import (
    ConsumerGroup,
    ConsumerMember,
    GroupMetadata,
    MemberMetadata,
    PartitionMetadata,
    ResolvedExpression,
)
from state_model.consumer.reconciliation import MemberAssignment, MemberState, Partition
from state_model.consumer.records import record_of
from state_model.group_records import GroupRecord
from state_model.group_targets import TargetMetadata

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
FIRST = Partition(TOPIC, 1)
CLIENT = MemberMetadata(None, None, "c", "/h", frozenset("t"), "", 300_000, None)
STATIC = CLIENT._replace(instance_id="i")
HAS_FIRST = MemberAssignment(MemberState.STABLE, 2, 0, {FIRST: 2})


def member(name="m", client=CLIENT):
    return record_of(5, "g", client, name)


def tombstone(number, name=None):
    return record_of(number, "g", None, name)


def after(*records, group=None):
    return reduce(apply, records, group)


STARTED = (
    member(),
    record_of(3, "g", GroupMetadata(2, 7)),
    record_of(7, "g", frozenset({FIRST}), "m"),
    record_of(6, "g", TargetMetadata(2, 99)),
    record_of(8, "g", HAS_FIRST, "m"),
)
LEAVING = (tombstone(8, "m"), tombstone(7, "m"), tombstone(5, "m"), record_of(3, "g", GroupMetadata(3)))


def test_a_group_has_what_its_records_say():
    group = after(*STARTED, record_of(16, "g", ResolvedExpression(frozenset("u"), 4, 5), "u.*"))
    assert group == ConsumerGroup(
        metadata=GroupMetadata(2, 7),
        target=TargetMetadata(2, 99),
        targets={"m": {FIRST}},
        members={"m": ConsumerMember(CLIENT, HAS_FIRST)},
        resolved={"u.*": ResolvedExpression(frozenset("u"), 4, 5)},
    )
    assert (group.group_epoch, group.target_assignment_epoch, group.topic_names) == (2, 2, {"t", "u"})


def test_states_are_those_of_the_first_condition_that_holds():
    states, group = [], None
    for record in (*STARTED, *LEAVING):
        group = apply(group, record)
        states.append(group.state.value)
    assert states == [
        *("Reconciling", "Assigning", "Assigning", "Reconciling", "Stable"),
        *("Reconciling", "Reconciling", "Empty", "Empty"),
    ]


@pytest.mark.parametrize("number", [3, 4, 5, 6, 7, 8, 16])
def test_a_tombstone_of_an_unknown_group_or_member_changes_nothing(number):
    name = "x" if number in (5, 7, 8, 16) else None
    assert after(tombstone(number, name)) is None
    if name is not None:
        assert after(*STARTED, tombstone(number, name)) == after(*STARTED)


def test_the_tombstone_of_the_metadata_ends_the_group_and_that_of_the_target_its_epoch():
    group = after(*STARTED, *LEAVING, tombstone(6))
    assert (group.target_assignment_epoch, group.targets, group.members) == (-1, {}, {})
    assert apply(group, tombstone(3)) is None


def test_an_instance_id_names_the_member_with_the_newest_record_until_a_member_of_it_ends():
    group = after(member("m", STATIC), member("n", STATIC))
    assert group.static_members == {"i": "n"}
    assert apply(group, record_of(8, "g", HAS_FIRST, "m")).static_members == {"i": "m"}
    assert after(tombstone(5, "m"), group=group).static_members == {}


def test_an_instance_id_that_a_member_had_before_still_names_it():
    assert after(member("m", STATIC), member("m")).static_members == {"i": "m"}


def test_a_record_of_partition_metadata_is_there_until_its_tombstone():
    group = after(record_of(4, "g", PartitionMetadata()))
    assert (group, apply(group, tombstone(4))) == (ConsumerGroup(has_partition_metadata=True), ConsumerGroup())


@pytest.mark.parametrize(("epoch", "epochs", "expected"), [(5, (), 5), (-2, None, 0), (5, (3,), 3), (5, (1, 2), 5)])
def test_a_partition_without_an_assignment_epoch_has_that_of_the_member(epoch, epochs, expected):
    topic = {"topic_id": TOPIC, "partitions": (1,), "assignment_epochs": epochs}
    tree = {"member_epoch": epoch, "previous_member_epoch": 1, "state": 0, "assigned_partitions": (topic,)}
    tree["partitions_pending_revocation"] = ()
    group = apply(None, GroupRecord(record_type=8, name="", key={"member_id": "m"}, version=0, value=tree))
    assert group.members["m"].assignment.assigned == {FIRST: expected}


def test_a_value_of_an_unknown_version_changes_nothing():
    record = GroupRecord(record_type=3, name="", key={"group_id": "g"}, version=9, undecoded=b"")
    assert after(record) is None


NAMED = {"a": ("t", ""), "b": ("tu", ""), "c": ("", "u.*"), "d": ("t", "u.*"), "e": ("", "")}


@pytest.mark.parametrize(
    ("members", "expected"),
    [("aa", True), ("ab", False), ("cc", True), ("cd", False), ("dd", False), ("ac", False), ("ae", False), ("", True)],
)
def test_subscriptions_are_homogeneous_by_names_alone_or_by_one_regular_expression_alone(members, expected):
    records = [
        member(
            f"{kind}{number}", CLIENT._replace(subscribed_topic_names=frozenset(names), subscribed_topic_regex=regex)
        )
        for number, kind in enumerate(members)
        for names, regex in [NAMED[kind]]
    ]
    assert (after(*records) or ConsumerGroup()).is_homogeneous is expected


names = st.sampled_from("mn")
records = st.one_of(
    st.builds(member, names, st.sampled_from([CLIENT, STATIC])),
    st.builds(lambda epoch: record_of(3, "g", GroupMetadata(epoch)), st.integers(1, 9)),
    st.builds(lambda name, state: record_of(8, "g", HAS_FIRST._replace(state=state), name), names, st.integers(0, 9)),
    st.builds(tombstone, st.sampled_from([5, 7, 8]), names),
    st.builds(tombstone, st.sampled_from([3, 4, 6])),
)


@given(st.lists(records))
def test_any_records_can_be_replayed(history):
    group = None
    for record in history:
        group = apply(group, record)
        assert group is None or group.state.value
