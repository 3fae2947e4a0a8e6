"""A streams group as kafka-streams-groups.sh --describe printed it at a moment: members, state; and its tasks.

The log of the group coordinator does not name the coordinator. `describe_streams_offsets` has the offsets.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from sharelens.groups.moment import StreamsMoment
from sharelens.groups.schemas import ACTIVE, GROUP_VALUES, MARKS, MEMBER_VALUES, OWNED, PENDING_REVOCATION
from sharelens.groups.streams_histories import streams_group_values, streams_member_values
from sharelens.groups.streams_values import of_types
from sharelens.output import (
    Answer,
    Column,
    Row,
    by_importance,
    name_cell,
    name_column,
    number_column,
    number_text,
    time_column,
)
from sharelens.output.wording import counted
from sharelens.questions.groups.describe_answer import (
    CLUSTER_AND_GROUP,
    LAST_CHANGE,
    Rows,
    closed_answer,
    cluster_and_group,
    last_change,
)
from sharelens.questions.groups.words import not_ready_reason
from sharelens.questions.state import COMPLETENESS
from sharelens.tables.port import Tables
from state_model.streams.values import NO_TASKS_BY_TYPE, GroupState, StreamsGroup, Subtopology, TasksByType

AWAITED = "AWAITED"
"""The status of a task in a member's target assignment that is not yet in its current assignment."""
SHARE_COLUMNS = ("assigned_partitions", "target_partitions", "subscribed_topics")
STATE_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        *GROUP_VALUES,
        pa.field("subtopology_count", pa.int32()),
        *LAST_CHANGE,
        *MARKS,
    ]
)
MEMBER_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        pa.field("target_assignment_epoch", pa.int32()),
        pa.field("member_id", pa.string()),
        *(column for column in MEMBER_VALUES if column.name not in SHARE_COLUMNS),
        *MARKS,
    ]
)
TASK_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        pa.field("subtopology_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("task_type", pa.string()),
        pa.field("status", pa.string()),
        pa.field("member_id", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("process_id", pa.string()),
        pa.field("assignment_epoch", pa.int32()),
        pa.field("source_topics", pa.list_(pa.string())),
        *MARKS,
    ]
)


def state(evidence: Tables, name: str, moment: StreamsMoment) -> Answer:
    """One row: state, epochs, number of members and of subtopologies."""
    group = group_of(moment)
    row = {
        **cluster_and_group(evidence, name),
        **streams_group_values(group),
        "subtopology_count": None if group.topology is None else len(group.topology.subtopologies),
        **last_change(moment),
        **moment.group_marks,
    }
    return answer_of(evidence, moment, [row], STATE_ROW, STATE_COLUMNS, none="no streams group")


def members(evidence: Tables, name: str, moment: StreamsMoment) -> Answer:
    """A row for each member, with its current and target assignment."""
    group = group_of(moment)
    rows = [
        {
            **cluster_and_group(evidence, name),
            "target_assignment_epoch": group.target_assignment_epoch,
            **streams_member_values(member_id, member, group.targets.get(member_id, NO_TASKS_BY_TYPE)),
            **moment.member_marks(member_id),
        }
        for member_id, member in sorted(group.members.items())
    ]
    none = f"streams group {name_cell(name)} has no active members"
    return answer_of(evidence, moment, rows, MEMBER_ROW, MEMBER_COLUMNS, none=none)


def tasks(evidence: Tables, name: str, moment: StreamsMoment) -> Answer:
    """A row for each task of a member, by task."""
    group = group_of(moment)
    topics = {subtopology.subtopology_id: list(source_topics(subtopology)) for subtopology in subtopologies_of(group)}
    rows = [
        {
            **cluster_and_group(evidence, name),
            **row,
            "source_topics": topics.get(row["subtopology_id"]),
            **moment.member_marks(row["member_id"]),
        }
        for row in _task_rows(group)
    ]
    rows.sort(key=lambda row: (row["subtopology_id"], row["partition"], row["task_type"], row["member_id"]))
    none = f"streams group {name_cell(name)} has no assigned tasks"
    return answer_of(evidence, moment, rows, TASK_ROW, TASK_COLUMNS, none=none)


def _task_rows(group: StreamsGroup) -> Iterator[dict[str, Any]]:
    for member_id in sorted({*group.members, *group.targets}):
        metadata, assignment = group.members.get(member_id, (None, None))
        assigned = NO_TASKS_BY_TYPE if assignment is None else assignment.assigned
        pending = NO_TASKS_BY_TYPE if assignment is None else assignment.pending
        target = group.targets.get(member_id, NO_TASKS_BY_TYPE)
        waiting = TasksByType(
            *(
                tasks_of_type - had - pending_tasks
                for tasks_of_type, had, pending_tasks in zip(target, assigned, pending, strict=True)
            )
        )
        for status, own_tasks in ((OWNED, assigned), (PENDING_REVOCATION, pending), (AWAITED, waiting)):
            for task_type, tasks_of_type in of_types(own_tasks):
                for task in tasks_of_type:
                    epochs = {} if assignment is None else assignment.active_assignment_epochs
                    yield {
                        "subtopology_id": task.subtopology_id,
                        "partition": task.partition,
                        "task_type": task_type,
                        "status": status,
                        "member_id": member_id,
                        "client_id": metadata and metadata.client_id,
                        "process_id": metadata and metadata.process_id,
                        "assignment_epoch": epochs.get(task) if task_type == ACTIVE else None,
                    }


