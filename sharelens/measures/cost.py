"""The cost of share state for its coordinator: records and bytes, spans between snapshots, prunable records.

A state partition can be pruned up to the oldest of its share partitions' newest snapshots
(ShareCoordinatorOffsetsManager); a share partition that gets no new one holds up all others in its state partition.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.delivery_outcomes import outcomes_of
from sharelens.measures.histories.lives import number_places
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.inputs import RecordInputs
from sharelens.measures.ranges.steps import Flags, Ints, numbered, together
from sharelens.measures.ranges.sums import sums_by
from sharelens.measures.schemas import COST, PRUNING
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.columnar.schemas import SHARE_RECORD
from state_model.share_records import DeliveryState

PRUNING_READ = [*FULL_PLACE_KEY, "record_type", "log_offset", "log_time_ms", "record_bytes", "below_log_start"]
"""The columns of a record from which PRUNING rows are computed."""
FREEABLE = ("freeable_records", "freeable_bytes")
KINDS = pa.schema(
    [
        *(SHARE_RECORD.field(name) for name in (*FULL_PLACE_KEY, "record_type")),
        *(pa.field(name, pa.int64()) for name in ("records", "record_bytes", "log_offset", "log_time_ms")),
    ]
)
"""The records of one type of a share partition: their number, their bytes, the newest one's offset and log time."""
STALL_MS = 600_000
"""Pruning stalls when the oldest newest snapshot is older than two rounds of the cold snapshot job (300 s each)."""


def rows(inputs: RecordInputs, *, of_window: bool = False) -> pa.Table:
    """COST rows by share partition; `of_window` as in `cost`."""
    return cost(inputs.records(), inputs.history(), inputs.deliveries(), of_window=of_window)


def cost(records: pa.Table, history: pa.Table, deliveries: pa.Table, *, of_window: bool = False) -> pa.Table:
    """COST rows by share partition from SHARE_RECORD, SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows.

    `of_window`: `records` are the records of a window, and only their acknowledgements count.
    """
    histories = Histories.of(history, deliveries)
    (of_records, of_place), places = number_places(records, histories.places)
    outcomes = outcomes_of(histories, histories.life, histories.life >= 0)
    place = of_place[histories.lives.place[outcomes.life]]
    acknowledged = outcomes.state == DeliveryState.ACKNOWLEDGED
    if of_window:
        offsets = together([records.column("log_offset").to_numpy(), outcomes.at])
        record, _ = numbered(together([of_records, place]), offsets)
        acknowledged &= np.isin(record[len(of_records) :], record[: len(of_records)])
    sizes = (outcomes.last - outcomes.first + 1)[acknowledged]
    settled = sums_by(place[acknowledged], sizes, places.num_rows)
    kind = _kinds(records)
    bytes_of = records.column("record_bytes").to_numpy().astype(np.int64)
    ones = np.ones(len(of_records), np.int64)
    columns = {name: places.column(name) for name in FULL_PLACE_KEY}
    for name, chosen in kind.items():
        columns[name] = pa.array(sums_by(of_records[chosen], ones[chosen], places.num_rows))
        columns[f"{name.removesuffix('s')}_bytes"] = pa.array(
            sums_by(of_records[chosen], bytes_of[chosen], places.num_rows)
        )
    columns |= {
        "bytes": columns["record_bytes"],
        "acknowledged_offsets": pa.array(settled),
        "updates_per_acknowledged": _ratio(columns["updates"].to_numpy(), settled),
        "snapshots_per_acknowledged": _ratio(columns["snapshots"].to_numpy(), settled),
        "bytes_per_acknowledged": _ratio(columns["record_bytes"].to_numpy(), settled),
    }
    columns |= _spans(of_records, records, kind, places.num_rows)
    table = pa.table({name: columns[name] for name in COST.names}).cast(COST)
    return table.filter(pc.greater(table.column("records"), 0))


def _kinds(records: pa.Table) -> dict[str, Flags]:
    kind = {
        f"{name}s": pc.equal(records.column("record_type"), name).to_numpy(zero_copy_only=False).astype(np.bool_)
        for name in ("snapshot", "update", "tombstone")
    }
    again = pc.not_equal(records.column("create_timestamp_ms"), records.column("write_timestamp_ms"))
    cold = kind["snapshots"] & pc.fill_null(again, False).to_numpy(zero_copy_only=False)
    return kind | {"cold_snapshots": cold, "records": np.ones(records.num_rows, np.bool_)}


def _ratio(part: Ints, total: Ints) -> pa.Array:
    return pa.array(part / np.maximum(total, 1), mask=total == 0)


def _spans(place: Ints, records: pa.Table, kind: dict[str, Flags], places: int) -> dict[str, pa.Array]:
    """Updates behind each snapshot of a place; updates before the first known snapshot are not counted."""
    order = np.lexsort((records.column("log_offset").to_numpy(), place))
    begins, of = kind["snapshots"][order], place[order]
    span = np.cumsum(begins) - 1
    update_rows = np.flatnonzero((span >= 0) & kind["updates"][order])
    place_of_span = of[begins]
    update_rows = (
        update_rows[place_of_span[span[update_rows]] == of[update_rows]] if len(place_of_span) else update_rows
    )
    lengths = sums_by(span[update_rows], np.ones(len(update_rows), np.int64), len(place_of_span))
    longest_span = np.full(places, -1, np.int64)
    np.maximum.at(longest_span, place_of_span, lengths)
    spans = sums_by(place_of_span, np.ones(len(place_of_span), np.int64), places)
    newest = np.full(places, -1, np.int64)
    last = kind["snapshots"] | kind["tombstones"]
    np.maximum.at(newest, place[last], records.column("log_offset").to_numpy()[last])
    return {
        "span_updates_mean": _ratio(sums_by(place_of_span, lengths, places), spans),
        "span_updates_max": pa.array(longest_span, mask=longest_span < 0),
        "last_snapshot_log_offset": pa.array(newest, mask=newest < 0),
    }


