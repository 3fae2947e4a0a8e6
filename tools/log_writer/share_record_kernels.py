"""Kernels that write the records of __share_group_state into bytes (share-group-state-log §2-3).

Two passes: the first sizes every key and value and checks what it cannot write, the second writes into buffers of just
that size. A record's unknown tagged fields lie in the order of the wire: those of its batches first, its own (batch
index -1) last.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from state_model.columnar.buffers import Bytes, Int32s, Numbers
from state_model.columnar.byte_kernels import ALPHABET, UUID_CHARACTERS
from state_model.columnar.kernels import kernel

VALUE_OF = np.full(256, -1, dtype=np.int8)
VALUE_OF[ALPHABET] = np.arange(64)
SNAPSHOT, UPDATE, TOMBSTONE = 0, 1, 2
SNAPSHOT_EPOCH, STATE_EPOCH, LEADER_EPOCH, DCC, PARTITION = range(5)
START, CREATE, WRITE = range(3)
TAG_BATCH, TAG_NUMBER, TAG_AT, TAG_SIZE = range(4)

FITS, TAGS_OUT_OF_ORDER, TAG_TOO_LARGE, GROUP_TOO_LONG = range(4)

KEY_FIXED_BYTES = 24
MAX_STRING_BYTES = 32767
MAX_VARINT = 0xFFFFFFFF
VERSION_AND_SNAPSHOT_BYTES = 2 + 36
VERSION_AND_UPDATE_BYTES = 2 + 16
BATCH_FIXED_BYTES = 19
DCC_FIELD_BYTES = 6
OWN_TAGS = -1


class Scalars(NamedTuple):
    """The type and the numbers of each record: SNAPSHOT, UPDATE or TOMBSTONE, and a column each of two matrices.

    `ints` has the rows SNAPSHOT_EPOCH to PARTITION, `longs` the rows START to WRITE; 0 where a type has no such field.
    """

    kinds: npt.NDArray[np.int8]
    ints: Numbers
    longs: Numbers


class Batches(NamedTuple):
    """State batches, an entry each; those of record i are at[i] to at[i + 1] (exclusive)."""

    at: Int32s
    firsts: Numbers
    lasts: Numbers
    states: Numbers
    counts: Numbers


class Tags(NamedTuple):
    """Unknown tagged fields: columns at[i] to at[i + 1] (exclusive) of `table` are those of record i.

    `table` has the rows TAG_BATCH to TAG_SIZE; payloads lie in `data`.
    """

    at: Int32s
    table: npt.NDArray[np.int64]
    data: Bytes


@intrinsic
def store_big_endian(context: Any, data: Any, at: Any, value: Any) -> Any:
    """`store_big_endian(data, at, value)`: write `value` at byte `at` in the width of its type."""

    def store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        stored = builder.store(
            builder.bswap(arguments[2]), builder.bitcast(address, ir.IntType(value.bitwidth).as_pointer())
        )
        stored.align = 1
        return context.get_dummy_value()

    return types.none(data, types.intp, value), store


# The compiler passes the first argument of an intrinsic itself; a caller gives the other three.
_store: Callable[[np.ndarray, int, np.signedinteger], None] = store_big_endian  # type: ignore[assignment]


@kernel
def put_int16(data: np.ndarray, at: int, value: int) -> int:
    """Write a big-endian int16; the position behind it."""
    _store(data, at, np.int16(value))
    return at + 2


@kernel
def put_int32(data: np.ndarray, at: int, value: int) -> int:
    """Write a big-endian int32; the position behind it."""
    _store(data, at, np.int32(value))
    return at + 4


@kernel
def put_int64(data: np.ndarray, at: int, value: int) -> int:
    """Write a big-endian int64; the position behind it."""
    _store(data, at, np.int64(value))
    return at + 8


@kernel
def varint_bytes(value: int) -> int:
    """Bytes of the shortest unsigned varint of `value`, which is not negative."""
    size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


@kernel
def put_varint(data: np.ndarray, at: int, value: int) -> int:
    """Write the shortest unsigned varint of `value`, which is not negative; the position behind it."""
    while value >= 0x80:
        data[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    data[at] = value
    return at + 1


@kernel
def read_uuid_text(text: np.ndarray, at: int, data: np.ndarray, to: int) -> bool:
    """Write the 16 bytes of the 22 characters at `at`; False when they are not those of a uuid."""
    bits, width = 0, 0
    for step in range(UUID_CHARACTERS):
        value = int(VALUE_OF[text[at + step]])
        if value < 0:
            return False
        bits = (bits << 6 | value) & 0xFFFF
        width += 6
        if width >= 8:
            width -= 8
            data[to] = bits >> width & 0xFF
            to += 1
    return bits & 0xF == 0  # 132 bits in 22 characters, the last four of them not in use


@kernel
def size_keys(group_at: np.ndarray, sizes: np.ndarray) -> int:
    """Bytes of every key into `sizes`; the first row whose group id is too long for its length field, else -1."""
    for row in range(sizes.shape[0]):
        size = int(group_at[row + 1]) - int(group_at[row])
        if size > MAX_STRING_BYTES:
            return row
        sizes[row] = KEY_FIXED_BYTES + size
    return -1


@kernel
def write_keys(
    kinds: np.ndarray,
    groups: np.ndarray,
    group_at: np.ndarray,
    topics: np.ndarray,
    topic_at: np.ndarray,
    ints: np.ndarray,
    ends: np.ndarray,
    out: np.ndarray,
) -> int:
    """Write every key from ends[row] on; the first row whose topic id is no uuid, else -1."""
    # `size_keys` has sized the keys, so each ends where the next one begins.
    for row in range(kinds.shape[0]):
        start, end = int(group_at[row]), int(group_at[row + 1])
        at = put_int16(out, int(ends[row]), UPDATE if kinds[row] == UPDATE else SNAPSHOT)
        at = put_int16(out, at, end - start)
        for step in range(start, end):
            out[at] = groups[step]
            at += 1
        if int(topic_at[row + 1]) - int(topic_at[row]) != 22 or not read_uuid_text(topics, int(topic_at[row]), out, at):
            return row
        put_int32(out, at + 16, ints[PARTITION, row])
    return -1


@kernel
def size_tags(tags: np.ndarray, start: int, end: int) -> int:
    """Bytes of the tagged fields in these rows of `tags`, their count apart; -1 when a number or size does not fit."""
    size = 0
    for slot in range(start, end):
        if tags[TAG_NUMBER, slot] < 0 or tags[TAG_NUMBER, slot] > MAX_VARINT:
            return -1
        size += varint_bytes(tags[TAG_NUMBER, slot]) + varint_bytes(tags[TAG_SIZE, slot]) + tags[TAG_SIZE, slot]
    return size


@kernel
def end_of_group(tags: np.ndarray, start: int, end: int, batch: int) -> int:
    """Where the tagged fields of `batch` end that begin at `start`."""
    while start < end and tags[TAG_BATCH, start] == batch:
        start += 1
    return start


@kernel
def size_value(batches: int, tags: np.ndarray, slot: int, last_slot: int, dcc: int) -> int:
    """Bytes of a value's batches and tagged fields; minus the reason when it cannot be written."""
    size = varint_bytes(batches + 1) + (BATCH_FIXED_BYTES + 1) * batches
    while slot < last_slot and tags[TAG_BATCH, slot] != OWN_TAGS:
        batch = tags[TAG_BATCH, slot]
        end = end_of_group(tags, slot, last_slot, batch)
        tag_bytes = size_tags(tags, slot, end)
        if tag_bytes < 0:
            return -TAG_TOO_LARGE
        if batch < 0 or batch >= batches or (end < last_slot and OWN_TAGS < tags[TAG_BATCH, end] < batch):
            return -TAGS_OUT_OF_ORDER
        size += varint_bytes(end - slot) - 1 + tag_bytes
        slot = end
    if end_of_group(tags, slot, last_slot, OWN_TAGS) != last_slot:
        return -TAGS_OUT_OF_ORDER
    tag_bytes = size_tags(tags, slot, last_slot)
    if tag_bytes < 0:
        return -TAG_TOO_LARGE
    with_dcc = 1 if dcc != -1 else 0
    return size + varint_bytes(last_slot - slot + with_dcc) + DCC_FIELD_BYTES * with_dcc + tag_bytes


