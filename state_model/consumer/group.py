"""The state of a consumer group, record by record (GroupMetadataManager.replay of Kafka 4.3.1)."""

from typing import Any, Final

from state_model.consumer.group_values import ConsumerGroup, ConsumerMember, member_assignment
from state_model.consumer.reconciliation import NO_EPOCH
from state_model.consumer.records import (
    ASSIGNMENT,
    FORMS,
    MEMBER,
    MEMBER_TARGET,
    METADATA,
    PARTITION_METADATA,
    REGULAR_EXPRESSION,
    TARGET,
    RecordValue,
)
from state_model.group_replay import METADATA_CHANGE, Change, Replay, entry_change, field_change
from state_model.group_targets import NO_TARGET

NEW_GROUP: Final = ConsumerGroup()
NEW_MEMBER: Final = ConsumerMember()


def _with_member(group: ConsumerGroup, member_id: str, **parts: Any) -> ConsumerGroup:
    """The group with parts of a member; its instance id, if it has one, names this member from now on."""
    member = group.members.get(member_id, NEW_MEMBER)._replace(**parts)
    instance_id = None if member.metadata is None else member.metadata.instance_id
    static_members = group.static_members
    if instance_id is not None and static_members.get(instance_id) != member_id:
        static_members = static_members.set(instance_id, member_id)
    return group._replace(members=group.members.set(member_id, member), static_members=static_members)


def _without_member(group: ConsumerGroup, member_id: str) -> ConsumerGroup:
    """The group without a member, and without its instance id, whichever member that names."""
    member = group.members.get(member_id, NEW_MEMBER)
    static_members = group.static_members
    if member.metadata is not None and member.metadata.instance_id is not None:
        static_members = static_members.remove(member.metadata.instance_id)
    return group._replace(members=group.members.remove(member_id), static_members=static_members)


def _without_assignment(group: ConsumerGroup, member_id: str) -> ConsumerGroup:
    if member_id not in group.members:
        return group
    ended = member_assignment(group.members[member_id])._replace(
        member_epoch=NO_EPOCH, previous_member_epoch=NO_EPOCH, assigned={}, pending={}
    )
    return _with_member(group, member_id, assignment=ended)


REPLAY: Final[Replay[ConsumerGroup, RecordValue]] = Replay(
    NEW_GROUP,
    FORMS,
    {
        METADATA: METADATA_CHANGE,
        PARTITION_METADATA: Change(
            lambda group, *_: group._replace(has_partition_metadata=True),
            lambda group, _: group._replace(has_partition_metadata=False),
        ),
        MEMBER: Change(lambda group, member_id, value: _with_member(group, member_id, metadata=value), _without_member),
        TARGET: field_change("target", NO_TARGET),
        MEMBER_TARGET: entry_change("targets"),
        ASSIGNMENT: Change(
            lambda group, member_id, value: _with_member(group, member_id, assignment=value), _without_assignment
        ),
        REGULAR_EXPRESSION: entry_change("resolved"),
    },
    member_types=(ASSIGNMENT, MEMBER_TARGET, MEMBER),
)
apply, with_value, without_value = REPLAY.apply, REPLAY.with_value, REPLAY.without_value
