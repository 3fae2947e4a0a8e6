"""Answers into bytes, by the fields of kio's message classes.

kio's own writer takes objects of its classes and writes a whole message in one call. This one writes plain mappings,
so that one handler serves all versions of an API, and pauses between the elements of large arrays.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from kio.index import load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from sharelens.broker.protocol.schema import Field, fields_of
from sharelens.broker.protocol.steps import StepCounter, Steps, run
from state_model.uuids import uuid_bytes

LARGE_BYTES = 1 << 16
"""Byte fields above this size become pieces of their own and are not copied."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_ZERO_UUID_BYTES = bytes(16)
_LEGACY_LENGTHS = {"string": struct.Struct(">h"), "bytes": struct.Struct(">i"), "records": struct.Struct(">i")}
_ARRAY_LENGTH = struct.Struct(">i")

Bytes = bytes | bytearray | memoryview


class Output:
    """The pieces of a message in the order of the wire; the last one, `buffer`, grows."""

    __slots__ = ("buffer", "counter", "pieces")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.pieces: list[Bytes] = [self.buffer]
        self.counter = StepCounter()

    def put(self, data: Bytes) -> None:
        """Append bytes: small ones to the buffer, large ones as a piece of their own."""
        if len(data) <= LARGE_BYTES:
            self.buffer += data
            return
        self.buffer = bytearray()
        self.pieces += [data, self.buffer]

    @property
    def size_bytes(self) -> int:
        """The size of all pieces."""
        return sum(map(len, self.pieces))


