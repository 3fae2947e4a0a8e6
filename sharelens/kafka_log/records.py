"""Parses blocks of batches into Arrow: records in the LOG_RECORD schema, damages in the PROBLEM schema."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.arrow import booleans, integers, no_rows, repeated
from sharelens.kafka_log.blocks import KEPT_BYTES, Block, Damage
from sharelens.kafka_log.codecs import DEFAULT_LIMIT_BYTES, CodecError, Decompressor
from sharelens.kafka_log.files import Bytes
from sharelens.kafka_log.schemas import HEADER, LOG_RECORD, PROBLEM
from sharelens.kafka_log.segment_file import Table
from sharelens.kafka_log.union import LogPartition
from state_model.topics import INTERNAL_TOPICS

_ARENA_BYTES = 64 << 20
_RECORDS_AT_ONCE = 1 << 20
MAXIMUM_RECORDS_PER_BATCH = 1 << 21
_HEADERLESS = frozenset({"bad_header", "truncated"})
_FAULTS = {
    rb.BAD_COUNT: ("bad_record_count", "the header announces more records than its bytes can hold"),
    rb.BAD_RECORD: ("malformed_records", "the checksum fits, the records don't parse"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bodies:
    """Uncompressed records sections: start and end of each batch's in `data`."""

    data: Bytes
    ranges: Table
    headers: Table


class RecordParser:
    """Parses blocks of one partition into record batches with the offsets in [from_offset, to_offset)."""

    def __init__(
        self, partition: LogPartition, *, from_offset: int, to_offset: int, limit_bytes: int = DEFAULT_LIMIT_BYTES
    ) -> None:
        self._partition = partition
        self._from = from_offset
        self._to = to_offset
        self._decompressor = Decompressor(limit_bytes)

    def parse(self, block: Block) -> Iterator[tuple[pa.RecordBatch, list[Damage]]]:
        """Record batches in offset order, each with the damages before its end; a large block gives several."""
        damages = list(block.damages)
        is_oversized = block.headers[:, rb.RECORD_COUNT] > MAXIMUM_RECORDS_PER_BATCH
        for header in block.headers[is_oversized]:
            detail = f"{header[rb.RECORD_COUNT]} records in one batch, more than {MAXIMUM_RECORDS_PER_BATCH}"
            damages.append(_batch_damage(block, header, "oversized", detail))
        for bodies in self._bodies(block, block.headers[~is_oversized], damages):
            records = self._parse_bodies(block, bodies, damages)
            yield records, damages
            damages = []
        if damages:
            yield empty_records(), damages

    def _bodies(self, block: Block, headers: Table, damages: list[Damage]) -> Iterator[_Bodies]:
        """The bodies of a block, decompressed, in pieces of bounded size and number of records."""
        total = np.cumsum(headers[:, rb.RECORD_COUNT])
        cuts = np.flatnonzero(np.diff(total // _RECORDS_AT_ONCE)) + 1
        for piece in np.split(headers, cuts) if len(headers) else []:
            if (piece[:, rb.ATTRIBUTES] & rb.CODEC_MASK).any():
                yield from self._decompressed(block, piece, damages)
            else:
                starts = piece[:, rb.POSITION]
                ranges = np.stack([starts + rb.HEADER_BYTES, starts + piece[:, rb.SIZE]], axis=1)
                yield _Bodies(data=block.data, ranges=ranges, headers=piece)

    def _decompressed(self, block: Block, headers: Table, damages: list[Damage]) -> Iterator[_Bodies]:
        pieces: list[Bytes] = []
        rows: list[int] = []
        filled = 0
        for row in range(len(headers)):
            start = int(headers[row, rb.POSITION])
            body = block.data[start + rb.HEADER_BYTES : start + int(headers[row, rb.SIZE])]
            try:
                piece = self._decompressor.decompress(int(headers[row, rb.ATTRIBUTES]) & rb.CODEC_MASK, body)
            except CodecError as error:
                damages.append(_batch_damage(block, headers[row], error.reason, str(error)))
                continue
            pieces.append(piece.copy())
            rows.append(row)
            filled += len(piece)
            if filled >= _ARENA_BYTES:
                yield _join(pieces, headers[rows])
                pieces, rows, filled = [], [], 0
        if rows:
            yield _join(pieces, headers[rows])

    def _parse_bodies(self, block: Block, bodies: _Bodies, damages: list[Damage]) -> pa.RecordBatch:
        headers = bodies.headers
        room = np.minimum(headers[:, rb.RECORD_COUNT], (bodies.ranges[:, 1] - bodies.ranges[:, 0]) // 7)
        count = int(room.sum())
        records = np.empty((8, count + 1), dtype=np.int64)
        row_of = np.empty(count + 1, dtype=np.int64)
        faults = np.empty(len(headers), dtype=np.int64)
        filled = rb.read_records(bodies.data, bodies.ranges, headers, records, row_of, faults)
        for row in np.flatnonzero(faults):
            damages.append(_batch_damage(block, headers[row], *_FAULTS[int(faults[row])]))
        first = int(np.searchsorted(records[0, :filled], self._from, side="left"))
        last = int(np.searchsorted(records[0, :filled], self._to, side="left"))
        return self._arrow(bodies.data, records[:, first:last], headers, row_of[first:last])

    def _arrow(self, data: Bytes, records: Table, headers: Table, row_of: npt.NDArray[np.int64]) -> pa.RecordBatch:
        partition = self._partition
        count = records.shape[1]
        offsets = records[0]
        attributes = headers[row_of, rb.ATTRIBUTES]
        committed = partition.committed_end
        above = np.zeros(count, dtype=np.bool_) if committed is None else offsets >= committed
        columns = [
            repeated(partition.topic, count),
            repeated(partition.topic_id, count),
            integers(np.full(count, partition.partition, dtype=np.int32)),
            integers(offsets),
            integers(records[1]),
            timestamp_types(attributes),
            _binary(data, records[2], records[3]),
            _binary(data, records[4], records[5]),
            _headers(data, records[6], records[7]),
            integers(headers[row_of, rb.BASE_OFFSET]),
            integers(headers[row_of, rb.LEADER_EPOCH].astype(np.int32)),
            integers(headers[row_of, rb.PRODUCER_ID]),
            integers(headers[row_of, rb.PRODUCER_EPOCH].astype(np.int16)),
            integers(attributes.astype(np.int16)),
            booleans((attributes & rb.CONTROL) != 0),
            booleans(offsets < partition.log_start_offset),
            booleans(above),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=LOG_RECORD)


def empty_records() -> pa.RecordBatch:
    """No rows, in the LOG_RECORD schema."""
    return no_rows(LOG_RECORD)


def timestamp_types(attributes: npt.NDArray[np.int64]) -> pa.Array:
    """CreateTime or LogAppendTime by the batch attributes."""
    append_time = (attributes & rb.LOG_APPEND_TIME) != 0
    if append_time.all() or not append_time.any():
        return repeated("LogAppendTime" if append_time.any() else "CreateTime", len(attributes))
    names = pa.array(["CreateTime", "LogAppendTime"], pa.string())
    return names.take(integers(append_time.astype(np.int32)))


def _join(pieces: list[Bytes], headers: Table) -> _Bodies:
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]])
    return _Bodies(data=np.concatenate(pieces), ranges=np.stack([starts, ends], axis=1), headers=headers)


