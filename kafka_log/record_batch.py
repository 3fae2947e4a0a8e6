"""Record batches (magic 2) as numbers: compiled walks over their headers and records. No I/O, no Python object a
record.

Layout (org.apache.kafka.common.record.DefaultRecordBatch, big endian): base offset int64 · length int32 (bytes after
it) · leader epoch int32 · magic int8 · CRC-32C uint32 of everything after it · attributes int16 · last offset delta
int32 · base timestamp int64 · max timestamp int64 · producer id int64 · producer epoch int16 · base sequence int32 ·
record count int32 · records. Offset, length, epoch and magic lie outside the CRC. Older message sets (magic 0, 1)
share offset, length and the place of the magic byte.

A header table is an int64 array with one row a batch and the columns below; positions are relative to the buffer
walked.
"""

import numpy as np
import numpy.typing as npt

from state_model.columnar.kernels import kernel

Bytes = npt.NDArray[np.uint8]
Table = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32]

HEADER_BYTES = 61
LENGTH_PREFIX_BYTES = 12
MINIMUM_HEADER_BYTES = 17
CRC_START = 21
OLD_CRC_START = 16
SMALLEST_RECORD_BYTES = 7

POSITION, BASE_OFFSET, LAST_OFFSET, SIZE, LEADER_EPOCH, MAGIC, CRC, ATTRIBUTES = range(8)
BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, RECORD_COUNT = range(8, 14)
COLUMNS = 14

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

# Reasons why a walk stopped.
END, BAD, FULL = 0, 1, 2

# Faults of the records of a batch.
NO_FAULT, BAD_COUNT, BAD_RECORD = 0, 1, 2


@kernel
def _int32(data: Bytes, at: int) -> int:
    value = (np.int64(data[at]) << 24) | (np.int64(data[at + 1]) << 16) | (np.int64(data[at + 2]) << 8) | data[at + 3]
    return int(value - ((value & 0x80000000) << 1))


@kernel
def _int64(data: Bytes, at: int) -> int:
    high = _int32(data, at)
    low = _int32(data, at + 4) & 0xFFFFFFFF
    return (high << 32) | low


@kernel
def _int16(data: Bytes, at: int) -> int:
    value = (np.int64(data[at]) << 8) | np.int64(data[at + 1])
    return int(value - ((value & 0x8000) << 1))


@kernel
def _plausible(data: Bytes, at: int, end: int, max_size: int) -> int:
    """The size of the batch at `at` when its header can be one, else 0, or -1 when the header is cut short."""
    if end - at < MINIMUM_HEADER_BYTES:
        return -1
    size = _int32(data, at + 8) + LENGTH_PREFIX_BYTES
    magic = data[at + 16]
    base = _int64(data, at)
    if base < 0 or size > max_size or magic > 2:
        return 0
    if magic < 2:
        return size if size >= 26 else 0
    if size < HEADER_BYTES:
        return 0
    if end - at < HEADER_BYTES:
        return -1
    delta = _int32(data, at + 23)
    count = _int32(data, at + 57)
    if delta < 0 or count < 0 or count > delta + 1 or base + delta < base:
        return 0
    return size


@kernel
def _read_header(data: Bytes, at: int, size: int, row: Table) -> None:
    row[POSITION] = at
    row[BASE_OFFSET] = _int64(data, at)
    row[SIZE] = size
    row[MAGIC] = data[at + 16]
    if row[MAGIC] < 2:
        row[LAST_OFFSET] = row[BASE_OFFSET]
        row[LEADER_EPOCH] = -1
        row[CRC:] = 0
        row[CRC] = _int32(data, at + 12) & 0xFFFFFFFF
        return
    row[LEADER_EPOCH] = _int32(data, at + 12)
    row[CRC] = _int32(data, at + 17) & 0xFFFFFFFF
    row[ATTRIBUTES] = _int16(data, at + 21)
    row[LAST_OFFSET] = row[BASE_OFFSET] + _int32(data, at + 23)
    row[BASE_TIMESTAMP] = _int64(data, at + 27)
    row[MAX_TIMESTAMP] = _int64(data, at + 35)
    row[PRODUCER_ID] = _int64(data, at + 43)
    row[PRODUCER_EPOCH] = _int16(data, at + 51)
    row[BASE_SEQUENCE] = _int32(data, at + 53)
    row[RECORD_COUNT] = _int32(data, at + 57)


@kernel
def walk_headers(data: Bytes, start: int, max_size: int, whole: bool, table: Table) -> tuple[int, int, int]:
    """Fill `table` with the headers from `start` on; (rows, where it stopped, why).

    With `whole` a batch counts only when all its bytes are in `data`; without, its header is enough and the place where
    it stopped may lie beyond the buffer. END: the batch there is cut by the end of the buffer. BAD: no plausible
    header.
    """
    end = len(data)
    at = start
    rows = 0
    while at < end:
        size = _plausible(data, at, end, max_size)
        if size == 0:
            return rows, at, BAD
        if size < 0 or (whole and at + size > end):
            return rows, at, END
        if rows == len(table):
            return rows, at, FULL
        _read_header(data, at, size, table[rows])
        rows += 1
        at += size
    return rows, at, END


