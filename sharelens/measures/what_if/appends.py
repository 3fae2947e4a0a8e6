"""The operations behind the records of a state partition, and the bytes of each as an update and as a snapshot.

    record            operation        as an update            as a snapshot
    update  100-104   WRITE            its changed ranges      the whole state after it
    snapshot          WRITE            its changed ranges      the whole state after it
    snapshot          INITIALIZE                               the whole state
    snapshot, cold    COLD_SNAPSHOT                            the whole state
    tombstone         DELETE

A write appends one record, an update or a snapshot (ShareCoordinatorShard): the log shows which of the two, and the
states before and after show the ranges that it changed.
"""

import itertools
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.delivery_outcomes import outcomes_of
from sharelens.measures.histories.lives import number_places
from sharelens.measures.histories.numbers import RANGE_TO, UNKNOWN, Histories
from sharelens.measures.ranges.places import codes_in
from sharelens.measures.ranges.steps import Flags, Ints
from sharelens.measures.what_if.range_kernel import unjoined
from sharelens.measures.what_if.snapshot_kernel import COLD_SNAPSHOT, DELETE, FIRST_COLD_SNAPSHOT, INITIALIZE, WRITE
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.columnar.schemas import COMPLETENESS, TEXT
from state_model.share_records import (
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    encode_record,
)
from state_model.uuids import ZERO_UUID

