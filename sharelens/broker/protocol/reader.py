"""Reads kio's message classes from bytes of a peer.

kio's own reader reserves memory for as many elements as an array claims to have, which ends the process when that
fails, and refuses unknown tagged fields. This one checks every length against the bytes that are left,
counts the elements of all arrays of a message, and skips unknown tags as Kafka does.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import FrameError, TooManyElementsError
from sharelens.broker.protocol.schema import Field, fields_of
from sharelens.broker.protocol.steps import StepCounter, Steps, run

ELEMENTS_MAX = 1 << 18
"""Array elements in one message; a share fetch that acknowledges 100 partitions record by record has 200,000."""
VARINT_BYTES_MAX = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_UUID_BYTES = bytes(16)
_LEGACY_LENGTHS = {"string": struct.Struct(">h"), "bytes": struct.Struct(">i"), "records": struct.Struct(">i")}
_ARRAY_LENGTH = struct.Struct(">i")


class _Allowance:
    """How many array elements a message may still have, and when reading them pauses."""

    __slots__ = ("counter", "elements")

    def __init__(self, elements_max: int) -> None:
        self.elements = elements_max
        self.counter = StepCounter()

    def take(self, count: int, data: bytes, at: int) -> None:
        """Count the elements of an array, tagged fields too; each has a byte at least."""
        self.elements -= count
        if count > len(data) - at:
            raise FrameError(f"{count} elements announced at byte {at} of {len(data)}")
        if self.elements < 0:
            raise TooManyElementsError(f"{count} elements announced at byte {at} are more than the API allows")


Read = Callable[[bytes, int, _Allowance], tuple[Any, int]]
ReadInSteps = Callable[[bytes, int, _Allowance], Steps[tuple[Any, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads a value of one type: at once, or, when it may have large arrays, in steps."""

    at_once: Read
    in_steps: ReadInSteps | None = None


Part = tuple[str | list[str], Reader]
"""A field's name and the reader of its value, or the names of several fields and the reader of their values."""
End = Callable[[bytes, int, _Allowance, dict[str, Any]], tuple[Any, int]]
"""Reads the tagged fields and makes the object of a struct."""


def read_in_steps(entity: Any, data: bytes, at: int = 0, *, elements_max: int = ELEMENTS_MAX) -> Steps[tuple[Any, int]]:
    """An object of a message class from the bytes that start at `at`, and the position behind it.

    Reading pauses after every STEP_ELEMENTS array elements.

    Raises:
        FrameError: the bytes are no such message.
        TooManyElementsError: they have more than `elements_max` array elements.
    """
    reader = _struct_reader(entity)
    try:
        if reader.in_steps is None:
            return reader.at_once(data, at, _Allowance(elements_max))
        return (yield from reader.in_steps(data, at, _Allowance(elements_max)))
    except (struct.error, IndexError) as error:
        raise FrameError(f"the message ends inside a field of {entity.__name__}") from error
    except (ValueError, OverflowError) as error:
        raise FrameError(f"{entity.__name__}: {error}") from error


def read(entity: Any, data: bytes, at: int = 0) -> tuple[Any, int]:
    """An object of a message class and the position behind it, without a pause (see read_in_steps)."""
    return run(read_in_steps(entity, data, at))


@cache
def _struct_reader(entity: Any) -> Reader:
    """The compiled reader of a message class or of a struct inside one."""
    flexible = bool(entity.__flexible__)
    fields = list(fields_of(entity))
    parts = _parts(entity, [field for field in fields if field.tag is None], flexible)
    tags = [(field.tag, field) for field in fields if field.tag is not None]
    tagged = {tag: (field.name, _field_reader(entity, field, flexible).at_once) for tag, field in tags}
    defaults = {field.name: _tag_default(field) for _, field in tags}

    def end(data: bytes, at: int, allowance: _Allowance, values: dict[str, Any]) -> tuple[Any, int]:
        if flexible:
            if data[at]:
                at = _read_tags(data, at, allowance, tagged, values)
            else:
                at += 1
        return entity(**values), at

    has_arrays = any(reader.in_steps is not None for _, reader in parts)
    return _reader_in_steps(parts, defaults, end) if has_arrays else _reader_at_once(parts, defaults, end)


def _reader_at_once(parts: list[Part], defaults: dict[str, Any], end: End) -> Reader:
    def at_once(data: bytes, at: int, allowance: _Allowance) -> tuple[Any, int]:
        values = dict(defaults)
        for names, reader in parts:
            value, at = reader.at_once(data, at, allowance)
            if isinstance(names, str):
                values[names] = value
            else:
                values.update(zip(names, value, strict=True))
        return end(data, at, allowance, values)

    return Reader(at_once=at_once)


