"""A streams group as kafka-streams-groups.sh --describe printed it at a moment: members, state; and its tasks.

The log of the group coordinator does not name the coordinator. `describe_streams_offsets` has the offsets.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from sharelens.groups.moment import StreamsMoment
from sharelens.groups.schemas import (
    ACTIVE,
    CONSUMER_MEMBER_VALUES,
    GROUP_VALUES,
    MARKS,
    MEMBER_VALUES,
    OWNED,
    PENDING_REVOCATION,
)
from sharelens.groups.streams_histories import streams_group_values, streams_member_values
from sharelens.groups.streams_values import of_types
from sharelens.output import Answer, Column, Row, name_cell, number_text
from sharelens.output.group_words import not_ready_reason
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.questions.groups.describe_answer import (
    CLUSTER_AND_GROUP,
    LAST_CHANGE,
    Rows,
    closed_answer,
    cluster_and_group,
    last_change,
)
from sharelens.tables.port import Tables
from state_model.columnar.schemas import column
from state_model.streams.values import NO_TASKS_BY_TYPE, GroupState, StreamsGroup, Subtopology, TasksByType

AWAITED = "AWAITED"
"""The status of a task in a member's target assignment that is not yet in its current assignment."""
SHARE_COLUMNS = ("assigned_partitions", "target_partitions", "subscribed_topics")
CONSUMER_COLUMNS = tuple(column.name for column in CONSUMER_MEMBER_VALUES)
STATE_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        *GROUP_VALUES,
        column("subtopology_count", pa.int32(), "number of subtopologies; null = no topology"),
        *LAST_CHANGE,
        *MARKS,
    ]
)
MEMBER_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        column("target_assignment_epoch", pa.int32(), "epoch of the target assignment"),
        column("member_id", pa.string(), "member"),
        *(column for column in MEMBER_VALUES if column.name not in (*SHARE_COLUMNS, *CONSUMER_COLUMNS)),
        *MARKS,
    ]
)
TASK_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        column("subtopology_id", pa.string(), "subtopology of the task"),
        column("partition", pa.int32(), "partition of the task"),
        column("task_type", pa.string(), "ACTIVE, STANDBY or WARMUP"),
        column("status", pa.string(), f"{OWNED}, {PENDING_REVOCATION} or {AWAITED} (in the target alone)"),
        column("member_id", pa.string(), "member that has the task, or is to have it"),
        column("client_id", pa.string(), "client id of the member; null = no record of its metadata"),
        column("process_id", pa.string(), "process of the member; null = no record of its metadata"),
        column("assignment_epoch", pa.int32(), "epoch in which the member got the active task; null = unknown"),
        column("source_topics", pa.list_(pa.string()), "topics that the subtopology reads"),
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
    return answer_of(evidence, moment, [row], STATE_LAYOUT, none="no streams group")


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
    return answer_of(evidence, moment, rows, MEMBER_LAYOUT, none=none)


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
    return answer_of(evidence, moment, rows, TASK_LAYOUT, none=none)


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


def answer_of(evidence: Tables, moment: StreamsMoment, rows: Rows, layout: Layout, *, none: str) -> Answer:
    """The answer of these rows, closed by the group's state and the evidence."""
    group = group_of(moment)
    state = f"streams group: {moment.group.state}, group epoch {group.group_epoch}"
    line = f"{state}, {counted(len(group.members), 'member')}"
    if group.state is GroupState.NOT_READY:
        epoch = None if group.topology is None else group.topology.epoch
        line += f" ({not_ready_reason(epoch, group.validated_topology_epoch)})"
    table = pa.Table.from_pylist(rows, schema=layout.schema)
    return closed_answer(evidence, moment, table, layout, state=line, none=none)


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


STATE_LAYOUT = Layout(
    schema=STATE_ROW,
    fields="group_id state group_epoch assignment_epoch member_count topology_epoch validated_topology_epoch "
    "subtopology_count last_change_ms log_partition log_offset completeness",
    headings={"assignment_epoch": "TARGET-ASSIGNMENT-EPOCH", "subtopology_count": "#SUBTOPOLOGIES"},
    important="GROUP STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS LAST-CHANGE COMPLETENESS "
    "VALIDATED-TOPOLOGY-EPOCH",
)
MEMBER_LAYOUT = Layout(
    schema=MEMBER_ROW,
    fields="group_id target_assignment_epoch topology_epoch member_id member_epoch member_state process_id "
    "client_id client_host assigned_tasks completeness",
    cells=(Column(heading="ASSIGNMENTS", cell=_assignments_cell, fields=("assigned_tasks", "target_tasks")),),
    important="GROUP MEMBER CLIENT-ID ASSIGNMENTS PROCESS MEMBER-EPOCH MEMBER-STATE COMPLETENESS HOST",
)
TASK_LAYOUT = Layout(
    schema=TASK_ROW,
    fields="group_id subtopology_id partition task_type status member_id client_id process_id assignment_epoch "
    "completeness",
    headings={"task_type": "TYPE"},
    important="GROUP SUBTOPOLOGY PARTITION TYPE STATUS CLIENT-ID MEMBER PROCESS ASSIGNMENT-EPOCH COMPLETENESS",
)
