"""The records of one streams group as its rules see them: a record, and what stands before it.

Compaction may have removed any record that a later one of the same key replaces, but where a record is there, the next
one of its key is there, too (audit.group_steps). So what was seen of a key is in force up to the next record of the
key. What is missing proves something only in a life of the group that is whole: no record since its beginning is gone.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from state_model.audit.streams.bounds import Bounds, no_bounds
from state_model.streams.records import ASSIGNMENT, MEMBER_TARGET, METADATA, TOPOLOGY
from state_model.streams.values import MemberState, TaskId, Tasks, TasksByType

NEW_EPOCH: Final = 1
"""Group epoch and assignment epoch of a group before its first records of types 17 and 20."""
REMEMBERED: Final = 2
"""Earlier records of a group that rules on the order of records look at."""
OMITTED: Final = {"assignmentTimestamp": 0, "validatedTopologyEpoch": -1}
"""What fields mean that a record leaves out."""
PENDING: Final = "PendingRevocation"
LISTS: Final = tuple(f"{kind}Tasks" for kind in ("active", "standby", "warmup"))
"""The lists of tasks of types 21 and 22; type 22 has each with PENDING, too."""


class StreamsRecord(NamedTuple):
    """A record of a streams group. `value`: as Kafka prints it; None for a tombstone."""

    record_type: int
    member_id: str | None
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


class Assigned(NamedTuple):
    """A member's current assignment, and its process when it was written (None: unknown)."""

    record: StreamsRecord
    assigned: TasksByType
    pending: TasksByType
    process_id: str | None

    @property
    def epoch(self) -> int:
        """The member epoch."""
        return self.record.number("memberEpoch")

    @property
    def active(self) -> Tasks:
        """Active tasks, those to be revoked, too."""
        return self.assigned.active | self.pending.active

    @property
    def copies(self) -> Iterator[TaskId]:
        """The tasks of all types, as often as they are there, those to be revoked, too."""
        for tasks in (*self.assigned, *self.pending):
            yield from tasks


class Target(NamedTuple):
    """A member's target assignment."""

    record: StreamsRecord
    tasks: TasksByType


@dataclass(slots=True)
class Life:
    """A streams group up to a record: what was seen since its last end.

    Attributes:
        is_whole: all records since the group's beginning are there.
        records: how many there are.
        overdue_from_ms: since when members wait for a new target assignment; None: they don't.
    """

    is_whole: bool
    records: int = 0
    metadata: StreamsRecord | None = None
    target: StreamsRecord | None = None
    topology: StreamsRecord | None = None
    members: dict[str, StreamsRecord] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    assignments: dict[str, Assigned] = field(default_factory=dict)
    overdue_from_ms: int | None = None

    @property
    def assignment_epoch(self) -> int | None:
        """The assignment epoch; None: unknown."""
        if self.target is not None:
            return self.target.number("assignmentEpoch")
        return NEW_EPOCH if self.is_whole else None

    def process_of(self, member_id: str) -> str | None:
        """The process of a member; None: unknown, or it has none."""
        member = self.members.get(member_id)
        return None if member is None or member.value is None else str(member.value["processId"]) or None

    def subtopologies(self) -> dict[str, Mapping[str, Any]] | None:
        """The subtopologies by id; None: unknown."""
        if self.topology is None or self.topology.value is None:
            return None
        return {entry["subtopologyId"]: entry for entry in self.topology.value["subtopologies"]}

    def apply(self, record: StreamsRecord) -> None:
        """Applies the next record, which doesn't end the group."""
        self.records += 1
        value = record if record.value is not None else None
        name = record.member_id or ""
        match record.record_type:
            case 17:
                self.metadata = value
            case 20:
                self.target = value
            case 23:
                self.topology = value
            case 19:
                _put(self.members, name, value)
            case 21:
                tasks = None if record.value is None else Target(record, tasks_by_type(record.value))
                _put(self.targets, name, tasks)
            case 22:
                assigned = None if record.value is None else assigned_of(record, self.process_of(name))
                _put(self.assignments, name, assigned)
        self._follow_target(record.timestamp_ms)

    def _follow_target(self, now_ms: int) -> None:
        assigned, metadata = self.assignment_epoch, self.metadata
        if metadata is None or assigned is None or not self.members or metadata.number("epoch") <= assigned:
            self.overdue_from_ms = None
        elif self.overdue_from_ms is None:
            self.overdue_from_ms = now_ms


class History:
    """A streams group over its lives."""

    def __init__(self, complete_from: int = 0, bounds: Bounds = no_bounds) -> None:
        """`complete_from`: the log offset from which on no record of the log is missing; 0: all are there."""
        self.bounds = bounds
        self._complete_from = complete_from
        self._before: deque[StreamsRecord] = deque(maxlen=REMEMBERED)
        self.life = Life(is_whole=complete_from == 0)

    def apply(self, record: StreamsRecord) -> None:
        """Applies the next record of the log. The tombstone of the topology follows the end of a group."""
        is_there = record.log_offset >= self._complete_from
        if record.ends(METADATA):
            self.life = Life(is_whole=is_there)
        elif not (record.ends(TOPOLOGY) and not self.life.records):
            self.life.apply(record)
        if is_there:
            self._before.appendleft(record)

    @property
    def last(self) -> StreamsRecord | None:
        """The record before; None: unknown, or there is none."""
        return self._before[0] if self._before else None

    @property
    def last_but_one(self) -> StreamsRecord | None:
        """The record before the last one."""
        return self._before[1] if len(self._before) > 1 else None


def _put(content: dict[str, Any], name: str, value: object) -> None:
    if value is None:
        content.pop(name, None)
    else:
        content[name] = value


def tasks_by_type(value: Mapping[str, Any], suffix: str = "") -> TasksByType:
    """The tasks of a value; `suffix`: of the names of its lists."""
    return TasksByType(*(_tasks(value[f"{kind}Tasks{suffix}"]) for kind in ("active", "standby", "warmup")))


def _tasks(entries: Iterable[Mapping[str, Any]]) -> Tasks:
    return frozenset(
        TaskId(entry["subtopologyId"], partition) for entry in entries for partition in entry["partitions"]
    )


def assigned_of(record: StreamsRecord, process_id: str | None) -> Assigned:
    """The assignment of a record of type 22."""
    value = record.value or {}
    return Assigned(record, tasks_by_type(value), tasks_by_type(value, PENDING), process_id)


def task_lists(record: StreamsRecord) -> Iterator[list[Mapping[str, Any]]]:
    """The lists of tasks of a record of type 21 or 22, as they are written."""
    if record.value is None or record.record_type not in (MEMBER_TARGET, ASSIGNMENT):
        return
    for name in LISTS:
        yield record.value[name]
        if record.record_type == ASSIGNMENT:
            yield record.value[name + PENDING]


def must_revoke(assigned: Assigned) -> bool:
    """Whether a member must revoke tasks first."""
    return assigned.record.number("state") == MemberState.UNREVOKED_TASKS