UPDATE_RECORD, SNAPSHOT_RECORD, TOMBSTONE_RECORD = range(3)
RECORD_TYPES = ("update", "snapshot", "tombstone")
NOT_LOGGED = -1
"""A delivery complete count that is not in the bytes (KIP-1226)."""
MARKS = [field.name for field in COMPLETENESS]
APPENDS = pa.schema(
    [
        *((name, pa.int32() if name in ("state_partition", "partition") else TEXT) for name in FULL_PLACE_KEY),
        ("log_offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("operation", pa.int8()),
        ("record", pa.int8()),
        ("record_bytes", pa.int64()),
        ("update_bytes", pa.int64()),
        ("snapshot_bytes", pa.int64()),
        ("most_snapshot_bytes", pa.int64()),
        ("updates_before", pa.int64()),
        ("is_as_computed", pa.bool_()),
        ("is_created", pa.bool_()),
        ("is_blank", pa.bool_()),
        *((name, TEXT) for name in MARKS),
    ]
)
"""One row a record of an update, a snapshot or a tombstone.

`operation`: WRITE to DELETE (sharelens.measures.what_if.snapshot_kernel). `snapshot_bytes`: as a snapshot, or of the
cold snapshot that follows; `most_snapshot_bytes`: with equal neighbours that Kafka 4.3 may not join
(PersisterStateBatchCombiner). `updates_before`: the update counter before the record, as replay
keeps it (with Kafka's default limit). `is_as_computed`:
the record is as large as its changed ranges or its state make it; false where a writer repeated itself or a tagged
field is of a later Kafka. `is_created`: its share partition's history begins with a creation. `is_blank`: the state
after it is that of a new share partition, as after an Initialize.
"""
FIELDS = ["create_timestamp_ms", "write_timestamp_ms", "delivery_complete_count", "record_bytes"]
READ = [*FULL_PLACE_KEY, "log_offset", "record_type", *FIELDS]
"""The columns of SHARE_RECORD that `appends` reads."""
READ_AT = [*READ, "log_time_ms"]
"""The same, with the columns of a cut."""


def appends(records: pa.Table, history: pa.Table, deliveries: pa.Table) -> pa.Table:
    """APPENDS rows by share partition and log offset.

    Args:
        records: SHARE_RECORD rows of the same share partitions (READ), in any order.
        history, deliveries: SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows.
    """
    histories = Histories.of(history, deliveries)
    records = _in_order_of(histories, records)
    rows = histories.history
    first = np.append(True, np.diff(histories.place) != 0)[: rows.num_rows]
    record = records.column("record").to_numpy()
    operation = _operations(records, rows, record, first)
    changed, states = _changed_ranges(histories), rows.column("state_batch_count").to_numpy().astype(np.int64)
    is_logged = pc.fill_null(pc.not_equal(records.column("delivery_complete_count"), NOT_LOGGED), False)
    has_count = is_logged.to_numpy(zero_copy_only=False).astype(np.bool_)
    group_bytes = pc.binary_length(histories.places.column("group_id").cast(pa.string())).to_numpy()
    group_bytes = group_bytes.astype(np.int64)[histories.place]
    update_bytes = _bytes(UPDATE_RECORD, group_bytes, changed, has_count)
    snapshot_bytes = _bytes(SNAPSHOT_RECORD, group_bytes, states, has_count)
    most_snapshot_bytes = _bytes(SNAPSHOT_RECORD, group_bytes, states + _unjoined_ranges(histories), has_count)
    record_bytes = records.column("record_bytes").to_numpy().astype(np.int64)
    is_update, is_snapshot = record == UPDATE_RECORD, record == SNAPSHOT_RECORD
    as_computed = record == TOMBSTONE_RECORD
    as_computed |= is_update & (record_bytes == update_bytes)
    as_computed |= is_snapshot & (snapshot_bytes <= record_bytes) & (record_bytes <= most_snapshot_bytes)
    before = _before(pc.fill_null(rows.column("update_count_from_log"), 0).to_numpy().astype(np.int64), first)
    created = is_snapshot & (pc.fill_null(rows.column("snapshot_epoch"), UNKNOWN).to_numpy() == 0)
    start = pc.fill_null(rows.column("start_offset"), UNKNOWN).to_numpy()
    count = pc.fill_null(rows.column("delivery_complete_count"), NOT_LOGGED).to_numpy()
    leader_epoch = pc.fill_null(rows.column("leader_epoch"), UNKNOWN).to_numpy()
    is_blank = (states == 0) & (leader_epoch == 0) & (count == np.where(start == UNKNOWN, NOT_LOGGED, 0))
    is_repeated = np.append((operation == COLD_SNAPSHOT)[1:], False)[: len(record)]
    is_shown = is_snapshot | is_repeated
    shown_bytes = np.where(is_repeated, np.append(record_bytes[1:], 0)[: len(record)], record_bytes)
    columns = {name: rows.column(name).cast(APPENDS.field(name).type) for name in (*FULL_PLACE_KEY, *MARKS)}
    columns |= {
        "log_offset": rows.column("log_offset"),
        "time_ms": rows.column("timestamp_ms"),
        "operation": pa.array(operation, pa.int8()),
        "record": pa.array(record, pa.int8()),
        "record_bytes": pa.array(record_bytes),
        "update_bytes": pa.array(np.where(is_update, record_bytes, update_bytes)),
        "snapshot_bytes": pa.array(np.where(is_shown, shown_bytes, snapshot_bytes)),
        "most_snapshot_bytes": pa.array(np.where(is_shown, shown_bytes, most_snapshot_bytes)),
        "updates_before": pa.array(before),
        "is_as_computed": pa.array(as_computed),
        "is_created": pa.array(created[np.flatnonzero(first)][np.cumsum(first) - 1]),
        "is_blank": pa.array(is_blank),
    }
    return pa.table({name: columns[name] for name in APPENDS.names}, schema=APPENDS)


def of_state_partitions(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """APPENDS rows of one state partition after the other, in log order; `tables` come by state partition."""
    parts = (part for table in tables for part in _by_state_partition(table))
    for _, group in itertools.groupby(parts, lambda part: part.column("state_partition")[0].as_py()):
        first, *other_parts = group
        yield pa.concat_tables([first, *other_parts]).sort_by("log_offset") if other_parts else first


def _by_state_partition(table: pa.Table) -> Iterator[pa.Table]:
    numbers = table.column("state_partition").to_numpy()
    order = np.lexsort((table.column("log_offset").to_numpy(), numbers))
    rows, numbers = table.take(pa.array(order)), numbers[order]
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    return (rows.slice(begin, end - begin) for begin, end in itertools.pairwise(cuts) if end > begin)


def _in_order_of(histories: Histories, records: pa.Table) -> pa.Table:
    """FIELDS of the records of the history's rows, row by row, and `record`, a place in RECORD_TYPES."""
    (of_record, of_place), _ = number_places(records, histories.places)
    number = np.full(int(max(of_record.max(initial=0), of_place.max(initial=0))) + 1, UNKNOWN, np.int64)
    number[of_place] = np.arange(len(of_place))
    place, offset = number[of_record], records.column("log_offset").to_numpy()
    record = codes_in(records.column("record_type"), pa.array(RECORD_TYPES))
    order = np.lexsort((offset, place))
    order = order[((record >= 0) & (place != UNKNOWN))[order]]
    if not np.array_equal(offset[order], histories.history.column("log_offset").to_numpy()):
        raise ValueError("the history and the records are not of the same cut")
    columns = {name: records.column(name) for name in FIELDS} | {"record": pa.array(record)}
    return pa.table(columns).take(pa.array(order))


def _operations(records: pa.Table, rows: pa.Table, record: Ints, first: Flags) -> Ints:
    """The operation of each record.

    An Initialize raises the state epoch, or sets the leader epoch back to 0; a write does neither
    (ShareCoordinatorShard). An Initialize that does neither is blank, and counts as a WRITE here.
    """
    operation = np.where(record == TOMBSTONE_RECORD, DELETE, np.full(len(record), WRITE))
    again = pc.not_equal(records.column("create_timestamp_ms"), records.column("write_timestamp_ms"))
    is_cold = pc.fill_null(again, False).to_numpy(zero_copy_only=False).astype(np.bool_)
    now = {
        name: pc.fill_null(rows.column(name), UNKNOWN).to_numpy().astype(np.int64)
        for name in ("state_epoch", "leader_epoch")
    }
    before = {name: _before(values, first) for name, values in now.items()}
    is_first = first | np.append(False, record[:-1] == TOMBSTONE_RECORD)[: len(record)]
    is_set_back = (now["leader_epoch"] == 0) & (before["leader_epoch"] > 0)
    begins = is_first | (now["state_epoch"] > before["state_epoch"]) | is_set_back
    operation[(record == SNAPSHOT_RECORD) & begins] = INITIALIZE
    operation[(record == SNAPSHOT_RECORD) & is_cold] = COLD_SNAPSHOT
    operation[(record == SNAPSHOT_RECORD) & is_cold & first] = FIRST_COLD_SNAPSHOT
    return operation


def _changed_ranges(histories: Histories) -> Ints:
    """For each row of the history the ranges of record offsets that came to a new state."""
    outcomes = outcomes_of(histories, histories.life, histories.life >= 0)
    row = histories.rows_at(histories.lives.place[outcomes.life], outcomes.at)
    rows = pc.fill_null(row, UNKNOWN).to_numpy().astype(np.int64)
    return np.bincount(rows[rows != UNKNOWN], minlength=histories.history.num_rows).astype(np.int64)


def _unjoined_ranges(histories: Histories) -> Ints:
    """For each row of the history the neighbours that Kafka 4.3 may have left apart although they are equal.

    Its combiner does not look back: what begins where an old range began may stay apart from the range on its left.
    """
    ranges = histories.ranges
    apart = unjoined(ranges, histories.life_number, histories.ended)
    place = histories.place_of_range[apart]
    row = pc.fill_null(histories.rows_at(place, ranges[apart, RANGE_TO]), UNKNOWN).to_numpy().astype(np.int64)
    return np.bincount(row[row != UNKNOWN], minlength=histories.history.num_rows).astype(np.int64)


def _before(values: Ints, first: Flags) -> Ints:
    """The value of the previous row of the same place; 0 in the first row of a place."""
    return np.where(first, 0, np.append(0, values[:-1])[: len(values)])


def _bytes(record: int, group_bytes: Ints, ranges: Ints, has_count: Flags) -> Ints:
    """Bytes of key and value: the length of a compact array is a varint of its size and one."""
    empty, of_range, of_count = _parts(record)
    extra_length_bytes = sum(
        ((ranges + 1 >= 1 << 7 * size).astype(np.int64) for size in range(1, 5)), np.zeros(len(ranges), np.int64)
    )
    return empty + group_bytes + of_range * ranges + extra_length_bytes + of_count * has_count


@cache
def _parts(record: int) -> tuple[int, int, int]:
    """Bytes of a record of an empty group id without ranges and count; of a range; of a delivery complete count."""
    key = SharePartitionKey(group_id="", topic_id=ZERO_UUID, partition=0)
    batch = StateBatch(first_offset=0, last_offset=0, delivery_state=0, delivery_count=1)

    def size(batches: tuple[StateBatch, ...], count: int) -> int:
        update = ShareUpdate(
            snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=batches, delivery_complete_count=count
        )
        snapshot = ShareSnapshot(
            snapshot_epoch=0,
            state_epoch=0,
            leader_epoch=0,
            start_offset=0,
            create_timestamp_ms=0,
            write_timestamp_ms=0,
            state_batches=batches,
            delivery_complete_count=count,
        )
        encoded = encode_record(ShareRecord(key=key, value=update if record == UPDATE_RECORD else snapshot))
        return sum(len(part or b"") for part in encoded)

    empty = size((), NOT_LOGGED)
    return empty, size((batch,), NOT_LOGGED) - empty, size((), 0) - empty
