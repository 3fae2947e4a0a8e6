"""Histories of streams groups: groups, members and tasks, each value with its validity."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sharelens.groups import schemas
from sharelens.groups.intervals import Intervals, RecordsSeen, Row
from sharelens.groups.replay import GroupChange
from sharelens.groups.streams_replay import StreamsReplay, state_of
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET
from state_model.streams.values import (
    NO_TASKS_BY_TYPE,
    MemberMetadata,
    MemberState,
    StreamsGroup,
    StreamsMember,
    TaskId,
    Tasks,
    TasksByType,
)

STANDBY_REPLICAS = "num.standby.replicas"
"""The only assignment configuration of 4.3 (streams-group §6)."""


@dataclass(slots=True)
class StreamsGroupHistories:
    """The rows of a streams group after the records so far."""

    replay: StreamsReplay = field(default_factory=StreamsReplay)
    records_seen: RecordsSeen = field(default_factory=RecordsSeen)
    groups: Intervals = field(default_factory=Intervals)
    members: Intervals = field(default_factory=Intervals)
    tasks: Intervals = field(default_factory=Intervals)
    tasks_of_members: dict[str, Mapping[tuple[str, str, str, TaskId], Row]] = field(default_factory=dict)

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.records_seen.take(change)
        before = self.replay.group
        self.replay.apply(change)
        if not self.replay.is_known:
            return
        group = self.replay.group
        self.groups.update(change, None, streams_group_values(group))
        if group is None:
            self.members.replace_all(change, {})
            self.tasks.replace_all(change, {})
            self.tasks_of_members.clear()
        elif change.record_type in (MEMBER, MEMBER_TARGET, ASSIGNMENT):
            self._update_member(change, group, before)

    def _update_member(self, change: GroupChange, group: StreamsGroup, before: StreamsGroup | None) -> None:
        name = str(change.member_id)
        member = group.members.get(name)
        target = group.targets.get(name, NO_TASKS_BY_TYPE)
        values = None if member is None else streams_member_values(name, member, target)
        self.members.update(change, name, values)
        if before is not None and before.members.get(name) == member:
            return
        tasks = {} if member is None else dict(_task_rows(name, member))
        for about in self.tasks_of_members.get(name, {}).keys() - tasks.keys():
            self.tasks.update(change, about, None)
        for about, row in tasks.items():
            self.tasks.update(change, about, row)
        self.tasks_of_members[name] = tasks


def streams_group_values(group: StreamsGroup | None) -> Row:
    """The columns GROUP_VALUES of a streams group; None: it is deleted."""
    if group is None:
        return {
            **dict.fromkeys((column.name for column in schemas.GROUP_VALUES), None),
            "group_type": schemas.STREAMS,
            "state": schemas.DEAD,
            "member_count": 0,
        }
    metadata, target = group.metadata, group.target
    return {
        "group_type": schemas.STREAMS,
        "state": state_of(group),
        "group_epoch": metadata.epoch,
        "metadata_hash": metadata.metadata_hash,
        "assignment_epoch": target.assignment_epoch,
        "assignment_timestamp_ms": target.assignment_timestamp_ms or None,
        "member_count": len(group.members),
        "topology_epoch": None if group.topology is None else group.topology.epoch,
        "validated_topology_epoch": metadata.validated_topology_epoch,
        "num_standby_replicas": standby_replicas(dict(metadata.last_assignment_configs or ())),
    }


def standby_replicas(configs: Mapping[str, str]) -> int | None:
    """The number of standby replicas in assignment configurations; None: they have no number that Kafka writes."""
    text = configs.get(STANDBY_REPLICAS, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def streams_member_values(member_id: str, member: StreamsMember, target: TasksByType) -> Row:
    """The columns member_id and MEMBER_VALUES of a member of a streams group."""
    metadata, assignment = member
    return {
        "member_id": member_id,
        **(NO_METADATA if metadata is None else member_metadata_values(metadata)),
        "member_epoch": assignment and assignment.member_epoch,
        "previous_member_epoch": assignment and assignment.previous_member_epoch,
        "assigned_partitions": [],
        "target_partitions": [],
        "member_state": None if assignment is None else member_state_name(assignment.state),
        "assigned_tasks": None if assignment is None else tasks_rows(assignment.assigned),
        "pending_tasks": None if assignment is None else tasks_rows(assignment.pending),
        "target_tasks": tasks_rows(target),
    }


def member_metadata_values(metadata: MemberMetadata) -> Row:
    """The columns of MEMBER_VALUES that follow from a member's metadata."""
    endpoint = metadata.user_endpoint
    return {
        "client_id": metadata.client_id,
        "client_host": metadata.client_host,
        "rack_id": metadata.rack_id,
        "process_id": metadata.process_id,
        "topology_epoch": metadata.topology_epoch,
        "rebalance_timeout_ms": metadata.rebalance_timeout_ms,
        "user_endpoint": None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        "client_tags": [{"key": key, "value": value} for key, value in metadata.client_tags],
    }


NO_METADATA = dict.fromkeys(member_metadata_values(MemberMetadata(None, None, "", "", 0, 0, "")))


def member_state_name(state: int) -> str:
    """The name of a member's state; the number where Kafka has no name."""
    return MemberState(state).name if state in MemberState.__members__.values() else str(state)


@lru_cache(256)
def tasks_rows(tasks: TasksByType) -> list[Row]:
    """TASKS value: the callers share it and leave it as it is."""
    return [
        {"task_type": name, "subtopology_id": subtopology_id, "partitions": partitions}
        for name, tasks_of_type in of_types(tasks)
        for subtopology_id, partitions in by_subtopology(tasks_of_type).items()
    ]


def of_types(tasks: TasksByType) -> tuple[tuple[str, Tasks], ...]:
    """The tasks of each type by its name in the tables."""
    return (schemas.ACTIVE, tasks.active), (schemas.STANDBY, tasks.standby), (schemas.WARMUP, tasks.warmup)


def by_subtopology(tasks: Tasks) -> dict[str, list[int]]:
    """Partitions by subtopology, both ascending."""
    partitions: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        partitions.setdefault(subtopology_id, []).append(partition)
    return partitions


def _task_rows(member_id: str, member: StreamsMember) -> Iterator[tuple[tuple[str, str, str, TaskId], Row]]:
    """The columns of TASK_HISTORY of each task of a member, by what identifies the row."""
    metadata, assignment = member
    if assignment is None:
        return
    process_id = metadata and metadata.process_id
    client_id = metadata and metadata.client_id
    for status, tasks in ((schemas.OWNED, assignment.assigned), (schemas.PENDING_REVOCATION, assignment.pending)):
        for task_type, tasks_of_type in of_types(tasks):
            for task in sorted(tasks_of_type):
                is_active = task_type == schemas.ACTIVE
                yield (
                    (member_id, status, task_type, task),
                    {
                        "subtopology_id": task.subtopology_id,
                        "partition": task.partition,
                        "task_type": task_type,
                        "member_id": member_id,
                        "process_id": process_id,
                        "client_id": client_id,
                        "status": status,
                        "assignment_epoch": assignment.active_assignment_epochs.get(task) if is_active else None,
                    },
                )
