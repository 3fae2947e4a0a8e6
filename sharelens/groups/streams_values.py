"""The values of records of streams groups: for the kernel, and as columns of the histories."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.groups import kernels, schemas
from sharelens.groups import task_numbers as tasks
from sharelens.groups.arrays import Values
from sharelens.groups.json_parts import PartReader
from sharelens.groups.numbers import NumberedRows, codes, columns
from sharelens.groups.streams_histories import member_metadata_values, member_state_name, standby_replicas
from state_model.group_records import from_formatter_json
from state_model.streams import records as streams
from state_model.streams.values import NO_EPOCH, MemberMetadata

Ints = npt.NDArray[np.int64]
METADATA_SCHEMA = pa.schema(
    [
        schemas.MEMBER_HISTORY.field(name)
        for name in (
            "client_id",
            "client_host",
            "rack_id",
            "process_id",
            "topology_epoch",
            "rebalance_timeout_ms",
            "user_endpoint",
            "client_tags",
        )
    ]
)
"""The columns of the member history that follow from the member's metadata alone."""


class StreamsValues:
    """The values of streams groups (`group_rows.ReadValues`).

    `members`: the values of MEMBER records; `names`: of the subtopologies.
    """

    group_type = schemas.STREAMS
    part_schema = schemas.TASK_HISTORY

    def __init__(self, rows: NumberedRows) -> None:
        metadata = [(v.epoch, v.metadata_hash, v.validated_topology_epoch, _standby(v)) for v in _values(rows, 0)]
        targets = [(v.assignment_epoch, v.assignment_timestamp_ms) for v in _values(rows, kernels.TARGET)]
        self.members: list[MemberMetadata] = _values(rows, kernels.MEMBER)
        reader, texts = PartReader(), rows.table.column("value_json")
        for kind in (kernels.MEMBER_TARGET, kernels.ASSIGNMENT):
            integers = reader.read(texts, rows.rows_of(kind), streams.STREAMS_TYPES[kind])
        epochs, previous, states = integers
        self.names, (self._targets, self._assignments) = reader.lists()
        metadata_columns, target_columns = columns(metadata, 4), columns(targets, 2)
        group_of = [rows.records.groups[rows.rows_of(kind)] for kind in (kernels.ASSIGNMENT, kernels.TARGET)]
        epoch_codes = _epoch_codes(len(rows.group_names), (group_of[0], epochs), (group_of[1], target_columns[0]))
        values = [member_metadata_values(value) for value in self.members]
        self.metadata = pa.Table.from_pylist(values, schema=METADATA_SCHEMA).combine_chunks()
        self.values = Values(
            is_share=False,
            epochs=metadata_columns[0],
            hashes=metadata_columns[1],
            validated=metadata_columns[2],
            standby=metadata_columns[3],
            member_codes=codes(value._replace(instance_id=None) for value in self.members),
            part_codes=codes((value.process_id, value.client_id) for value in self.members),
            target_epochs=target_columns[0],
            target_timestamps_ms=target_columns[1],
            target_codes=epoch_codes[1],
            new_codes=epoch_codes[2],
            no_codes=epoch_codes[3],
            targets_at=self._targets.at,
            targets=self._targets.numbers,
            states=states,
            member_epochs=epochs,
            previous_epochs=previous,
            member_epoch_codes=epoch_codes[0],
            parts_at=self._assignments.at,
            parts=self._assignments.numbers,
            part_marks=self._assignments.epochs,
            topology_epochs=columns([(value.epoch,) for value in _values(rows, kernels.TOPOLOGY)], 1)[0],
        )

    def assigned_columns(self, positions: Ints) -> dict[str, pa.Array]:
        """Columns of the member history from positions of current assignments; NONE, or LEFT by a tombstone."""
        there = positions != kernels.NONE
        at = np.where(positions >= 0, positions, len(self.values.states))
        states, places = np.unique(np.append(self.values.states, kernels.MEMBER_STABLE)[at], return_inverse=True)
        names = pa.array([member_state_name(int(state)) for state in states], pa.string())
        assigned, pending = (
            self._assignments.tasks(self.names, positions, status, there) for status in range(len(tasks.STATUS_NAMES))
        )
        member_states = names.take(pa.array(places, mask=~there))
        return {"member_state": member_states, "assigned_tasks": assigned, "pending_tasks": pending}

    def target_columns(self, positions: Ints) -> dict[str, pa.Array]:
        """Columns of the member history from positions of targets; below 0 there is none."""
        return {"target_tasks": self._targets.tasks(self.names, positions)}

    def part_columns(self, numbers: Ints, epochs: Ints) -> dict[str, pa.Array]:
        """The columns of the task history that follow from a task and its assignment epoch."""
        types = tasks.type_of(numbers)
        return {
            "subtopology_id": self.names.take(pa.array(tasks.name_of(numbers))),
            "partition": pa.array(tasks.partition_of(numbers)),
            "task_type": pa.array(tasks.TYPE_NAMES).take(pa.array(types)),
            "status": pa.array(tasks.STATUS_NAMES).take(pa.array(tasks.status_of(numbers))),
            "assignment_epoch": pa.array(epochs, mask=types != 0),
        }


def _standby(value: Any) -> int:
    number = standby_replicas(dict(value.last_assignment_configs or ()))
    return kernels.NONE if number is None else number


def _values(rows: NumberedRows, kind: int) -> list[Any]:
    """The decoded values of a kind of record, as the reference reads them."""
    number = streams.STREAMS_TYPES[kind]
    return [streams.tree_value(number, from_formatter_json(number, 0, json.loads(text))) for text in rows.texts(kind)]


def _epoch_codes(group_count: int, *pairs: tuple[Ints, Ints]) -> list[Ints]:
    """Numbers of (group, epoch) pairs, then for each group those of a new target and of no epoch."""
    groups = np.arange(group_count)
    every = [*pairs, (groups, np.full(group_count, 1)), (groups, np.full(group_count, NO_EPOCH))]
    keys = np.concatenate([group << 32 | (epoch & 0xFFFFFFFF) for group, epoch in every])
    codes = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return [part.copy() for part in np.split(codes, np.cumsum([len(group) for group, _ in every])[:-1])]
