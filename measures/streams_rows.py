"""Rows of the histories of streams groups from what the kernel says of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from measures import group_schemas as schemas
from measures import streams_kernels as kernels
from measures import task_columns as tasks
from measures.streams_arrays import Output
from measures.streams_histories import member_metadata_values, member_state_name
from measures.streams_numbers import NumberedRows, ReadValues
from state_model.streams.values import NO_EPOCH

Ints = npt.NDArray[np.int64]
STATE_NAMES = ("EMPTY", "NOT_READY", "ASSIGNING", "RECONCILING", "STABLE", "DEAD")
"""In the order of the kernel's numbers."""
SLICE_ROWS = 1 << 18
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


class HistoryRows:
    """Rows of the histories from the kernel's rows, by group and begin."""

    def __init__(self, rows: NumberedRows, read: ReadValues, output: Output) -> None:
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
