"""Record batches (magic 2) from Arrow: compiled, byte for byte what Kafka's MemoryRecordsBuilder writes. No I/O.

The layout is in `record_batch`. The base timestamp of a batch is its first record's, so deltas may be negative;
lengths, deltas and counts are zigzag varints; the record attributes are 0.
"""

from dataclasses import dataclass
from typing import NamedTuple

import crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.kafka_log import codecs
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.files import Bytes
from sharelens.kafka_log.segment_file import Table
from state_model.columnar.kernels import kernel
from tools.log_writer.errors import BatchEncodeError

Int64s = npt.NDArray[np.int64]


class Parts(NamedTuple):
    """A binary column as its bytes and where each value starts; a length of -1 is null."""

    data: Bytes
    starts: Int64s
    lengths: Int64s


class Records(NamedTuple):
    """Records in the order in which they are written, an entry each.

    Those of record i are headers header_rows[i] to header_rows[i + 1] (exclusive), so `header_rows` has one entry more.
    """

    offsets: Int64s
    times: Int64s
    keys: Parts
    values: Parts
    header_rows: Int64s
    header_keys: Parts
    header_values: Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Record batches one after the other, and their header table (positions in `data`)."""

    data: Bytes
    headers: Table


@kernel
def _varint_size(value: int) -> int:
    bits = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while bits >= np.uint64(0x80):
        bits >>= np.uint64(7)
        size += 1
    return size


@kernel
def _put_varint(out: Bytes, at: int, value: int) -> int:
    bits = np.uint64((value << 1) ^ (value >> 63))
    while bits >= np.uint64(0x80):
        out[at] = np.uint8((bits & np.uint64(0x7F)) | np.uint64(0x80))
        bits >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(bits)
    return at + 1


@kernel
def _put_bytes(out: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    at = _put_varint(out, at, length)
    for index in range(max(length, 0)):
        out[at + index] = data[start + index]
    return at + max(length, 0)


@kernel
def _put_big_endian(out: Bytes, at: int, value: int, width: int) -> None:
    for index in range(width):
        out[at + index] = (value >> (8 * (width - 1 - index))) & 0xFF


@kernel
def _part_size(lengths: Int64s, row: int) -> int:
    return _varint_size(lengths[row]) + int(max(lengths[row], 0))


@kernel
def measure(table: Table, first_rows: Int64s, records: Records, sizes: Int64s) -> int:
    """Fill position and size of every batch and `sizes`, the bytes of every record after its length; the total.

    Batch i has the records first_rows[i] to first_rows[i + 1] (exclusive).
    """
    # Out of the record once: an access inside the loop costs a reference count for each of its arrays.
    offsets, times, keys, values, header_rows, header_keys, header_values = records
    key_lengths, value_lengths = keys.lengths, values.lengths
    header_key_lengths, header_value_lengths = header_keys.lengths, header_values.lengths
    at = 0
    for batch in range(len(table)):
        size = 61
        for row in range(first_rows[batch], first_rows[batch + 1]):
            length = 1 + _varint_size(times[row] - table[batch, 8]) + _varint_size(offsets[row] - table[batch, 1])
            length += _part_size(key_lengths, row) + _part_size(value_lengths, row)
            length += _varint_size(header_rows[row + 1] - header_rows[row])
            for header in range(header_rows[row], header_rows[row + 1]):
                length += _part_size(header_key_lengths, header) + _part_size(header_value_lengths, header)
            sizes[row] = length
            size += _varint_size(length) + length
        table[batch, 0] = at
        table[batch, 3] = size
        at += size
    return at


@kernel
def _put_header(out: Bytes, at: int, row: Int64s) -> None:
    _put_big_endian(out, at, row[1], 8)
    _put_big_endian(out, at + 8, row[3] - 12, 4)
    _put_big_endian(out, at + 12, row[4], 4)
    out[at + 16] = 2
    _put_big_endian(out, at + 21, row[7], 2)
    _put_big_endian(out, at + 23, row[2] - row[1], 4)
    _put_big_endian(out, at + 27, row[8], 8)
    _put_big_endian(out, at + 35, row[9], 8)
    _put_big_endian(out, at + 43, row[10], 8)
    _put_big_endian(out, at + 51, row[11], 2)
    _put_big_endian(out, at + 53, row[12], 4)
    _put_big_endian(out, at + 57, row[13], 4)


@kernel
def put_batches(table: Table, first_rows: Int64s, records: Records, sizes: Int64s, out: Bytes) -> None:
    """Write measured batches; their checksums are left for the caller."""
    # `measure` has sized every record, so `out` has just the room for what follows.
    offsets, times, keys, values, header_rows, header_keys, header_values = records
    for batch in range(len(table)):
        at = table[batch, 0]
        _put_header(out, at, table[batch])
        at += 61
        for row in range(first_rows[batch], first_rows[batch + 1]):
            at = _put_varint(out, at, sizes[row])
            out[at] = 0
            at = _put_varint(out, at + 1, times[row] - table[batch, 8])
            at = _put_varint(out, at, offsets[row] - table[batch, 1])
            at = _put_bytes(out, at, keys.data, keys.starts[row], keys.lengths[row])
            at = _put_bytes(out, at, values.data, values.starts[row], values.lengths[row])
            at = _put_varint(out, at, header_rows[row + 1] - header_rows[row])
            for header in range(header_rows[row], header_rows[row + 1]):
                at = _put_bytes(out, at, header_keys.data, header_keys.starts[header], header_keys.lengths[header])
                at = _put_bytes(
                    out, at, header_values.data, header_values.starts[header], header_values.lengths[header]
                )


def parts(column: pa.Array | pa.ChunkedArray) -> Parts:
    """The bytes of a binary or string column, without a copy where it is one chunk."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = column.cast(pa.large_binary())
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(bounds)
    if column.null_count:
        lengths[~column.is_valid().to_numpy(zero_copy_only=False)] = -1
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, dtype=np.uint8)
    raw.flags.writeable = False
    return Parts(data=raw, starts=bounds[:-1].copy(), lengths=lengths)


