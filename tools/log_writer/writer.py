"""Segments, partition folders and log directories as a broker leaves them behind, written from Arrow records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log import text_files
from sharelens.kafka_log.segment_file import Table
from tools.log_writer.encoding import Encoded, encode, plan

INDEX_INTERVAL_BYTES = 4096
SEGMENT_BYTES = 1 << 30

COMMIT, ABORT = 1, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """The bytes of a segment's `.index` and `.timeindex`."""

    offset_index: bytes
    time_index: bytes


def encode_batch(
    records: pa.RecordBatch | pa.Table,
    *,
    base_offset: int,
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    codec: int = 0,
    transactional: bool = False,
    log_append_time_ms: int | None = None,
) -> bytes:
    """One record batch of all `records` (key, value, timestamp_ms, optionally headers)."""
    attributes = codec | (rb.TRANSACTIONAL if transactional else 0)
    if log_append_time_ms is not None:
        attributes |= rb.LOG_APPEND_TIME
    table = plan(
        records,
        [records.num_rows],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        attributes=attributes,
    )
    if log_append_time_ms is not None:
        table[:, rb.MAX_TIMESTAMP] = log_append_time_ms
    return encode(records, table, base_offset=base_offset).data.tobytes()


def encode_control_batch(
    control_type: int,
    *,
    offset: int,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    leader_epoch: int = 0,
    coordinator_epoch: int = 0,
) -> bytes:
    """A transaction marker: key int16 version and type; value int16 version, int32 coordinator epoch."""
    key = (0).to_bytes(2, "big") + control_type.to_bytes(2, "big")
    value = (0).to_bytes(2, "big") + coordinator_epoch.to_bytes(4, "big")
    records = record_columns([key], [value], [timestamp_ms])
    table = plan(
        records,
        [1],
        base_offset=offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=rb.TRANSACTIONAL | rb.CONTROL,
    )
    return encode(records, table, base_offset=offset).data.tobytes()


