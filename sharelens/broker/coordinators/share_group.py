"""The state of a share group from its records: replay of types 10 to 15 (consumer-offsets-records §3 and §5).

`apply(group, record) -> group` is pure. A coordinator appends records and applies them as a load does, so its state is
that of a restart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import BrokerError
from state_model.group_records import GroupRecord

FIRST_EPOCH = 1
"""Group epoch of a group that has not recorded one."""
NO_EPOCH = -1

Assignment = Mapping[str, tuple[int, ...]]
"""Partitions, ascending, by topic id."""


class GroupError(BrokerError):
    """Raised when a group refuses a request; `code` is the error code for the client."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPartitions:
    """Partitions of a topic whose name is known, in a list of record 15."""

    name: str
    partitions: frozenset[int]


StatePartitions = Mapping[str, NamedPartitions]
"""Partitions of share state by topic id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember:
    """A member; `assigned` is the assignment of its last answer. A new one has epoch 0."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Assignment = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroup:
    """The state of a share group.

    Attributes:
        targets: of each member the newest target assignment.
        initializing: partitions whose state is being initialized; `initialized`: those with state.
        deleting: names of the topics whose state is being deleted, by topic id.
        initializing_since_ms: when the lists were replaced last; not recorded, so a load sets it to its own time.
    """

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = 0
    assignment_timestamp_ms: int = 0
    members: Mapping[str, ShareMember] = field(default_factory=dict)
    targets: Mapping[str, Assignment] = field(default_factory=dict)
    initializing: StatePartitions = field(default_factory=dict)
    initialized: StatePartitions = field(default_factory=dict)
    deleting: Mapping[str, str] = field(default_factory=dict)
    initializing_since_ms: int = field(default=0, compare=False)

    @property
    def state(self) -> str:
        """The name of the state for clients: Empty or Stable."""
        return "Stable" if self.members else "Empty"

    @property
    def subscribed_topic_names(self) -> frozenset[str]:
        """Topics to which at least one member subscribes."""
        return frozenset(name for member in self.members.values() for name in member.subscribed_topic_names)


def apply(group: ShareGroup | None, record: GroupRecord, now_ms: int) -> ShareGroup | None:
    """The group after one more record of type 10 to 15; None before its first record and after its end.

    Any value creates the group; only the tombstone of type 11 ends it. Tombstones of missing parts change nothing.
    """
    if group is None:
        if record.is_tombstone:
            return None
        group = ShareGroup(group_id=record.group_id)
    if record.record_type == 11 and record.is_tombstone:
        return None
    return _APPLY[record.record_type](group, record, now_ms)


class Draft:
    """A group and the records of one operation on it, applied as they are added but not appended yet."""

    __slots__ = ("_now_ms", "group", "records")

    def __init__(self, group: ShareGroup, now_ms: int) -> None:
        self.group = group
        self.records: list[GroupRecord] = []
        self._now_ms = now_ms

    def add(self, *records: GroupRecord) -> None:
        """Append records; none of them is a tombstone of type 11."""
        for record in records:
            after = apply(self.group, record, self._now_ms)
            assert after is not None
            self.group = after
            self.records.append(record)


def _apply_member(group: ShareGroup, record: GroupRecord, now_ms: int) -> ShareGroup:
    member_id = str(record.member_id)
    if record.value is None:
        return replace(group, members=_without(group.members, member_id))
    value: Any = record.value
    member = replace(
        group.members.get(member_id) or ShareMember(member_id=member_id),
        rack_id=value["rack_id"],
        client_id=value["client_id"],
        client_host=value["client_host"],
        subscribed_topic_names=tuple(value["subscribed_topic_names"]),
    )
    return replace(group, members={**group.members, member_id: member})


def _apply_metadata(group: ShareGroup, record: GroupRecord, now_ms: int) -> ShareGroup:
    value: Any = record.value
    return replace(group, epoch=value["epoch"], metadata_hash=value["metadata_hash"])


def _apply_target_metadata(group: ShareGroup, record: GroupRecord, now_ms: int) -> ShareGroup:
    if record.value is None:
        return replace(group, assignment_epoch=NO_EPOCH, assignment_timestamp_ms=0)
    value: Any = record.value
    timestamp_ms = value.get("assignment_timestamp", 0)
    return replace(group, assignment_epoch=value["assignment_epoch"], assignment_timestamp_ms=timestamp_ms)


def _apply_target(group: ShareGroup, record: GroupRecord, now_ms: int) -> ShareGroup:
    member_id = str(record.member_id)
    if record.value is None:
        return replace(group, targets=_without(group.targets, member_id))
    target = _assignment(record.value["topic_partitions"])
    return replace(group, targets={**group.targets, member_id: target})


def _apply_current(group: ShareGroup, record: GroupRecord, now_ms: int) -> ShareGroup:
    member_id = str(record.member_id)
    member = group.members.get(member_id)
    if record.value is None:
        if member is None:
            return group
        member = replace(member, epoch=NO_EPOCH, previous_epoch=NO_EPOCH, assigned={})
    else:
        value: Any = record.value
        member = replace(
            member or ShareMember(member_id=member_id),
            epoch=value["member_epoch"],
            previous_epoch=value["previous_member_epoch"],
            assigned=_assignment(value["assigned_partitions"]),
        )
    return replace(group, members={**group.members, member_id: member})


def _apply_state_partitions(group: ShareGroup, record: GroupRecord, now_ms: int) -> ShareGroup:
    value: Any = record.value or {"initializing_topics": (), "initialized_topics": (), "deleting_topics": ()}
    return replace(
        group,
        initializing=_state_partitions(value["initializing_topics"]),
        initialized=_state_partitions(value["initialized_topics"]),
        deleting={topic["topic_id"]: topic["topic_name"] for topic in value["deleting_topics"]},
        initializing_since_ms=now_ms,
    )


_APPLY: Mapping[int, Callable[[ShareGroup, GroupRecord, int], ShareGroup]] = {
    10: _apply_member,
    11: _apply_metadata,
    12: _apply_target_metadata,
    13: _apply_target,
    14: _apply_current,
    15: _apply_state_partitions,
}


def _without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}


def _assignment(topics: Any) -> Assignment:
    return {topic["topic_id"]: tuple(sorted(topic["partitions"])) for topic in topics}


def _state_partitions(topics: Any) -> StatePartitions:
    return {
        topic["topic_id"]: NamedPartitions(name=topic["topic_name"], partitions=frozenset(topic["partitions"]))
        for topic in topics
    }
