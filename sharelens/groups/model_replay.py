"""Consumer and streams groups replayed from GROUP_RECORD rows, record by record, by the functions of `state_model`."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from sharelens.groups import schemas
from sharelens.groups.replay import GroupChange
from state_model.consumer import group as consumer_group
from state_model.consumer import group_values as consumer_values
from state_model.consumer import records as consumer_records
from state_model.consumer.group_values import ConsumerGroup
from state_model.group_records import from_formatter_json
from state_model.group_replay import Replay
from state_model.key_map import KeyMap
from state_model.streams import group as streams_group
from state_model.streams import records as streams_records
from state_model.streams import values as streams_values
from state_model.streams.values import StreamsGroup, StreamsMember

VALUE_VERSION = 0
"""The only version of values of these types."""


class ModelState(Protocol):
    """The state of a group in the model: an enumeration."""

    @property
    def name(self) -> str: ...


class ModelGroup(Protocol):
    """What groups of the model have in common, whatever their members and targets are."""

    @property
    def targets(self) -> Mapping[str, Any]: ...
    @property
    def members(self) -> Mapping[str, Any]: ...
    @property
    def group_epoch(self) -> int: ...
    @property
    def target_assignment_epoch(self) -> int: ...
    @property
    def state(self) -> ModelState: ...
    def state_with(self, settled_count: int) -> ModelState: ...


G = TypeVar("G", bound=ModelGroup)


class GroupModel(NamedTuple):
    """A kind of groups: its record types and the functions of its model.

    Attributes:
        metadata, member, target, member_target, assignment: the record types with these values.
        replay: the groups of the model by their records.
        settled_epoch: the epoch of a member that has its target assignment, or None.
    """

    types: tuple[int, ...]
    metadata: int
    member: int
    target: int
    member_target: int
    assignment: int
    replay: Replay[Any, Any]
    settled_epoch: Callable[[Any], int | None]

    def value_of(self, change: GroupChange) -> Any:
        """The value of a change that has one."""
        assert change.value is not None
        tree = from_formatter_json(change.record_type, VALUE_VERSION, change.value)
        return self.replay.forms.tree_value(change.record_type, tree)


CONSUMER_MODEL: Final = GroupModel(
    consumer_records.CONSUMER_TYPES,
    consumer_records.METADATA,
    consumer_records.MEMBER,
    consumer_records.TARGET,
    consumer_records.MEMBER_TARGET,
    consumer_records.ASSIGNMENT,
    consumer_group.REPLAY,
    consumer_values.settled_epoch,
)
STREAMS_MODEL: Final = GroupModel(
    streams_records.STREAMS_TYPES,
    streams_records.METADATA,
    streams_records.MEMBER,
    streams_records.TARGET,
    streams_records.MEMBER_TARGET,
    streams_records.ASSIGNMENT,
    streams_group.REPLAY,
    streams_values.settled_epoch,
)


@dataclass(slots=True)
class ModelReplay(Generic[G]):
    """A group after the records applied so far; `group` None: it does not exist.

    `read`: the value of a record in the form in which the group carries it; None: that of the model.
    """

    model: ClassVar[GroupModel]
    group: G | None = None
    is_known: bool = False
    """Whether a record said that the group is there, or that it is deleted: tombstones of members alone do not."""
    read: Callable[[GroupChange], Any] | None = None

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
        kind, name = change.record_type, change.member_id
        if change.value_json is not None:
            value = self.model.value_of(change) if self.read is None else self.read(change)
            self.group = self.model.replay.with_value(self.group, kind, name, value)
        elif change.is_tombstone and self.group is not None:
            self.group = self.model.replay.without_value(self.group, kind, name)
        self.is_known |= self.group is not None or (change.is_tombstone and kind == self.model.metadata)


class ConsumerReplay(ModelReplay[ConsumerGroup]):
    """A consumer group."""

    model = CONSUMER_MODEL


class StreamsReplay(ModelReplay[StreamsGroup]):
    """A streams group."""

    model = STREAMS_MODEL


@dataclass(slots=True)
class SettledMembers:
    """Members in state STABLE by their epoch: counting all of them at each record would take time for each member."""

    settled_epoch: Callable[[Any], int | None]
    counts: Counter[int | None] = field(default_factory=Counter)

    def update(self, before: object | None, member: object | None) -> None:
        """Counts a member by its new epoch; None: it is not in the group."""
        if before is not None:
            self.counts[self.settled_epoch(before)] -= 1
        if member is not None:
            self.counts[self.settled_epoch(member)] += 1

    def state_of(self, group: ModelGroup) -> str:
        """Kafka's state of the group with the counted members, in the words of the tables."""
        return group.state_with(self.counts[group.target_assignment_epoch]).name


@dataclass(frozen=True, slots=True)
class _Unread:
    """The value of a record that was not read yet."""

    change: GroupChange


@dataclass(slots=True)
class LateStreamsReplay:
    """A StreamsReplay for a group that is read once at the end: replaced values are never parsed."""

    _replay: StreamsReplay = field(default_factory=lambda: StreamsReplay(read=_Unread))
    _group: StreamsGroup | None = None
    """The group as it was read after the newest record; None: not yet."""

    @property
    def is_known(self) -> bool:
        """As `ModelReplay.is_known`."""
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
    return STREAMS_MODEL.value_of(value.change) if isinstance(value, _Unread) else value


def state_of(group: ModelGroup | None) -> str:
    """Kafka's state of a group in the words of the tables: EMPTY, NOT_READY, …; DEAD without a group."""
    return schemas.DEAD if group is None else group.state.name
