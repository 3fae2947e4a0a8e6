"""Decodes the bytes of __share_group_state into typed columns (share-group-state-log §2-3), batch by batch.

The output is proportional to the input bytes: a count or length is used only after a check that its bytes are there. A
record that cannot be decoded becomes a problem row, never an exception.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar import buffers
from state_model.columnar import record_kernels as kernels
from state_model.columnar.schemas import LOG_POSITION, SHARE_PARTITION, SHARE_RECORD, STATE_BATCH, UNKNOWN_TAG, column
from state_model.columnar.values import UNKNOWN_STATE, Loss
from state_model.uuids import uuid_bytes

Rows = npt.NDArray[np.int64]

REASONS = (
    "",
    "control_record",
    "bad_key",
    "invalid_utf8",
    "unknown_record_type",
    "unknown_value_version",
    "update_without_value",
    "truncated_value",
    "malformed_varint",
    "invalid_length",
)
"""Reason code by outcome of the kernel; the first stands for a decoded record."""
NOT_A_LOSS = frozenset({"control_record"})
"""Reasons by which no share partition loses a change."""
UNKNOWN_RECORD_TYPE = "unknown_record_type"
DETAILS = {
    "control_record": "a transaction marker, which is no share-group record",
    "bad_key": "the key is missing or cut short",
    "invalid_utf8": "the group id in the key is not UTF-8",
    "unknown_record_type": "the record type is neither 0 (ShareSnapshot) nor 1 (ShareUpdate), and the rest of the key "
    "is no share partition",
    "unknown_value_version": "value version {} is unknown (a newer Kafka?); a broker that does not know it refuses to "
    "load the log",
    "update_without_value": "a ShareUpdate has no value; only a ShareSnapshot has tombstones",
    "truncated_value": "the value ends inside a field, or claims more than it holds",
    "malformed_varint": "a variable-length integer in the value is longer than 32 bits",
    "invalid_length": "the value has a null list of state batches, or a delivery complete count that is not 4 bytes",
}
RECORD_TYPES = ("snapshot", "update", "tombstone")
"""Record type by kind in the kernels; a record of another type has `UNKNOWN(7)`."""

DECODE_PROBLEM = pa.schema(
    [
        *LOG_POSITION,
        column("log_time_ms", pa.int64(), "running maximum of record timestamps in the partition", nullable=False),
        column("reason", pa.string(), "reason code", nullable=False),
        column("is_loss", pa.bool_(), "whether a share partition may have lost a change by it", nullable=False),
        column("detail", pa.string(), "one line for a person", nullable=False),
        *(field.with_nullable(True) for field in SHARE_PARTITION),
        column("key", pa.binary(), "key bytes as in the log"),
        column("value", pa.binary(), "value bytes as in the log"),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Records [SHARE_RECORD] and problems [DECODE_PROBLEM]; together one row for each row read, both in its order."""

    records: pa.RecordBatch
    problems: pa.RecordBatch


def decode_share_records(log_record: pa.RecordBatch, *, log_time_ms: npt.NDArray[np.int64]) -> Decoded:
    """The decoded records of one state topic, and the problems of the others.

    Args:
        log_record: rows of kafka_log's LOG_RECORD (at least topic_id, partition, offset, timestamp_ms, key, value,
            leader_epoch, is_control, below_log_start, uncommitted), in any order.
        log_time_ms: for each row the running maximum of record timestamps in its state partition.

    Raises:
        ValueError: `log_time_ms` has another length than `log_record`.
    """
    if len(log_time_ms) != log_record.num_rows:
        raise ValueError(f"{len(log_time_ms)} log times for {log_record.num_rows} records: pass one for each row")
    keys = buffers.binary_view(log_record.column("key"))
    values = buffers.binary_view(log_record.column("value"))
    filled, tag_count = _fill(keys, values, buffers.booleans(log_record.column("is_control")))
    decoded = filled.outcome == kernels.DECODED
    times = np.ascontiguousarray(log_time_ms, dtype=np.int64)
    return Decoded(
        records=_records(log_record, times, keys, values, filled, tag_count, np.flatnonzero(decoded)),
        problems=_problems(log_record, times, keys, filled.outcome, np.flatnonzero(~decoded)),
    )


def losses_of(problems: pa.RecordBatch) -> list[Loss]:
    """The losses of records that could not be decoded (DECODE_PROBLEM), in their order."""
    rows = problems.select(["log_offset", "reason", "is_loss", *(field.name for field in SHARE_PARTITION)]).to_pylist()
    return [
        Loss(
            first_offset=row["log_offset"],
            last_offset=row["log_offset"],
            reason=UNKNOWN_STATE if row["reason"] == UNKNOWN_RECORD_TYPE else "quarantined",
            group_id=row["group_id"],
            topic_id=row["topic_id"],
            partition=row["partition"],
        )
        for row in rows
        if row["is_loss"]
    ]


