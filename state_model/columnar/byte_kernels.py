"""Kernels for the primitive fields of Kafka's messages: big-endian integers, varints, UTF-8, uuids.

A buffer is a contiguous uint8 array, a position an index into it. The fixed-width ones check nothing: the caller has
compared the position and the width with the end of what it reads or writes.
"""

import numpy as np

from state_model.columnar.kernels import kernel

TOO_SHORT, MALFORMED = -1, -2
UUID_CHARACTERS = 22
ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)


@kernel
def _big_endian(data: np.ndarray, at: int, width: int) -> np.int64:
    """The big-endian integer of `width` bytes, unsigned below 8; unsigned positions let LLVM load it in one step."""
    value = np.int64(0)
    first = np.uint64(at)
    for place in range(width):
        value = value << 8 | np.int64(data[first + np.uint64(place)])
    return value


@kernel
def int16_at(data: np.ndarray, at: int) -> int:
    """Big-endian int16 at `at`."""
    return int(np.int16(_big_endian(data, at, 2)))


@kernel
def int32_at(data: np.ndarray, at: int) -> int:
    """Big-endian int32 at `at`."""
    return int(np.int32(_big_endian(data, at, 4)))


@kernel
def int64_at(data: np.ndarray, at: int) -> int:
    """Big-endian int64 at `at`."""
    return int(_big_endian(data, at, 8))


@kernel
def unsigned_varint(data: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """(value, next position) of an unsigned varint of 32 bits at most; else (TOO_SHORT or MALFORMED, at)."""
    # Five bytes carry 35 bits: no input makes the loop longer, and a number above 32 bits is malformed, not cut.
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
    # Invariant: the bytes before `at` are valid and `at` begins a sequence. Leads below 0xC2 are continuation bytes or
    # overlong forms, those above 0xF4 lie beyond U+10FFFF; these and a cut sequence fail before a byte at `end` is
    # read.
    at = start
    while at < end:
        lead = data[at]
        if lead < 0x80:
            at += 1
            continue
        continuation_count = 1 if lead < 0xE0 else (2 if lead < 0xF0 else 3)
        if lead < 0xC2 or lead > 0xF4 or at + continuation_count >= end:
            return False
        if not second_byte_fits(lead, data[at + 1]):
            return False
        for step in range(2, continuation_count + 1):
            if data[at + step] & 0xC0 != 0x80:
                return False
        at += continuation_count + 1
    return True


@kernel
def write_uuid_text(data: np.ndarray, at: int, text: np.ndarray, to: int) -> None:
    """Writes the uuid text (22 characters) of the 16 bytes at `at` to `text`."""
    # 16 bytes are five groups of three bytes (four characters of 6 bits) and one byte, which takes two characters.
    for _ in range(5):
        first, second, third = data[at], data[at + 1], data[at + 2]
        text[to] = ALPHABET[first >> 2]
        text[to + 1] = ALPHABET[(first & 3) << 4 | second >> 4]
        text[to + 2] = ALPHABET[(second & 15) << 2 | third >> 6]
        text[to + 3] = ALPHABET[third & 63]
        at += 3
        to += 4
    text[to] = ALPHABET[data[at] >> 2]
    text[to + 1] = ALPHABET[(data[at] & 3) << 4]