def _reader_in_steps(parts: list[Part], defaults: dict[str, Any], end: End) -> Reader:
    def in_steps(data: bytes, at: int, allowance: _Allowance) -> Steps[tuple[Any, int]]:
        values = dict(defaults)
        for names, reader in parts:
            if reader.in_steps is None:
                value, at = reader.at_once(data, at, allowance)
            else:
                value, at = yield from reader.in_steps(data, at, allowance)
            if isinstance(names, str):
                values[names] = value
            else:
                values.update(zip(names, value, strict=True))
        return end(data, at, allowance, values)

    return Reader(at_once=lambda data, at, allowance: run(in_steps(data, at, allowance)), in_steps=in_steps)


def _tag_default(field: Field) -> Any:
    if field.has_default:
        return field.default
    assert field.kafka_type == "uuid", field
    return None


def _read_tags(
    data: bytes, at: int, allowance: _Allowance, tagged: dict[int, tuple[str, Read]], values: dict[str, Any]
) -> int:
    count, at = read_varint(data, at)
    allowance.take(count, data, at)
    for _ in range(count):
        tag, at = read_varint(data, at)
        size_bytes, at = read_varint(data, at)
        end = at + size_bytes
        if end > len(data):
            raise FrameError(f"tagged field {tag} of {size_bytes} bytes at byte {at} of {len(data)}")
        if tag in tagged:
            name, read_value = tagged[tag]
            values[name], at = read_value(data, at, allowance)
            if at != end:
                raise FrameError(f"tagged field {tag} does not fill its {size_bytes} bytes")
        at = end
    return at


def _parts(entity: Any, fields: list[Field], flexible: bool) -> list[Part]:
    """Readers of the fields: one for several fields of fixed size that follow each other, one for each other field."""
    parts: list[Part] = []
    fixed: list[Field] = []
    for field in fields:
        if field.kafka_type in _FIXED and not field.is_array:
            fixed.append(field)
            continue
        if fixed:
            parts.append(([each.name for each in fixed], _fixed_fields_reader(fixed)))
            fixed = []
        parts.append((field.name, _field_reader(entity, field, flexible)))
    if fixed:
        parts.append(([each.name for each in fixed], _fixed_fields_reader(fixed)))
    return parts


def _fixed_fields_reader(fields: list[Field]) -> Reader:
    """Reads the values of several fields of fixed size."""
    layout = struct.Struct(">" + "".join(_FIXED[field.kafka_type][0] for field in fields))
    conversions = [
        (index, convert) for index, field in enumerate(fields) if (convert := _FIXED[field.kafka_type][1]) is not None
    ]

    def read_fixed_fields(data: bytes, at: int, _allowance: _Allowance) -> tuple[Any, int]:
        values: Any = layout.unpack_from(data, at)
        if conversions:
            values = list(values)
            for index, convert in conversions:
                values[index] = convert(values[index])
        return values, at + layout.size

    return Reader(at_once=read_fixed_fields)


def _field_reader(entity: Any, field: Field, flexible: bool) -> Reader:
    # The header's client id keeps the old string format in every version.
    if entity.__name__ == "RequestHeader" and field.name == "client_id":
        flexible = False
    if field.is_array:
        return _array_reader(field, flexible)
    if field.nested is not None:
        inner = _struct_reader(field.nested)
        is_optional = field.is_nullable and field.tag is None
        return Reader(at_once=_nullable_reader(inner.at_once)) if is_optional else inner
    if field.kafka_type in _FIXED:
        return Reader(at_once=_fixed_reader(field.kafka_type))
    return Reader(at_once=_sized_reader(field.kafka_type, flexible, field.is_nullable))


def _fixed_reader(kafka_type: str) -> Read:
    code, convert = _FIXED[kafka_type]
    layout = struct.Struct(">" + code)

    def read_fixed(data: bytes, at: int, _allowance: _Allowance) -> tuple[Any, int]:
        (value,) = layout.unpack_from(data, at)
        return value if convert is None else convert(value), at + layout.size

    return read_fixed