def record_columns(
    keys: Iterable[bytes | None], values: Iterable[bytes | None], timestamps_ms: Iterable[int]
) -> pa.RecordBatch:
    """Records to encode, from Python values."""
    columns = {
        "timestamp_ms": pa.array(timestamps_ms, pa.int64()),
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def encode_log(
    records: pa.RecordBatch | pa.Table,
    *,
    records_per_batch: int,
    base_offset: int = 0,
    leader_epoch: int = 0,
    codec: int = 0,
) -> Encoded:
    """Many records in batches of equal length: what a generator needs."""
    full, rest = divmod(records.num_rows, records_per_batch)
    counts = [records_per_batch] * full + ([rest] if rest else [])
    table = plan(records, counts, base_offset=base_offset, leader_epoch=leader_epoch, attributes=codec)
    return encode(records, table, base_offset=base_offset)


def build_indexes(headers: Table, base_offset: int, *, interval_bytes: int = INDEX_INTERVAL_BYTES) -> Indexes:
    """The indexes that LogSegment.append and a clean close leave behind.

    headers: positions from the start of the segment. An entry is due at the first batch after more than
    `interval_bytes`; the time index has, with each of them and once at the end, the largest timestamp so far when it
    grew.
    """
    offset_entries: list[tuple[int, int]] = []
    time_entries: list[tuple[int, int]] = []
    largest, largest_offset, indexed, since = -1, 0, -1, 0
    columns = headers[:, [rb.POSITION, rb.LAST_OFFSET, rb.SIZE, rb.MAX_TIMESTAMP]].tolist()
    for position, last, size, timestamp in columns:
        if timestamp > largest:
            largest, largest_offset = timestamp, last
        if since > interval_bytes:
            offset_entries.append((last - base_offset, position))
            if largest > indexed:
                time_entries.append((largest, largest_offset - base_offset))
                indexed = largest
            since = 0
        since += size
    if largest > indexed:
        time_entries.append((largest, largest_offset - base_offset))
    time_index = np.array(time_entries, dtype=np.int64).reshape(-1, 2)
    packed = np.empty(len(time_index), dtype=[("timestamp", ">i8"), ("offset", ">i4")])
    packed["timestamp"], packed["offset"] = time_index[:, 0], time_index[:, 1]
    return Indexes(
        offset_index=np.array(offset_entries, dtype=">i4").tobytes(),
        time_index=packed.tobytes(),
    )


def build_segment(directory: Path, encoded: Encoded, *, base_offset: int | None = None) -> Path:
    """Write one segment with its indexes; the path of its log file."""
    first = int(encoded.headers[0, rb.BASE_OFFSET]) if base_offset is None else base_offset
    directory.mkdir(parents=True, exist_ok=True)
    indexes = build_indexes(encoded.headers, first)
    path = directory / f"{first:020d}.log"
    path.write_bytes(encoded.data.data)
    path.with_suffix(".index").write_bytes(indexes.offset_index)
    path.with_suffix(".timeindex").write_bytes(indexes.time_index)
    return path


def write_partition(
    log_directory: Path,
    topic: str,
    partition: int,
    encoded: Encoded,
    *,
    topic_id: str | None = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> Path:
    """Write a partition's folder: segments no larger than `segment_bytes` (at least a batch), epochs, metadata."""
    directory = log_directory / f"{topic}-{partition}"
    directory.mkdir(parents=True, exist_ok=True)
    for headers in _segment_cuts(encoded.headers, segment_bytes):
        start = int(headers[0, rb.POSITION])
        end = int(headers[-1, rb.POSITION] + headers[-1, rb.SIZE])
        headers = headers.copy()
        headers[:, rb.POSITION] -= start
        build_segment(directory, Encoded(data=encoded.data[start:end], headers=headers))
    epochs = encoded.headers[:, rb.LEADER_EPOCH]
    changes = np.flatnonzero(np.diff(epochs, prepend=-1) != 0)
    entries = [(int(epochs[row]), int(encoded.headers[row, rb.BASE_OFFSET])) for row in changes]
    (directory / text_files.LEADER_EPOCH_CHECKPOINT).write_text(
        text_files.format_leader_epochs(entries), encoding="utf-8"
    )
    if topic_id is not None:
        (directory / text_files.PARTITION_METADATA).write_text(
            text_files.format_partition_metadata(topic_id), encoding="ascii"
        )
    return directory


def _segment_cuts(headers: Table, segment_bytes: int) -> list[Table]:
    """The header table cut into segments."""
    cuts, start = [], 0
    ends = headers[:, rb.POSITION] + headers[:, rb.SIZE]
    while start < len(headers):
        stop = int(np.searchsorted(ends, headers[start, rb.POSITION] + segment_bytes, side="right"))
        cuts.append(headers[start : max(stop, start + 1)])
        start = max(stop, start + 1)
    return cuts


def write_checkpoints(
    log_directory: Path,
    *,
    high_watermarks: Mapping[tuple[str, int], int] | None = None,
    log_starts: Mapping[tuple[str, int], int] | None = None,
) -> None:
    """Write the checkpoints of a log directory; None writes no such file."""
    log_directory.mkdir(parents=True, exist_ok=True)
    for name, offsets in (
        (text_files.HIGH_WATERMARK_CHECKPOINT, high_watermarks),
        (text_files.LOG_START_CHECKPOINT, log_starts),
    ):
        if offsets is not None:
            (log_directory / name).write_text(text_files.format_partition_offsets(offsets), encoding="utf-8")


def write_meta(log_directory: Path, *, cluster_id: str, node_id: int) -> None:
    """Write meta.properties."""
    log_directory.mkdir(parents=True, exist_ok=True)
    text = f"node.id={node_id}\nversion=1\ncluster.id={cluster_id}\n"
    (log_directory / text_files.META_PROPERTIES).write_text(text, encoding="ascii")