def key_mask(
    log_record: pa.RecordBatch,
    *,
    group_id: str | None = None,
    topic_id: str | None = None,
    partition: int | None = None,
) -> pa.BooleanArray:
    """Mask of the rows of share partitions that match the arguments (None matches all), from the key bytes alone.

    Unreadable keys match: they may belong to the share partition.
    """
    view = buffers.binary_view(log_record.column("key"))
    group = (group_id or "").encode("utf-8", "surrogatepass")
    topic = uuid_bytes(topic_id) if topic_id is not None else bytes(16)
    key = group + topic + (partition or 0).to_bytes(4, "big", signed=True)
    compared = np.array([group_id is not None, topic_id is not None, partition is not None])
    selected = kernels.select_keys(view, np.frombuffer(key, np.uint8), compared)
    return pa.array(selected)


def _fill(keys: buffers.BinaryView, values: buffers.BinaryView, control: buffers.Bools) -> tuple[kernels.Filled, int]:
    """The output of the kernel, cut to its length, and how many unknown tagged fields the records have.

    Arrays are allocated for the most that the bytes can need.
    """
    rows = len(control)
    room = int(values.at[-1] - values.at[0]) // kernels.STATE_BATCH_BYTES
    filled = kernels.Filled(
        outcome=np.empty(rows, np.int8),
        ints=np.empty((kernels.TAG_COUNT + 1, rows), np.int32),
        longs=np.empty((kernels.WRITE + 1, rows), np.int64),
        offsets=np.empty((2, room), np.int64),
        states=np.empty(room, np.int8),
        counts=np.empty(room, np.int16),
    )
    done, batches, tag_count = kernels.decode_rows(keys, values, control, filled)
    cut = kernels.Filled(
        outcome=filled.outcome,
        ints=filled.ints[:, :done],
        longs=filled.longs[:, :done],
        offsets=filled.offsets[:, :batches],
        states=filled.states[:batches],
        counts=filled.counts[:batches],
    )
    return cut, tag_count


def _records(
    log_record: pa.RecordBatch,
    times: npt.NDArray[np.int64],
    keys: buffers.BinaryView,
    values: buffers.BinaryView,
    filled: kernels.Filled,
    tag_count: int,
    rows: Rows,
) -> pa.RecordBatch:
    kinds = filled.ints[kernels.KIND]
    source = log_record if len(rows) == log_record.num_rows else log_record.take(pa.array(rows))
    has_value, is_snapshot = kinds <= kernels.UPDATE, kinds == kernels.SNAPSHOT
    columns = {
        "log_topic_id": source.column("topic_id"),
        "state_partition": source.column("partition"),
        "log_offset": source.column("offset"),
        "timestamp_ms": source.column("timestamp_ms"),
        "log_time_ms": pa.array(times if source is log_record else times[rows]),
        "record_type": _record_types(keys, rows, kinds),
        **_keys(keys, rows, np.ones(len(rows), np.bool_)),
        "value_version": buffers.numbers(pa.int16(), np.zeros(len(rows), np.int16), has_value),
        **_scalars(filled, has_value, is_snapshot),
        "state_batches": _state_batches(filled, has_value),
        "unknown_tags": _unknown_tags(values, filled, tag_count, rows),
        "log_leader_epoch": source.column("leader_epoch"),
        "below_log_start": source.column("below_log_start"),
        "uncommitted": source.column("uncommitted"),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in SHARE_RECORD.names], schema=SHARE_RECORD)


def _record_types(keys: buffers.BinaryView, rows: Rows, kinds: npt.NDArray[np.int32]) -> pa.Array:
    """The names of the record types: RECORD_TYPES, and `UNKNOWN(7)` by the number at the beginning of the key."""
    other_rows = np.flatnonzero(kinds == kernels.OTHER)
    if len(other_rows) == 0:
        return pa.array(RECORD_TYPES).take(pa.array(kinds))
    at = keys.at[rows[other_rows]]
    numbers = keys.data[np.stack([at, at + 1], axis=1)].view(">i2").reshape(-1)
    type_numbers, codes = np.unique(numbers, return_inverse=True)
    names_at = kinds.copy()
    names_at[other_rows] = len(RECORD_TYPES) + codes
    return pa.array([*RECORD_TYPES, *(f"UNKNOWN({number})" for number in type_numbers.tolist())]).take(
        pa.array(names_at)
    )


def _scalars(filled: kernels.Filled, has_value: buffers.Bools, is_snapshot: buffers.Bools) -> dict[str, pa.Array]:
    ints, longs = filled.ints, filled.longs
    return {
        "snapshot_epoch": buffers.numbers(pa.int32(), ints[kernels.SNAPSHOT_EPOCH], has_value),
        "state_epoch": buffers.numbers(pa.int32(), ints[kernels.STATE_EPOCH], is_snapshot),
        "leader_epoch": buffers.numbers(pa.int32(), ints[kernels.LEADER_EPOCH], has_value),
        "start_offset": buffers.numbers(pa.int64(), longs[kernels.START], has_value),
        "delivery_complete_count": buffers.numbers(pa.int32(), ints[kernels.DCC], has_value),
        "create_timestamp_ms": buffers.numbers(pa.int64(), longs[kernels.CREATE], is_snapshot),
        "write_timestamp_ms": buffers.numbers(pa.int64(), longs[kernels.WRITE], is_snapshot),
        "trailing_bytes": buffers.numbers(pa.int32(), ints[kernels.TRAILING]),
        "record_bytes": buffers.numbers(pa.int32(), ints[kernels.RECORD_BYTES]),
    }


