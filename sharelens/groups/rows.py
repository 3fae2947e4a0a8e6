"""Rows of the histories of groups from the numbers that the kernel gives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.groups import kernels, schemas
from sharelens.groups.arrays import Output, Values
from sharelens.groups.numbers import NumberedRows
from state_model.streams.values import NO_EPOCH

Ints = npt.NDArray[np.int64]
STATE_NAMES = ("EMPTY", "NOT_READY", "ASSIGNING", "RECONCILING", "STABLE", "DEAD")
"""In the order of the kernel's numbers."""
SLICE_ROWS = 1 << 18


class ReadValues(Protocol):
    """The values of the records of share groups or of streams groups.

    `metadata`: the columns of the member history that follow from the values of MEMBER records, one row for each.
    `part_schema`: the history of tasks, or of the initialization of share partitions.
    """

    group_type: str
    part_schema: pa.Schema
    values: Values
    metadata: pa.Table

    def assigned_columns(self, positions: Ints) -> dict[str, pa.Array]:
        """Columns of the member history from positions of current assignments; NONE, or LEFT by a tombstone."""
        ...

    def target_columns(self, positions: Ints) -> dict[str, pa.Array]:
        """Columns of the member history from positions of targets; below 0 there is none."""
        ...

    def part_columns(self, numbers: Ints, marks: Ints) -> dict[str, pa.Array]:
        """Columns of `part_schema` that follow from a part and its mark."""
        ...


class HistoryRows:
    """Rows of the histories from the kernel's rows, by group and begin."""

    def __init__(self, rows: NumberedRows, read: ReadValues, output: Output) -> None:
        self._rows, self._read, self._output = rows, read, output

    def groups(self, rows: Ints, values: Ints) -> pa.Table:
        """GROUP_HISTORY rows."""
        order = self._order(rows)
        now = values[order]
        exists = now[:, kernels.STATE] != kernels.DEAD
        timestamps, standby = now[:, kernels.TARGET_TIMESTAMP], now[:, kernels.STANDBY]
        has_metadata, has_target, is_validated = (
            exists & (now[:, column] != kernels.NO_NUMBER)
            for column in (kernels.EPOCH, kernels.TARGET_EPOCH, kernels.VALIDATED)
        )
        columns = {
            "group_type": pa.repeat(pa.scalar(self._read.group_type), len(now)),
            "state": pa.array(STATE_NAMES).take(pa.array(now[:, kernels.STATE])),
            "group_epoch": _nullable(now[:, kernels.EPOCH], has_metadata),
            "metadata_hash": _nullable(now[:, kernels.HASH], has_metadata),
            "assignment_epoch": _nullable(now[:, kernels.TARGET_EPOCH], has_target),
            "assignment_timestamp_ms": _nullable(timestamps, exists & (timestamps != 0)),
            "member_count": pa.array(now[:, kernels.COUNT]),
            "topology_epoch": _nullable(now[:, kernels.TOPOLOGY_EPOCH], now[:, kernels.HAS_TOPOLOGY] == 1),
            "validated_topology_epoch": _nullable(now[:, kernels.VALIDATED], is_validated),
            "num_standby_replicas": _nullable(standby, exists & (standby >= 0)),
        }
        return _table(columns | self._validity(rows[order]), schemas.GROUP_HISTORY)

    def members(self, rows: Ints) -> pa.Table:
        """MEMBER_HISTORY rows."""
        return self._in_slices(rows, self._members, schemas.MEMBER_HISTORY)

    def parts(self, rows: Ints) -> pa.Table:
        """TASK_HISTORY rows, or SHARE_INITIALIZATION_HISTORY rows."""
        return self._in_slices(rows, self._parts, self._read.part_schema)

    def _in_slices(self, rows: Ints, table_of: Callable[[Ints], pa.Table], schema: pa.Schema) -> pa.Table:
        """The table in pieces, each with lists that 32-bit offsets can hold."""
        order = self._order(rows)
        pieces = [table_of(rows[order[at : at + SLICE_ROWS]]) for at in range(0, len(order), SLICE_ROWS)]
        return pa.concat_tables([schema.empty_table(), *pieces])

    def _order(self, rows: Ints) -> Ints:
        return np.argsort(self._rows.records.groups[rows[:, kernels.BEGIN]], kind="stable")

    def _members(self, rows: Ints) -> pa.Table:
        values, read, assignments = self._read.values, self._read, rows[:, kernels.P_ASSIGNMENT]
        has_assignment = assignments != kernels.NONE
        at = np.where(assignments >= 0, assignments, len(values.member_epochs))
        # What a tombstone leaves stands behind the values.
        epochs, previous = (
            np.append(column, NO_EPOCH)[at] for column in (values.member_epochs, values.previous_epochs)
        )
        columns = {
            "member_id": self._member_ids(rows),
            **self._of_metadata(rows, read.metadata.column_names),
            "member_epoch": _nullable(epochs, has_assignment),
            "previous_member_epoch": _nullable(previous, has_assignment),
            **read.assigned_columns(np.ascontiguousarray(assignments)),
            **read.target_columns(np.ascontiguousarray(rows[:, kernels.P_TARGET])),
        }
        return _table(columns | self._validity(rows), schemas.MEMBER_HISTORY)

    def _parts(self, rows: Ints) -> pa.Table:
        columns = self._read.part_columns(rows[:, kernels.PART], rows[:, kernels.PART_MARK])
        if not self._read.values.is_share:
            columns |= self._of_metadata(rows, ["process_id", "client_id"]) | {"member_id": self._member_ids(rows)}
        return _table(columns | self._validity(rows), self._read.part_schema)

    def _member_ids(self, rows: Ints) -> pa.Array:
        return self._rows.member_names.take(pa.array(rows[:, kernels.WHO]))

    def _of_metadata(self, rows: Ints, names: Sequence[str]) -> dict[str, pa.Array]:
        at = rows[:, kernels.P_MEMBER]
        place = pa.array(at, mask=at < 0)
        return {name: self._read.metadata.column(name).combine_chunks().take(place) for name in names}

    def _validity(self, rows: Ints) -> dict[str, pa.Array]:
        """The columns valid_from and valid_to, and the completeness of rows."""
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


def _nullable(numbers: Ints, there: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(numbers, mask=~there)


def _table(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """The table; a column that the type of group does not have is null, or has empty lists."""
    count = len(columns["group_id"])
    arrays = [
        columns[field.name].cast(field.type) if field.name in columns else _without_values(field, count)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _without_values(field: pa.Field, count: int) -> pa.Array:
    if field.nullable:
        return pa.nulls(count, field.type)
    return pa.array([[]], field.type).take(pa.array(np.zeros(count, np.int64)))
