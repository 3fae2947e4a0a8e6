"""Batch headers as rows: what a topic has, without its records."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log import segments
from sharelens.kafka_log.arrow import booleans, integers, repeated
from sharelens.kafka_log.files import Bytes
from sharelens.kafka_log.index_file import locate
from sharelens.kafka_log.layout import PartitionDirectory, open_segment
from sharelens.kafka_log.merge import known_epochs, superseded_from, trusted_epochs
from sharelens.kafka_log.records import timestamp_types
from sharelens.kafka_log.schemas import TOPIC_BATCH
from sharelens.kafka_log.segment_file import Table
from sharelens.kafka_log.segments import CopyReader
from sharelens.kafka_log.union import LogPartition

_CONTROL_TYPES = {0: "ABORT", 1: "COMMIT"}
_CONTROL_BODY_BYTES = 256
_ROWS_AT_ONCE = 4096

Kinds = npt.NDArray[np.object_]
"""The control type of each batch, None where it is no control batch."""


def scan(partition: LogPartition, from_offset: int, to_offset: int) -> Iterator[pa.RecordBatch]:
    """TOPIC_BATCH rows of the batches that touch [from_offset, to_offset), in offset order, each offset range once."""
    for copy in partition.copies:
        segments.check_visible(copy)
    if len(partition.copies) == 1:
        for table, kinds in _gathered(_scan_copy(partition.copies[0], from_offset, to_offset)):
            yield _arrow(partition, table, kinds)
        return
    emitted = from_offset
    for first, last in _slices(partition, from_offset, to_offset):
        table, kinds = _merged(partition, first, last)
        fresh = table[:, rb.LAST_OFFSET] >= emitted
        if fresh.any():
            yield _arrow(partition, table[fresh], kinds[fresh])
            emitted = int(table[-1, rb.LAST_OFFSET]) + 1


def _gathered(scanned: Iterator[tuple[Table, Kinds]]) -> Iterator[tuple[Table, Kinds]]:
    """The tables joined to at least _ROWS_AT_ONCE rows: a window on large batches has one header."""
    tables: list[Table] = []
    kinds: list[Kinds] = []
    rows = 0
    for table, kind in scanned:
        tables.append(table)
        kinds.append(kind)
        rows += len(table)
        if rows >= _ROWS_AT_ONCE:
            yield np.concatenate(tables), np.concatenate(kinds)
            tables, kinds, rows = [], [], 0
    if tables:
        yield np.concatenate(tables), np.concatenate(kinds)


def _slices(partition: LogPartition, from_offset: int, to_offset: int) -> list[tuple[int, int]]:
    """Ranges that each touch few segments, so that the headers of a slice fit in memory."""
    bases = {segment.base_offset for copy in partition.copies for segment in copy.segments}
    inner = sorted(base for base in bases if from_offset < base < to_offset)
    return list(zip([from_offset, *inner], [*inner, to_offset], strict=True))


def _scan_copy(copy: PartitionDirectory, from_offset: int, to_offset: int) -> Iterator[tuple[Table, Kinds]]:
    """Header tables of one copy and the control type of each batch (None where it is no control batch)."""
    reader = CopyReader(
        copy,
        from_offset=from_offset,
        to_offset=to_offset,
        lost_below=0,
        start=locate(copy, from_offset),
        bodies=False,
    )
    by_uri = {segment.uri: segment for segment in copy.segments}
    for block in reader.blocks():
        if len(block.headers) == 0:
            continue
        kinds = np.full(len(block.headers), None, dtype=np.object_)
        control = np.flatnonzero(block.headers[:, rb.ATTRIBUTES] & rb.CONTROL)
        if len(control):
            try:
                with open_segment(by_uri[block.file]) as file:
                    for row in control.tolist():
                        at = block.data_position + int(block.headers[row, rb.POSITION]) + rb.HEADER_BYTES
                        size = int(block.headers[row, rb.SIZE]) - rb.HEADER_BYTES
                        kinds[row] = _control_type(file.read_at(at, min(size, _CONTROL_BODY_BYTES)), block.headers[row])
            except FileNotFoundError:
                kinds[control] = "OTHER"
        yield block.headers, kinds


def _control_type(body: Bytes, header: Table) -> str:
    """ABORT, COMMIT or OTHER: the key of a control record is int16 version, int16 type (ControlRecordType)."""
    headers = header.reshape(1, -1).copy()
    records = np.empty((8, 2), dtype=np.int64)
    faults = np.zeros(1, dtype=np.int64)
    ranges = np.array([[0, len(body)]], dtype=np.int64)
    if headers[0, rb.RECORD_COUNT] != 1:
        return "OTHER"
    if rb.read_records(body, ranges, headers, records, np.empty(2, dtype=np.int64), faults) != 1 or records[3, 0] < 4:
        return "OTHER"
    at = int(records[2, 0])
    return _CONTROL_TYPES.get(int.from_bytes(body[at + 2 : at + 4].tobytes(), "big", signed=True), "OTHER")


def _merged(partition: LogPartition, from_offset: int, to_offset: int) -> tuple[Table, Kinds]:
    """The headers of all copies in a range: no batch of a replaced leader epoch, no batch that another one overlaps."""
    scanned: list[tuple[Table, Kinds]] = []
    epochs_scanned = []
    for copy in partition.copies:
        for table, kinds in _scan_copy(copy, from_offset, to_offset):
            scanned.append((table, kinds))
            epochs_scanned.append(trusted_epochs(copy, table))
    if not scanned:
        return np.zeros((0, rb.COLUMNS), dtype=np.int64), np.empty(0, dtype=np.object_)
    table = np.concatenate([headers for headers, _ in scanned])
    kinds = np.concatenate([kinds for _, kinds in scanned])
    epochs = np.concatenate(epochs_scanned)
    starts = known_epochs(partition.copies)
    for epoch in np.unique(epochs).tolist():
        first = int(table[epochs == epoch, rb.BASE_OFFSET].min())
        starts[epoch] = min(first, starts.get(epoch, first))
    current = table[:, rb.LAST_OFFSET] < superseded_from(starts, epochs)
    table, kinds = table[current], kinds[current]
    order = np.lexsort((-table[:, rb.LAST_OFFSET], table[:, rb.BASE_OFFSET]))
    table, kinds = table[order], kinds[order]
    reach = np.concatenate([[-1], np.maximum.accumulate(table[:, rb.LAST_OFFSET])[:-1]]) if len(table) else table[:, 0]
    is_disjoint = table[:, rb.BASE_OFFSET] > reach
    return table[is_disjoint], kinds[is_disjoint]


def _arrow(partition: LogPartition, table: Table, kinds: Kinds) -> pa.RecordBatch:
    count = len(table)
    attributes = table[:, rb.ATTRIBUTES]
    committed = partition.committed_end
    last = table[:, rb.LAST_OFFSET]
    no_control = pa.nulls(count, pa.string())
    wide = {name: integers(table[:, column]) for name, column in _INT64.items()}
    narrow = {name: integers(table[:, column].astype(np.int32)) for name, column in _INT32.items()}
    columns = {
        "topic": repeated(partition.topic, count),
        "topic_id": repeated(partition.topic_id, count),
        "partition": integers(np.full(count, partition.partition, dtype=np.int32)),
        "timestamp_type": timestamp_types(attributes),
        "producer_epoch": integers(table[:, rb.PRODUCER_EPOCH].astype(np.int16)),
        "transactional": booleans((attributes & rb.TRANSACTIONAL) != 0),
        "control_type": no_control if all(kind is None for kind in kinds) else pa.array(kinds.tolist(), pa.string()),
        "below_log_start": booleans(last < partition.log_start_offset),
        "uncommitted": booleans(np.zeros(count, dtype=np.bool_) if committed is None else last >= committed),
        **wide,
        **narrow,
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in TOPIC_BATCH.names], schema=TOPIC_BATCH)


_INT64 = {
    "base_offset": rb.BASE_OFFSET,
    "last_offset": rb.LAST_OFFSET,
    "base_timestamp_ms": rb.BASE_TIMESTAMP,
    "max_timestamp_ms": rb.MAX_TIMESTAMP,
    "producer_id": rb.PRODUCER_ID,
}
_INT32 = {
    "record_count": rb.RECORD_COUNT,
    "size_bytes": rb.SIZE,
    "base_sequence": rb.BASE_SEQUENCE,
    "leader_epoch": rb.LEADER_EPOCH,
}