def _keys(keys: buffers.BinaryView, rows: Rows, readable: buffers.Bools) -> dict[str, pa.Array]:
    """Columns group_id, topic_id, partition of the keys in `rows`, null where the key is not readable."""
    group_ends = np.zeros(len(rows) + 1, np.int32)
    groups = np.empty(kernels.group_bytes(keys, rows, readable), np.uint8)
    topics = np.zeros(22 * len(rows), np.uint8)
    partitions = np.empty(len(rows), np.int32)
    kernels.read_keys(keys, rows, readable, group_ends, groups, topics, partitions)
    topic_ends = np.arange(0, 22 * (len(rows) + 1), 22, dtype=np.int32)
    return {
        "group_id": buffers.texts(pa.string(), group_ends, groups, readable),
        "topic_id": buffers.texts(pa.string(), topic_ends, topics, readable),
        "partition": buffers.numbers(pa.int32(), partitions, readable),
    }


def _state_batches(filled: kernels.Filled, has_value: buffers.Bools) -> pa.Array:
    ends = np.concatenate([np.zeros(1, np.int32), filled.ints[kernels.BATCH_END]])
    fields = [
        buffers.numbers(pa.int64(), filled.offsets[0]),
        buffers.numbers(pa.int64(), filled.offsets[1]),
        buffers.numbers(pa.int8(), filled.states),
        buffers.numbers(pa.int16(), filled.counts),
    ]
    return buffers.lists(pa.list_(STATE_BATCH), ends, fields, has_value)


def _unknown_tags(values: buffers.BinaryView, filled: kernels.Filled, tag_count: int, rows: Rows) -> pa.Array:
    tags = kernels.Tags(
        batch_index=np.empty(tag_count, np.int32),
        numbers=np.empty(tag_count, np.int64),
        starts=np.empty(tag_count, np.int64),
        sizes=np.empty(tag_count, np.int64),
    )
    tag_counts = filled.ints[kernels.TAG_COUNT]
    data = values.data[:0]
    if tag_count:
        kernels.read_tags(values, rows, filled.ints[kernels.KIND], tag_counts, tags)
        payloads = zip(tags.starts, tags.sizes, strict=True)
        data = np.concatenate([values.data[start : start + size] for start, size in payloads])
    fields = [
        buffers.numbers(pa.int32(), tags.batch_index, tags.batch_index >= 0),
        buffers.numbers(pa.int64(), tags.numbers),
        buffers.texts(pa.binary(), buffers.ends_of(tags.sizes), data),
    ]
    return buffers.lists(pa.list_(UNKNOWN_TAG), buffers.ends_of(tag_counts), fields)


def _problems(
    log_record: pa.RecordBatch,
    times: npt.NDArray[np.int64],
    keys: buffers.BinaryView,
    outcome: npt.NDArray[np.int8],
    rows: Rows,
) -> pa.RecordBatch:
    outcomes = outcome[rows]
    source = log_record.select(["topic_id", "partition", "offset", "key", "value"]).take(pa.array(rows))
    codes = pa.array(outcomes)
    columns = {
        "log_topic_id": source.column("topic_id"),
        "state_partition": source.column("partition"),
        "log_offset": source.column("offset"),
        "log_time_ms": pa.array(times[rows]),
        "reason": pa.array(REASONS).take(codes),
        "is_loss": pa.array([reason not in NOT_A_LOSS for reason in REASONS]).take(codes),
        "detail": _details(outcomes, source.column("value")),
        **_keys(keys, rows, outcomes > kernels.UNKNOWN_RECORD_TYPE),
        "key": source.column("key"),
        "value": source.column("value"),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in DECODE_PROBLEM.names], schema=DECODE_PROBLEM)


def _details(outcomes: npt.NDArray[np.int8], values: pa.Array) -> pa.Array:
    """One line for each problem; that of an unknown value version names the version."""
    details = [DETAILS.get(reason, "") for reason in REASONS]
    lines = pa.array(details).take(pa.array(outcomes))
    is_version = outcomes == kernels.UNKNOWN_VALUE_VERSION
    if not is_version.any():
        return lines
    heads = pc.binary_slice(values.filter(pa.array(is_version)), 0, 2).dictionary_encode()
    text = DETAILS["unknown_value_version"]
    named = pa.array([text.format(int.from_bytes(head, "big", signed=True)) for head in heads.dictionary.to_pylist()])
    return pc.replace_with_mask(lines, pa.array(is_version), named.take(heads.indices))