@kernel
def find_header(data: Bytes, start: int, max_size: int, first_offset: int, last_offset: int) -> int:
    """The next position from `start` on where a magic 2 header for an offset in the range could stand; -1 if none."""
    for at in range(start, len(data) - HEADER_BYTES + 1):
        if data[at + 16] != 2:
            continue
        base = _int64(data, at)
        if base < first_offset or base > last_offset:
            continue
        if _plausible(data, at, len(data), max_size) > 0:
            return at
    return -1


@kernel
def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """(zigzag value, next position); the position is -1 when the number is cut or longer than ten bytes."""
    result = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < 70:
        byte = np.uint64(data[at])
        at += 1
        result |= (byte & np.uint64(0x7F)) << shift
        if byte < 0x80:
            return int(np.int64(result >> np.uint64(1)) ^ -np.int64(result & np.uint64(1))), at
        shift += np.uint64(7)
    return 0, -1


@kernel
def _skip_headers(data: Bytes, at: int, end: int, count: int) -> int:
    """The position after `count` record headers; -1 when they don't fit."""
    for _ in range(count):
        length, at = _varint(data, at, end)
        if at < 0 or length < 0 or length > end - at:
            return -1
        length, at = _varint(data, at + length, end)
        if at < 0 or length < -1 or length > end - at:
            return -1
        at += max(length, 0)
    return at


@kernel
def _read_record(data: Bytes, at: int, end: int, out: Table, row: int) -> int:
    """Fill column `row` of `out` with one record and return where it ends, -1 when it is malformed.

    The rows of out: offset delta, timestamp delta, key position, key length (-1 null), value position, value length
    (-1 null), headers position, number of headers.
    """
    length, at = _varint(data, at, end)
    if at < 0 or length < 6 or length > end - at:
        return -1
    stop = at + length
    out[1, row], at = _varint(data, at + 1, stop)
    if at < 0:
        return -1
    out[0, row], at = _varint(data, at, stop)
    if at < 0:
        return -1
    for field in range(2, 6, 2):
        size, at = _varint(data, at, stop)
        if at < 0 or size < -1 or size > stop - at:
            return -1
        out[field, row] = at
        out[field + 1, row] = size
        at += max(size, 0)
    count, at = _varint(data, at, stop)
    if at < 0 or count < 0 or count * 2 > stop - at:
        return -1
    out[6, row] = at
    out[7, row] = count
    if count:
        at = _skip_headers(data, at, stop, count)
    return stop if at == stop else -1


@kernel
def read_records(data: Bytes, bodies: Table, headers: Table, records: Table, row_of: Table, faults: Table) -> int:
    """Parse the records of many batches; the number of records read.

    bodies: start and end of each batch's (uncompressed) records in `data`. headers: their header table. Out:
    `records`, one column a record (absolute offset, absolute timestamp, then the positions of `_read_record`),
    `row_of` its batch, `faults` one code a batch. A batch with a fault gives no record: offsets must ascend inside
    the batch's range and the records must fill the body exactly, as the broker demands.
    """
    filled = 0
    for row in range(len(headers)):
        at, end = bodies[row, 0], bodies[row, 1]
        previous = headers[row, BASE_OFFSET] - 1
        faults[row] = NO_FAULT
        if headers[row, RECORD_COUNT] * SMALLEST_RECORD_BYTES > end - at:
            faults[row] = BAD_COUNT
            continue
        append_time = headers[row, ATTRIBUTES] & LOG_APPEND_TIME
        first = filled
        for _ in range(headers[row, RECORD_COUNT]):
            at = _read_record(data, at, end, records, filled)
            delta = records[0, filled]
            offset = headers[row, BASE_OFFSET] + delta
            if at < 0 or delta < 0 or offset <= previous or offset > headers[row, LAST_OFFSET]:
                at = -1
                break
            previous = offset
            records[0, filled] = offset
            if append_time:
                records[1, filled] = headers[row, MAX_TIMESTAMP]
            else:
                records[1, filled] += headers[row, BASE_TIMESTAMP]
            row_of[filled] = row
            filled += 1
        if at != end:
            filled = first
            faults[row] = BAD_RECORD
    return filled


@kernel
def gather(data: Bytes, positions: Table, lengths: Table, offsets: Offsets, out: Bytes) -> None:
    """Copy one byte range a row side by side into `out`; `offsets` (rows + 1) gets the starts, null (-1) is empty."""
    at = 0
    for row in range(len(lengths)):
        offsets[row] = at
        start = positions[row]
        for index in range(max(lengths[row], 0)):
            out[at + index] = data[start + index]
        at += max(lengths[row], 0)
    offsets[len(lengths)] = at


@kernel
def read_record_headers(data: Bytes, positions: Table, counts: Table, out: Table) -> None:
    """Key position, key length, value position and value length (-1 null) of every record header, in order.

    The positions and counts come from `read_records`, which has checked that they fit.
    """
    filled = 0
    for row in range(len(counts)):
        at = positions[row]
        for _ in range(counts[row]):
            length, at = _varint(data, at, len(data))
            out[filled, 0] = at
            out[filled, 1] = length
            length, at = _varint(data, at + length, len(data))
            out[filled, 2] = at
            out[filled, 3] = length
            at += max(length, 0)
            filled += 1