def _sized_reader(kafka_type: str, flexible: bool, is_nullable: bool) -> Read:
    """Strings and bytes."""
    is_text = kafka_type == "string"
    prefix = _LEGACY_LENGTHS[kafka_type]

    def read_sized(data: bytes, at: int, _allowance: _Allowance) -> tuple[Any, int]:
        size_bytes, at = _length(data, at, prefix, flexible, is_nullable)
        if size_bytes < 0:
            return None, at
        end = at + size_bytes
        if end > len(data):
            raise FrameError(f"{size_bytes} bytes announced at byte {at} of {len(data)}")
        raw = data[at:end]
        return raw.decode("utf-8") if is_text else raw, end

    return read_sized


def _array_reader(field: Field, flexible: bool) -> Reader:
    is_nullable = field.is_nullable
    if field.nested is None and field.kafka_type in _FIXED and _FIXED[field.kafka_type][1] is None:
        return Reader(at_once=_fixed_array_reader(_FIXED[field.kafka_type][0], flexible, is_nullable))
    if field.nested is not None:
        element = _struct_reader(field.nested)
    elif field.kafka_type in _FIXED:
        element = Reader(at_once=_fixed_reader(field.kafka_type))
    else:
        element = Reader(at_once=_sized_reader(field.kafka_type, flexible, is_nullable=False))

    def in_steps(data: bytes, at: int, allowance: _Allowance) -> Steps[tuple[Any, int]]:
        count, at = _length(data, at, _ARRAY_LENGTH, flexible, is_nullable)
        if count < 0:
            return None, at
        allowance.take(count, data, at)
        values = []
        for _ in range(count):
            if element.in_steps is None:
                value, at = element.at_once(data, at, allowance)
            else:
                value, at = yield from element.in_steps(data, at, allowance)
            values.append(value)
            if allowance.counter.is_pause_due():
                yield
        return tuple(values), at

    def at_once(data: bytes, at: int, allowance: _Allowance) -> tuple[Any, int]:
        return run(in_steps(data, at, allowance))

    return Reader(at_once=at_once, in_steps=in_steps)


def _fixed_array_reader(code: str, flexible: bool, is_nullable: bool) -> Read:
    """Arrays of numbers, in one step."""
    width = struct.calcsize(">" + code)

    def read_numbers(data: bytes, at: int, allowance: _Allowance) -> tuple[Any, int]:
        count, at = _length(data, at, _ARRAY_LENGTH, flexible, is_nullable)
        if count < 0:
            return None, at
        allowance.take(count, data, at)
        return struct.unpack_from(f">{count}{code}", data, at), at + count * width

    return read_numbers


def _nullable_reader(inner: Read) -> Read:
    """KIP-893: a struct that may be null has -1 or 1 before it."""

    def read_nullable(data: bytes, at: int, allowance: _Allowance) -> tuple[Any, int]:
        marker = data[at]
        return (None, at + 1) if marker == 0xFF else inner(data, at + 1, allowance)

    return read_nullable


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint and the position behind it; IndexError when the bytes end inside it."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for index in range(1, VARINT_BYTES_MAX):
        byte = data[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise FrameError(f"the varint at byte {at} has more than {VARINT_BYTES_MAX} bytes")


def _length(data: bytes, at: int, prefix: struct.Struct, flexible: bool, is_nullable: bool) -> tuple[int, int]:
    """A length and the position behind it; -1 for null where that is allowed."""
    if flexible:
        length, end = read_varint(data, at)
        length -= 1
    else:
        (length,), end = prefix.unpack_from(data, at), at + prefix.size
    if length < 0 and not (is_nullable and length == -1):
        raise FrameError(f"length {length} at byte {at}")
    return length, end


def _milliseconds(value: int) -> timedelta:
    return timedelta(milliseconds=value)


def _time(value: int) -> datetime | None:
    return None if value == -1 else _EPOCH + timedelta(milliseconds=value)


def _uuid(value: bytes) -> UUID | None:
    return None if value == _ZERO_UUID_BYTES else UUID(bytes=value)


# The code of struct, and what makes kio's value of it.
_FIXED: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "bool": ("?", None),
    "int8": ("b", None),
    "uint8": ("B", None),
    "int16": ("h", None),
    "uint16": ("H", None),
    "error_code": ("h", ErrorCode),
    "int32": ("i", None),
    "uint32": ("I", None),
    "timedelta_i32": ("i", _milliseconds),
    "int64": ("q", None),
    "uint64": ("Q", None),
    "float64": ("d", None),
    "timedelta_i64": ("q", _milliseconds),
    "datetime_i64": ("q", _time),
    "uuid": ("16s", _uuid),
}
