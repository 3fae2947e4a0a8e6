"""States at a cut from the two histories, and marks that depend on more than one record."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.questions.evidence import DELIVERY_ORDER, KEY, ClockStep, Cut, Keys, kept
from state_model.columnar import schemas
from state_model.columnar.keys import number_keys
from state_model.columnar.placement import is_ambiguous, placed
from state_model.columnar.values import Loss

MINUTE_MS = 60_000
TOMBSTONE = "tombstone"
Ints = npt.NDArray[np.int64]


def numbered(*tables: pa.Table) -> list[Ints]:
    """For each table the number of each row's (state partition, share partition), in one numbering."""
    keys, _ = number_keys(*tables)
    return [
        (key << 31) | table.column("state_partition").to_numpy().astype(np.int64)
        for key, table in zip(keys, tables, strict=True)
    ]


def last_rows(number: Ints, order: Ints) -> Ints:
    """For each distinct number the index of its row with the largest order value."""
    ranked = np.lexsort((order, number))
    ends = np.flatnonzero(np.append(np.diff(number[ranked]) != 0, True)) if len(ranked) else ranked
    return ranked[ends]


def states(history: pa.Table, ranges: pa.Table) -> pa.Table:
    """SHARE_PARTITION_STATE from the history rows of a cut and the delivery ranges that were there at its end.

    A share partition whose last row is a tombstone is absent. `below_log_start` is false throughout.
    """
    of_history, of_ranges = numbered(history, ranges)
    last = last_rows(of_history, history.column("log_offset").to_numpy())
    alive = history.column("record_type").take(pa.array(last)).to_pylist()
    last = last[np.array([kind != TOMBSTONE for kind in alive], np.bool_)]
    rows = history.take(pa.array(last))
    columns = {name: rows.column(name) for name in schemas.SHARE_PARTITION_STATE.names if name in rows.column_names}
    columns["state_batches"] = _batches(of_history[last], ranges, of_ranges)
    columns["below_log_start"] = pa.repeat(False, rows.num_rows)
    return pa.table({name: columns[name] for name in schemas.SHARE_PARTITION_STATE.names}).cast(
        schemas.SHARE_PARTITION_STATE
    )


def _batches(wanted: Ints, ranges: pa.Table, of_ranges: Ints) -> pa.ListArray:
    """The ranges of each wanted number as a list, ascending."""
    order = np.lexsort((ranges.column("first_offset").to_numpy(), of_ranges))
    ordered = of_ranges[order]
    begin = np.searchsorted(ordered, wanted, "left")
    count = np.searchsorted(ordered, wanted, "right") - begin
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    index = np.repeat(begin - (ends - count), count) + np.arange(total)
    chosen = ranges.take(pa.array(order[index])).combine_chunks()
    parts = [_flat(chosen.column(field.name)).cast(field.type) for field in schemas.DATED_BATCH]
    values = pa.StructArray.from_arrays(parts, fields=list(schemas.DATED_BATCH))
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=pa.list_(schemas.DATED_BATCH))


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def deliveries(rows: pa.Table, cut: Cut) -> pa.Table:
    """DELIVERY_HISTORY rows as they stood after the cut, in DELIVERY_ORDER: what ended later is open."""
    rows = kept(rows, cut.expression("valid_from_log_offset", "valid_from_ms"))
    inside = cut.expression("valid_to_log_offset", "valid_to_ms")
    if inside is not None:
        ended = pc.fill_null(_holds(rows, inside), False)
        for name in ("valid_to_log_offset", "valid_to_ms", "end_reason"):
            index = rows.schema.get_field_index(name)
            kind = rows.schema.field(index)
            rows = rows.set_column(index, kind, pc.if_else(ended, rows.column(name), pa.scalar(None, kind.type)))
        rows = _replaced(rows, {"is_open": pc.is_null(rows.column("valid_to_log_offset"))})
    return rows.cast(schemas.DELIVERY_HISTORY).sort_by(DELIVERY_ORDER)


def _holds(rows: pa.Table, condition: pc.Expression) -> pa.ChunkedArray:
    """The condition of each row, null where it can't be told."""
    scan = ds.dataset(rows).scanner(columns={"holds": condition})
    return scan.to_table().column("holds")


def with_losses(found: pa.Table, losses: Mapping[int, Sequence[Loss]]) -> pa.Table:
    """Marks SHARE_PARTITION_STATE rows whose last record lies before a loss of their state partition as incomplete."""
    marks = found.column("completeness").to_pylist()
    reasons = found.column("completeness_reason").to_pylist()
    partitions = found.column("state_partition").to_pylist()
    offsets = found.column("log_offset").to_pylist()
    keys = list(zip(*(found.column(name).to_pylist() for name in KEY), strict=True))
    for row, mark in enumerate(marks):
        if mark not in ("complete", "uncommitted"):
            continue
        for loss in losses.get(partitions[row], ()):
            named = loss.group_id is None or (loss.group_id, loss.topic_id, loss.partition) == keys[row]
            if named and loss.first_offset > offsets[row]:
                marks[row], reasons[row] = "incomplete", loss.reason
                break
    return _replaced(
        found, {"completeness": pa.array(marks, pa.string()), "completeness_reason": pa.array(reasons, pa.string())}
    )


def below_log_start(found: pa.Table, log_starts: Mapping[int, int]) -> pa.Table:
    """Sets below_log_start: the snapshot that the state rests on lies below the log start of its state partition."""
    starts = [log_starts.get(number, 0) for number in found.column("state_partition").to_pylist()]
    below = pc.fill_null(pc.less(found.column("snapshot_log_offset"), pa.array(starts, pa.int64())), False)
    return _replaced(found, {"below_log_start": below})


def placed_states(states_of: Callable[[Keys], pa.Table], keys: Keys) -> pa.Table:
    """PLACED_STATE rows of `keys`; `states_of` gives SHARE_PARTITION_STATE rows.

    Where a share partition has several rows, those of all others are looked at to learn which one is its state.
    """
    found = states_of(keys)
    if keys == Keys() or not is_ambiguous(found):
        return placed(found)
    return kept(placed(states_of(Keys())), keys.expression())


def clock_steps(rows: pa.Table) -> list[ClockStep]:
    """One step a state partition from rows whose own time is at or before a moment that their log time has passed."""
    ahead = pc.subtract(rows.column("log_time_ms"), rows.column("timestamp_ms"))
    table = rows.select(["state_partition", "log_offset"]).append_column("ahead_ms", ahead)
    found = table.group_by("state_partition").aggregate([("log_offset", "max"), ("ahead_ms", "max")])
    steps = [
        ClockStep(
            state_partition=row["state_partition"], last_offset=row["log_offset_max"], ahead_ms=row["ahead_ms_max"]
        )
        for row in found.sort_by("state_partition").to_pylist()
    ]
    return [step for step in steps if step.ahead_ms > MINUTE_MS]


def _replaced(table: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for name, column in columns.items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(index), column)
    return table