def _columns(records: pa.RecordBatch | pa.Table, offsets: Int64s) -> Records:
    """The columns of records as kernels read them."""
    header_rows, header_keys, header_values = _header_parts(records)
    return Records(
        offsets=offsets,
        times=_int64(records, "timestamp_ms"),
        keys=parts(records["key"]),
        values=parts(records["value"]),
        header_rows=header_rows,
        header_keys=header_keys,
        header_values=header_values,
    )


def _header_parts(records: pa.RecordBatch | pa.Table) -> tuple[Int64s, Parts, Parts]:
    """Which headers each record has (rows + 1 bounds), their keys, their values."""
    if "headers" not in records.schema.names:
        no_parts = parts(pa.array([], pa.binary()))
        return np.zeros(records.num_rows + 1, dtype=np.int64), no_parts, no_parts
    column = records["headers"]
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    entries = column.flatten()
    return np.concatenate([[0], np.cumsum(counts)]), parts(entries.field("key")), parts(entries.field("value"))


def _int64(records: pa.RecordBatch | pa.Table, name: str) -> Int64s:
    return (
        np.ascontiguousarray(records[name].to_numpy(zero_copy_only=False), dtype=np.int64)
        if isinstance(records, pa.RecordBatch)
        else np.ascontiguousarray(records[name].to_numpy(), dtype=np.int64)
    )


