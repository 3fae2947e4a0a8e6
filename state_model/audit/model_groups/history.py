"""The records of one streams or consumer group as its rules see them: a record, and what stands before it.

Compaction may have removed any record that a later one of the same key replaces, but where a record is there, the next
one of its key is there, too (audit.group_steps). So what was seen of a key is in force up to the next record of the
key. What is missing proves something only in a life of the group that is whole: no record since its beginning is gone.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from state_model.audit.model_groups.bounds import Bounds, no_bounds

REMEMBERED: Final = 2
"""Earlier records of a group that rules on the order of records look at."""
OMITTED: Final = {"assignmentTimestamp": 0, "validatedTopologyEpoch": -1}
"""What fields mean that a record leaves out."""
T = TypeVar("T")


class ModelRecord(NamedTuple):
    """A record of a group.

    `name`: the member id or regular expression of its key. `value`: as Kafka prints it; None for a tombstone.
    """

    record_type: int
    name: str | None
    value: Mapping[str, Any] | None
    log_offset: int
    timestamp_ms: int

    @property
    def is_tombstone(self) -> bool:
        """Whether the record ends its key."""
        return self.value is None

    def is_a(self, record_type: int) -> bool:
        """Whether it has a value of this type."""
        return self.record_type == record_type and self.value is not None

    def ends(self, record_type: int) -> bool:
        """Whether it is a tombstone of this type."""
        return self.record_type == record_type and self.value is None

    def number(self, name: str) -> int:
        """A number of the value; -1 for a tombstone."""
        return -1 if self.value is None else int(self.value.get(name, OMITTED.get(name, -1)))


class Kind(NamedTuple):
    """What differs between kinds of groups.

    Attributes:
        metadata, member, target, member_target, assignment: record types.
        settled: the states of a member that is in the epoch of the target assignment.
        unrevoked: the state of a member that must give up something first.
        empty: no tasks or partitions.
        settings: what the names of a group's settings begin with.
        new_epoch: group epoch and assignment epoch of a group before its first records of these types; None: it depends
            on the release.
    """

    metadata: int
    member: int
    target: int
    member_target: int
    assignment: int
    settled: tuple[int, int]
    unrevoked: int
    empty: object
    settings: str
    new_epoch: int | None


class Assigned(NamedTuple, Generic[T]):
    """A member's current assignment: what it has, and what it must give up. `process_id`: None where it has none."""

    record: ModelRecord
    assigned: T
    pending: T
    process_id: str | None = None

    @property
    def epoch(self) -> int:
        """The member epoch."""
        return self.record.number("memberEpoch")


class Target(NamedTuple, Generic[T]):
    """A member's target assignment: tasks or partitions."""

    record: ModelRecord
    tasks: T


class Life(ABC, Generic[T]):
    """A group up to a record: what was seen since its last end.

    Attributes:
        is_whole: all records since the group's beginning are there.
        records: how many there are.
        overdue_from_ms: since when members wait for a new target assignment; None: they don't.
    """

    KIND: ClassVar[Kind]

    def __init__(self, *, is_whole: bool) -> None:
        self.is_whole = is_whole
        self.records = 0
        self.metadata: ModelRecord | None = None
        self.target: ModelRecord | None = None
        self.members: dict[str, ModelRecord] = {}
        self.targets: dict[str, Target[T]] = {}
        self.assignments: dict[str, Assigned[T]] = {}
        self.overdue_from_ms: int | None = None

    @property
    def assignment_epoch(self) -> int | None:
        """The assignment epoch; None: unknown."""
        if self.target is not None:
            return self.target.number("assignmentEpoch")
        return self.KIND.new_epoch if self.is_whole else None

    @property
    def has_members(self) -> bool:
        """Whether a member is there whose heartbeats compute a target."""
        return bool(self.members)

    def apply(self, record: ModelRecord) -> None:
        """Applies the next record, which doesn't end the group."""
        self.records += 1
        value, name, kind = (None if record.value is None else record), record.name or "", self.KIND
        if record.record_type == kind.metadata:
            self.metadata = value
        elif record.record_type == kind.target:
            self.target = value
        elif record.record_type == kind.member:
            put(self.members, name, value)
        elif record.record_type == kind.member_target:
            put(self.targets, name, None if record.value is None else Target(record, self.read_target(record.value)))
        elif record.record_type == kind.assignment:
            put(self.assignments, name, None if record.value is None else self.read_assignment(record))
        else:
            self.apply_other(record)
        self._follow_target(record.timestamp_ms)

    @abstractmethod
    def read_target(self, value: Mapping[str, Any]) -> T:
        """The tasks or partitions of a target assignment."""

    @abstractmethod
    def read_assignment(self, record: ModelRecord) -> Assigned[T]:
        """The current assignment in a record with a value."""

    @abstractmethod
    def apply_other(self, record: ModelRecord) -> None:
        """Applies a record of a type that this kind alone has."""

    def must_revoke_in_time(self, member: ModelRecord) -> bool:
        """Whether a member is fenced that does not revoke within its rebalance timeout."""
        return True

    def is_of_ended(self, record: ModelRecord) -> bool:
        """Whether a record behind the end of a group belongs to that group."""
        return False

    def _follow_target(self, now_ms: int) -> None:
        assigned, metadata = self.assignment_epoch, self.metadata
        if metadata is None or assigned is None or not self.has_members or metadata.number("epoch") <= assigned:
            self.overdue_from_ms = None
        elif self.overdue_from_ms is None:
            self.overdue_from_ms = now_ms


LifeT = TypeVar("LifeT", bound=Life[Any])


class History(Generic[LifeT]):
    """A group over its lives."""

    def __init__(self, life: Callable[..., LifeT], complete_from: int = 0, bounds: Bounds = no_bounds) -> None:
        """`complete_from`: the log offset from which on no record of the log is missing; 0: all are there."""
        self.bounds = bounds
        self._new_life = life
        self.complete_from = complete_from
        self._before: deque[ModelRecord] = deque(maxlen=REMEMBERED)
        self.life: LifeT = life(is_whole=complete_from == 0)

    @property
    def kind(self) -> Kind:
        """The kind of the group."""
        return self.life.KIND

    def setting(self, name: str, from_ms: int, to_ms: int) -> tuple[int, int] | None:
        """The least and the largest number of a setting of this kind of groups between two times; None: unknown."""
        return self.bounds(f"{self.kind.settings}.{name}", from_ms, to_ms)

    def apply(self, record: ModelRecord) -> None:
        """Applies the next record of the log."""
        is_there = record.log_offset >= self.complete_from
        if record.ends(self.kind.metadata):
            self.life = self._new_life(is_whole=is_there)
        elif self.life.records or not self.life.is_of_ended(record):
            self.life.apply(record)
        if is_there:
            self._before.appendleft(record)

    @property
    def last(self) -> ModelRecord | None:
        """The record before; None: unknown, or there is none."""
        return self._before[0] if self._before else None

    @property
    def last_but_one(self) -> ModelRecord | None:
        """The record before the last one."""
        return self._before[1] if len(self._before) > 1 else None


def put(content: dict[str, Any], name: str, value: object) -> None:
    """Sets the value of a name; None removes it."""
    if value is None:
        content.pop(name, None)
    else:
        content[name] = value