@kernel
def size_values(scalars: Scalars, batch_at: np.ndarray, tags: Tags, sizes: np.ndarray) -> tuple[int, int]:
    """Bytes of every value into `sizes` (tombstone: 0); the first row that does not fit and why, else -1, FITS."""
    kinds, ints, _ = scalars
    tag_at, table, _ = tags
    for row in range(kinds.shape[0]):
        sizes[row] = 0
        if kinds[row] == TOMBSTONE:
            continue
        batches = int(batch_at[row + 1]) - int(batch_at[row])
        size = size_value(batches, table, int(tag_at[row]), int(tag_at[row + 1]), ints[DCC, row])
        if size < 0:
            return row, -size
        sizes[row] = size + (VERSION_AND_SNAPSHOT_BYTES if kinds[row] == SNAPSHOT else VERSION_AND_UPDATE_BYTES)
    return -1, FITS


@kernel
def put_tags(tags: np.ndarray, start: int, end: int, data: np.ndarray, out: np.ndarray, at: int) -> int:
    """Write the tagged fields of these rows, their count apart; the position behind them."""
    for slot in range(start, end):
        at = put_varint(out, at, tags[TAG_NUMBER, slot])
        at = put_varint(out, at, tags[TAG_SIZE, slot])
        for step in range(tags[TAG_SIZE, slot]):
            out[at] = data[tags[TAG_AT, slot] + step]
            at += 1
    return at


