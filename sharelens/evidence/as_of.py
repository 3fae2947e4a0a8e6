"""Share state as of a log offset or time: the state after a prefix of the log, from the two histories.

A prefix ends at a log time or at log offsets of state partitions. Log time is monotone, so both are prefixes, and the
state as of a prefix is the replay of that prefix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.evidence.conditions import all_of, filter_rows
from sharelens.evidence.log_time import Ints
from state_model.columnar import schemas
from state_model.columnar.keys import SHARE_PARTITION_KEY, SHARE_PARTITION_ORDER, number_keys
from state_model.columnar.ordering import order_by
from state_model.columnar.values import Loss

TOMBSTONE = "tombstone"
COMPLETE, INCOMPLETE, UNCOMMITTED = "complete", "incomplete", "uncommitted"
DELIVERY_ORDER = [
    ("state_partition", "ascending"),
    *SHARE_PARTITION_ORDER,
    ("valid_from_log_offset", "ascending"),
    ("first_offset", "ascending"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPrefix:
    """A prefix of the state log: up to and including a log time, or log offsets of state partitions.

    `at_offsets`: the last log offset by state partition (-1: no record), all records of the others; without either, the
    whole log.
    """

    as_of_ms: int | None = None
    at_offsets: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the prefix is the whole log."""
        return self.as_of_ms is None and not self.at_offsets

    def of_state_partition(self, state_partition: int) -> "LogPrefix":
        """The prefix for rows of one state partition alone, whose condition does not name the others."""
        last = self.at_offsets.get(state_partition)
        return replace(self, at_offsets={} if last is None else {state_partition: last})

    def condition(self, offset: str = "log_offset", time: str = "log_time_ms") -> pc.Expression | None:
        """The condition on a row's offset and time columns (and state_partition); None for the whole log."""
        if self.as_of_ms is not None:
            return pc.field(time) <= self.as_of_ms
        parts = [
            (pc.field("state_partition") != partition) | (pc.field(offset) <= last)
            for partition, last in sorted(self.at_offsets.items())
        ]
        return all_of(*parts)

    def begin_condition(self) -> pc.Expression | None:
        """The condition on DELIVERY_HISTORY rows that began in the prefix; None for the whole log."""
        return self.condition("valid_from_log_offset", "valid_from_ms")

    def open_condition(self) -> pc.Expression | None:
        """The condition on DELIVERY_HISTORY rows that are part of the state after the prefix."""
        if self.as_of_ms is not None:
            still = pc.field("valid_to_ms").is_null() | (pc.field("valid_to_ms") > self.as_of_ms)
            return all_of(self.begin_condition(), still)
        still_open: pc.Expression = pc.field("valid_to_log_offset").is_null()
        for partition, last in sorted(self.at_offsets.items()):
            still_open |= (pc.field("state_partition") == partition) & (pc.field("valid_to_log_offset") > last)
        return all_of(self.begin_condition(), still_open)


WHOLE_LOG = LogPrefix()


def states_as_of(history: pa.Table, ranges: pa.Table) -> pa.Table:
    """SHARE_PARTITION_STATE rows of the share partitions that live after a prefix, in any order.

    A share partition whose last record is a tombstone is absent; `below_log_start` is false throughout.

    Args:
        history: the SHARE_PARTITION_HISTORY rows of the prefix (`LogPrefix.condition`) of one incarnation.
        ranges: the DELIVERY_HISTORY rows that are open after it (`LogPrefix.open_condition`).
    """
    of_history, of_ranges = number_places(history, ranges)
    last = _last_rows(of_history, history.column("log_offset").to_numpy())
    alive = pc.not_equal(history.column("record_type").take(pa.array(last)), TOMBSTONE)
    last = last[alive.to_numpy()]
    rows = history.take(pa.array(last))
    columns = {name: rows.column(name) for name in schemas.SHARE_PARTITION_STATE.names if name in rows.column_names}
    columns["state_batches"] = _state_batches(of_history[last], ranges, of_ranges)
    columns["below_log_start"] = pa.repeat(False, rows.num_rows)
    return pa.table({name: columns[name] for name in schemas.SHARE_PARTITION_STATE.names}).cast(
        schemas.SHARE_PARTITION_STATE
    )