def source_topics(subtopology: Subtopology) -> tuple[str, ...]:
    """The topics that the tasks of a subtopology read: sources and repartition sources."""
    return (*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics))


def group_of(moment: StreamsMoment) -> StreamsGroup:
    """The group, which exists at the moment."""
    assert moment.group.group is not None
    return moment.group.group


def subtopologies_of(group: StreamsGroup) -> tuple[Subtopology, ...]:
    """The subtopologies; none without a topology."""
    return () if group.topology is None else group.topology.subtopologies


def answer_of(
    evidence: Tables, moment: StreamsMoment, rows: Rows, schema: pa.Schema, columns: Sequence[Column], *, none: str
) -> Answer:
    """The answer of these rows, closed by the group's state and the evidence."""
    group = group_of(moment)
    state = f"streams group: {moment.group.state}, group epoch {group.group_epoch}"
    line = f"{state}, {counted(len(group.members), 'member')}"
    if group.state is GroupState.NOT_READY:
        epoch = None if group.topology is None else group.topology.epoch
        line += f" ({not_ready_reason(epoch, group.validated_topology_epoch)})"
    table = pa.Table.from_pylist(rows, schema=schema)
    return closed_answer(evidence, moment, table, columns, state=line, none=none)


def _tasks_text(rows: Any) -> str:
    """`ACTIVE: 0:[1,3]; 1:[1,3]`, as the tool prints tasks of each type."""
    texts: dict[str, list[str]] = {}
    for row in rows or ():
        partitions = ",".join(map(str, row["partitions"]))
        texts.setdefault(row["task_type"], []).append(f"{name_cell(row['subtopology_id'])}:[{partitions}]")
    return "; ".join(f"{task_type}: {'; '.join(subtopology_texts)}" for task_type, subtopology_texts in texts.items())


def _assignments_cell(row: Row) -> str:
    current, target = _tasks_text(row["assigned_tasks"]), _tasks_text(row["target_tasks"])
    prefixed = target.replace("; STANDBY:", "; TARGET-STANDBY:").replace("; WARMUP:", "; TARGET-WARMUP:")
    parts = [current, f"TARGET-{prefixed}" if target else ""]
    return "; ".join(part for part in parts if part) or number_text(None)


STATE_COLUMNS = by_importance(
    (
        name_column("GROUP", "group_id"),
        name_column("STATE", "state"),
        number_column("GROUP-EPOCH", "group_epoch"),
        number_column("TARGET-ASSIGNMENT-EPOCH", "assignment_epoch"),
        number_column("#MEMBERS", "member_count"),
        number_column("TOPOLOGY-EPOCH", "topology_epoch"),
        number_column("VALIDATED-TOPOLOGY-EPOCH", "validated_topology_epoch"),
        number_column("#SUBTOPOLOGIES", "subtopology_count"),
        time_column("LAST-CHANGE", "last_change_ms"),
        number_column("LOG-PARTITION", "log_partition"),
        number_column("LOG-OFFSET", "log_offset"),
        COMPLETENESS,
    ),
    "GROUP STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS LAST-CHANGE COMPLETENESS VALIDATED-TOPOLOGY-EPOCH",
)
MEMBER_COLUMNS = by_importance(
    (
        name_column("GROUP", "group_id"),
        number_column("TARGET-ASSIGNMENT-EPOCH", "target_assignment_epoch"),
        number_column("TOPOLOGY-EPOCH", "topology_epoch"),
        name_column("MEMBER", "member_id"),
        number_column("MEMBER-EPOCH", "member_epoch"),
        name_column("MEMBER-STATE", "member_state"),
        name_column("PROCESS", "process_id"),
        name_column("CLIENT-ID", "client_id"),
        name_column("HOST", "client_host"),
        Column(heading="ASSIGNMENTS", cell=_assignments_cell, fields=("assigned_tasks", "target_tasks")),
        COMPLETENESS,
    ),
    "GROUP MEMBER CLIENT-ID ASSIGNMENTS PROCESS MEMBER-EPOCH MEMBER-STATE COMPLETENESS HOST",
)
TASK_COLUMNS = by_importance(
    (
        name_column("GROUP", "group_id"),
        name_column("SUBTOPOLOGY", "subtopology_id"),
        number_column("PARTITION", "partition"),
        name_column("TYPE", "task_type"),
        name_column("STATUS", "status"),
        name_column("MEMBER", "member_id"),
        name_column("CLIENT-ID", "client_id"),
        name_column("PROCESS", "process_id"),
        number_column("ASSIGNMENT-EPOCH", "assignment_epoch"),
        COMPLETENESS,
    ),
    "GROUP SUBTOPOLOGY PARTITION TYPE STATUS CLIENT-ID MEMBER PROCESS ASSIGNMENT-EPOCH COMPLETENESS",
)