@kernel
def put_scalars(kind: int, ints: np.ndarray, longs: np.ndarray, row: int, out: np.ndarray, at: int) -> int:
    """Write the value's version and the fixed fields of a snapshot or an update; the position behind them."""
    at = put_int16(out, at, 0)
    at = put_int32(out, at, ints[SNAPSHOT_EPOCH, row])
    if kind == SNAPSHOT:
        at = put_int32(out, at, ints[STATE_EPOCH, row])
    at = put_int32(out, at, ints[LEADER_EPOCH, row])
    at = put_int64(out, at, longs[START, row])
    if kind == SNAPSHOT:
        at = put_int64(out, at, longs[CREATE, row])
        at = put_int64(out, at, longs[WRITE, row])
    return at


@kernel
def write_values(scalars: Scalars, batches: Batches, tags: Tags, ends: np.ndarray, out: np.ndarray) -> None:
    """Write every value that `size_values` has sized, from ends[row] on."""
    # `size_values` refuses tagged fields in another order than that of the wire, so one slot walks through them once,
    # and what it leaves behind the last batch is the record's own.
    kinds, ints, longs = scalars
    batch_at, firsts, lasts, states, counts = batches
    tag_at, table, tag_data = tags
    for row in range(kinds.shape[0]):
        if kinds[row] == TOMBSTONE:
            continue
        at = put_scalars(kinds[row], ints, longs, row, out, int(ends[row]))
        slot, last_slot = int(tag_at[row]), int(tag_at[row + 1])
        first_batch, batch_end = int(batch_at[row]), int(batch_at[row + 1])
        at = put_varint(out, at, batch_end - first_batch + 1)
        for batch in range(first_batch, batch_end):
            at = put_int64(out, at, firsts[batch])
            at = put_int64(out, at, lasts[batch])
            out[at] = states[batch] & 0xFF
            at = put_int16(out, at + 1, counts[batch])
            end = end_of_group(table, slot, last_slot, batch - first_batch)
            at = put_tags(table, slot, end, tag_data, out, put_varint(out, at, end - slot))
            slot = end
        with_dcc = ints[DCC, row] != -1
        at = put_varint(out, at, last_slot - slot + (1 if with_dcc else 0))
        if with_dcc:
            at = put_int32(out, put_int16(out, at, 4), ints[DCC, row])  # tag 0, size 4
        put_tags(table, slot, last_slot, tag_data, out, at)
