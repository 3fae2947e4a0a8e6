import pytest
from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.coordinators.share_offsets import PartitionOffset
from sharelens.broker.ports import Record
from state_model.coordinator import WriteRequest
from state_model.group_schemas import GroupKind
from state_model.share_records import SharePartitionKey, StateBatch, Tombstone
from tests.broker_parts.share_group_harness import ShareGroupHarness


@pytest.fixture
def harness():
    """A group that had a member on two topics, and is empty."""
    group_harness = ShareGroupHarness()
    group_harness.cluster.create("alpha", 3)
    group_harness.cluster.create("beta", 2)
    group_harness.settle(topics="alpha beta")
    group_harness.leave()
    return group_harness


def refused(code):
    return pytest.raises(GroupError, check=lambda error: error.code is code)


def key(harness, topic, partition, group="g"):
    topic_id = harness.cluster.by_name(topic).topic_id
    return SharePartitionKey(group_id=group, topic_id=topic_id, partition=partition)


def produce(harness, topic, partition, count):
    harness.cluster.get(topic, partition).append_records([Record(key=None, value=b"v")] * count)


def partition_offsets(described):
    return {(topic.name, each.partition): each for topic in described for each in topic.partitions}


def codes(results):
    return {(topic.name, partition): code for topic in results for partition, code in topic.errors.items()}


def test_a_group_has_start_offsets_and_lags(harness):
    produce(harness, "alpha", 0, 10)
    batch = StateBatch(first_offset=4, last_offset=5, delivery_state=2, delivery_count=1)
    write = WriteRequest(
        state_epoch=2, leader_epoch=0, start_offset=3, delivery_complete_count=2, state_batches=(batch,)
    )
    assert not harness.state.write(key(harness, "alpha", 0), write)
    actual = partition_offsets(harness.offsets.describe("g", None))
    assert actual["alpha", 0] == PartitionOffset(partition=0, start_offset=3, leader_epoch=0, lag=5)
    assert actual["beta", 1] == PartitionOffset(partition=1, start_offset=-1, leader_epoch=0, lag=-1)
    assert len(actual) == 5


def test_only_requested_partitions_are_described_and_unknown_ones_have_no_offset(harness):
    described = harness.offsets.describe("g", {"alpha": [1], "nowhere": [0], "beta": [7]})
    assert [(topic.name, topic.topic_id is None) for topic in described] == [
        ("alpha", False),
        ("nowhere", True),
        ("beta", False),
    ]
    assert {each.start_offset for each in partition_offsets(described).values()} == {-1}


def test_new_offsets_are_initialized_at_the_groups_epoch_without_a_new_one(harness):
    epoch = harness.groups.get("g").epoch
    results = codes(harness.offsets.alter("g", {"alpha": {0: 50, 9: 1}, "nowhere": {0: 1}}))
    assert results == {
        ("alpha", 0): ErrorCode.none,
        ("alpha", 9): ErrorCode.unknown_topic_or_partition,
        ("nowhere", 0): ErrorCode.unknown_topic_or_partition,
    }
    value = harness.state_values()["alpha", 0][-1]
    assert (value.state_epoch, value.start_offset, value.delivery_complete_count) == (epoch, 50, 0)
    assert harness.groups.get("g").epoch == epoch
    assert harness.types()[-2:] == ["15", "15"]
    assert partition_offsets(harness.offsets.describe("g", None))["alpha", 0].start_offset == 50


def test_altering_the_offsets_of_no_group_makes_one(harness):
    assert codes(harness.offsets.alter("new", {"alpha": {1: 7}})) == {("alpha", 1): ErrorCode.none}
    assert harness.types("new") == ["15", "15"]
    assert harness.groups.get("new").state == "Empty"
    assert harness.state_values("new")["alpha", 1][0].state_epoch == 1
    harness.restart()
    assert harness.offsets.describe("new", None)[0].partitions[0].start_offset == 7
    harness.beat(topics="alpha", group="new")
    assert harness.last(11, "new")["epoch"] == 2


