"""A streams group as its rules see it: members with their processes and tasks, and the topology."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, TypeAlias

from state_model.audit.model_groups import history
from state_model.audit.model_groups.bounds import Bounds, no_bounds
from state_model.audit.model_groups.history import Kind, ModelRecord
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, TARGET, TOPOLOGY
from state_model.streams.values import NO_TASKS_BY_TYPE, MemberState, TaskId, Tasks, TasksByType

PENDING: Final = "PendingRevocation"
LISTS: Final = tuple(f"{kind}Tasks" for kind in ("active", "standby", "warmup"))
"""The lists of tasks of types 21 and 22; type 22 has each with PENDING, too."""
KIND: Final = Kind(
    metadata=METADATA,
    member=MEMBER,
    target=TARGET,
    member_target=MEMBER_TARGET,
    assignment=ASSIGNMENT,
    settled=(MemberState.STABLE, MemberState.UNRELEASED_TASKS),
    unrevoked=MemberState.UNREVOKED_TASKS,
    empty=NO_TASKS_BY_TYPE,
    settings="streams",
    new_epoch=1,
)
Assigned: TypeAlias = history.Assigned[TasksByType]
Target: TypeAlias = history.Target[TasksByType]


class Life(history.Life[TasksByType]):
    """A streams group up to a record."""

    KIND: ClassVar[Kind] = KIND

    def __init__(self, *, is_whole: bool) -> None:
        super().__init__(is_whole=is_whole)
        self.topology: ModelRecord | None = None

    def process_of(self, member_id: str) -> str | None:
        """The process of a member; None: unknown, or it has none."""
        member = self.members.get(member_id)
        return None if member is None or member.value is None else str(member.value["processId"]) or None

    def subtopologies(self) -> dict[str, Mapping[str, Any]] | None:
        """The subtopologies by id; None: unknown."""
        if self.topology is None or self.topology.value is None:
            return None
        return {entry["subtopologyId"]: entry for entry in self.topology.value["subtopologies"]}

    def read_target(self, value: Mapping[str, Any]) -> TasksByType:
        """The tasks of a target assignment."""
        return tasks_by_type(value)

    def read_assignment(self, record: ModelRecord) -> Assigned:
        """The current assignment in a record of type 22, with the member's process."""
        value = record.value or {}
        process_id = self.process_of(record.name or "")
        return Assigned(record, tasks_by_type(value), tasks_by_type(value, PENDING), process_id)

    def apply_other(self, record: ModelRecord) -> None:
        """Applies a topology."""
        self.topology = None if record.is_tombstone else record

    def is_of_ended(self, record: ModelRecord) -> bool:
        """The tombstone of the topology follows the end of a group."""
        return record.ends(TOPOLOGY)


class History(history.History[Life]):
    """A streams group over its lives."""

    def __init__(self, complete_from: int = 0, bounds: Bounds = no_bounds) -> None:
        """`complete_from`: the log offset from which on no record of the log is missing; 0: all are there."""
        super().__init__(Life, complete_from, bounds)


def tasks_by_type(value: Mapping[str, Any], suffix: str = "") -> TasksByType:
    """The tasks of a value; `suffix`: of the names of its lists."""
    return TasksByType(*(_tasks(value[f"{kind}Tasks{suffix}"]) for kind in ("active", "standby", "warmup")))


def _tasks(entries: Iterable[Mapping[str, Any]]) -> Tasks:
    return frozenset(
        TaskId(entry["subtopologyId"], partition) for entry in entries for partition in entry["partitions"]
    )


def active_tasks(assigned: Assigned) -> Tasks:
    """A member's active tasks, those to be revoked, too."""
    return assigned.assigned.active | assigned.pending.active


def copies(assigned: Assigned) -> Iterator[TaskId]:
    """A member's tasks of all types, as often as they are there, those to be revoked, too."""
    for tasks in (*assigned.assigned, *assigned.pending):
        yield from tasks


def task_lists(record: ModelRecord) -> Iterator[list[Mapping[str, Any]]]:
    """The lists of tasks of a record of type 21 or 22, as they are written."""
    if record.value is None or record.record_type not in (MEMBER_TARGET, ASSIGNMENT):
        return
    for name in LISTS:
        yield record.value[name]
        if record.record_type == ASSIGNMENT:
            yield record.value[name + PENDING]