def delivery_history_as_of(rows: pa.Table, prefix: LogPrefix) -> pa.Table:
    """DELIVERY_HISTORY rows as they stood after the prefix, in their order; a range that ended later is open.

    Text may be dictionary-encoded, and is then.
    """
    schema, rows = rows.schema, filter_rows(rows, prefix.begin_condition())
    inside = prefix.condition("valid_to_log_offset", "valid_to_ms")
    if inside is not None:
        ended = pc.fill_null(_evaluate(rows, inside), False)
        for name in ("valid_to_log_offset", "valid_to_ms", "end_reason"):
            kind = schemas.DELIVERY_HISTORY.field(name).type
            values = pc.if_else(ended, rows.column(name).cast(kind), pa.scalar(None, kind))
            rows = _with_columns(rows, {name: values.cast(schema.field(name).type)})
        rows = _with_columns(rows, {"is_open": pc.is_null(rows.column("valid_to_log_offset"))})
    return rows.cast(schema)


def mark_losses(states: pa.Table, losses: Mapping[int, Sequence[Loss]]) -> pa.Table:
    """SHARE_PARTITION_STATE rows; rows with a loss above their last record are incomplete.

    `losses`: by state partition, ascending, the losses that begin in the prefix. Rows that are provisional or
    incomplete already keep their mark.
    """
    marks, reasons = (states.column(name).to_pylist() for name in ("completeness", "completeness_reason"))
    partitions, offsets = (states.column(name).to_pylist() for name in ("state_partition", "log_offset"))
    keys = list(zip(*(states.column(name).to_pylist() for name in SHARE_PARTITION_KEY), strict=True))
    for row, mark in enumerate(marks):
        if mark not in (COMPLETE, UNCOMMITTED):
            continue
        for loss in losses.get(partitions[row], ()):
            touches = loss.group_id is None or (loss.group_id, loss.topic_id, loss.partition) == keys[row]
            if touches and loss.first_offset > offsets[row]:
                marks[row], reasons[row] = INCOMPLETE, loss.reason
                break
    marked = {"completeness": pa.array(marks, pa.string()), "completeness_reason": pa.array(reasons, pa.string())}
    return _with_columns(states, marked)


def mark_below_log_start(states: pa.Table, log_starts: Mapping[int, int]) -> pa.Table:
    """SHARE_PARTITION_STATE rows with `below_log_start`: their snapshot lies below the log start of its partition.

    `log_starts`: log start offsets by state partition; 0 where there is none.
    """
    starts = [log_starts.get(number, 0) for number in states.column("state_partition").to_pylist()]
    below = pc.fill_null(pc.less(states.column("snapshot_log_offset"), pa.array(starts, pa.int64())), False)
    return _with_columns(states, {"below_log_start": below})


def number_places(*tables: pa.Table) -> list[Ints]:
    """For each table the number of each row's place (PLACE_KEY), in one numbering."""
    keys, _ = number_keys(*tables)
    return [
        (key << 31) | table.column("state_partition").to_numpy().astype(np.int64)
        for key, table in zip(keys, tables, strict=True)
    ]


def _last_rows(number: Ints, order: Ints) -> Ints:
    """For each distinct number the index of its row with the largest order value."""
    ranked = order_by(number, order)
    ends = np.flatnonzero(np.append(np.diff(number[ranked]) != 0, True)) if len(ranked) else ranked
    return ranked[ends]


def _state_batches(numbers: Ints, ranges: pa.Table, of_ranges: Ints) -> pa.ListArray:
    """The ranges of each number as a list, ascending."""
    order = order_by(of_ranges, ranges.column("first_offset").to_numpy())
    ordered = of_ranges[order]
    begin = np.searchsorted(ordered, numbers, "left")
    count = np.searchsorted(ordered, numbers, "right") - begin
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    index = np.repeat(begin - (ends - count), count) + np.arange(total)
    chosen = ranges.take(pa.array(order[index]))
    parts = [_array(chosen.column(part.name)).cast(part.type) for part in schemas.DATED_BATCH]
    values = pa.StructArray.from_arrays(parts, fields=list(schemas.DATED_BATCH))
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=pa.list_(schemas.DATED_BATCH))


def _array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _evaluate(rows: pa.Table, condition: pc.Expression) -> pa.ChunkedArray:
    """The condition of each row, null where a column that it needs is null."""
    return ds.dataset(rows).scanner(columns={"holds": condition}).to_table().column("holds")


def _with_columns(table: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for name, column in columns.items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(index), column)
    return table
