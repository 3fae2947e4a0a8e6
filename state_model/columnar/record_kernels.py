"""Kernels that read the records of __share_group_state in their bytes (share-group-state-log §2-3).

A buffer is a contiguous uint8 array; a position is an index into it. Every read is preceded by a check against the end
of the key or value it belongs to, so no length, count or tag size is used before it is known to fit.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from state_model.columnar.buffers import BinaryView
from state_model.columnar.byte_kernels import (
    TOO_SHORT,
    int16_at,
    int32_at,
    int64_at,
    is_utf8,
    unsigned_varint,
    write_uuid_text,
)
from state_model.columnar.kernels import kernel

SNAPSHOT, UPDATE, TOMBSTONE, OTHER = 0, 1, 2, 3
NO_KIND = -1

# Outcomes of decoding a record; their reason codes are in decode.py.
(
    DECODED,
    CONTROL_RECORD,
    BAD_KEY,
    INVALID_UTF8,
    UNKNOWN_RECORD_TYPE,
    UNKNOWN_VALUE_VERSION,
    UPDATE_WITHOUT_VALUE,
    TRUNCATED_VALUE,
    MALFORMED_VARINT,
    INVALID_LENGTH,
) = range(10)

# Rows of the integer matrices that decoding fills: a row for each column of the table.
KIND, SNAPSHOT_EPOCH, STATE_EPOCH, LEADER_EPOCH, DCC, TRAILING, RECORD_BYTES, BATCH_END, TAG_COUNT = range(9)
START, CREATE, WRITE = range(3)

KEY_FIXED_BYTES = 2 + 2 + 16 + 4  # record type, group id length, topic id, partition
SNAPSHOT_FIXED_BYTES = 36
UPDATE_FIXED_BYTES = 16
STATE_BATCH_BYTES = 20
BATCH_FIXED_BYTES = 19  # a state batch without its tagged fields
DCC_TAG = 0
DCC_BYTES = 4
BAD_LENGTH = -3  # with TOO_SHORT and MALFORMED: in the order of the last three outcomes


class Filled(NamedTuple):
    """What decoding fills: a code in `outcome` for each input row, the others from the front, in input order.

    `ints` (KIND to TAG_COUNT) and `longs` (START to WRITE) have a row for each column of the table and an entry for
    each decoded record. State batches have an entry of `states` and `counts` and a column of `offsets`, whose two rows
    are first and last: those of a record end at BATCH_END. Room is for as many records as input rows, and a state batch
    every STATE_BATCH_BYTES of all values.
    """

    outcome: npt.NDArray[np.int8]
    ints: npt.NDArray[np.int32]
    longs: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    states: npt.NDArray[np.int8]
    counts: npt.NDArray[np.int16]


class Tags(NamedTuple):
    """Unknown tagged fields in the order of the wire, an entry each: number, begin and size of the payload.

    `batch_index`: the state batch within its record; -1 for a field of the record, which comes behind those of batches.
    """

    batch_index: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


@kernel
def key_outcome(data: np.ndarray, start: int, end: int) -> int:
    """DECODED for a key that names a share partition, else the outcome.

    Bytes behind the key are ignored. A key of an unknown record type may be of another form, so it has none.
    """
    if end - start < 2:
        return BAD_KEY
    outcome = share_partition_outcome(data, start, end)
    if int16_at(data, start) in (SNAPSHOT, UPDATE):
        return outcome
    is_same_form = outcome == DECODED and int16_at(data, start + 2) == end - start - KEY_FIXED_BYTES
    return DECODED if is_same_form else UNKNOWN_RECORD_TYPE


@kernel
def share_partition_outcome(data: np.ndarray, start: int, end: int) -> int:
    """DECODED for a key with a complete share partition behind its record type, else the outcome."""
    if end - start < 4:
        return BAD_KEY
    size = int16_at(data, start + 2)
    if size < 0 or size > end - start - 4:
        return BAD_KEY
    if not is_utf8(data, start + 4, start + 4 + size):
        return INVALID_UTF8
    return DECODED if size <= end - start - KEY_FIXED_BYTES else BAD_KEY


@kernel
def skip_tags(data: np.ndarray, at: int, end: int, with_dcc: bool) -> tuple[int, int, int]:
    """(next position, delivery complete count or -1, unknown tagged fields); a negative position says why not.

    With `with_dcc` the field of tag 0 is DeliveryCompleteCount (int32), not unknown; its last occurrence counts.
    """
    dcc = -1
    unknown = 0
    count, at = unsigned_varint(data, at, end)
    if count < 0:
        return count, dcc, unknown
    if count > (end - at) // 2:  # a tagged field takes two bytes at least
        return TOO_SHORT, dcc, unknown
    # Each turn consumes two bytes at least and stops at `end`, so a hostile count or size costs no more than the bytes.
    for _ in range(count):
        tag, at = unsigned_varint(data, at, end)
        if tag < 0:
            return tag, dcc, unknown
        size, at = unsigned_varint(data, at, end)
        if size < 0:
            return size, dcc, unknown
        if size > end - at:
            return TOO_SHORT, dcc, unknown
        if with_dcc and tag == DCC_TAG:
            if size != DCC_BYTES:
                return BAD_LENGTH, dcc, unknown
            dcc = int32_at(data, at)
        else:
            unknown += 1
        at += size
    return at, dcc, unknown


@kernel
def read_batches(
    data: np.ndarray, at: int, end: int, offsets: np.ndarray, states: np.ndarray, counts: np.ndarray, row: int
) -> tuple[int, int, int]:
    """(next position or why not, next batch row, unknown tagged fields) after an array of state batches.

    `offsets`, `states` and `counts`: see `Filled`.
    """
    claimed, at = unsigned_varint(data, at, end)
    if claimed < 0:
        return claimed, row, 0
    if claimed == 0:
        return BAD_LENGTH, row, 0  # null, in a field that is never null
    if claimed - 1 > (end - at) // STATE_BATCH_BYTES:
        return TOO_SHORT, row, 0
    # A claim above the bytes that are left was refused, and each batch takes 20 bytes of this value: no claim writes
    # behind the arrays, which have room for the bytes of all values.
    unknown = 0
    for _ in range(claimed - 1):
        if end - at < STATE_BATCH_BYTES:
            return TOO_SHORT, row, unknown
        offsets[0, row] = int64_at(data, at)
        offsets[1, row] = int64_at(data, at + 8)
        states[row] = np.int8(data[at + 16])
        counts[row] = int16_at(data, at + 17)
        row += 1
        at += BATCH_FIXED_BYTES
        # Kafka writes no tagged fields here: the usual batch ends with one zero byte.
        if data[at] == 0:
            at += 1
            continue
        at, _, batch_tag_count = skip_tags(data, at, end, False)
        if at < 0:
            return at, row, unknown
        unknown += batch_tag_count
    return at, row, unknown


@kernel
def read_scalars(data: np.ndarray, at: int, kind: int, ints: np.ndarray, longs: np.ndarray, row: int) -> int:
    """Position after the fixed fields of a snapshot or an update, which the caller knows to be there."""
    ints[SNAPSHOT_EPOCH, row] = int32_at(data, at)
    if kind == SNAPSHOT:
        ints[STATE_EPOCH, row] = int32_at(data, at + 4)
        ints[LEADER_EPOCH, row] = int32_at(data, at + 8)
        longs[START, row] = int64_at(data, at + 12)
        longs[CREATE, row] = int64_at(data, at + 20)
        longs[WRITE, row] = int64_at(data, at + 28)
        return at + SNAPSHOT_FIXED_BYTES
    ints[STATE_EPOCH, row] = 0
    ints[LEADER_EPOCH, row] = int32_at(data, at + 4)
    longs[START, row] = int64_at(data, at + 8)
    longs[CREATE, row] = 0
    longs[WRITE, row] = 0
    return at + UPDATE_FIXED_BYTES


@kernel
def value_head(data: np.ndarray, start: int, end: int, kind: int) -> int:
    """Position of the first field of a value of a known version whose fixed fields fit; else minus the outcome."""
    if end - start < 2:
        return -TRUNCATED_VALUE
    if int16_at(data, start) != 0:
        return -UNKNOWN_VALUE_VERSION
    if end - start - 2 < (SNAPSHOT_FIXED_BYTES if kind == SNAPSHOT else UPDATE_FIXED_BYTES):
        return -TRUNCATED_VALUE
    return start + 2


@kernel
def kind_of(record_type: int, has_value: bool) -> int:
    """The kind of a record; NO_KIND for an update without a value."""
    if record_type not in (SNAPSHOT, UPDATE):
        return OTHER
    if has_value:
        return record_type
    return TOMBSTONE if record_type == SNAPSHOT else NO_KIND


@kernel
def decode_rows(keys: BinaryView, values: BinaryView, control: np.ndarray, filled: Filled) -> tuple[int, int, int]:
    """Decode every row; (decoded rows, their state batches, their unknown tagged fields).

    A row that fails uses no entry of `filled` but its outcome.
    """
    # Out of the records once: an access inside the loop costs a reference count for each of its arrays.
    outcome, ints, longs, offsets, states, counts = filled
    key_data, key_at, key_there = keys
    value_data, value_at, value_there = values
    # `row` and `batch` advance only behind a whole record, so a record that fails half-way leaves nothing: the next one
    # overwrites its entries. `row` never exceeds `source`, which bounds the columns.
    row, batch, unknown = 0, 0, 0
    for source in range(outcome.shape[0]):
        start, end = int(key_at[source]), int(key_at[source + 1])
        result = CONTROL_RECORD
        if not control[source]:
            result = key_outcome(key_data, start, end) if key_there[source] else BAD_KEY
        outcome[source] = result
        if result != DECODED:
            continue
        value, value_end = int(value_at[source]), int(value_at[source + 1])
        kind = kind_of(int16_at(key_data, start), value_there[source])
        tags = 0
        if kind == NO_KIND:
            outcome[source] = UPDATE_WITHOUT_VALUE
            continue
        if kind in (TOMBSTONE, OTHER):
            ints[1:RECORD_BYTES, row] = 0
            longs[:, row] = 0
        else:
            at = value_head(value_data, value, value_end, kind)
            if at < 0:
                outcome[source] = -at
                continue
            at = read_scalars(value_data, at, kind, ints, longs, row)
            at, next_batch, tags = read_batches(value_data, at, value_end, offsets, states, counts, batch)
            record_tag_count = 0
            if at >= 0:
                at, ints[DCC, row], record_tag_count = skip_tags(value_data, at, value_end, True)
            if at < 0:
                outcome[source] = TRUNCATED_VALUE + TOO_SHORT - at
                continue
            batch, tags = next_batch, tags + record_tag_count
            ints[TRAILING, row] = value_end - at
        ints[KIND, row] = kind
        ints[RECORD_BYTES, row] = (end - start) + (value_end - value)
        ints[BATCH_END, row] = batch
        ints[TAG_COUNT, row] = tags
        unknown += tags
        row += 1
    return row, batch, unknown


@kernel
def group_bytes(keys: BinaryView, rows: np.ndarray, readable: np.ndarray) -> int:
    """Bytes of the group ids of the keys in `rows` that are readable."""
    data, at = keys.data, keys.at
    # The same rows and lengths as in `read_keys`: the sum is the exact size of its buffer of group ids.
    total = 0
    for row in range(rows.shape[0]):
        if readable[row]:
            total += int16_at(data, int(at[rows[row]]) + 2)
    return total


@kernel
def read_keys(
    keys: BinaryView,
    rows: np.ndarray,
    readable: np.ndarray,
    group_ends: np.ndarray,
    groups: np.ndarray,
    topics: np.ndarray,
    partitions: np.ndarray,
) -> None:
    """Fill group ids (`group_ends[0]` is 0), topic ids (22 characters), partitions of the readable keys in `rows`."""
    # A key that is readable was checked by `key_outcome`, so its length and the 20 bytes behind the group id fit.
    data, key_at = keys.data, keys.at
    position = 0
    for row in range(rows.shape[0]):
        partitions[row] = 0
        if readable[row]:
            at = int(key_at[rows[row]]) + 4
            end = at + int16_at(data, at - 2)
            for step in range(at, end):
                groups[position] = data[step]
                position += 1
            write_uuid_text(data, end, topics, 22 * row)
            partitions[row] = int32_at(data, end + 16)
        group_ends[row + 1] = position


@kernel
def read_tags(values: BinaryView, rows: np.ndarray, kinds: np.ndarray, tag_counts: np.ndarray, tags: Tags) -> None:
    """Fill `tags` with where each unknown tagged field of decoded records lies."""
    # `decode_rows` has checked these values and counted their tagged fields: nothing is checked again, and the arrays
    # have one slot for each field.
    data, value_at = values.data, values.at
    batch_index, numbers, starts, sizes = tags
    slot = 0
    for row in range(rows.shape[0]):
        if tag_counts[row] == 0:
            continue
        at, end = int(value_at[rows[row]]) + 2, int(value_at[rows[row] + 1])
        at += SNAPSHOT_FIXED_BYTES if kinds[row] == SNAPSHOT else UPDATE_FIXED_BYTES
        claimed, at = unsigned_varint(data, at, end)
        for batch in range(claimed):  # the last turn is the record's own fields
            is_of_record = batch == claimed - 1
            count, at = unsigned_varint(data, at if is_of_record else at + BATCH_FIXED_BYTES, end)
            for _ in range(count):
                tag, at = unsigned_varint(data, at, end)
                size, at = unsigned_varint(data, at, end)
                if not is_of_record or tag != DCC_TAG:
                    batch_index[slot] = -1 if is_of_record else batch
                    numbers[slot] = tag
                    starts[slot] = at
                    sizes[slot] = size
                    slot += 1
                at += size


@kernel
def select_keys(keys: BinaryView, key: np.ndarray, compared: np.ndarray) -> np.ndarray:
    """Mask of the rows whose key equals `key` in the compared fields, or cannot be read.

    `key` is group id, 16 bytes of topic id and 4 of partition; `compared` says which of the three are compared.
    """
    data, key_at, key_there = keys
    selected = np.zeros(key_at.shape[0] - 1, dtype=np.bool_)
    group_size = key.shape[0] - 20
    for row in range(selected.shape[0]):
        at, end = int(key_at[row]), int(key_at[row + 1])
        outcome = key_outcome(data, at, end) if key_there[row] else BAD_KEY
        if outcome != DECODED:
            selected[row] = True
            continue
        # The group id is compared only where its length is equal, so its bytes lie in both buffers.
        size = int16_at(data, at + 2)
        same = not compared[2] or same_bytes(data, at + 20 + size, key, group_size + 16, 4)
        same = same and (not compared[1] or same_bytes(data, at + 4 + size, key, group_size, 16))
        same = same and (not compared[0] or size == group_size)
        selected[row] = same and (not compared[0] or same_bytes(data, at + 4, key, 0, group_size))
    return selected


@kernel
def same_bytes(left_data: np.ndarray, left_at: int, right_data: np.ndarray, right_at: int, size: int) -> bool:
    """Whether `size` bytes are equal; the caller has checked both ranges."""
    same = True
    for step in range(size):
        same = same and left_data[left_at + step] == right_data[right_at + step]
    return same
