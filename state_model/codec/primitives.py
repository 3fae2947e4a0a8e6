"""Varints, lengths and their bounds: every length is checked against the bytes that are left before they are read."""

import struct
from dataclasses import dataclass

from state_model.errors import BufferUnderflowError, EncodeError, InvalidLengthError, MalformedVarintError

UNKNOWN_TAGS = "unknown_tags"
"""Key under which a struct's dict holds the tagged fields that the schema does not name; absent when there are none."""
MAX_INT32 = (1 << 31) - 1
MAX_UINT32 = (1 << 32) - 1
MAX_STRING_BYTES = (1 << 15) - 1
MIN_TAG_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTag:
    """A tagged field that the schema does not name: kept as bytes and written back."""

    tag: int
    data: bytes


def need(buffer: bytes, offset: int, size: int) -> None:
    """Raises BufferUnderflowError unless `size` bytes remain from `offset` on."""
    if size > len(buffer) - offset:
        raise BufferUnderflowError(f"{size} bytes needed at byte {offset}, {max(0, len(buffer) - offset)} are left")


def read_uvarint(buffer: bytes, offset: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits in at most five bytes."""
    if offset < len(buffer) and buffer[offset] < 0x80:  # the form of nearly all lengths and counts
        return buffer[offset], offset + 1
    value = 0
    for step in range(5):
        need(buffer, offset + step, 1)
        byte = buffer[offset + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            if value > MAX_UINT32:
                break
            return value, offset + step + 1
    raise MalformedVarintError(f"the varint at byte {offset} is wider than 32 bits")


_SINGLE_BYTES = tuple(bytes([value]) for value in range(0x80))


def write_uvarint(value: int) -> bytes:
    """The shortest form of an unsigned varint."""
    if 0 <= value < 0x80:
        return _SINGLE_BYTES[value]
    if not 0 <= value <= MAX_UINT32:
        raise EncodeError(f"{value} does not fit an unsigned varint of 32 bits")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_length(
    buffer: bytes, offset: int, layout: struct.Struct | None, nullable: bool, subject: str
) -> tuple[int, int]:
    """The length of a string or array and the offset behind it; -1 for null. `layout` None: a compact length.

    Raises:
        InvalidLengthError: it is negative, or null where the field has no null.
    """
    if layout is not None:
        (length,), end = layout.unpack_from(buffer, offset), offset + layout.size
    elif (length := buffer[offset] - 1) < 0x7F:
        end = offset + 1
    else:
        length, end = read_uvarint(buffer, offset)
        length -= 1
    if length < 0 and not (nullable and length == -1):
        if length == -1:
            raise InvalidLengthError(f"the {subject} at byte {offset} is null, and the field has no null")
        raise InvalidLengthError(f"the {subject} at byte {offset} has length {length}")
    return length, end


def write_length(length: int, layout: struct.Struct | None) -> bytes:
    """The bytes of a length; -1 for null. Raises EncodeError when it is too long for the layout."""
    if layout is None:
        return _SINGLE_BYTES[length + 1] if length < 0x7F else write_uvarint(length + 1)
    try:
        return layout.pack(length)
    except struct.error:
        raise EncodeError(f"the length {length} does not fit {layout.size} bytes") from None