def plan(
    records: pa.RecordBatch | pa.Table,
    record_counts: npt.ArrayLike,
    *,
    base_offset: int | None = None,
    leader_epoch: npt.ArrayLike = 0,
    producer_id: npt.ArrayLike = -1,
    producer_epoch: npt.ArrayLike = -1,
    base_sequence: npt.ArrayLike = -1,
    attributes: npt.ArrayLike = 0,
) -> Table:
    """A header table for records cut into batches of `record_counts` rows.

    Offsets come from the column `offset`, or count up from `base_offset`. The other arguments are one value, or one
    a batch. A caller may change any column before it encodes: offsets that a compaction left behind, say.
    """
    counts = np.asarray(record_counts, dtype=np.int64)
    if counts.sum() != records.num_rows or (counts <= 0).any():
        raise BatchEncodeError(f"batches of {counts.sum()} records are planned for {records.num_rows}, each needs one")
    bounds = np.concatenate([[0], np.cumsum(counts)])
    offsets, times = _offsets(records, base_offset), _int64(records, "timestamp_ms")
    table = np.zeros((len(counts), rb.COLUMNS), dtype=np.int64)
    table[:, rb.BASE_OFFSET] = offsets[bounds[:-1]]
    table[:, rb.LAST_OFFSET] = offsets[bounds[1:] - 1]
    table[:, rb.LEADER_EPOCH] = leader_epoch
    table[:, rb.MAGIC] = 2
    table[:, rb.ATTRIBUTES] = attributes
    table[:, rb.BASE_TIMESTAMP] = times[bounds[:-1]]
    table[:, rb.MAX_TIMESTAMP] = np.maximum.reduceat(times, bounds[:-1]) if len(counts) else 0
    table[:, rb.PRODUCER_ID] = producer_id
    table[:, rb.PRODUCER_EPOCH] = producer_epoch
    table[:, rb.BASE_SEQUENCE] = base_sequence
    table[:, rb.RECORD_COUNT] = counts
    return table


def _offsets(records: pa.RecordBatch | pa.Table, base_offset: int | None) -> Int64s:
    if base_offset is None and "offset" in records.schema.names:
        offsets = _int64(records, "offset")
        if (np.diff(offsets) <= 0).any():
            raise BatchEncodeError("offsets do not ascend: sort the records by offset, one of each")
        return offsets
    return np.arange(records.num_rows, dtype=np.int64) + (base_offset or 0)


def encode(records: pa.RecordBatch | pa.Table, table: Table, *, base_offset: int | None = None) -> Encoded:
    """The batches of a plan.

    records: columns key and value (binary), timestamp_ms (int64), optionally offset and headers. Batches whose
    attributes name a codec are compressed. Raises BatchEncodeError when the plan does not fit the records.
    """
    table = np.ascontiguousarray(table)
    offsets = _offsets(records, base_offset)
    first_rows = np.concatenate([[0], np.cumsum(table[:, rb.RECORD_COUNT])])
    if first_rows[-1] != records.num_rows:
        raise BatchEncodeError(f"the plan is for {first_rows[-1]} records, these are {records.num_rows}")
    columns = _columns(records, offsets)
    sizes = np.empty(records.num_rows, dtype=np.int64)
    out = np.empty(measure(table, first_rows, columns, sizes), dtype=np.uint8)
    put_batches(table, first_rows, columns, sizes, out)
    if (table[:, rb.ATTRIBUTES] & rb.CODEC_MASK).any():
        return _compressed(out, table)
    seal(out, table)
    return Encoded(data=out, headers=table)


def _compressed(data: Bytes, table: Table) -> Encoded:
    pieces: list[bytes] = []
    at = 0
    for row in table:
        start, size = int(row[rb.POSITION]), int(row[rb.SIZE])
        codec = int(row[rb.ATTRIBUTES]) & rb.CODEC_MASK
        body = codecs.compress(codec, data[start + rb.HEADER_BYTES : start + size].tobytes())
        row[rb.POSITION], row[rb.SIZE] = at, rb.HEADER_BYTES + len(body)
        head = data[start : start + rb.HEADER_BYTES].tobytes()
        pieces += [head[:8], (len(body) + rb.HEADER_BYTES - rb.LENGTH_PREFIX_BYTES).to_bytes(4, "big"), head[12:], body]
        at += rb.HEADER_BYTES + len(body)
    out = np.frombuffer(bytearray(b"".join(pieces)), dtype=np.uint8)
    seal(out, table)
    return Encoded(data=out, headers=table)


def seal(data: Bytes, table: Table) -> None:
    """Put the checksums in."""
    view = data.data
    for row in table:
        start = int(row[rb.POSITION])
        row[rb.CRC] = crc32c.crc32c(view[start + rb.CRC_START : start + int(row[rb.SIZE])])
        view[start + 17 : start + 21] = int(row[rb.CRC]).to_bytes(4, "big")
