"""Record batches of format 2: checked when they arrive, stamped when they are appended, built and parsed.

Layout: org.apache.kafka.common.record.DefaultRecordBatch and DefaultRecord. What a client may send:
org.apache.kafka.storage.internals.log.LogValidator and UnifiedLog.analyzeAndValidateRecords. Decompression stays
within a bound whatever the bytes claim, and records are counted before any list is made for them.
"""

import mmap
from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from sharelens.broker.errors import CorruptBatchError, InvalidRecordError, InvalidTimestampError
from sharelens.broker.ports import BatchSpan, Record
from sharelens.kafka_log import codecs

HEADER_BYTES: Final = 61
MAGIC: Final = 2
DEFAULT_LIMIT_BYTES: Final = codecs.DEFAULT_LIMIT_BYTES

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

ABORT, COMMIT = 0, 1
NO_PRODUCER_ID: Final = -1

_HEADER: Final = Struct(">qiibIhiqqqhii")
_SPAN: Final = Struct(">qi9xhi16xq")
_HEAD: Final = Struct(">qii")
_CHECKED: Final = Struct(">hiqqqhii")
_PREFIX: Final = Struct(">qiibI")
_TIMESTAMP: Final = Struct(">q")
_CONTROL_KEY: Final = Struct(">hh")
_CONTROL_VALUE: Final = Struct(">hi")
_CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT, _MAGIC_AT = 17, 21, 35, 16
_LENGTH_FROM: Final = 12
_NO_DELTAS: Final = bytes(3)
_HEAD_BYTES: Final = 16
_MIN_RECORD_BODY_BYTES: Final = 6
_KEEP_SCRATCH_BYTES: Final = 4 << 20
_INT32_MAX: Final = (1 << 31) - 1
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1

Buffer = bytes | memoryview


class BatchHeader(NamedTuple):
    """The 61 bytes at the start of a batch; `position` is where it starts in the bytes it was read from."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    position: int = 0

    @property
    def size_bytes(self) -> int:
        """Size of the whole batch."""
        return self.length + _LENGTH_FROM

    @property
    def last_offset(self) -> int:
        """Offset of its last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """Codec number of sharelens.kafka_log.codecs; 5 to 7 are invalid."""
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        """A transaction marker."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Part of a transaction, markers included."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; after 2^31-1 comes 0 (DefaultRecordBatch.incrementSequence)."""
        return (self.base_sequence + self.last_offset_delta) & _INT32_MAX if self.base_sequence >= 0 else -1


def read_header(data: Buffer, position: int = 0, *, origin: int = 0) -> BatchHeader | None:
    """The header at a position; None where it is cut short or can't be one. The checksum is not verified.

    origin: where `data` starts in its file, for the header's own position.
    """
    if len(data) - position < HEADER_BYTES:
        return None
    header = BatchHeader._make((*_HEADER.unpack_from(data, position), origin + position))
    if header.magic != MAGIC or header.length < HEADER_BYTES - _LENGTH_FROM:
        return None
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.record_count < 0:
        return None
    return header


def checksum_holds(data: Buffer, header: BatchHeader, start: int) -> bool:
    """Whether the CRC-32C of a batch that is there completely, from `start` on, is the one in its header."""
    return crc32c(memoryview(data)[start + _ATTRIBUTES_AT : start + header.size_bytes]) == header.crc


def split(data: Buffer) -> list[BatchHeader]:
    """The headers of complete batches that fill `data`, in order; each has a right length and checksum.

    Raises InvalidRecordError for formats before 2 and for no batch, CorruptBatchError otherwise.
    """
    headers: list[BatchHeader] = []
    position = 0
    while position < len(data):
        if len(data) - position > _MAGIC_AT and data[position + _MAGIC_AT] in (0, 1):
            raise InvalidRecordError(f"message format {data[position + _MAGIC_AT]} at byte {position}: only 2 is taken")
        header = read_header(data, position)
        if header is None or header.size_bytes > len(data) - position:
            raise CorruptBatchError(f"no complete record batch at byte {position} of {len(data)}")
        if not checksum_holds(data, header, position):
            raise CorruptBatchError(f"the record batch at byte {position} does not match its checksum")
        headers.append(header)
        position += header.size_bytes
    if not headers:
        raise InvalidRecordError("no record batch where there must be one")
    return headers


