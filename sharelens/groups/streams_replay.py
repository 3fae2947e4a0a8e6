"""Streams groups replayed from GROUP_RECORD rows, record by record, by `state_model.streams.group`."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from sharelens.groups.replay import GroupChange
from sharelens.groups.schemas import DEAD
from state_model.group_records import from_formatter_json
from state_model.key_map import KeyMap
from state_model.streams.group import with_value, without_value
from state_model.streams.records import METADATA, RecordValue, tree_value
from state_model.streams.values import GroupState, StreamsGroup, StreamsMember, settled_epoch

VALUE_VERSION = 0
"""The only version of values of these types."""


def value_of_change(change: GroupChange) -> RecordValue:
    """The value of a change that has one."""
    assert change.value is not None
    return tree_value(change.record_type, from_formatter_json(change.record_type, VALUE_VERSION, change.value))


@dataclass(slots=True)
class StreamsReplay:
    """A streams group after the records applied so far; `group` None: it does not exist.

    `read`: the value of a record in the form in which the group carries it.
    """

    group: StreamsGroup | None = None
    is_known: bool = False
    """Whether a record said that the group is there, or that it is deleted: tombstones of members alone do not."""
    read: Callable[[GroupChange], RecordValue] = value_of_change

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
        kind = change.record_type
        if change.value_json is not None:
            self.group = with_value(self.group, kind, change.member_id, self.read(change))
        elif change.is_tombstone and self.group is not None:
            self.group = without_value(self.group, kind, change.member_id)
        self.is_known |= self.group is not None or (change.is_tombstone and kind == METADATA)


@dataclass(slots=True)
class SettledMembers:
    """Members in state STABLE by their epoch: counting all of them at each record would take time for each member."""

    counts: Counter[int | None] = field(default_factory=Counter)

    def update(self, before: StreamsMember | None, member: StreamsMember | None) -> None:
        """Counts a member by its new epoch; None: it is not in the group."""
        if before is not None:
            self.counts[settled_epoch(before)] -= 1
        if member is not None:
            self.counts[settled_epoch(member)] += 1

    def state_of(self, group: StreamsGroup) -> GroupState:
        """Kafka's state of the group with the counted members."""
        return group.state_with(self.counts[group.target_assignment_epoch])


@dataclass(frozen=True, slots=True)
class _Unread:
    """The value of a record that was not read yet."""

    change: GroupChange


def _unread(change: GroupChange) -> RecordValue:
    """The record in place of its value, which the group only carries."""
    return cast(RecordValue, _Unread(change))


@dataclass(slots=True)
class LateStreamsReplay:
    """A StreamsReplay for a group that is read once at the end: replaced values are never parsed."""

    _replay: StreamsReplay = field(default_factory=lambda: StreamsReplay(read=_unread))
    _group: StreamsGroup | None = None
    """The group as it was read after the newest record; None: not yet."""

    @property
    def is_known(self) -> bool:
        """As `StreamsReplay.is_known`."""
        return self._replay.is_known

    @property
    def group(self) -> StreamsGroup | None:
        """The group after the records applied so far; None: it does not exist."""
        if self._group is None and self._replay.group is not None:
            self._group = _read(self._replay.group)
        return self._group

    @property
    def is_deleted(self) -> bool:
        """Whether the group's tombstone is the newest that is known of it."""
        return self._replay.is_deleted

    @property
    def state(self) -> str:
        """Kafka's state of the group in the words of the tables."""
        return state_of(self.group)

    def apply(self, change: GroupChange) -> None:
        """Applies the next record of the log; one with an unknown value version changes nothing."""
        self._group = None
        self._replay.apply(change)


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
    return value_of_change(value.change) if isinstance(value, _Unread) else value


def state_of(group: StreamsGroup | None) -> str:
    """Kafka's state of a group in the words of the tables: EMPTY, NOT_READY, …; DEAD without a group."""
    state: GroupState | None = None if group is None else group.state
    return DEAD if state is None else state.name