Write = Callable[[Any, Output], None]
WriteInSteps = Callable[[Any, Output], Steps[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes values of one type: at once, or, when they may have large arrays, in steps."""

    at_once: Write
    in_steps: WriteInSteps | None = None


Part = tuple[str, Writer, bytes]
"""A field's name, its writer, and the bytes of its default."""


def write_in_steps(entity: Any, values: Mapping[str, Any], out: Output) -> Steps[None]:
    """Append a message to `out`; it pauses after every STEP_ELEMENTS array elements.

    Args:
        entity: kio's class of the message in its version.
        values: fields by name. Those that the version lacks are dropped; missing ones take the schema's default, else
            zero, empty or null.

    Raises:
        TypeError: a name that no version of the response has.
    """
    writer = _struct_writer(entity)
    if writer.in_steps is None:
        writer.at_once(values, out)
    else:
        yield from writer.in_steps(values, out)


def write(entity: Any, values: Mapping[str, Any]) -> bytes:
    """The bytes of a message, written at once (see write_in_steps)."""
    out = Output()
    run(write_in_steps(entity, values, out))
    return b"".join(out.pieces)


@cache
def _struct_writer(entity: Any) -> Writer:
    fields = list(fields_of(entity))
    parts = [_part(entity, field) for field in fields if field.tag is None]
    by_tag = sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)
    tagged = [(varint(field.tag or 0), *_part(entity, field)) for field in by_tag]
    names = frozenset(field.name for field in fields)

    def finish(values: Mapping[str, Any], out: Output) -> None:
        if entity.__flexible__:
            _write_tags(tagged, values, out)
        for name in values:
            if name not in names:
                _check_name(entity, name)

    has_arrays = any(writer.in_steps is not None for _, writer, _ in parts)
    return _writer_in_steps(parts, finish) if has_arrays else _writer_at_once(parts, finish)


def _part(entity: Any, field: Field) -> Part:
    writer = _field_writer(entity, field)
    default = Output()
    writer.at_once(_default(field), default)
    return field.name, writer, bytes(default.buffer)


def _writer_at_once(parts: list[Part], finish: Write) -> Writer:
    def at_once(values: Mapping[str, Any], out: Output) -> None:
        for name, writer, default in parts:
            if name in values:
                writer.at_once(values[name], out)
            else:
                out.buffer += default
        finish(values, out)

    return Writer(at_once=at_once)


def _writer_in_steps(parts: list[Part], finish: Write) -> Writer:
    def in_steps(values: Mapping[str, Any], out: Output) -> Steps[None]:
        for name, writer, default in parts:
            if name not in values:
                out.buffer += default
            elif writer.in_steps is None:
                writer.at_once(values[name], out)
            else:
                yield from writer.in_steps(values[name], out)
        finish(values, out)

    return Writer(at_once=lambda values, out: run(in_steps(values, out)), in_steps=in_steps)


def _default(field: Field) -> Any:
    if field.nested is not None and not field.is_array and not field.is_nullable:
        return {}
    if field.has_default:
        return field.default
    if field.is_nullable:
        return None
    return () if field.is_array else _ZEROS.get(field.kafka_type, 0)


def _write_tags(tagged: list[tuple[bytes, str, Writer, bytes]], values: Mapping[str, Any], out: Output) -> None:
    """The tagged fields whose value is not the default, in the order of their tags."""
    count = 0
    encoded = bytearray()
    for tag, name, writer, default in tagged:
        if values.get(name) is None:
            continue
        inner = Output()
        writer.at_once(values[name], inner)
        data = b"".join(inner.pieces)
        if data != default:
            encoded += tag + varint(len(data)) + data
            count += 1
    out.buffer += varint(count) + encoded


def _field_writer(entity: Any, field: Field) -> Writer:
    flexible = bool(entity.__flexible__)
    # The header's client id keeps the old string format in every version.
    if entity.__name__ == "RequestHeader" and field.name == "client_id":
        flexible = False
    if field.nested is not None:
        element = _struct_writer(field.nested)
    elif field.kafka_type in _FIXED:
        element = Writer(at_once=_fixed_writer(*_FIXED[field.kafka_type]))
    else:
        is_nullable = field.is_nullable and not field.is_array
        element = Writer(at_once=_sized_writer(field.kafka_type, flexible, is_nullable))
    if field.is_array:
        return _array_writer(element, flexible, has_steps=field.nested is not None)
    if field.nested is not None and field.is_nullable and field.tag is None:
        return Writer(at_once=_nullable_writer(element.at_once))
    return element


def _fixed_writer(code: str, convert: Callable[[Any], Any] | None) -> Write:
    pack = struct.Struct(">" + code).pack

    def write_fixed(value: Any, out: Output) -> None:
        out.buffer += pack(value if convert is None else convert(value))

    return write_fixed


def _sized_writer(kafka_type: str, flexible: bool, is_nullable: bool) -> Write:
    """Strings and bytes."""
    legacy_length = _LEGACY_LENGTHS[kafka_type]
    null = b"\x00" if flexible else legacy_length.pack(-1)

    def write_sized(value: Any, out: Output) -> None:
        if value is None:
            if not is_nullable:
                raise TypeError(f"a {kafka_type} that may not be null is null")
            out.buffer += null
            return
        data = value.encode() if isinstance(value, str) else value
        out.buffer += varint(len(data) + 1) if flexible else legacy_length.pack(len(data))
        out.put(data)

    return write_sized


def _array_writer(element: Writer, flexible: bool, *, has_steps: bool) -> Writer:
    null = b"\x00" if flexible else _ARRAY_LENGTH.pack(-1)

    def elements(values: Any, out: Output) -> Any:
        """The elements, after their number has been written; none for null."""
        if values is None:
            out.buffer += null
            return ()
        if not hasattr(values, "__len__"):
            values = tuple(values)
        out.buffer += varint(len(values) + 1) if flexible else _ARRAY_LENGTH.pack(len(values))
        return values

    def at_once(values: Any, out: Output) -> None:
        for value in elements(values, out):
            element.at_once(value, out)

    def in_steps(values: Any, out: Output) -> Steps[None]:
        for value in elements(values, out):
            if element.in_steps is None:
                element.at_once(value, out)
            else:
                yield from element.in_steps(value, out)
            if out.counter.is_pause_due():
                yield

    return Writer(at_once=at_once, in_steps=in_steps if has_steps else None)


def _nullable_writer(inner: Write) -> Write:
    """KIP-893: a struct that may be null has -1 or 1 before it."""

    def write_nullable(value: Any, out: Output) -> None:
        if value is None:
            out.buffer += b"\xff"
        else:
            out.buffer += b"\x01"
            inner(value, out)

    return write_nullable


def varint(value: int) -> bytes:
    """An unsigned varint."""
    if value < 0x80:
        return _SHORT_VARINTS[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SHORT_VARINTS = [bytes([value]) for value in range(0x80)]


def _check_name(entity: Any, name: str) -> None:
    if name not in _names_in_any_version(entity.__api_key__, entity.__name__):
        raise TypeError(f"no version of {entity.__name__} has a field {name}")


@cache
def _names_in_any_version(api_key: int, struct_name: str) -> frozenset[str]:
    """Field names of a response or of a struct inside it, over all versions."""
    names: set[str] = set()
    for version in schema_name_map[api_key_map[api_key]]:
        for entity in _structs(load_response_schema(api_key, version)):
            if entity.__name__ == struct_name:
                names.update(field.name for field in fields_of(entity))
    return frozenset(names)


def _structs(entity: Any) -> list[Any]:
    """A class and all classes nested in it."""
    inner = [field.nested for field in fields_of(entity) if field.nested is not None]
    return [entity, *(struct_class for nested in inner for struct_class in _structs(nested))]


def _uuid_bytes(value: str | UUID | None) -> bytes:
    if value is None:
        return _ZERO_UUID_BYTES
    return uuid_bytes(value) if isinstance(value, str) else value.bytes


def _milliseconds(value: int | timedelta) -> int:
    return value // _MILLISECOND if isinstance(value, timedelta) else value


def _time_ms(value: int | datetime | None) -> int:
    """Milliseconds since the epoch; -1 for no time."""
    if value is None:
        return -1
    return (value - _EPOCH) // _MILLISECOND if isinstance(value, datetime) else max(value, -1)


# The code of struct, and what makes its number of a value.
_FIXED: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "bool": ("?", None),
    "int8": ("b", None),
    "uint8": ("B", None),
    "int16": ("h", None),
    "uint16": ("H", None),
    "error_code": ("h", int),
    "int32": ("i", None),
    "uint32": ("I", None),
    "timedelta_i32": ("i", _milliseconds),
    "int64": ("q", None),
    "uint64": ("Q", None),
    "float64": ("d", None),
    "timedelta_i64": ("q", _milliseconds),
    "datetime_i64": ("q", _time_ms),
    "uuid": ("16s", _uuid_bytes),
}
_ZEROS: dict[str, Any] = {"string": "", "bytes": b"", "records": b"", "uuid": None}