def validate_client(data: Buffer, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> BatchHeader:
    """The header of the one batch that a producer sends for a partition, after Kafka's checks of it.

    The records are counted by their lengths, which must fill the (decompressed) body; their fields are not read.
    Raises CorruptBatchError, InvalidRecordError, InvalidTimestampError.
    """
    headers = split(data)
    if len(headers) != 1:
        raise InvalidRecordError(f"{len(headers)} record batches for a partition where one is allowed")
    header = headers[0]
    if header.base_offset != 0:
        raise InvalidRecordError(f"base offset {header.base_offset} in a client's batch: it must be 0")
    if header.is_control:
        raise InvalidRecordError("clients must not write control records")
    if header.record_count != header.last_offset_delta + 1:
        raise InvalidRecordError(f"{header.record_count} records on {header.last_offset_delta + 1} offsets")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise InvalidRecordError(f"base sequence {header.base_sequence} of producer {header.producer_id}")
    if header.is_transactional and header.producer_id < 0:
        raise InvalidRecordError("a transactional batch without a producer id")
    if header.attributes & LOG_APPEND_TIME:
        raise InvalidTimestampError("only the broker writes log append times")
    _check_framing(_body(data, header, limit_bytes), header.record_count)
    return header


def stamp(
    data: Buffer, header: BatchHeader, *, base_offset: int, leader_epoch: int, log_append_time_ms: int | None = None
) -> tuple[Buffer, ...]:
    """The pieces to write for a client's batch at its place in the log; the records are not copied.

    The checksum does not cover offset and leader epoch. With a log append time the attributes and the maximum
    timestamp change, and so does the checksum.
    """
    batch = memoryview(data)[header.position : header.position + header.size_bytes]
    head = _HEAD.pack(base_offset, header.length, leader_epoch)
    if log_append_time_ms is None:
        return head, batch[_HEAD_BYTES:]
    changed = bytearray(batch[_HEAD_BYTES:HEADER_BYTES])
    attributes_at, max_at = _ATTRIBUTES_AT - _HEAD_BYTES, _MAX_TIMESTAMP_AT - _HEAD_BYTES
    changed[attributes_at : attributes_at + 2] = (header.attributes | LOG_APPEND_TIME).to_bytes(2, "big")
    changed[max_at : max_at + 8] = log_append_time_ms.to_bytes(8, "big", signed=True)
    records = batch[HEADER_BYTES:]
    crc = crc32c(records, crc32c(changed[attributes_at:]))
    changed[_CRC_AT - _HEAD_BYTES : attributes_at] = crc.to_bytes(4, "big")
    return head + bytes(changed), records


def build(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    now_ms: int = -1,
    codec: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
) -> bytes:
    """One batch of all records (at least one); a record without a timestamp gets `now_ms`.

    With LOG_APPEND_TIME among the attributes the maximum timestamp is `now_ms`. Raises ValueError for no records.
    """
    if not records:
        raise ValueError("a record batch has at least one record")
    timestamps = [now_ms if record.timestamp_ms < 0 else record.timestamp_ms for record in records]
    base_timestamp, latest = timestamps[0], max(timestamps)
    if len(records) == 1:
        packed = _encode_record(records[0], 0, 0)
    else:
        deltas = (timestamp - base_timestamp for timestamp in timestamps)
        packed = b"".join(map(_encode_record, records, deltas, range(len(records))))
    if codec:
        packed = codecs.compress(codec, packed)
        attributes |= codec
    if attributes & LOG_APPEND_TIME:
        latest = now_ms
    checked = _CHECKED.pack(
        attributes, len(records) - 1, base_timestamp, latest, producer_id, producer_epoch, base_sequence, len(records)
    )
    rest = checked + packed
    return _PREFIX.pack(base_offset, len(rest) + 9, leader_epoch, MAGIC, crc32c(rest)) + rest


def delete_horizon(header: BatchHeader) -> int | None:
    """Time from which on a compaction may drop tombstones or the marker; None before their first cleaning."""
    return header.base_timestamp_ms if header.attributes & DELETE_HORIZON else None


def rebuild(header: BatchHeader, records: Sequence[Record], *, delete_horizon_ms: int | None = None) -> bytes:
    """The batch with some of its records (at least one), which keep their offsets; its own range stays, too.

    A delete horizon replaces the base timestamp, to which record timestamps are relative.
    """
    is_stamped = header.attributes & LOG_APPEND_TIME
    latest = header.max_timestamp_ms if is_stamped else max(record.timestamp_ms for record in records)
    base_timestamp, attributes = header.base_timestamp_ms, header.attributes
    if delete_horizon_ms is not None:
        base_timestamp, attributes = delete_horizon_ms, attributes | DELETE_HORIZON
    packed = b"".join(
        [
            _encode_record(record, record.timestamp_ms - base_timestamp, record.offset - header.base_offset)
            for record in records
        ]
    )
    if header.codec:
        packed = codecs.compress(header.codec, packed)
    producer = header.producer_id, header.producer_epoch, header.base_sequence
    rest = _CHECKED.pack(attributes, header.last_offset_delta, base_timestamp, latest, *producer, len(records)) + packed
    return _PREFIX.pack(header.base_offset, len(rest) + 9, header.leader_epoch, MAGIC, crc32c(rest)) + rest


def max_timestamp_of(batch: Buffer) -> int:
    """The maximum timestamp in the header of a batch."""
    timestamp_ms: int = _TIMESTAMP.unpack_from(batch, _MAX_TIMESTAMP_AT)[0]
    return timestamp_ms


def build_control(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    now_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """A transaction marker (ControlRecordType, EndTransactionMarker, both of version 0)."""
    marker = Record(
        key=_CONTROL_KEY.pack(0, COMMIT if commit else ABORT), value=_CONTROL_VALUE.pack(0, coordinator_epoch)
    )
    return build(
        [marker],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL | CONTROL,
    )


class Marker(NamedTuple):
    """The type of a control batch."""

    is_commit: bool
    coordinator_epoch: int


def parse_control(data: Buffer, header: BatchHeader) -> Marker | None:
    """The transaction marker of a control batch; None for other control types."""
    record = parse(data, header)[0]
    key, value = record.key or b"", record.value or b""
    if len(key) < _CONTROL_KEY.size or len(value) < _CONTROL_VALUE.size:
        raise CorruptBatchError(f"the control record at offset {header.base_offset} is cut short")
    kind = _CONTROL_KEY.unpack_from(key)[1]
    if kind not in (ABORT, COMMIT):
        return None
    return Marker(is_commit=kind == COMMIT, coordinator_epoch=_CONTROL_VALUE.unpack_from(value)[1])


def spans(data: bytes) -> tuple[BatchSpan, ...]:
    """The spans of the whole batches at the start of `data`, which were checked when they were appended."""
    spans_of_batches: list[BatchSpan] = []
    position, end = 0, len(data)
    while end - position >= HEADER_BYTES:
        base_offset, length, attributes, delta, producer_id = _SPAN.unpack_from(data, position)
        position += length + _LENGTH_FROM
        if length < HEADER_BYTES - _LENGTH_FROM or position > end:
            break
        spans_of_batches.append(
            BatchSpan(
                first_offset=base_offset,
                last_offset=base_offset + delta,
                size_bytes=length + _LENGTH_FROM,
                is_control=attributes & CONTROL != 0,
                is_transactional=attributes & TRANSACTIONAL != 0,
                producer_id=producer_id,
            )
        )
    return tuple(spans_of_batches)


def parse(data: Buffer, header: BatchHeader | None = None, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[Record]:
    """The records of one batch in order, with the offsets and timestamps that its header gives them.

    `header`: of a batch that was checked before; None: `data` starts with the batch, which is checked first.
    Raises CorruptBatchError, also for a body that grows beyond `limit_bytes`.
    """
    if header is None:
        header = split(data)[0]
    body = _body(data, header, limit_bytes)
    append_time = header.max_timestamp_ms if header.attributes & LOG_APPEND_TIME else None
    records: list[Record] = []
    position = 0
    try:
        for _ in range(header.record_count):
            length, position = _read_varint(body, position)
            if length < _MIN_RECORD_BODY_BYTES or length > len(body) - position:
                raise CorruptBatchError(f"a record of {length} bytes at byte {position} of a body of {len(body)}")
            record = _decode_record(body, position, position + length, header, append_time)
            records.append(record)
            position += length
    except IndexError as error:
        raise CorruptBatchError(f"a record of the batch at offset {header.base_offset} is cut short") from error
    if position != len(body):
        raise CorruptBatchError(f"{header.record_count} records end at byte {position} of a body of {len(body)}")
    return records


def _encode_record(record: Record, timestamp_delta: int, offset_delta: int) -> bytes:
    """One record with its length before it."""
    key, value, headers, _, _ = record
    deltas = _NO_DELTAS if timestamp_delta == offset_delta == 0 else _deltas(timestamp_delta, offset_delta)
    if key is not None and value is not None and not headers:
        body = b"".join((deltas, _varint(len(key)), key, _varint(len(value)), value, b"\x00"))
        return _varint(len(body)) + body
    parts = [deltas]
    parts += (_varint(len(key)), key) if key is not None else (b"\x01",)
    parts += (_varint(len(value)), value) if value is not None else (b"\x01",)
    parts.append(_varint(len(headers)))
    for name, content in headers:
        raw = name.encode()
        parts += (_varint(len(raw)), raw)
        parts += (_varint(len(content)), content) if content is not None else (b"\x01",)
    body = b"".join(parts)
    return _varint(len(body)) + body


def _deltas(timestamp_delta: int, offset_delta: int) -> bytes:
    return b"\x00" + _varint(timestamp_delta) + _varint(offset_delta)


def _decode_record(body: bytes, position: int, end: int, header: BatchHeader, append_time_ms: int | None) -> Record:
    """One record; a delta outside of the batch, or a length beyond its end, is CorruptBatchError."""
    timestamp_delta, position = _read_varint(body, position + 1)
    offset_delta, position = _read_varint(body, position)
    timestamp = header.base_timestamp_ms + timestamp_delta if append_time_ms is None else append_time_ms
    if not _INT64_MIN <= timestamp <= _INT64_MAX:
        raise CorruptBatchError(f"timestamp delta {timestamp_delta} leads out of 64 bits")
    key, position = _read_bytes(body, position, end)
    value, position = _read_bytes(body, position, end)
    header_count, position = _read_varint(body, position)
    if not 0 <= offset_delta <= header.last_offset_delta:
        raise CorruptBatchError(f"offset delta {offset_delta} in a batch of {header.last_offset_delta + 1}")
    if not 0 <= header_count <= end - position:
        raise CorruptBatchError(f"{header_count} headers in {end - position} bytes")
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if header_count:
        headers, position = _read_headers(body, position, end, header_count)
    if position != end:
        raise CorruptBatchError(f"a record ends {position - end} bytes beside its length")
    return Record(
        key=key,
        value=value,
        headers=headers,
        timestamp_ms=timestamp,
        offset=header.base_offset + offset_delta,
    )


def _read_headers(body: bytes, position: int, end: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _read_bytes(body, position, end)
        if name is None:
            raise CorruptBatchError("a record header without a name")
        content, position = _read_bytes(body, position, end)
        headers.append((name.decode(errors="replace"), content))
    return tuple(headers), position


def _read_bytes(body: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = _read_varint(body, position)
    if length < 0:
        return None, position
    if length > end - position:
        raise CorruptBatchError(f"{length} bytes claimed where {max(end - position, 0)} are left")
    return body[position : position + length], position + length


def _read_varint(body: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint of at most ten bytes and 64 bits; IndexError at the end of the bytes."""
    byte = body[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        position += 1
        byte = body[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70 or value >> 64:
            raise CorruptBatchError("a variable-length number is wider than 64 bits")
    return (value >> 1) ^ -(value & 1), position + 1


def _wide_varint(value: int) -> bytes:
    zigzag = (value << 1) if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


_VARINTS: Final = tuple(_wide_varint(value) for value in range(2048))


def _varint(value: int) -> bytes:
    return _VARINTS[value] if 0 <= value < 2048 else _wide_varint(value)


def _check_framing(body: bytes, count: int) -> None:
    """`count` records, each of a possible length, fill the body exactly."""
    position, end = 0, len(body)
    try:
        for _ in range(count):
            length, position = _read_varint(body, position)
            if length < _MIN_RECORD_BODY_BYTES:
                raise CorruptBatchError(f"a record of {length} bytes")
            position += length
    except IndexError as error:
        raise CorruptBatchError(f"fewer than {count} records in the batch") from error
    if position != end:
        raise CorruptBatchError(f"{count} records end at byte {position} of a body of {end}")


def _body(data: Buffer, header: BatchHeader, limit_bytes: int) -> bytes:
    """The records section, decompressed."""
    packed = memoryview(data)[header.position + HEADER_BYTES : header.position + header.size_bytes]
    if header.codec == codecs.NONE:
        return bytes(packed)
    scratch = _scratch(limit_bytes)
    view = memoryview(scratch)
    try:
        length = codecs.decompress_into(header.codec, packed, view)
        body = bytes(view[:length])
    except codecs.CodecError as error:
        raise CorruptBatchError(f"the batch at offset {header.base_offset}: {error}") from error
    finally:
        view.release()
    if length > _KEEP_SCRATCH_BYTES:
        scratch.madvise(mmap.MADV_DONTNEED)
    return body


@cache
def _scratch(limit_bytes: int) -> mmap.mmap:
    """A buffer for decompression: address space that uses memory only where it is written."""
    return mmap.mmap(-1, limit_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
