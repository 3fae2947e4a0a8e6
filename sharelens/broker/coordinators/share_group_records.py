"""The records of share groups, types 10 to 15, as a coordinator writes them (consumer-offsets-records §3)."""

from collections.abc import Mapping

from sharelens.broker.coordinators.share_group import Assignment, ShareGroup, ShareMember, StatePartitions
from state_model.group_records import GroupRecord, group_record
from state_model.schema import Value

STABLE = 0
"""The state of a share group's member in type 14; there is no other."""


def member_subscription(group_id: str, member: ShareMember) -> GroupRecord:
    """Type 10, the topic names sorted."""
    value = {
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": tuple(sorted(member.subscribed_topic_names)),
    }
    return group_record(10, group_id, value, member.member_id)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Type 11."""
    return group_record(11, group_id, {"epoch": epoch, "metadata_hash": metadata_hash})


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Type 12."""
    return group_record(12, group_id, {"assignment_epoch": epoch, "assignment_timestamp": timestamp_ms})


def target_of_member(group_id: str, member_id: str, target: Assignment) -> GroupRecord:
    """Type 13."""
    return group_record(13, group_id, {"topic_partitions": _topic_partitions(target)}, member_id)


def current_assignment(group_id: str, member: ShareMember) -> GroupRecord:
    """Type 14."""
    value: dict[str, Value] = {
        "member_epoch": member.epoch,
        "previous_member_epoch": member.previous_epoch,
        "state": STABLE,
        "assigned_partitions": _topic_partitions(member.assigned),
    }
    return group_record(14, group_id, value, member.member_id)


def state_partitions(
    group_id: str, *, initializing: StatePartitions, initialized: StatePartitions, deleting: Mapping[str, str]
) -> GroupRecord:
    """Type 15; topics without a partition are left out."""
    value = {
        "initializing_topics": _named_partitions(initializing),
        "initialized_topics": _named_partitions(initialized),
        "deleting_topics": tuple(
            {"topic_id": topic_id, "topic_name": name} for topic_id, name in sorted(deleting.items())
        ),
    }
    return group_record(15, group_id, value)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """The end of a member: 14, 13, 10."""
    return [group_record(number, group_id, None, member_id) for number in (14, 13, 10)]


def group_tombstones(group: ShareGroup) -> list[GroupRecord]:
    """The end of a group: 14 and 13 of each member, 12, 10 of each member, 15, 11."""
    group_id = group.group_id
    members = list(group.members)
    return [
        *(group_record(14, group_id, None, member_id) for member_id in members),
        *(group_record(13, group_id, None, member_id) for member_id in group.targets),
        group_record(12, group_id, None),
        *(group_record(10, group_id, None, member_id) for member_id in members),
        group_record(15, group_id, None),
        group_record(11, group_id, None),
    ]


def _topic_partitions(assignment: Assignment) -> tuple[Value, ...]:
    return tuple(
        {"topic_id": topic_id, "partitions": tuple(partitions)} for topic_id, partitions in sorted(assignment.items())
    )


def _named_partitions(topics: StatePartitions) -> tuple[Value, ...]:
    return tuple(
        {"topic_id": topic_id, "topic_name": named.name, "partitions": tuple(sorted(named.partitions))}
        for topic_id, named in sorted(topics.items())
        if named.partitions
    )
