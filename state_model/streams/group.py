"""The state of a streams group, record by record (consumer-offsets-records §5, streams-group §10).

`apply` follows the log and judges nothing: it accepts every record in every state. Tombstones of unknown groups and
members change nothing, because compaction may have removed what they end.
"""

from collections.abc import Callable
from typing import Any, Final

from state_model.group_records import GroupRecord
from state_model.group_targets import NO_TARGET
from state_model.streams.records import (
    ASSIGNMENT,
    MEMBER,
    MEMBER_TARGET,
    METADATA,
    TARGET,
    TOPOLOGY,
    RecordValue,
    value_of,
)
from state_model.streams.values import LEFT_ASSIGNMENT, StreamsGroup, StreamsMember

NEW_GROUP: Final = StreamsGroup()
NEW_MEMBER: Final = StreamsMember()


def apply(group: StreamsGroup | None, record: GroupRecord) -> StreamsGroup | None:
    """The group after a record of a streams type; None: no such group.

    A record with a value creates the group if there is none. The tombstone of type 17 removes it with everything but
    its offsets. A value of an unknown version changes nothing.
    """
    if record.version is None:
        return None if group is None else without_value(group, record.record_type, record.member_id)
    value = value_of(record)
    return group if value is None else with_value(group, record.record_type, record.member_id, value)


def with_value(group: StreamsGroup | None, record_type: int, member_id: str | None, value: RecordValue) -> StreamsGroup:
    """The group after the value of a record; a new one if there was none."""
    return _SETTERS[record_type](NEW_GROUP if group is None else group, member_id, value)


def without_value(group: StreamsGroup, record_type: int, member_id: str | None) -> StreamsGroup | None:
    """The group after a tombstone; None: it is removed."""
    name = member_id or ""
    match record_type:
        case 17:
            return None
        case 19:
            return group._replace(members=group.members.remove(name))
        case 20:
            return group._replace(target=NO_TARGET)
        case 21:
            return group._replace(targets=group.targets.remove(name))
        case 22 if name in group.members:
            member = group.members[name]._replace(assignment=LEFT_ASSIGNMENT)
            return group._replace(members=group.members.set(name, member))
        case 23:
            return group._replace(topology=None)
    return group


def _set_member(group: StreamsGroup, member_id: str, value: Any) -> StreamsGroup:
    member = group.members.get(member_id, NEW_MEMBER)
    return group._replace(members=group.members.set(member_id, StreamsMember(value, member.assignment)))


def _set_assignment(group: StreamsGroup, member_id: str, value: Any) -> StreamsGroup:
    member = group.members.get(member_id, NEW_MEMBER)
    return group._replace(members=group.members.set(member_id, StreamsMember(member.metadata, value)))


_SETTERS: Final[dict[int, Callable[[StreamsGroup, Any, Any], StreamsGroup]]] = {
    METADATA: lambda group, _, value: group._replace(metadata=value),
    MEMBER: _set_member,
    TARGET: lambda group, _, value: group._replace(target=value),
    MEMBER_TARGET: lambda group, member_id, value: group._replace(targets=group.targets.set(member_id, value)),
    ASSIGNMENT: _set_assignment,
    TOPOLOGY: lambda group, _, value: group._replace(topology=value),
}
