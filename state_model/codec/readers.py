"""Readers of encodings. A schema puts them together once; reading calls nothing but them.

A reader gets the bytes, an offset and a budget, and gives the value and the offset behind it. Bytes that end inside a
field of fixed size raise struct.error or IndexError, which `read_at_once` and other callers turn into one error: a
check of its own for each field would double the time.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from state_model.codec.primitives import (
    MAX_INT32,
    MIN_TAG_BYTES,
    UNKNOWN_TAGS,
    UnknownTag,
    need,
    read_length,
    read_uvarint,
)
from state_model.codec.steps import Steps
from state_model.errors import BufferUnderflowError, InvalidLengthError, InvalidTextError


class Budget(Protocol):
    """How many array elements a message may still have, and when reading them pauses."""

    def take(self, count: int, offset: int) -> None:
        """Count elements before they are read; raises when there are too many."""

    def is_pause_due(self) -> bool:
        """Count one element that was read."""


class _Unbounded:
    """No bound but the bytes: for values whose size is bounded, as records are."""

    def take(self, count: int, offset: int) -> None:
        pass

    def is_pause_due(self) -> bool:
        return False


UNBOUNDED = _Unbounded()
Convert: TypeAlias = Callable[[Any], Any]
Read: TypeAlias = Callable[[bytes, int, Budget], tuple[Any, int]]
ReadInSteps: TypeAlias = Callable[[bytes, int, Budget], Steps[tuple[Any, int]]]
Finish: TypeAlias = Callable[[bytes, int, Budget, dict[str, Any]], tuple[Any, int]]
"""Reads the tagged fields of a struct and makes its value."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads a value of one encoding: at once, or, when it may have large arrays, in steps."""

    at_once: Read
    in_steps: ReadInSteps | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Fields that one reader reads: a field, or several of fixed size that follow each other."""

    names: str | tuple[str, ...]
    reader: Reader


def read_at_once(reader: Reader, buffer: bytes, offset: int) -> tuple[Any, int]:
    """A value and the offset behind it.

    Raises:
        DecodeError: the bytes are no such value.
    """
    try:
        return reader.at_once(buffer, offset, UNBOUNDED)
    except (struct.error, IndexError):
        raise BufferUnderflowError(f"the bytes end inside the value at byte {offset} of {len(buffer)}") from None


def fixed(code: str, convert: Convert | None) -> Reader:
    """A value of fixed size; `code` is its format in the struct module."""
    layout = struct.Struct(">" + code)
    unpack_from, size = layout.unpack_from, layout.size

    def read(buffer: bytes, offset: int, _budget: Budget) -> tuple[Any, int]:
        (value,) = unpack_from(buffer, offset)
        return value if convert is None else convert(value), offset + size

    return Reader(read)


def fixed_run(codes: Sequence[str], converts: Sequence[Convert | None]) -> Reader:
    """Several values of fixed size in one call: most fields of most structs."""
    layout = struct.Struct(">" + "".join(codes))
    unpack_from, size = layout.unpack_from, layout.size
    conversions = [(index, convert) for index, convert in enumerate(converts) if convert is not None]

    def read(buffer: bytes, offset: int, _budget: Budget) -> tuple[Any, int]:
        if not conversions:
            return unpack_from(buffer, offset), offset + size
        values = list(unpack_from(buffer, offset))
        for index, convert in conversions:
            values[index] = convert(values[index])
        return values, offset + size

    return Reader(read)


def sized(layout: struct.Struct | None, *, nullable: bool, text_bytes_max: int | None) -> Reader:
    """Strings of at most `text_bytes_max` bytes of UTF-8; None: bytes."""
    is_text = text_bytes_max is not None
    subject = "string" if is_text else "byte field"

    def read(buffer: bytes, offset: int, _budget: Budget) -> tuple[Any, int]:
        size, start = read_length(buffer, offset, layout, nullable, subject)
        if size < 0:
            return None, start
        if text_bytes_max is not None and size > text_bytes_max:
            raise InvalidLengthError(f"the string at byte {offset} claims {size} bytes, more than a string has")
        end = start + size
        if end > len(buffer):
            need(buffer, start, size)
        if not is_text:
            return buffer[start:end], end
        try:
            return buffer[start:end].decode("utf-8"), end
        except UnicodeDecodeError:
            raise InvalidTextError(f"the string of {size} bytes at byte {offset} is not UTF-8") from None

    return Reader(read)


def numbers(code: str, layout: struct.Struct | None, *, nullable: bool) -> Reader:
    """Arrays of numbers, in one call."""
    width = struct.calcsize(">" + code)

    def read(buffer: bytes, offset: int, budget: Budget) -> tuple[Any, int]:
        count, start = read_length(buffer, offset, layout, nullable, "array")
        if count < 0:
            return None, start
        need(buffer, start, count * width)
        budget.take(count, start)
        return struct.unpack_from(f">{count}{code}", buffer, start), start + count * width

    return Reader(read)


def array(element: Reader, min_bytes: int, layout: struct.Struct | None, *, nullable: bool) -> Reader:
    """Arrays. Memory grows with the elements that are read: each is known to have `min_bytes` before the first one."""
    read_count = _count_reader(max(min_bytes, 1), layout, nullable=nullable)
    return Reader(_array_at_once(element, read_count), _array_in_steps(element, read_count))


def _count_reader(min_bytes: int, layout: struct.Struct | None, *, nullable: bool) -> Read:
    """The number of elements, which the bytes and the budget have room for; -1 for null."""

    def read(buffer: bytes, offset: int, budget: Budget) -> tuple[int, int]:
        count, start = read_length(buffer, offset, layout, nullable, "array")
        if count > 0:
            need(buffer, start, count * min_bytes)
            budget.take(count, start)
        return count, start

    return read


def _array_at_once(element: Reader, read_count: Read) -> Read:
    read_element = element.at_once

    def read(buffer: bytes, offset: int, budget: Budget) -> tuple[Any, int]:
        count, offset = read_count(buffer, offset, budget)
        if count < 0:
            return None, offset
        values = []
        for _ in range(count):
            value, offset = read_element(buffer, offset, budget)
            values.append(value)
        return tuple(values), offset

    return read


def _array_in_steps(element: Reader, read_count: Read) -> ReadInSteps:
    at_once, in_steps = element.at_once, element.in_steps

    def read(buffer: bytes, offset: int, budget: Budget) -> Steps[tuple[Any, int]]:
        count, offset = read_count(buffer, offset, budget)
        if count < 0:
            return None, offset
        values = []
        for _ in range(count):
            if in_steps is None:
                value, offset = at_once(buffer, offset, budget)
            else:
                value, offset = yield from in_steps(buffer, offset, budget)
            values.append(value)
            if budget.is_pause_due():
                yield
        return tuple(values), offset

    return read


def nullable_struct(inner: Reader) -> Reader:
    """int8 marker (negative = null, otherwise present), then the struct (KIP-893)."""
    inner_at_once = inner.at_once

    def read(buffer: bytes, offset: int, budget: Budget) -> tuple[Any, int]:
        return (None, offset + 1) if buffer[offset] >= 0x80 else inner_at_once(buffer, offset + 1, budget)

    return Reader(read)


def tagged_nullable_struct(inner: Reader) -> Reader:
    """Unsigned varint (0 = null, otherwise present), then the struct: the form of a nullable struct in a tagged field.

    Kafka compares the varint as an int32, so the upper half of its range is null, too.
    """
    inner_at_once = inner.at_once

    def read(buffer: bytes, offset: int, budget: Budget) -> tuple[Any, int]:
        marker, start = read_uvarint(buffer, offset)
        return inner_at_once(buffer, start, budget) if 0 < marker <= MAX_INT32 else (None, start)

    return Reader(read)


def struct_of(
    parts: Sequence[Part],
    tagged: Mapping[int, tuple[str, Reader]] | None,
    defaults: Mapping[str, Any],
    *,
    make: Callable[..., Any] | None,
    keeps_tags: bool,
) -> Reader:
    """The dict of all fields, absent tagged ones at their default, or what `make` gives for them.

    Args:
        tagged: name and reader by tag; None: the struct has no tagged fields, and no count of them.
    """

    def finish(buffer: bytes, offset: int, budget: Budget, values: dict[str, Any]) -> tuple[Any, int]:
        if tagged is not None:
            if buffer[offset]:
                offset = _read_tags(buffer, offset, budget, tagged, values, keeps_tags)
            else:
                offset += 1
        return values if make is None else make(**values), offset

    at_once = _struct_at_once(parts, defaults, finish)
    has_arrays = any(part.reader.in_steps for part in parts)
    return Reader(at_once, _struct_in_steps(parts, defaults, finish) if has_arrays else None)


def _struct_at_once(parts: Sequence[Part], defaults: Mapping[str, Any], finish: Finish) -> Read:
    reads = [(part.names, part.reader.at_once) for part in parts]

    def read(buffer: bytes, offset: int, budget: Budget) -> tuple[Any, int]:
        values = dict(defaults)
        for names, read_part in reads:
            value, offset = read_part(buffer, offset, budget)
            if isinstance(names, str):
                values[names] = value
            else:
                values.update(zip(names, value, strict=True))
        return finish(buffer, offset, budget, values)

    return read


def _struct_in_steps(parts: Sequence[Part], defaults: Mapping[str, Any], finish: Finish) -> ReadInSteps:
    def read(buffer: bytes, offset: int, budget: Budget) -> Steps[tuple[Any, int]]:
        values = dict(defaults)
        for part in parts:
            if part.reader.in_steps is None:
                value, offset = part.reader.at_once(buffer, offset, budget)
            else:
                value, offset = yield from part.reader.in_steps(buffer, offset, budget)
            if isinstance(part.names, str):
                values[part.names] = value
            else:
                values.update(zip(part.names, value, strict=True))
        return finish(buffer, offset, budget, values)

    return read


def _read_tags(
    buffer: bytes,
    offset: int,
    budget: Budget,
    tagged: Mapping[int, tuple[str, Reader]],
    values: dict[str, Any],
    keeps_tags: bool,
) -> int:
    count, offset = read_uvarint(buffer, offset)
    need(buffer, offset, count * MIN_TAG_BYTES)
    budget.take(count, offset)
    unknown: list[UnknownTag] = []
    for _ in range(count):
        tag, offset = read_uvarint(buffer, offset)
        size, offset = read_uvarint(buffer, offset)
        need(buffer, offset, size)
        payload = buffer[offset : offset + size]
        if tag in tagged:
            name, reader = tagged[tag]
            values[name] = _read_tagged(name, reader, payload, offset, budget)
        elif keeps_tags:
            unknown.append(UnknownTag(tag=tag, data=payload))
        offset += size
    if unknown:
        values[UNKNOWN_TAGS] = tuple(unknown)
    return offset


def _read_tagged(name: str, reader: Reader, payload: bytes, offset: int, budget: Budget) -> Any:
    """A known tagged field must fill its size. (Kafka's readers ignore the size; no writer of theirs gets it wrong.)"""
    try:
        value, end = reader.at_once(payload, 0, budget)
    except (BufferUnderflowError, struct.error, IndexError):
        end = -1
    if end != len(payload):
        raise InvalidLengthError(f"the tagged field {name} at byte {offset} does not fill its {len(payload)} bytes")
    return value
