"""Records of streams groups as numbers for the kernel: groups, members and values by their places."""

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from measures import streams_kernels as kernels
from measures import task_columns as tasks
from measures.json_columns import columns_of
from measures.streams_arrays import Records, Values
from measures.streams_histories import standby_replicas
from state_model.group_records import from_formatter_json
from state_model.group_schemas import RECORD_TYPES
from state_model.streams import records as streams
from state_model.streams.values import NO_EPOCH, MemberMetadata

Ints = npt.NDArray[np.int64]
MEMBER_TYPES = (streams.MEMBER, streams.MEMBER_TARGET, streams.ASSIGNMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRows:
    """GROUP_RECORD rows with numbers for their groups (by name) and members, and the values of each type."""

    table: pa.Table
    group_names: pa.Array
    member_names: pa.Array
    records: Records
    texts: dict[int, pa.ChunkedArray]


def numbered(records: pa.Table) -> NumberedRows:
    """The rows with their numbers. Groups are numbered by name, members in the order in which they occur."""
    table = records.combine_chunks()
    group_names = pc.unique(table.column("group_id")).sort()
    groups = pc.index_in(table.column("group_id"), group_names).to_numpy().astype(np.int64)
    members, member_names = _members(groups, table.column("member_id"), len(group_names))
    partitions = table.column("partition").to_numpy().astype(np.int64)
    places = np.unique(groups << 32 | partitions, return_inverse=True)[1]
    types = table.column("record_type").to_numpy()
    is_tombstone = table.column("is_tombstone").to_numpy()
    has_value = table.column("value_json").is_valid().to_numpy()
    values = np.full(len(types), kernels.NONE, np.int64)
    texts = {}
    for number in streams.STREAMS_TYPES:
        mine = (types == number) & has_value & ~is_tombstone
        values[mine] = np.arange(mine.sum())
        texts[number] = table.column("value_json").filter(pa.array(mine))
    kinds = np.searchsorted(np.array(streams.STREAMS_TYPES), types).astype(np.int64)
    return NumberedRows(
        table=table,
        group_names=group_names,
        member_names=member_names,
        texts=texts,
        records=Records(
            kinds=kinds,
            groups=groups,
            members=np.where(np.isin(types, MEMBER_TYPES), members, kernels.NONE),
            places=places.astype(np.int64),
            values=values,
            is_tombstone=is_tombstone,
            log_offsets=table.column("log_offset").to_numpy().astype(np.int64),
            timestamps_ms=table.column("timestamp_ms").to_numpy().astype(np.int64),
        ),
    )


def _members(groups: Ints, names: pa.ChunkedArray, group_count: int) -> tuple[Ints, pa.Array]:
    """The number of each record's (group, member), and the member id of each number."""
    coded = names.fill_null("").combine_chunks().dictionary_encode()
    pairs = pa.array(coded.indices.to_numpy().astype(np.int64) * max(1, group_count) + groups).dictionary_encode()
    texts = coded.dictionary.take(pa.array(pairs.dictionary.to_numpy() // max(1, group_count)))
    return pairs.indices.to_numpy().astype(np.int64), texts


class ReadValues:
    """The values of the records: `values` for the kernel, and what the rows of the histories have of them."""

    def __init__(self, rows: NumberedRows) -> None:
        metadata = [(v.epoch, v.metadata_hash, v.validated_topology_epoch, _standby(v)) for v in _values(rows, 17)]
        targets = [(v.assignment_epoch, v.assignment_timestamp_ms) for v in _values(rows, 20)]
        self.members: list[MemberMetadata] = _values(rows, streams.MEMBER)
        of_targets, assignments = (
            columns_of(rows.texts[number], RECORD_TYPES[number].values[0])
            for number in (streams.MEMBER_TARGET, streams.ASSIGNMENT)
        )
        self.epochs, previous, self.states = (
            _ints(assignments.column(name)) for name in ("memberEpoch", "previousMemberEpoch", "state")
        )
        self.previous_epochs = previous
        self.names = tasks.names_of_subtopologies([of_targets, assignments])
        self.targets = tasks.task_lists(of_targets, self.names)
        self.assignments = tasks.task_lists(assignments, self.names, self.epochs)
        metadata_columns, target_columns = _columns(metadata, 4), _columns(targets, 2)
        group_of = [rows.records.groups[_positions(rows, kind)] for kind in (kernels.ASSIGNMENT, kernels.TARGET)]
        self.all_epoch_codes = _epoch_codes(
            len(rows.group_names), (group_of[0], self.epochs), (group_of[1], target_columns[0])
        )
        self.values = Values(
            epochs=metadata_columns[0],
            hashes=metadata_columns[1],
            validated=metadata_columns[2],
            standby=metadata_columns[3],
            member_codes=_codes(value._replace(instance_id=None) for value in self.members),
            task_codes=_codes((value.process_id, value.client_id) for value in self.members),
            target_epochs=target_columns[0],
            target_timestamps_ms=target_columns[1],
            target_codes=self.all_epoch_codes[1],
            targets_at=self.targets.at,
            targets=self.targets.numbers,
            states=self.states,
            member_epochs=self.epochs,
            previous_epochs=previous,
            member_epoch_codes=self.all_epoch_codes[0],
            tasks_at=self.assignments.at,
            tasks=self.assignments.numbers,
            task_epochs=self.assignments.epochs,
            topology_epochs=_columns([(value.epoch,) for value in _values(rows, streams.TOPOLOGY)], 1)[0],
        )


def _standby(value: Any) -> int:
    number = standby_replicas(dict(value.last_assignment_configs or ()))
    return kernels.NONE if number is None else number


def _values(rows: NumberedRows, number: int) -> list[Any]:
    """The values of a type as the reference has them."""
    return [
        streams.tree_value(number, from_formatter_json(number, 0, json.loads(text)))
        for text in rows.texts[number].to_pylist()
    ]


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.ascontiguousarray(column.to_numpy(), np.int64).copy()


def _columns(entries: Sequence[tuple[int, ...]], count: int) -> list[Ints]:
    """Columns of numbers from rows."""
    return [np.array([entry[place] for entry in entries], np.int64) for place in range(count)]


def _codes(values: Iterable[Hashable]) -> Ints:
    """Equal numbers for equal values."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def _positions(rows: NumberedRows, kind: int) -> Ints:
    """The records with the values of a type, in order."""
    return np.flatnonzero((rows.records.kinds == kind) & (rows.records.values >= 0))


def _epoch_codes(group_count: int, *pairs: tuple[Ints, Ints]) -> list[Ints]:
    """Numbers of (group, epoch) pairs, then for each group those of a new target and of no epoch."""
    groups = np.arange(group_count)
    every = [*pairs, (groups, np.full(group_count, 1)), (groups, np.full(group_count, NO_EPOCH))]
    keys = np.concatenate([group << 32 | (epoch & 0xFFFFFFFF) for group, epoch in every])
    codes = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return [part.copy() for part in np.split(codes, np.cumsum([len(group) for group, _ in every])[:-1])]
