"""What share state costs its coordinator: records and bytes, spans between snapshots, what pruning could free.

A state partition can be pruned up to the oldest of its share partitions' newest snapshots
(ShareCoordinatorOffsetsManager); a share partition that gets no new one holds up all others in its state partition.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.lives import PLACE, lives_of, number_places
from measures.newly import outcomes_of
from measures.redelivered import rows_at
from measures.schemas import COST, PRUNING
from measures.steps import Flags, Ints
from state_model.share_records import DeliveryState

STALL_MS = 600_000
"""Pruning stalls when the oldest newest snapshot is older than two rounds of the cold snapshot job (300 s each)."""


def cost(records: pa.Table, history: pa.Table, deliveries: pa.Table, *, of_window: bool = False) -> pa.Table:
    """COST rows by share partition from SHARE_RECORD, SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows.

    `of_window`: `records` are those of a window, and only what they acknowledged counts.
    """
    (of_records, of_history, of_deliveries), places = number_places(records, history, deliveries)
    lives = lives_of(history, of_history)
    life = lives.of(of_deliveries, deliveries.column("life_log_offset").to_numpy())
    outcomes = outcomes_of(deliveries.filter(pa.array(life >= 0)), life[life >= 0])
    acknowledged = outcomes.state == DeliveryState.ACKNOWLEDGED
    if of_window:
        state_partition = places.column("state_partition").to_numpy()[lives.place[outcomes.life]]
        told = rows_at(records, state_partition, outcomes.at)
        acknowledged &= pc.is_valid(told).to_numpy(zero_copy_only=False).astype(np.bool_)
    sizes = (outcomes.last - outcomes.first + 1)[acknowledged]
    settled = _sums(lives.place[outcomes.life[acknowledged]], sizes, places.num_rows)
    kind = _kinds(records)
    bytes_of = records.column("record_bytes").to_numpy().astype(np.int64)
    one = np.ones(len(of_records), np.int64)
    columns = {name: places.column(name) for name in PLACE}
    for name, chosen in kind.items():
        columns[name] = pa.array(_sums(of_records[chosen], one[chosen], places.num_rows))
        columns[f"{name.removesuffix('s')}_bytes"] = pa.array(
            _sums(of_records[chosen], bytes_of[chosen], places.num_rows)
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


def _sums(place: Ints, values: Ints, places: int) -> Ints:
    found = np.zeros(places, np.int64)
    np.add.at(found, place, values)
    return found


def _ratio(part: Ints, whole: Ints) -> pa.Array:
    return pa.array(part / np.maximum(whole, 1), mask=whole == 0)


def _spans(place: Ints, records: pa.Table, kind: dict[str, Flags], places: int) -> dict[str, pa.Array]:
    """Updates behind each snapshot of a place; those before the first one held belong to none."""
    order = np.lexsort((records.column("log_offset").to_numpy(), place))
    begins, of = kind["snapshots"][order], place[order]
    span = np.cumsum(begins) - 1
    mine = np.flatnonzero((span >= 0) & kind["updates"][order])
    place_of_span = of[begins]
    mine = mine[place_of_span[span[mine]] == of[mine]] if len(place_of_span) else mine
    lengths = _sums(span[mine], np.ones(len(mine), np.int64), len(place_of_span))
    most = np.full(places, -1, np.int64)
    np.maximum.at(most, place_of_span, lengths)
    spans = _sums(place_of_span, np.ones(len(place_of_span), np.int64), places)
    newest = np.full(places, -1, np.int64)
    last = kind["snapshots"] | kind["tombstones"]
    np.maximum.at(newest, place[last], records.column("log_offset").to_numpy()[last])
    return {
        "span_updates_mean": _ratio(_sums(place_of_span, lengths, places), spans),
        "span_updates_max": pa.array(most, mask=most < 0),
        "last_snapshot_log_offset": pa.array(newest, mask=newest < 0),
    }


def pruning(records: pa.Table) -> pa.Table:
    """PRUNING rows by state partition from all SHARE_RECORD rows of these state partitions."""
    (place,), places = number_places(records)
    offset = records.column("log_offset").to_numpy()
    kind = _kinds(records)
    newest = np.full(places.num_rows, -1, np.int64)
    np.maximum.at(newest, place[kind["snapshots"]], offset[kind["snapshots"]])
    gone = np.full(places.num_rows, -1, np.int64)
    np.maximum.at(gone, place[kind["tombstones"]], offset[kind["tombstones"]])
    holds = np.flatnonzero((newest >= 0) & (newest > gone))
    of_place = places.column("state_partition").to_numpy()
    state_partition = records.column("state_partition").to_numpy()
    below_start = records.column("below_log_start").to_numpy(zero_copy_only=False)
    size = records.column("record_bytes").to_numpy().astype(np.int64)
    time = records.column("log_time_ms").to_numpy()
    rows = []
    for number in np.unique(state_partition).tolist():
        here = state_partition == number
        mine = holds[of_place[holds] == number]
        row: dict[str, object] = {
            "log_topic_id": places.column("log_topic_id")[int(place[np.argmax(here)])].as_py(),
            "state_partition": number,
            "records": int(here.sum()),
            "bytes": int(size[here].sum()),
            "freeable_records": 0,
            "freeable_bytes": 0,
        }
        if len(mine):
            oldest = int(mine[np.argmin(newest[mine])])
            free = here & (offset < newest[oldest]) & ~below_start
            waited = int(time[here].max() - time[here & (offset == newest[oldest])][0])
            key = places.select(PLACE[2:]).slice(oldest, 1).to_pylist()[0]
            row |= {f"held_up_by_{name}": value for name, value in key.items()}
            row |= {
                "prune_log_offset": int(newest[oldest]),
                "freeable_records": int(free.sum()),
                "freeable_bytes": int(size[free].sum()),
                "held_up_ms": waited,
                "pruning_stalls": waited > STALL_MS,
            }
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=PRUNING)
