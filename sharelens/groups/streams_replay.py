"""Streams groups replayed from GROUP_RECORD rows, record by record, by `state_model.streams.group`."""

from dataclasses import dataclass
from typing import Any, cast

from sharelens.groups.replay import GroupChange
from sharelens.groups.schemas import DEAD
from state_model.group_records import GroupRecord, from_formatter_json
from state_model.group_schemas import RECORD_TYPES
from state_model.key_map import KeyMap
from state_model.streams.group import apply, with_value, without_value
from state_model.streams.records import METADATA, RecordValue, value_of
from state_model.streams.values import GroupState, StreamsGroup, StreamsMember

VALUE_VERSION = 0
"""The only version of values of these types."""


@dataclass(slots=True)
class StreamsReplay:
    """A streams group after the records applied so far; `group` None: it does not exist."""

    group: StreamsGroup | None = None
    is_known: bool = False
    """Whether a record said that the group is there, or that it is deleted: tombstones of members alone do not."""

    @property
    def is_deleted(self) -> bool:
        """Whether the group's tombstone is the newest that is known of it."""
        return self.is_known and self.group is None

    @property
    def state(self) -> str:
        """Kafka's state of the group in the words of the tables."""
        return state_of(self.group)

    def apply(self, change: GroupChange) -> None:
        """Applies the next record of the log; one with an unknown value version changes nothing."""
        self.group = apply(self.group, record_of_change(change))
        self.is_known |= self.group is not None or (change.is_tombstone and change.record_type == METADATA)


@dataclass(slots=True)
class LateStreamsReplay:
    """A StreamsReplay for a group that is read once at the end: replaced values are never parsed."""

    is_known: bool = False
    _unread: StreamsGroup | None = None
    """The group with records in place of their values, which `apply` only carries."""
    _group: StreamsGroup | None = None
    """The group as it was read after the newest record; None: not yet."""

    @property
    def group(self) -> StreamsGroup | None:
        """The group after the records applied so far; None: it does not exist."""
        if self._group is None and self._unread is not None:
            self._group = _read(self._unread)
        return self._group

    @property
    def is_deleted(self) -> bool:
        """Whether the group's tombstone is the newest that is known of it."""
        return self.is_known and self._unread is None

    @property
    def state(self) -> str:
        """Kafka's state of the group in the words of the tables."""
        return state_of(self.group)

    def apply(self, change: GroupChange) -> None:
        """Applies the next record of the log; one with an unknown value version changes nothing."""
        group, kind = self._unread, change.record_type
        self._group = None
        if change.value_json is not None:
            self._unread = with_value(group, kind, change.member_id, cast(RecordValue, _Unread(change)))
        elif change.is_tombstone and group is not None:
            self._unread = without_value(group, kind, change.member_id)
        self.is_known |= self._unread is not None or (change.is_tombstone and kind == METADATA)


@dataclass(frozen=True, slots=True)
class _Unread:
    """The value of a record that was not read yet."""

    change: GroupChange


def _read(group: StreamsGroup) -> StreamsGroup:
    """The group with all its values."""
    members = group.members.items()
    return StreamsGroup(
        metadata=_value(group.metadata),
        target=_value(group.target),
        topology=_value(group.topology),
        targets=KeyMap((name, _value(target)) for name, target in group.targets.items()),
        members=KeyMap((name, StreamsMember(*map(_value, member))) for name, member in members),
    )


def _value(value: Any) -> Any:
    """A value, read now if it was not read yet."""
    return value_of(record_of_change(value.change)) if isinstance(value, _Unread) else value


def state_of(group: StreamsGroup | None) -> str:
    """Kafka's state of a group in the words of the tables: EMPTY, NOT_READY, …; DEAD without a group."""
    state: GroupState | None = None if group is None else group.state
    return DEAD if state is None else state.name


def record_of_change(change: GroupChange) -> GroupRecord:
    """The record of a change; `value` None with a version: its version is unknown."""
    key = {"group_id": change.group_id}
    if change.member_id is not None:
        key["member_id"] = change.member_id
    value = None
    data = change.value
    if data is not None:
        value = from_formatter_json(change.record_type, VALUE_VERSION, data)
    return GroupRecord(
        record_type=change.record_type,
        name=RECORD_TYPES[change.record_type].name,
        key=key,
        version=None if change.is_tombstone else VALUE_VERSION,
        value=value,
    )
