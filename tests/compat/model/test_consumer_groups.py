"""Consumer groups replayed from recorded logs are what Kafka described at each checkpoint."""

import json

import pytest

from state_model.consumer.group import apply
from state_model.consumer.group_values import member_assignment, member_metadata
from state_model.consumer.records import CONSUMER_TYPES
from state_model.group_records import GroupRecord, decode_record
from state_model.topics import OFFSETS_TOPIC
from tests.datasets import CONSUMER_SETS, dataset, raw_records

NO_SUCH_GROUP = 69
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def consumer_records(name):
    """Partition, offset and record of each record of a consumer type, in the order of the log."""
    decoded = ((place, decode_record(*raw)) for place, raw in sorted(raw_records(name, OFFSETS_TOPIC).items()))
    return [
        (*place, record)
        for place, record in decoded
        if isinstance(record, GroupRecord) and record.record_type in CONSUMER_TYPES
    ]


def checkpoints(name):
    lines = (dataset(name) / "checkpoints.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def groups_at(records, ends):
    """The groups as the records below the ends leave them, by id."""
    groups = {}
    for partition, offset, record in records:
        if offset < ends[str(partition)]:
            groups[record.group_id] = apply(groups.get(record.group_id), record)
    return {group_id: group for group_id, group in groups.items() if group is not None}


def named(partitions, topics):
    """Name and number of each partition; those of topics that are gone have no name, and Kafka leaves them out."""
    return sorted((topics[part.topic_id], part.partition) for part in partitions if part.topic_id in topics)


def described(group, topics):
    members = {}
    for member_id, member in group.members.items():
        metadata, assignment = member_metadata(member), member_assignment(member)
        members[member_id] = {
            "memberEpoch": assignment.member_epoch,
            "instanceId": metadata.instance_id,
            "rackId": metadata.rack_id,
            "clientId": metadata.client_id,
            "clientHost": metadata.client_host,
            "subscribedTopicNames": sorted(metadata.subscribed_topic_names),
            "subscribedTopicRegex": metadata.subscribed_topic_regex or "",
            # Kafka counts what a member must give up as its own until it has (ConsumerGroupMember).
            "assignment": named([*assignment.assigned, *assignment.pending], topics),
            "targetAssignment": named(group.targets.get(member_id, ()), topics),
            "memberType": CONSUMER_MEMBER if metadata.classic_member_metadata is None else CLASSIC_MEMBER,
        }
    return {
        "groupState": group.state.value,
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.target_assignment_epoch,
        "members": members,
    }


def answered(answer):
    """The broker's answer with members by id and partitions in order."""

    def partitions(assignment):
        topics = assignment["topicPartitions"]
        return sorted((topic["topicName"], number) for topic in topics for number in topic["partitions"])

    members = {
        member.pop("memberId"): member
        | {"subscribedTopicNames": sorted(member["subscribedTopicNames"])}
        | {"subscribedTopicRegex": member["subscribedTopicRegex"] or ""}
        | {name: partitions(member[name]) for name in ("assignment", "targetAssignment")}
        for member in answer["members"]
    }
    return {name: answer[name] for name in ("groupState", "groupEpoch", "assignmentEpoch")} | {"members": members}


@pytest.mark.parametrize("name", CONSUMER_SETS)
def test_the_state_at_every_checkpoint_is_what_kafka_described(name):
    records = consumer_records(name)
    states = set()
    compared = 0
    for checkpoint in checkpoints(name):
        groups = groups_at(records, checkpoint["consumerOffsetsEnd"])
        topics = {topic["id"]: topic_name for topic_name, topic in checkpoint["topics"].items()}
        for group_id, answers in checkpoint["groups"].items():
            answer = answers["describe"]
            if answer["errorCode"] == NO_SUCH_GROUP:
                assert group_id not in groups
                continue
            states.add(answer["groupState"])
            assert described(groups[group_id], topics) == answered(answer), (checkpoint["name"], group_id)
            compared += 1
    assert compared > 30
    assert states >= {"Stable", "Empty"}


def test_the_sets_have_each_state_of_a_group_and_each_kind_of_member():
    entries = [
        answers["describe"]
        for name in CONSUMER_SETS
        for each in checkpoints(name)
        for answers in each["groups"].values()
    ]
    assert {"Empty", "Assigning", "Reconciling", "Stable"} <= {entry["groupState"] for entry in entries}
    members = [member for entry in entries for member in entry["members"]]
    assert {member["memberType"] for member in members} == {CLASSIC_MEMBER, CONSUMER_MEMBER}
    assert any(member["memberEpoch"] == -2 for member in members)
    assert {entry["assignorName"] for entry in entries if entry["members"]} == {"range", "uniform"}
