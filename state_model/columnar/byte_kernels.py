"""Kernels for the primitive fields of Kafka's messages: big-endian integers, varints, UTF-8, uuids.

A buffer is a contiguous uint8 array, a position an index into it. The fixed-width ones check nothing: the caller has
compared the position and the width with the end of what it reads or writes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from state_model.columnar.kernels import kernel

TOO_SHORT, MALFORMED = -1, -2
UUID_CHARACTERS = 22
ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)
VALUE_OF = np.full(256, -1, dtype=np.int8)
VALUE_OF[ALPHABET] = np.arange(64)


@intrinsic
def big_endian(context: Any, data: Any, at: Any, like: Any) -> Any:
    """`big_endian(data, at, like)`: the integer at byte `at` with the width of the type `like`."""
    kind = like.dtype

    def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        loaded = builder.load(builder.bitcast(address, ir.IntType(kind.bitwidth).as_pointer()))
        loaded.align = 1
        return builder.bswap(loaded)

    return kind(data, types.intp, like), load


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
_load: Callable[[np.ndarray, int, type[np.signedinteger]], int] = big_endian  # type: ignore[assignment]
_store: Callable[[np.ndarray, int, np.signedinteger], None] = store_big_endian  # type: ignore[assignment]


@kernel
def int16_at(data: np.ndarray, at: int) -> int:
    """Big-endian int16 at `at`."""
    return int(_load(data, at, np.int16))


@kernel
def int32_at(data: np.ndarray, at: int) -> int:
    """Big-endian int32 at `at`."""
    return int(_load(data, at, np.int32))


@kernel
def int64_at(data: np.ndarray, at: int) -> int:
    """Big-endian int64 at `at`."""
    return int(_load(data, at, np.int64))


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
def unsigned_varint(data: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """(value, next position) of an unsigned varint of 32 bits at most; else (TOO_SHORT or MALFORMED, at)."""
    value = 0
    for step in range(5):
        if at + step >= end:
            return TOO_SHORT, at
        byte = int(data[at + step])
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                return MALFORMED, at
            return value, at + step + 1
    return MALFORMED, at


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
def second_byte_fits(lead: int, second: int) -> bool:
    """Whether `second` may follow the first byte of a longer UTF-8 sequence: shortest form, no surrogate, in range."""
    if lead == 0xE0:
        return 0xA0 <= second <= 0xBF
    if lead == 0xED:
        return 0x80 <= second <= 0x9F
    if lead == 0xF0:
        return 0x90 <= second <= 0xBF
    if lead == 0xF4:
        return 0x80 <= second <= 0x8F
    return 0x80 <= second <= 0xBF


@kernel
def is_utf8(data: np.ndarray, start: int, end: int) -> bool:
    """Whether the bytes are strict UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF."""
    at = start
    while at < end:
        lead = data[at]
        if lead < 0x80:
            at += 1
            continue
        more = 1 if lead < 0xE0 else (2 if lead < 0xF0 else 3)
        if lead < 0xC2 or lead > 0xF4 or at + more >= end:
            return False
        if not second_byte_fits(lead, data[at + 1]):
            return False
        for step in range(2, more + 1):
            if data[at + step] & 0xC0 != 0x80:
                return False
        at += more + 1
    return True


@kernel
def write_uuid_text(data: np.ndarray, at: int, text: np.ndarray, to: int) -> None:
    """The 22 characters of the 16 bytes at `at`."""
    for _ in range(5):
        one, two, three = data[at], data[at + 1], data[at + 2]
        text[to] = ALPHABET[one >> 2]
        text[to + 1] = ALPHABET[(one & 3) << 4 | two >> 4]
        text[to + 2] = ALPHABET[(two & 15) << 2 | three >> 6]
        text[to + 3] = ALPHABET[three & 63]
        at += 3
        to += 4
    text[to] = ALPHABET[data[at] >> 2]
    text[to + 1] = ALPHABET[(data[at] & 3) << 4]


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