def _batch_damage(block: Block, header: npt.NDArray[np.int64], reason: str, detail: str) -> Damage:
    start, size = int(header[rb.POSITION]), int(header[rb.SIZE])
    first, last = int(header[rb.BASE_OFFSET]), int(header[rb.LAST_OFFSET])
    return Damage(
        file=block.file,
        position=block.data_position + start,
        end_position=block.data_position + start + size,
        first_offset=first,
        last_offset=last,
        reason=reason,
        detail=f"{detail}; offsets {first} to {last} are missing",
        raw=block.data[start : start + min(size, KEPT_BYTES)].tobytes(),
    )


def _binary(data: Bytes, positions: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> pa.Array:
    """A binary array of byte ranges; a length of -1 is null."""
    count = len(lengths)
    nulls = lengths < 0
    null_count = int(np.count_nonzero(nulls))
    offsets = np.empty(count + 1, dtype=np.int32)
    out = np.empty(int(lengths.sum()) + null_count, dtype=np.uint8)
    rb.gather(data, np.ascontiguousarray(positions), np.ascontiguousarray(lengths), offsets, out)
    validity = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if null_count else None
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, null_count)


def _headers(data: Bytes, positions: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> pa.Array:
    """The record headers as lists of (key, value)."""
    total = int(counts.sum())
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    fields = np.empty((total, 4), dtype=np.int64)
    if total:
        rb.read_record_headers(data, np.ascontiguousarray(positions), np.ascontiguousarray(counts), fields)
    keys = _text(_binary(data, fields[:, 0], fields[:, 1]))
    values = _binary(data, fields[:, 2], fields[:, 3])
    entries = pa.StructArray.from_arrays([keys, values], fields=list(HEADER))
    return pa.ListArray.from_arrays(integers(offsets), entries, type=pa.list_(HEADER))


def _text(keys: pa.Array) -> pa.Array:
    """Header keys as text; bytes that are no UTF-8 are replaced, as a Java client does."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", errors="replace") for key in keys.to_pylist()], pa.string())


def _kept_bytes(damage: Damage, *, internal: bool) -> bytes:
    if internal:
        return damage.raw
    return b"" if damage.reason in _HEADERLESS else damage.raw[: rb.HEADER_BYTES]


def problems(partition: LogPartition, damages: Iterable[tuple[str, Damage]]) -> pa.RecordBatch:
    """PROBLEM rows of (source id, damage); offsets are null when none is missing.

    Of user topics only the batch header is kept, where there is one: payloads are never copied.
    """
    internal = partition.topic in INTERNAL_TOPICS
    rows = [
        {
            "source_id": source_id,
            "topic": partition.topic,
            "topic_id": partition.topic_id,
            "partition": partition.partition,
            "file": damage.file,
            "position": damage.position,
            "first_offset": damage.first_offset if damage.loses_offsets else None,
            "last_offset": damage.last_offset if damage.loses_offsets else None,
            "reason": damage.reason,
            "detail": damage.detail,
            "bytes": _kept_bytes(damage, internal=internal),
        }
        for source_id, damage in damages
    ]
    return pa.RecordBatch.from_pylist(rows, schema=PROBLEM) if rows else no_rows(PROBLEM)
