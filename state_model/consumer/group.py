"""The state of a consumer group, record by record (GroupMetadataManager.replay of Kafka 4.3.1).

`apply` follows the log and judges nothing: it accepts every record in every state. Tombstones of unknown groups and
members change nothing, because compaction may have removed what they end.
"""

from collections.abc import Callable
from typing import Any, Final

from state_model.consumer.group_values import ConsumerGroup, ConsumerMember, member_assignment
from state_model.consumer.reconciliation import NO_EPOCH
from state_model.consumer.records import (
    ASSIGNMENT,
    MEMBER,
    MEMBER_TARGET,
    METADATA,
    PARTITION_METADATA,
    REGULAR_EXPRESSION,
    TARGET,
    RecordValue,
    name_of,
    value_of,
)
from state_model.group_records import GroupRecord
from state_model.group_targets import NO_TARGET

NEW_GROUP: Final = ConsumerGroup()
NEW_MEMBER: Final = ConsumerMember()


def apply(group: ConsumerGroup | None, record: GroupRecord) -> ConsumerGroup | None:
    """The group after a record of a consumer type; None: no such group.

    A record with a value creates the group if there is none. The tombstone of type 3 removes it with everything but
    its offsets. A value of an unknown version changes nothing.
    """
    if record.version is None:
        return None if group is None else without_value(group, record.record_type, name_of(record))
    value = value_of(record)
    return group if value is None else with_value(group, record.record_type, name_of(record), value)


def with_value(group: ConsumerGroup | None, record_type: int, name: str, value: RecordValue) -> ConsumerGroup:
    """The group after the value of a record; a new one if there was none. `name`: as `records.name_of` gives it."""
    return _SETTERS[record_type](NEW_GROUP if group is None else group, name, value)


def without_value(group: ConsumerGroup, record_type: int, name: str) -> ConsumerGroup | None:
    """The group after a tombstone; None: it is removed."""
    match record_type:
        case 3:
            return None
        case 4:
            return group._replace(has_partition_metadata=False)
        case 5 if name in group.members:
            return _without_member(group, name)
        case 6:
            return group._replace(target=NO_TARGET)
        case 7:
            return group._replace(targets=group.targets.remove(name))
        case 8 if name in group.members:
            member = group.members[name]
            ended = member_assignment(member)._replace(
                member_epoch=NO_EPOCH, previous_member_epoch=NO_EPOCH, assigned={}, pending={}
            )
            return _with_member(group, name, member._replace(assignment=ended))
        case 16:
            return group._replace(resolved=group.resolved.remove(name))
    return group


def _with_member(group: ConsumerGroup, member_id: str, member: ConsumerMember) -> ConsumerGroup:
    """The group with a member; its instance id, if it has one, names this member from now on."""
    instance_id = None if member.metadata is None else member.metadata.instance_id
    static_members = group.static_members
    if instance_id is not None and static_members.get(instance_id) != member_id:
        static_members = static_members.set(instance_id, member_id)
    return group._replace(members=group.members.set(member_id, member), static_members=static_members)


def _without_member(group: ConsumerGroup, member_id: str) -> ConsumerGroup:
    """The group without a member, and without its instance id, whichever member that names."""
    metadata = group.members[member_id].metadata
    static_members = group.static_members
    if metadata is not None and metadata.instance_id is not None:
        static_members = static_members.remove(metadata.instance_id)
    return group._replace(members=group.members.remove(member_id), static_members=static_members)


def _set_member(group: ConsumerGroup, member_id: str, value: Any) -> ConsumerGroup:
    member = group.members.get(member_id, NEW_MEMBER)
    return _with_member(group, member_id, member._replace(metadata=value))


def _set_assignment(group: ConsumerGroup, member_id: str, value: Any) -> ConsumerGroup:
    member = group.members.get(member_id, NEW_MEMBER)
    return _with_member(group, member_id, member._replace(assignment=value))


_SETTERS: Final[dict[int, Callable[[ConsumerGroup, Any, Any], ConsumerGroup]]] = {
    METADATA: lambda group, _, value: group._replace(metadata=value),
    PARTITION_METADATA: lambda group, *_: group._replace(has_partition_metadata=True),
    MEMBER: _set_member,
    TARGET: lambda group, _, value: group._replace(target=value),
    MEMBER_TARGET: lambda group, member_id, value: group._replace(targets=group.targets.set(member_id, value)),
    ASSIGNMENT: _set_assignment,
    REGULAR_EXPRESSION: lambda group, regex, value: group._replace(resolved=group.resolved.set(regex, value)),
}
