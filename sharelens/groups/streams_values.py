"""Values of records of streams groups as the histories need them: cells of their columns, and tasks to compare.

Nearly all records of a large log are targets and current assignments with some fifty tasks each. Their JSON becomes
partitions by subtopology, without an object for each task, which would take longer than all the rest of a replay.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from sharelens.groups import schemas
from sharelens.groups.intervals import Cells
from sharelens.groups.model_replay import STREAMS_MODEL
from sharelens.groups.replay import GroupChange
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, RecordValue
from state_model.streams.values import (
    MemberAssignment,
    MemberMetadata,
    MemberState,
    StreamsMember,
    Tasks,
    TasksByType,
)

TASK_TYPES: Final = (schemas.ACTIVE, schemas.STANDBY, schemas.WARMUP)
ASSIGNED_LISTS: Final = ("activeTasks", "standbyTasks", "warmupTasks")
PENDING_LISTS: Final = tuple(f"{name}PendingRevocation" for name in ASSIGNED_LISTS)
TaskCell: TypeAlias = tuple[tuple[str, str, tuple[int, ...]], ...]
"""A TASKS value; structs are tuples in the order of their fields, as Arrow reads them faster than dicts."""
Epochs: TypeAlias = dict[int, int | None]
"""Assignment epochs of tasks by partition; None: the tasks are not active."""
TaskEpochs: TypeAlias = dict[tuple[int, str], Epochs]
"""Tasks by place of their type in TASK_TYPES, and subtopology."""

METADATA_COLUMNS: Final = (
    *("client_id", "client_host", "rack_id", "process_id", "topology_epoch", "rebalance_timeout_ms"),
    *("user_endpoint", "client_tags"),
)
ASSIGNMENT_COLUMNS: Final = (
    *("member_epoch", "previous_member_epoch", "member_state", "assigned_tasks", "pending_tasks"),
    *("assigned_partitions", "target_partitions"),
)
MEMBER_COLUMNS: Final = ("member_id", "target_tasks", *METADATA_COLUMNS, *ASSIGNMENT_COLUMNS)
NO_METADATA: Final[Cells] = (None,) * len(METADATA_COLUMNS)
NO_ASSIGNMENT: Final[Cells] = (None, None, None, None, None, (), ())


class HistoryMetadata(NamedTuple):
    """A member's metadata; `cells`: METADATA_COLUMNS."""

    metadata: MemberMetadata
    cells: Cells


class HistoryAssignment(NamedTuple):
    """A member's current assignment; `cells`: ASSIGNMENT_COLUMNS."""

    state: int
    member_epoch: int
    assigned: TaskEpochs
    pending: TaskEpochs
    cells: Cells


def read_value(change: GroupChange) -> RecordValue:
    """The value of a record: HistoryMetadata, HistoryAssignment, TaskCell of a target; of others as in the model.

    The group carries these in place of the model's values.
    """
    match change.record_type:
        case kind if kind == ASSIGNMENT:
            return cast(RecordValue, _assignment(cast(Mapping[str, Any], change.value)))
        case kind if kind == MEMBER_TARGET:
            return cast(RecordValue, _cell(_epochs(cast(Mapping[str, Any], change.value), ASSIGNED_LISTS, 0)))
        case kind if kind == MEMBER:
            metadata = cast(MemberMetadata, STREAMS_MODEL.value_of(change))
            return cast(RecordValue, HistoryMetadata(metadata, metadata_cells(metadata)))
    return cast(RecordValue, STREAMS_MODEL.value_of(change))


def _assignment(value: Mapping[str, Any]) -> HistoryAssignment:
    state, member_epoch = value["state"], value["memberEpoch"]
    assigned, pending = (_epochs(value, names, member_epoch) for names in (ASSIGNED_LISTS, PENDING_LISTS))
    # Kafka has one epoch for a task in both lists, that of the list which it reads last.
    for key in assigned.keys() & pending.keys():
        assigned[key] |= {
            partition: pending[key][partition] for partition in assigned[key].keys() & pending[key].keys()
        }
    cells = _cell(assigned), _cell(pending)
    names = member_epoch, value["previousMemberEpoch"], member_state_name(state)
    return HistoryAssignment(state, member_epoch, assigned, pending, (*names, *cells, (), ()))


