"""The records of a streams group as the rules ST-1 to ST-37 see them: a record, and what stands before it.

Independent of the replay: the newest value of each key, and the order of the records. The log must not be compacted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias, TypeVar

from state_model.group_records import GroupRecord
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, TARGET, TOPOLOGY, value_of
from state_model.streams.values import (
    NO_TASKS_BY_TYPE,
    GroupMetadata,
    MemberAssignment,
    MemberMetadata,
    TargetMetadata,
    TaskId,
    TasksByType,
    Topology,
)

Key: TypeAlias = tuple[int, str | None]
"""Record type and member."""
FIRST_ASSIGNMENT_EPOCH: Final = 1
"""The assignment epoch of a group without a record of type 20."""
V = TypeVar("V")


class StreamsRecord(NamedTuple):
    """A record of a streams type with its place in the log."""

    record: GroupRecord
    log_offset: int
    timestamp_ms: int

    @property
    def record_type(self) -> int:
        """The type of the record."""
        return self.record.record_type

    @property
    def member_id(self) -> str | None:
        """The member of the key."""
        return self.record.member_id

    @property
    def is_tombstone(self) -> bool:
        """Whether the record deletes its key."""
        return self.record.is_tombstone

    @property
    def value(self) -> object:
        """The value; None for a tombstone."""
        return value_of(self.record)

    def value_as(self, kind: type[V]) -> V | None:
        """The value if it is of a type of record."""
        value = self.value
        return value if isinstance(value, kind) else None


class StreamsDifference(NamedTuple):
    """What a rule expects and what the record has, in words; the task it is about."""

    expected: str
    observed: str
    task: TaskId | None = None


Outcome: TypeAlias = StreamsDifference | None
"""What a check says of a record; None: it keeps the rule."""


def unless(holds: bool, expected: object, observed: object) -> Outcome:
    """The difference between values, unless the rule holds."""
    return None if holds else StreamsDifference(str(expected), str(observed))


class StreamsNeed(Enum):
    """What a rule needs beside the group's own records."""

    WHOLE_LOG = "records that compaction has not thinned out"
    SETTINGS = "the settings of the group or the brokers"
    TOPICS = "ids, partition counts and racks of the topics"
    HEARTBEATS = "times of heartbeats, which no log has"


@dataclass(slots=True)
class StreamsPast:
    """A group before a record: newest values by key since its last deletion, and the order of what came."""

    newest: dict[Key, object] = field(default_factory=dict)
    written: dict[Key, StreamsRecord] = field(default_factory=dict)
    previous: StreamsRecord | None = None
    topology_records: int = 0
    since_epoch: list[int] = field(default_factory=list)
    """Types of the records since the newest record of type 17."""

    def of(self, record_type: int, kind: type[V], member_id: str | None = None) -> V | None:
        """The newest value of a key; None without one, and behind its tombstone."""
        value = self.newest.get((record_type, member_id))
        return value if isinstance(value, kind) else None

    @property
    def metadata(self) -> GroupMetadata | None:
        """The newest record of type 17."""
        return self.of(METADATA, GroupMetadata)

    @property
    def assignment_epoch(self) -> int:
        """The epoch of the newest record of type 20; 1 without one."""
        target = self.of(TARGET, TargetMetadata)
        return FIRST_ASSIGNMENT_EPOCH if target is None else target.assignment_epoch

    @property
    def topology(self) -> Topology | None:
        """The newest record of type 23."""
        return self.of(TOPOLOGY, Topology)

    def target(self, member_id: str | None) -> TasksByType:
        """The target of a member; no tasks without one."""
        return self.of(MEMBER_TARGET, TasksByType, member_id) or NO_TASKS_BY_TYPE

    def by_member(self, record_type: int, kind: type[V]) -> Iterator[tuple[str, V]]:
        """The newest values of a type, by member."""
        for (number, member_id), value in self.newest.items():
            if number == record_type and member_id is not None and isinstance(value, kind):
                yield member_id, value

    def processes(self) -> Mapping[str, str]:
        """The process of each member."""
        return {name: metadata.process_id for name, metadata in self.by_member(MEMBER, MemberMetadata)}

    def members(self) -> frozenset[str]:
        """The members with a record of type 19."""
        return frozenset(name for name, _ in self.by_member(MEMBER, MemberMetadata))

    def apply(self, record: StreamsRecord) -> None:
        """Applies the next record of the group."""
        key = record.record_type, record.member_id
        if record.is_tombstone and record.record_type == METADATA:
            self.newest.clear()
            self.written.clear()
            self.topology_records = 0
        elif record.is_tombstone:
            self.newest.pop(key, None)
            if record.record_type == MEMBER:  # a member of that name begins a new life
                self.written.pop((ASSIGNMENT, record.member_id), None)
        else:
            self.newest[key] = record.value
            self.written[key] = record
            self.topology_records += record.record_type == TOPOLOGY
        self.since_epoch = [] if record.record_type == METADATA else [*self.since_epoch, record.record_type][-8:]
        self.previous = record


StreamsCheck: TypeAlias = Callable[[StreamsPast, StreamsRecord], Outcome]
"""The form of a rule: the group before a record, and the record."""


def owned(assignment: MemberAssignment) -> tuple[tuple[TaskId, ...], ...]:
    """The tasks that a member has, pending ones too, of each type."""
    pairs = zip(assignment.assigned, assignment.pending, strict=True)
    return tuple(tuple(sorted(assigned | pending)) for assigned, pending in pairs)