def pruning(records: Callable[[], Iterable[pa.Table]]) -> pa.Table:
    """PRUNING rows by state partition.

    `records` gives the PRUNING_READ columns of all SHARE_RECORD rows of these state partitions, in bounded tables, in
    any order. It is called twice: what can be freed depends on the newest snapshots of all share partitions.
    """
    points = prune_points(_kinds_of_places(records()))
    numbers, ends = (points.column(name).to_pylist() for name in ("state_partition", "prune_log_offset"))
    prune_to = {number: end for number, end in zip(numbers, ends, strict=True) if end is not None}
    free = _freeable(records(), prune_to)
    counts = [free.get(number, (0, 0)) for number in numbers]
    for part, name in enumerate(FREEABLE):
        column = pa.array([count[part] for count in counts], pa.int64())
        points = points.set_column(PRUNING.get_field_index(name), PRUNING.field(name), column)
    return points


def prune_points(kinds: pa.Table) -> pa.Table:
    """PRUNING rows by state partition, whose FREEABLE columns are 0, from KINDS rows of whole state partitions."""
    snapshots = kinds.filter(pc.equal(kinds.column("record_type"), "snapshot"))
    tombstones = kinds.filter(pc.equal(kinds.column("record_type"), "tombstone")).select(
        [*FULL_PLACE_KEY, "log_offset"]
    )
    live = snapshots.join(tombstones, keys=FULL_PLACE_KEY, right_suffix="_gone")
    live = live.filter(pc.fill_null(pc.greater(live.column("log_offset"), live.column("log_offset_gone")), True))
    sums = [("record_bytes", "sum"), ("records", "sum"), ("log_time_ms", "max")]
    totals = kinds.group_by(FULL_PLACE_KEY[:2], use_threads=False).aggregate(sums).sort_by("state_partition")
    oldest = live.sort_by([("state_partition", "ascending"), ("log_offset", "ascending")]).to_pylist()
    holding = {row["state_partition"]: row for row in reversed(oldest)}
    rows = []
    for total in totals.to_pylist():
        number = total["state_partition"]
        held_up_by = holding.get(number)
        row: dict[str, object] = {
            "log_topic_id": total["log_topic_id"],
            "state_partition": number,
            "records": total["records_sum"],
            "bytes": total["record_bytes_sum"],
            **dict.fromkeys(FREEABLE, 0),
        }
        if held_up_by is not None:
            waited = total["log_time_ms_max"] - held_up_by["log_time_ms"]
            row |= {f"held_up_by_{name}": held_up_by[name] for name in FULL_PLACE_KEY[2:]}
            row |= {"prune_log_offset": held_up_by["log_offset"], "held_up_ms": waited}
            row["pruning_stalls"] = waited > STALL_MS
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=PRUNING)


def _kinds_of_places(records: Iterable[pa.Table]) -> pa.Table:
    """KINDS rows: number, bytes and newest record by place and record type."""
    by = [*FULL_PLACE_KEY, "record_type"]
    folds = {"records": "sum", "record_bytes": "sum", "log_offset": "max", "log_time_ms": "max"}
    sums: pa.Table | None = None
    for table in records:
        values = table.select([*by, "log_offset", "log_time_ms"])
        values = values.append_column("records", pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
        values = values.append_column("record_bytes", table.column("record_bytes").cast(pa.int64()))
        values = pa.table([values.column(name) for name in (*by, *folds)], names=[*by, *folds])
        combined_rows = values if sums is None else pa.concat_tables([sums, values])
        sums = combined_rows.group_by(by, use_threads=False).aggregate(list(folds.items()))
        sums = sums.rename_columns([*by, *folds])
    if sums is None:
        raise ValueError("records gives no table, not even an empty one")
    return sums


def _freeable(records: Iterable[pa.Table], prune_to: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """By state partition the number and the bytes of records from the log start up to an offset (exclusive)."""
    free: dict[int, tuple[int, int]] = {}
    numbers = pa.array(sorted(prune_to), pa.int32())
    ends = pa.array([prune_to[number] for number in sorted(prune_to)], pa.int64())
    for table in records:
        end = ends.take(pc.index_in(table.column("state_partition").combine_chunks(), value_set=numbers))
        is_freeable = pc.and_(pc.less(table.column("log_offset"), end), pc.invert(table.column("below_log_start")))
        rows = table.select(["state_partition", "record_bytes"]).filter(pc.fill_null(is_freeable, False))
        sums = rows.group_by("state_partition").aggregate([("record_bytes", "sum"), ("record_bytes", "count")])
        for row in sums.to_pylist():
            count, size = free.get(row["state_partition"], (0, 0))
            free[row["state_partition"]] = (count + row["record_bytes_count"], size + row["record_bytes_sum"])
    return free