def _epochs(value: Mapping[str, Any], names: tuple[str, ...], member_epoch: int) -> TaskEpochs:
    """The tasks in lists by type; `member_epoch`: of active tasks without one for each partition, as Kafka reads it."""
    tasks: TaskEpochs = {}
    for place, name in enumerate(names):
        for entry in value[name]:
            key, partitions = (place, entry["subtopologyId"]), entry["partitions"]
            epochs: Epochs
            if place:
                epochs = dict.fromkeys(partitions)
            elif len(entry_epochs := entry.get("assignmentEpochs") or ()) == len(partitions):
                epochs = dict(zip(partitions, entry_epochs, strict=True))
            else:
                epochs = dict.fromkeys(partitions, member_epoch)
            tasks[key] = tasks[key] | epochs if key in tasks else epochs
    return tasks


def _cell(tasks: TaskEpochs) -> TaskCell:
    keys = sorted(tasks)
    return tuple([(TASK_TYPES[key[0]], key[1], tuple(sorted(tasks[key]))) for key in keys if tasks[key]])


def metadata_of(member: StreamsMember | None) -> MemberMetadata | None:
    """The metadata of a member with the values that `read_value` gives; None without a record of it."""
    metadata: object = None if member is None else member.metadata
    return metadata.metadata if isinstance(metadata, HistoryMetadata) else None


def epochs_of(member: StreamsMember | None) -> tuple[TaskEpochs, TaskEpochs]:
    """The assigned tasks of such a member and those that it must give up; a tombstone of the assignment leaves none."""
    assignment: object = None if member is None else member.assignment
    return (assignment.assigned, assignment.pending) if isinstance(assignment, HistoryAssignment) else ({}, {})


def member_cells(member_id: str, member: StreamsMember, target: object) -> Cells:
    """MEMBER_COLUMNS of a member with the values that `read_value` gives, or None."""
    metadata, assignment = cast(tuple[HistoryMetadata | None, HistoryAssignment | MemberAssignment | None], member)
    return (
        member_id,
        target,
        *(NO_METADATA if metadata is None else metadata.cells),
        *(NO_ASSIGNMENT if assignment is None else assignment_cells(assignment)),
    )


def assignment_cells(assignment: HistoryAssignment | MemberAssignment) -> Cells:
    """ASSIGNMENT_COLUMNS of a current assignment; the model's form has what a tombstone leaves."""
    if isinstance(assignment, HistoryAssignment):
        return assignment.cells
    state, member_epoch, previous_epoch, assigned, _, pending = assignment
    cells = task_cell(assigned), task_cell(pending)
    return (member_epoch, previous_epoch, member_state_name(state), *cells, (), ())


def metadata_cells(metadata: MemberMetadata) -> Cells:
    """METADATA_COLUMNS of a member."""
    endpoint = metadata.user_endpoint
    return (
        metadata.client_id,
        metadata.client_host,
        metadata.rack_id,
        metadata.process_id,
        metadata.topology_epoch,
        metadata.rebalance_timeout_ms,
        None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        metadata.client_tags,
    )


_STATE_NAMES: Final[Mapping[int, str]] = {state: state.name for state in MemberState}


def member_state_name(state: int) -> str:
    """The name of a member's state; the number where Kafka has no name."""
    return _STATE_NAMES.get(state) or str(state)


def task_cell(tasks: TasksByType) -> TaskCell:
    """The cell of the tasks of a member."""
    return tuple(
        (name, subtopology_id, tuple(partitions))
        for name, tasks_of_type in of_types(tasks)
        for subtopology_id, partitions in by_subtopology(tasks_of_type).items()
    )


def of_types(tasks: TasksByType) -> tuple[tuple[str, Tasks], ...]:
    """The tasks of each type by its name in the tables."""
    return (schemas.ACTIVE, tasks.active), (schemas.STANDBY, tasks.standby), (schemas.WARMUP, tasks.warmup)


def by_subtopology(tasks: Tasks) -> dict[str, list[int]]:
    """Partitions by subtopology, both ascending."""
    partitions: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        partitions.setdefault(subtopology_id, []).append(partition)
    return partitions
