"""kio's message classes out of bytes that a peer sent.

kio's own reader reserves memory for as many elements as an array claims to have, which ends the process when that
fails, and refuses tagged fields that it doesn't know. This one holds every length against the bytes that are left,
counts the elements of all arrays of a message, and skips unknown tags as Kafka does.
"""

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.errors import FrameError
from broker.protocol.schema import Field, fields_of

ELEMENTS_MAX = 1 << 18
"""Array elements in one message; a share fetch that acknowledges 100 partitions record by record has 200,000."""
VARINT_BYTES_MAX = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_UUID_BYTES = bytes(16)
_LEGACY_LENGTHS = {"string": struct.Struct(">h"), "bytes": struct.Struct(">i"), "records": struct.Struct(">i")}
_ARRAY_LENGTH = struct.Struct(">i")


class _Allowance:
    """How many array elements a message may still have."""

    __slots__ = ("elements",)

    def __init__(self) -> None:
        self.elements = ELEMENTS_MAX

    def take(self, count: int, data: bytes, at: int) -> None:
        """Count the elements of an array, tagged fields too; each has a byte at least."""
        self.elements -= count
        if count > len(data) - at or self.elements < 0:
            raise FrameError(f"{count} elements announced at byte {at} of {len(data)}")


Reader = Callable[[bytes, int, _Allowance], tuple[Any, int]]
Part = Callable[[bytes, int, _Allowance, dict[str, Any]], int]


def read(entity: Any, data: bytes, at: int = 0) -> tuple[Any, int]:
    """An object of a message class from the bytes that start at `at`, and the position behind it.

    Raises:
        FrameError: the bytes are no such message, or have more than ELEMENTS_MAX array elements.
    """
    try:
        return struct_reader(entity)(data, at, _Allowance())
    except (struct.error, IndexError) as error:
        raise FrameError(f"the message ends inside a field of {entity.__name__}") from error
    except (ValueError, OverflowError) as error:
        raise FrameError(f"{entity.__name__}: {error}") from error


@cache
def struct_reader(entity: Any) -> Reader:
    """The compiled reader of a message class or of a struct inside one."""
    flexible = bool(entity.__flexible__)
    fields = list(fields_of(entity))
    parts = _parts(entity, [field for field in fields if field.tag is None], flexible)
    tags = [(field.tag, field) for field in fields if field.tag is not None]
    tagged = {tag: (field.name, _field_reader(entity, field, flexible)) for tag, field in tags}
    defaults = {field.name: _tag_default(field) for _, field in tags}

    def read_struct(data: bytes, at: int, allowance: _Allowance) -> tuple[Any, int]:
        values = dict(defaults)
        for part in parts:
            at = part(data, at, allowance, values)
        if flexible:
            if data[at]:
                at = _read_tags(data, at, allowance, tagged, values)
            else:
                at += 1
        return entity(**values), at

    return read_struct


def _tag_default(field: Field) -> Any:
    if field.has_default:
        return field.default
    assert field.kafka_type == "uuid", field
    return None


def _read_tags(
    data: bytes, at: int, allowance: _Allowance, tagged: dict[int, tuple[str, Reader]], values: dict[str, Any]
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
    """What reads the fields, those of fixed size that follow each other in one step."""
    parts: list[Part] = []
    run: list[Field] = []
    for field in fields:
        if field.kafka_type in _FIXED and not field.is_array:
            run.append(field)
            continue
        if run:
            parts.append(_run_part(run))
            run = []
        parts.append(_single_part(field.name, _field_reader(entity, field, flexible)))
    if run:
        parts.append(_run_part(run))
    return parts


def _run_part(fields: list[Field]) -> Part:
    layout = struct.Struct(">" + "".join(_FIXED[field.kafka_type][0] for field in fields))
    names = [field.name for field in fields]
    conversions = [(field.name, convert) for field in fields if (convert := _FIXED[field.kafka_type][1]) is not None]

    def read_run(data: bytes, at: int, _allowance: _Allowance, values: dict[str, Any]) -> int:
        values.update(zip(names, layout.unpack_from(data, at), strict=True))
        for name, convert in conversions:
            values[name] = convert(values[name])
        return at + layout.size

    return read_run


def _single_part(name: str, read_value: Reader) -> Part:
    def read_one(data: bytes, at: int, allowance: _Allowance, values: dict[str, Any]) -> int:
        values[name], at = read_value(data, at, allowance)
        return at

    return read_one


def _field_reader(entity: Any, field: Field, flexible: bool) -> Reader:
    # The header's client id keeps the old string format in every version.
    if entity.__name__ == "RequestHeader" and field.name == "client_id":
        flexible = False
    if field.is_array:
        return _array_reader(field, flexible)
    if field.nested is not None:
        inner = struct_reader(field.nested)
        return _nullable_reader(inner) if field.is_nullable and field.tag is None else inner
    if field.kafka_type in _FIXED:
        return _fixed_reader(field.kafka_type)
    return _sized_reader(field.kafka_type, flexible, field.is_nullable)


def _fixed_reader(kafka_type: str) -> Reader:
    code, convert = _FIXED[kafka_type]
    layout = struct.Struct(">" + code)

    def read_fixed(data: bytes, at: int, _allowance: _Allowance) -> tuple[Any, int]:
        (value,) = layout.unpack_from(data, at)
        return value if convert is None else convert(value), at + layout.size

    return read_fixed


def _sized_reader(kafka_type: str, flexible: bool, is_nullable: bool) -> Reader:
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
        return _fixed_array_reader(_FIXED[field.kafka_type][0], flexible, is_nullable)
    if field.nested is not None:
        read_element = struct_reader(field.nested)
    elif field.kafka_type in _FIXED:
        read_element = _fixed_reader(field.kafka_type)
    else:
        read_element = _sized_reader(field.kafka_type, flexible, is_nullable=False)

    def read_array(data: bytes, at: int, allowance: _Allowance) -> tuple[Any, int]:
        count, at = _length(data, at, _ARRAY_LENGTH, flexible, is_nullable)
        if count < 0:
            return None, at
        allowance.take(count, data, at)
        elements = []
        for _ in range(count):
            element, at = read_element(data, at, allowance)
            elements.append(element)
        return tuple(elements), at

    return read_array


def _fixed_array_reader(code: str, flexible: bool, is_nullable: bool) -> Reader:
    """Arrays of numbers, in one step."""
    width = struct.calcsize(">" + code)

    def read_numbers(data: bytes, at: int, allowance: _Allowance) -> tuple[Any, int]:
        count, at = _length(data, at, _ARRAY_LENGTH, flexible, is_nullable)
        if count < 0:
            return None, at
        allowance.take(count, data, at)
        return struct.unpack_from(f">{count}{code}", data, at), at + count * width

    return read_numbers


def _nullable_reader(inner: Reader) -> Reader:
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
