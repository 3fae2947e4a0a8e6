"""Record batches (magic 2) as numbers: their headers in a table, compiled walks over their records. No I/O, no
Python object a record.

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
from numpy.lib.stride_tricks import sliding_window_view

from state_model.columnar.kernels import compiled_if_ready, kernel

Bytes = npt.NDArray[np.uint8]
Table = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

HEADER_BYTES = 61
LENGTH_PREFIX_BYTES = 12
MINIMUM_HEADER_BYTES = 17
MAGIC_POSITION = 16
SMALLEST_OLD_SET_BYTES = 26
SHORT_BYTES = 64 << 10
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

_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "u1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
_FIELD_OF_COLUMN = {
    BASE_OFFSET: "base_offset",
    SIZE: "length",
    LEADER_EPOCH: "leader_epoch",
    MAGIC: "magic",
    CRC: "crc",
    ATTRIBUTES: "attributes",
    BASE_TIMESTAMP: "base_timestamp",
    MAX_TIMESTAMP: "max_timestamp",
    PRODUCER_ID: "producer_id",
    PRODUCER_EPOCH: "producer_epoch",
    BASE_SEQUENCE: "base_sequence",
    RECORD_COUNT: "record_count",
}

# Faults of the records of a batch.
NO_FAULT, BAD_COUNT, BAD_RECORD = 0, 1, 2


def walk_headers(data: Bytes, max_size: int, *, require_whole: bool) -> tuple[Table, int, bool]:
    """The headers of the batches that follow each other from the start of `data`, where the walk stopped, and why.

    With `require_whole` a batch counts only when all its bytes are in `data`; without, its header is enough and the
    place where it stopped may lie beyond the data. The third value is false where a header that can't be one stopped
    the walk, true where the data ended. Short data needs no compiled code, which takes longer to load than to read it.
    """
    # The walk refuses smaller sizes, so no data can have more batches than this.
    positions = np.empty(len(data) // SMALLEST_OLD_SET_BYTES + 1, dtype=np.int64)
    hop = _hop if len(data) > SHORT_BYTES else compiled_if_ready(_hop)
    count, stopped, ended = hop(data, max_size, positions)
    positions = positions[:count]
    headers, plausible, complete = _headers_at(data, positions, max_size)
    if not plausible.all():
        rows = int(np.argmin(plausible))
        return headers[:rows], int(positions[rows]), False
    if count and (not complete[-1] or (require_whole and stopped > len(data))):
        return headers[:-1], int(positions[-1]), True
    return headers, stopped, ended


def possible_headers(data: Bytes, max_size: int, first_offset: int, last_offset: int) -> list[int]:
    """The positions, ascending, where a magic 2 header for a base offset in the range could stand."""
    # Cheapest test first: few bytes are 2, so the base offset and the whole header are read at few places only.
    magic = data[MAGIC_POSITION : len(data) - HEADER_BYTES + MAGIC_POSITION + 1]
    positions = np.flatnonzero(magic == 2)
    bases = sliding_window_view(data, 8)[positions].view(">i8")[:, 0] if len(positions) else positions
    positions = positions[(bases >= first_offset) & (bases <= last_offset)]
    _, plausible, _ = _headers_at(data, positions, max_size)
    result: list[int] = positions[plausible].tolist()
    return result


@kernel
def _hop(data: Bytes, max_size: int, positions: Table) -> tuple[int, int, bool]:
    """Fill `positions` with the batches that follow each other by their sizes: (count, next position, data ended).

    Stops where fewer than 17 bytes are left, and at a size that no batch has; so `positions` needs room for one batch
    in 26 bytes.
    """
    # Each turn advances by 26 bytes at least: that bounds the turns and `positions`. A size may lead beyond the data;
    # the caller decides whether such a batch counts.
    at = 0
    count = 0
    while at + MINIMUM_HEADER_BYTES <= len(data):
        length = np.int64(data[at + 8]) << 24 | np.int64(data[at + 9]) << 16 | np.int64(data[at + 10]) << 8
        size = (length | np.int64(data[at + 11])) + LENGTH_PREFIX_BYTES
        if size < SMALLEST_OLD_SET_BYTES or size > max_size:
            return count, at, False
        positions[count] = at
        count += 1
        at += int(size)
    return count, at, True


def _headers_at(data: Bytes, positions: Table, max_size: int) -> tuple[Table, Mask, Mask]:
    """The headers at ascending positions, whether each can be one, and whether its bytes are all in `data`.

    At least 17 bytes are there at each position. The headers of old message sets have zeros in the columns behind CRC.
    """
    complete = positions + HEADER_BYTES <= len(data)
    # Zeros behind the data let a cut header be viewed as a whole one; `complete` says not to judge its fields.
    if not complete.all():
        data = np.concatenate([data, np.zeros(HEADER_BYTES, np.uint8)])
    if len(positions) == 0:
        return np.empty((0, COLUMNS), np.int64), complete, complete
    fields = sliding_window_view(data, HEADER_BYTES)[positions].view(_HEADER)[:, 0]
    is_old = fields["magic"] < 2
    complete |= is_old
    table = np.empty((len(positions), COLUMNS), dtype=np.int64)
    table[:, POSITION] = positions
    for column, name in _FIELD_OF_COLUMN.items():
        table[:, column] = fields[name]
    table[:, SIZE] += LENGTH_PREFIX_BYTES
    delta, count = fields["last_offset_delta"].astype(np.int64), table[:, RECORD_COUNT]
    table[:, LAST_OFFSET] = table[:, BASE_OFFSET] + delta
    plausible = (table[:, BASE_OFFSET] >= 0) & (fields["magic"] <= 2) & (table[:, SIZE] <= max_size)
    plausible &= table[:, SIZE] >= np.where(is_old, SMALLEST_OLD_SET_BYTES, HEADER_BYTES)
    counted = (delta >= 0) & (count >= 0) & (count <= delta + 1) & (table[:, LAST_OFFSET] >= table[:, BASE_OFFSET])
    plausible &= counted | ~complete | is_old
    table[is_old, LAST_OFFSET] = table[is_old, BASE_OFFSET]
    table[is_old, CRC] = table[is_old, LEADER_EPOCH] & 0xFFFFFFFF
    table[is_old, LEADER_EPOCH] = -1
    table[is_old, ATTRIBUTES:] = 0
    return table, plausible, complete


@kernel
def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """(zigzag value, next position); the position is -1 when the number is cut or longer than ten bytes."""
    # Ten bytes carry 64 bits: no input makes the loop longer. Zigzag keeps the sign in the lowest bit.
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
    # The caller has bounded `count` by two bytes a header; each length is compared with the bytes left before it is
    # used.
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
    # Six bytes at least: attributes, two deltas, two lengths, the number of headers. From here on all reads stay inside
    # the record, whatever its lengths say.
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
    # A header takes two bytes at least, so a hostile count ends here.
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
    # A batch may claim any number of records: the claim is compared with its bytes before the loop, so the caller's
    # columns (as many as count and bytes allow) suffice. A faulty batch sets `filled` back: the next one overwrites its
    # records.
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
    # The caller has sized `out` by the same lengths.
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
    # `out` has one row for each header: the caller has added up the counts.
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