def test_altering_nothing_that_exists_makes_no_group(harness):
    harness.offsets.alter("new", {"nowhere": {0: 1}})
    assert harness.groups.get("new") is None


def test_what_the_share_coordinator_refuses_stays_initializing(harness):
    harness.refuse(state=True)
    results = codes(harness.offsets.alter("g", {"alpha": {0: 50}}))
    assert results == {("alpha", 0): ErrorCode.coordinator_not_available}
    assert [each["partitions"] for each in harness.last(15)["initializingTopics"]] == [[0]]


def test_deleted_offsets_are_gone_with_their_state(harness):
    results = codes(harness.offsets.delete_offsets("g", ["beta", "nowhere", "beta"]))
    assert results == {("beta", None): ErrorCode.none, ("nowhere", None): ErrorCode.unknown_topic_or_partition}
    assert all(isinstance(harness.state_values()["beta", each][-1], Tombstone) for each in range(2))
    assert [each["topicName"] for each in harness.last(15)["initializedTopics"]] == ["alpha"]
    assert harness.last(15)["deletingTopics"] == []
    again = codes(harness.offsets.delete_offsets("g", ["beta"]))
    assert again == {("beta", None): ErrorCode.unknown_topic_or_partition}


def test_a_deletion_that_failed_is_finished_by_the_next_one(harness):
    harness.refuse(state=True)
    results = codes(harness.offsets.delete_offsets("g", ["beta"]))
    assert results == {("beta", None): ErrorCode.coordinator_not_available}
    assert [each["topicName"] for each in harness.last(15)["deletingTopics"]] == ["beta"]
    harness.refuse()
    harness.restart()
    assert codes(harness.offsets.delete_offsets("g", ["beta"])) == {("beta", None): ErrorCode.none}
    assert isinstance(harness.state_values()["beta", 1][-1], Tombstone)
    assert harness.last(15)["deletingTopics"] == []


def test_a_deleted_group_leaves_nothing(harness):
    harness.offsets.delete_group("g")
    assert harness.types()[-2:] == ["15", "12X 15X 11X"]
    assert all(isinstance(values[-1], Tombstone) for values in harness.state_values().values())
    assert harness.groups.get("g") is None
    assert harness.log.ids.kind("g") is None
    harness.restart()
    assert len(harness.groups) == 0
    assert harness.beat(topics="alpha").beat.member.epoch == 2


def test_a_group_whose_state_cannot_be_deleted_stays_and_goes_with_the_next_try(harness):
    harness.refuse(state=True)
    with refused(ErrorCode.coordinator_not_available):
        harness.offsets.delete_group("g")
    assert len(harness.last(15)["deletingTopics"]) == 2
    harness.refuse()
    harness.offsets.delete_group("g")
    assert all(isinstance(values[-1], Tombstone) for values in harness.state_values().values())
    assert harness.groups.get("g") is None


def test_groups_with_members_are_left_alone(harness):
    harness.beat(topics="alpha")
    for deed in (
        lambda: harness.offsets.alter("g", {"alpha": {0: 1}}),
        lambda: harness.offsets.delete_offsets("g", ["alpha"]),
        lambda: harness.offsets.delete_group("g"),
    ):
        with refused(ErrorCode.non_empty_group):
            deed()


def test_groups_that_are_not_there_or_of_another_kind_are_not_found(harness):
    harness.log.ids.claim("classic", GroupKind.CLASSIC)
    for group in ("nothing", "classic"):
        for deed in (
            lambda group=group: harness.offsets.describe(group, None),
            lambda group=group: harness.offsets.delete_offsets(group, ["alpha"]),
            lambda group=group: harness.offsets.delete_group(group),
        ):
            with refused(ErrorCode.group_id_not_found):
                deed()
    with refused(ErrorCode.group_id_not_found):
        harness.offsets.alter("classic", {"alpha": {0: 1}})
