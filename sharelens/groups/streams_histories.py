"""Histories of streams groups: groups, members and tasks, each value with its validity."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from sharelens.groups import schemas
from sharelens.groups.intervals import Cells, Intervals, Row
from sharelens.groups.model_histories import ModelHistories
from sharelens.groups.model_replay import StreamsReplay, state_of
from sharelens.groups.streams_values import (
    MEMBER_COLUMNS,
    NO_ASSIGNMENT,
    NO_METADATA,
    TASK_TYPES,
    Epochs,
    assignment_cells,
    epochs_of,
    member_cells,
    metadata_cells,
    metadata_of,
    read_value,
    task_cell,
)
from state_model.streams.values import StreamsGroup, StreamsMember, TasksByType

STANDBY_REPLICAS = "num.standby.replicas"
"""The only assignment configuration of 4.3 (streams-group §6)."""
GROUP_COLUMNS = tuple(column.name for column in schemas.GROUP_VALUES)
STATUSES = (schemas.OWNED, schemas.PENDING_REVOCATION)
NO_EPOCHS: Epochs = {}
TASK_COLUMNS = (
    *("task_type", "subtopology_id", "partition", "member_id", "process_id", "client_id"),
    *("status", "assignment_epoch"),
)


@dataclass(slots=True)
class StreamsGroupHistories(ModelHistories):
    """The rows of a streams group after the records so far.

    `task_rows`: the open row of each task by member, status, type and subtopology, and by partition.
    """

    tasks: Intervals
    task_rows: dict[tuple[str, str, int, str], dict[int, int]] = field(default_factory=dict)

    @staticmethod
    def new_replay() -> StreamsReplay:
        """A replay that reads values as `streams_values` has them."""
        return StreamsReplay(read=read_value)

    @staticmethod
    def group_values(group: StreamsGroup | None, state: str) -> Row:
        """The columns GROUP_COLUMNS."""
        return streams_group_values(group, state)

    @staticmethod
    def member_cells(member_id: str, member: StreamsMember, target: object) -> Cells:
        """The columns MEMBER_COLUMNS."""
        return member_cells(member_id, member, target)

    def remove_all(self, record: int) -> None:
        """Ends all rows of members and tasks."""
        ModelHistories.remove_all(self, record)
        for rows in self.task_rows.values():
            for row in rows.values():
                self.tasks.end(row, record, is_removed=True)
        self.task_rows.clear()

    def update_member(self, record: int, name: str, before: StreamsMember | None, member: StreamsMember | None) -> None:
        """Begins and ends the rows of the tasks of a member whose metadata or current assignment changed."""
        ModelHistories.update_member(self, record, name, before, member)
        client = _client(member)
        is_same_client = client == _client(before)
        for status, epochs, epochs_before in zip(STATUSES, epochs_of(member), epochs_of(before), strict=True):
            if is_same_client and epochs == epochs_before:
                continue
            for key in sorted(epochs.keys() | epochs_before.keys()):
                of_key, of_key_before = epochs.get(key, NO_EPOCHS), epochs_before.get(key, NO_EPOCHS)
                if is_same_client and of_key == of_key_before:
                    continue
                changed = of_key.keys() ^ of_key_before.keys()
                # The row of a task that stays ends where its client is another one, or the epoch of an active task.
                if not is_same_client or not key[0]:
                    shared = of_key.keys() & of_key_before.keys()
                    changed |= {
                        number for number in shared if not is_same_client or of_key[number] != of_key_before[number]
                    }
                self._update_rows(record, (name, status, *key), client, of_key, changed)

    def _update_rows(
        self,
        record: int,
        about: tuple[str, str, int, str],
        client: tuple[str | None, str | None],
        epochs: Epochs,
        changed: Set[int],
    ) -> None:
        """Begins and ends the rows of some partitions of a subtopology."""
        name, status, place, subtopology_id = about
        rows = self.task_rows.setdefault(about, {})
        task_type = TASK_TYPES[place]
        for partition in sorted(changed):
            if partition in rows:
                self.tasks.end(rows.pop(partition), record, is_removed=partition not in epochs)
            if partition in epochs:
                values = (task_type, subtopology_id, partition, name, *client, status, epochs[partition])
                rows[partition] = self.tasks.begin(record, values)


def _client(member: StreamsMember | None) -> tuple[str | None, str | None]:
    """The process and the client of a member; None without a record of its metadata."""
    metadata = metadata_of(member)
    return (None, None) if metadata is None else (metadata.process_id, metadata.client_id)


def streams_group_values(group: StreamsGroup | None, state: str | None = None) -> Row:
    """The columns GROUP_VALUES of a streams group; None: it is deleted. `state`: where it is at hand."""
    state = state_of(group) if state is None else state
    if group is None:
        return {**dict.fromkeys(GROUP_COLUMNS), "group_type": schemas.STREAMS, "state": state, "member_count": 0}
    metadata, target = group.metadata, group.target
    return {
        "group_type": schemas.STREAMS,
        "state": state,
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
    cells = (
        member_id,
        task_cell(target),
        *(NO_METADATA if metadata is None else metadata_cells(metadata)),
        *(NO_ASSIGNMENT if assignment is None else assignment_cells(assignment)),
    )
    return dict(zip(MEMBER_COLUMNS, cells, strict=True))
