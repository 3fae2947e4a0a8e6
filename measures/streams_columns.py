"""Histories of many records of streams groups, a column at a time: the rows of `measures.streams_histories`.

Targets and current assignments, nearly all records of such a log, are parsed by Arrow and replayed by a kernel; the few
other values are read as the reference reads them.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from measures import group_schemas as schemas
from measures import streams_kernels as kernels
from measures import task_columns as tasks
from measures.json_columns import columns_of
from measures.streams_histories import member_metadata_values, member_state_name, standby_replicas
from state_model.group_records import from_formatter_json
from state_model.group_schemas import RECORD_TYPES
from state_model.streams import records as streams
from state_model.streams.records import tree_value
from state_model.streams.values import NO_EPOCH, MemberMetadata

Ints = npt.NDArray[np.int64]
STATE_NAMES = ("EMPTY", "NOT_READY", "ASSIGNING", "RECONCILING", "STABLE", "DEAD")
"""In the order of the kernel's numbers."""
BIN_BYTES, SLICE_ROWS = 64 << 20, 1 << 18
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
MEMBER_TYPES = (streams.MEMBER, streams.MEMBER_TARGET, streams.ASSIGNMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """GROUP_RECORD rows with numbers for their groups (by name) and members, and the values of each type."""

    table: pa.Table
    group_names: pa.Array
    member_names: pa.Array
    records: kernels.Records
    texts: dict[int, pa.ChunkedArray]


class StreamsTables(NamedTuple):
    """GROUP_HISTORY, MEMBER_HISTORY and TASK_HISTORY rows of streams groups."""

    groups: pa.Table
    members: pa.Table
    tasks: pa.Table


def many_streams_histories(records: pa.Table) -> StreamsTables:
    """The histories of streams groups in GROUP_RECORD rows of their types; some groups at once, to bound memory."""
    parts = [_histories(some) for some in _bins(records)]
    return StreamsTables(*map(pa.concat_tables, zip(*parts, strict=True)))


def _bins(records: pa.Table) -> Iterator[pa.Table]:
    """The rows of neighbouring groups by name, about BIN_BYTES of JSON together."""
    sizes = pc.fill_null(pc.binary_length(records.column("value_json")), 0)
    groups = pa.table({"group_id": records.column("group_id"), "size": pc.cast(sizes, pa.int64())})
    groups = groups.group_by("group_id").aggregate([("size", "sum")]).sort_by("group_id")
    bins = np.cumsum(groups.column("size_sum").to_numpy()) // BIN_BYTES
    for number in np.unique(bins):
        names = groups.column("group_id").filter(pa.array(bins == number)).combine_chunks()
        yield records.filter(pc.is_in(records.column("group_id"), value_set=names))


def _histories(records: pa.Table) -> StreamsTables:
    rows = _numbered(records)
    read = _Read(rows)
    state, output = _state(rows, read), _output(rows)
    counts = len(rows.member_names), len(rows.group_names)
    task_rows = kernels.replay(
        rows.records,
        read.values,
        state,
        output,
        np.zeros((counts[0], kernels.KINDS), np.bool_),
        np.zeros((counts[1], kernels.KINDS), np.bool_),
        np.full(len(rows.records.places) + 1, np.iinfo(np.int64).min, np.int64),
    )
    of = _Assembly(rows, read, output)
    group_count, member_count = output.counts
    return StreamsTables(
        of.groups(output.group_rows[:group_count], output.group_values[:group_count]),
        of.members(output.member_rows[:member_count]),
        of.tasks(task_rows),
    )


def _numbered(records: pa.Table) -> _Rows:
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
    return _Rows(
        table=table,
        group_names=group_names,
        member_names=member_names,
        texts=texts,
        records=kernels.Records(
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


class _Read:
    """The values of the records: `values` for the kernel, and what the rows of the histories have of them."""

    def __init__(self, rows: _Rows) -> None:
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
        self.values = kernels.Values(
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


def _values(rows: _Rows, number: int) -> list[Any]:
    """The values of a type as the reference has them."""
    return [
        tree_value(number, from_formatter_json(number, 0, json.loads(text))) for text in rows.texts[number].to_pylist()
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


def _positions(rows: _Rows, kind: int) -> Ints:
    """The records with the values of a type, in order."""
    return np.flatnonzero((rows.records.kinds == kind) & (rows.records.values >= 0))


def _epoch_codes(group_count: int, *pairs: tuple[Ints, Ints]) -> list[Ints]:
    """Numbers of (group, epoch) pairs, then for each group those of a new target and of no epoch."""
    groups = np.arange(group_count)
    every = [*pairs, (groups, np.full(group_count, 1)), (groups, np.full(group_count, NO_EPOCH))]
    keys = np.concatenate([group << 32 | (epoch & 0xFFFFFFFF) for group, epoch in every])
    codes = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return [part.copy() for part in np.split(codes, np.cumsum([len(group) for group, _ in every])[:-1])]


def _state(rows: _Rows, read: _Read) -> kernels.State:
    groups, members = len(rows.group_names), len(rows.member_names)
    settled = 1 + max((int(codes.max(initial=0)) for codes in read.all_epoch_codes), default=0)
    return kernels.State(
        exists=np.zeros(groups, np.bool_),
        known=np.zeros(groups, np.bool_),
        group_positions=np.full((groups, kernels.KINDS), kernels.NONE, np.int64),
        member_counts=np.zeros(groups, np.int64),
        open_groups=np.full(groups, kernels.NONE, np.int64),
        first_touched=np.full(groups, kernels.NONE, np.int64),
        settled=np.zeros(settled, np.int64),
        new_codes=read.all_epoch_codes[2],
        no_codes=read.all_epoch_codes[3],
        is_member=np.zeros(members, np.bool_),
        positions=np.full((members, kernels.KINDS), kernels.NONE, np.int64),
        open_members=np.full(members, kernels.NONE, np.int64),
        is_touched=np.zeros(members, np.bool_),
        next_touched=np.full(members, kernels.NONE, np.int64),
        rows_of_tasks=np.full(len(read.assignments.numbers), kernels.NONE, np.int64),
    )


def _output(rows: _Rows) -> kernels.Output:
    count, groups = len(rows.records.kinds), len(rows.group_names)
    return kernels.Output(
        log_times_ms=np.zeros(count, np.int64),
        bounds=np.full(groups, kernels.NONE, np.int64),
        has_undecoded=np.zeros(groups, np.bool_),
        group_rows=np.empty((count, kernels.GROUP_COLUMNS), np.int64),
        group_values=np.empty((count, kernels.GROUP_VALUES), np.int64),
        member_rows=np.empty((count, kernels.MEMBER_COLUMNS), np.int64),
        counts=np.zeros(2, np.int64),
    )


class _Assembly:
    """Rows of the histories from the kernel's rows, by group and begin."""

    def __init__(self, rows: _Rows, read: _Read, output: kernels.Output) -> None:
        self._rows, self._read, self._output = rows, read, output
        metadata = [member_metadata_values(value) for value in read.members]
        self._metadata = pa.Table.from_pylist(metadata, schema=METADATA_SCHEMA).combine_chunks()
        self._assigned, self._pending = (
            _with_empty(read.assignments.rows(read.names, status)) for status in range(len(tasks.STATUSES))
        )
        self._targets = _with_empty(read.targets.rows(read.names, 0))

    def groups(self, rows: Ints, values: Ints) -> pa.Table:
        """GROUP_HISTORY rows."""
        order = self._order(rows)
        now = values[order]
        exists = now[:, kernels.STATE] != kernels.DEAD
        timestamps, standby = now[:, kernels.TARGET_TIMESTAMP], now[:, kernels.STANDBY]
        columns = {
            "group_type": _repeated(schemas.STREAMS, pa.string(), len(now)),
            "state": pa.array(STATE_NAMES).take(pa.array(now[:, kernels.STATE])),
            "group_epoch": _nullable(now[:, kernels.EPOCH], exists),
            "metadata_hash": _nullable(now[:, kernels.HASH], exists),
            "assignment_epoch": _nullable(now[:, kernels.TARGET_EPOCH], exists),
            "assignment_timestamp_ms": _nullable(timestamps, exists & (timestamps != 0)),
            "member_count": pa.array(now[:, kernels.COUNT]),
            "topology_epoch": _nullable(now[:, kernels.TOPOLOGY_EPOCH], now[:, kernels.HAS_TOPOLOGY] == 1),
            "validated_topology_epoch": _nullable(now[:, kernels.VALIDATED], exists),
            "num_standby_replicas": _nullable(standby, exists & (standby >= 0)),
        }
        return _table(columns | self._validity(rows[order]), schemas.GROUP_HISTORY)

    def members(self, rows: Ints) -> pa.Table:
        """MEMBER_HISTORY rows."""
        return self._in_slices(rows, self._members, schemas.MEMBER_HISTORY)

    def tasks(self, rows: Ints) -> pa.Table:
        """TASK_HISTORY rows."""
        return self._in_slices(rows, self._tasks, schemas.TASK_HISTORY)

    def _in_slices(self, rows: Ints, table_of: Callable[[Ints], pa.Table], schema: pa.Schema) -> pa.Table:
        """The table in pieces, each with lists that 32-bit offsets can hold."""
        order = self._order(rows)
        pieces = [table_of(rows[order[at : at + SLICE_ROWS]]) for at in range(0, len(order), SLICE_ROWS)]
        return pa.concat_tables([schema.empty_table(), *pieces])

    def _order(self, rows: Ints) -> Ints:
        return np.argsort(self._rows.records.groups[rows[:, kernels.BEGIN]], kind="stable")

    def _members(self, rows: Ints) -> pa.Table:
        assignments, targets = rows[:, kernels.P_ASSIGNMENT], rows[:, kernels.P_TARGET]
        has_assignment, has_tasks = assignments != kernels.NONE, assignments >= 0
        at = np.where(has_tasks, assignments, len(self._assigned) - 1)
        place = pa.array(at, mask=~has_assignment)
        read = self._read
        # What a tombstone leaves stands behind the values, as the empty list does.
        epochs, previous = (np.append(column, NO_EPOCH)[at] for column in (read.epochs, read.previous_epochs))
        names, codes = np.unique(np.append(read.states, kernels.MEMBER_STABLE), return_inverse=True)
        states = pa.array([member_state_name(int(state)) for state in names], pa.string())
        columns = {
            "member_id": self._rows.member_names.take(pa.array(rows[:, kernels.WHO])),
            **self._of_metadata(rows, METADATA_SCHEMA.names),
            "subscribed_topics": pa.nulls(len(rows), pa.list_(pa.string())),
            "member_epoch": _nullable(epochs, has_assignment),
            "previous_member_epoch": _nullable(previous, has_assignment),
            "assigned_partitions": _repeated([], schemas.TOPIC_PARTITIONS, len(rows)),
            "target_partitions": _repeated([], schemas.TOPIC_PARTITIONS, len(rows)),
            "member_state": states.take(pa.array(codes[at], mask=~has_assignment)),
            "assigned_tasks": self._assigned.take(place),
            "pending_tasks": self._pending.take(place),
            "target_tasks": self._targets.take(pa.array(np.where(targets >= 0, targets, len(self._targets) - 1))),
        }
        return _table(columns | self._validity(rows), schemas.MEMBER_HISTORY)

    def _tasks(self, rows: Ints) -> pa.Table:
        numbers = rows[:, kernels.TASK]
        types = tasks.type_of(numbers)
        columns = {
            "subtopology_id": self._read.names.take(pa.array(tasks.subtopology_of(numbers))),
            "partition": pa.array(tasks.partition_of(numbers)),
            "task_type": pa.array(tasks.TYPE_NAMES).take(pa.array(types)),
            "member_id": self._rows.member_names.take(pa.array(rows[:, kernels.WHO])),
            **self._of_metadata(rows, ["process_id", "client_id"]),
            "status": pa.array(tasks.STATUS_NAMES).take(pa.array(tasks.status_of(numbers))),
            "assignment_epoch": _nullable(rows[:, kernels.TASK_EPOCH], types == 0),
        }
        return _table(columns | self._validity(rows), schemas.TASK_HISTORY)

    def _of_metadata(self, rows: Ints, names: Sequence[str]) -> dict[str, pa.Array]:
        at = rows[:, kernels.P_MEMBER]
        place = pa.array(at, mask=at < 0)
        return {name: self._metadata.column(name).combine_chunks().take(place) for name in names}

    def _validity(self, rows: Ints) -> dict[str, pa.Array]:
        """The columns about begin, end and completeness of rows."""
        records, table, output = self._rows.records, self._rows.table, self._output
        begin, end = rows[:, kernels.BEGIN], rows[:, kernels.END]
        has_end, groups, offsets = end >= 0, records.groups[begin], records.log_offsets[begin]
        uncommitted = table.column("uncommitted").to_numpy()[begin]
        bounds, has_undecoded = output.bounds[groups], output.has_undecoded[groups]
        is_compacted = (bounds < 0) | (offsets < bounds)
        mark = np.select([uncommitted, has_undecoded, is_compacted], [0, 1, 2], 3)
        endings = pa.array([schemas.CHANGED, schemas.REMOVED])
        return {
            "group_id": self._rows.group_names.take(pa.array(groups)),
            "log_partition": table.column("partition").combine_chunks().take(pa.array(begin)),
            "valid_from_log_offset": pa.array(offsets),
            "valid_from_ms": pa.array(output.log_times_ms[begin]),
            "valid_to_log_offset": _nullable(records.log_offsets[end], has_end),
            "valid_to_ms": _nullable(output.log_times_ms[end], has_end),
            "end_reason": endings.take(pa.array(rows[:, kernels.REASON] - 1, mask=~has_end)),
            "completeness": pa.array(["uncommitted", "incomplete", "incomplete", "complete"]).take(pa.array(mark)),
            "completeness_reason": pa.array([schemas.UNCOMMITTED, schemas.QUARANTINED, schemas.COMPACTED, None]).take(
                pa.array(mark)
            ),
        }


def _with_empty(lists: pa.ListArray) -> pa.ListArray:
    """The lists, and an empty one behind them."""
    return pa.concat_arrays([lists, pa.array([[]], lists.type)])


def _repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    return pa.array([value], kind).take(pa.array(np.zeros(count, np.int64)))


def _nullable(numbers: Ints, there: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(numbers, mask=~there)


def _table(columns: dict[str, pa.Array], schema: pa.Schema) -> pa.Table:
    return pa.table({field.name: columns[field.name].cast(field.type) for field in schema}, schema=schema)
