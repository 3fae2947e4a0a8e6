"""Message schemas as data; the reader and the writer of a message both come from its one table.

A kind reads and writes a field: `read(buffer, offset) -> (value, next_offset)` and `write(value) -> bytes`.
Values are plain: int, str (uuids as 22 characters), None, tuples for arrays, dicts with snake_case keys for structs.
Encodings are those of Kafka's generated messages (share-group-state-log §3, consumer-offsets-records §1). Every length
is checked against the remaining bytes before they are read or memory is allocated, so a false count costs no memory.
"""

import itertools
import operator
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, Union

from state_model.errors import (
    BufferUnderflowError,
    EncodeError,
    InvalidLengthError,
    InvalidTextError,
    InvalidUuidError,
    MalformedVarintError,
)
from state_model.uuids import UUID_BYTES, uuid_bytes, uuid_text

UNKNOWN_TAGS = "unknown_tags"
"""Key under which a struct's dict holds the tagged fields that the schema does not name; absent when there are none."""
MAX_UINT32 = (1 << 32) - 1
MAX_STRING_BYTES = (1 << 15) - 1
MIN_TAG_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTag:
    """A tagged field that the schema does not name: kept as bytes and written back."""

    tag: int
    data: bytes


Value: TypeAlias = Union[int, str, UnknownTag, tuple["Value", ...], Mapping[str, "Value"], None]  # noqa: UP007 - forward references
Tree: TypeAlias = Mapping[str, Value]


class Kind(Protocol):
    """The encoding of a field; `min_bytes` is the size of the smallest value."""

    @property
    def min_bytes(self) -> int: ...

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]: ...

    def write(self, value: Value) -> bytes: ...


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


class Int:
    """A big-endian integer; `code` is its format character in the struct module."""

    def __init__(self, name: str, code: str) -> None:
        self.name = name
        self.code = code
        self._struct = struct.Struct(">" + code)
        self.min_bytes = self._struct.size

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        need(buffer, offset, self.min_bytes)
        value: int = self._struct.unpack_from(buffer, offset)[0]
        return value, offset + self.min_bytes

    def write(self, value: Value) -> bytes:
        try:
            return self._struct.pack(value)
        except struct.error:
            raise EncodeError(f"{value!r} is no {self.name}") from None

    def write_all(self, values: Sequence[Value]) -> bytes:
        """The bytes of some integers, one after the other."""
        try:
            return struct.pack(f">{len(values)}{self.code}", *values)
        except struct.error:
            return b"".join(self.write(value) for value in values)  # which names the value that does not fit


INT8 = Int("int8", "b")
INT16 = Int("int16", "h")
INT32 = Int("int32", "i")
INT64 = Int("int64", "q")
UINT16 = Int("uint16", "H")


def _read_text(buffer: bytes, offset: int, size: int) -> tuple[str, int]:
    need(buffer, offset, size)
    try:
        return buffer[offset : offset + size].decode("utf-8"), offset + size
    except UnicodeDecodeError:
        raise InvalidTextError(f"the string of {size} bytes at byte {offset} is not UTF-8") from None


def _write_text(value: Value) -> bytes:
    """UTF-8 bytes; a lone surrogate becomes a question mark, as in what Java writes."""
    if not isinstance(value, str):
        raise EncodeError(f"{value!r} is no string")
    raw = value.encode("utf-8", "replace")
    if len(raw) > MAX_STRING_BYTES:
        raise EncodeError(f"a string of {len(raw)} bytes is longer than {MAX_STRING_BYTES}")
    return raw


class ClassicString:
    """int16 length, then UTF-8; the form of record keys. Never null."""

    min_bytes = 2

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        need(buffer, offset, 2)
        size = int.from_bytes(buffer[offset : offset + 2], "big", signed=True)
        if size < 0:
            raise InvalidLengthError(f"the string at byte {offset} has length {size}, and the field has no null")
        return _read_text(buffer, offset + 2, size)

    def write(self, value: Value) -> bytes:
        raw = _write_text(value)
        return len(raw).to_bytes(2, "big") + raw


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactString:
    """Unsigned varint of length + 1 (0 = null), then UTF-8; the form of flexible messages."""

    nullable: bool = False
    min_bytes: int = 1

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        claimed, at = read_uvarint(buffer, offset)
        if claimed == 0:
            _check_null(self.nullable, "string", offset)
            return None, at
        if claimed - 1 > MAX_STRING_BYTES:
            raise InvalidLengthError(f"the string at byte {offset} claims {claimed - 1} bytes, more than a string has")
        return _read_text(buffer, at, claimed - 1)

    def write(self, value: Value) -> bytes:
        if value is None and self.nullable:
            return b"\x00"
        raw = _write_text(value)
        return write_uvarint(len(raw) + 1) + raw


class Uuid:
    """16 bytes, most significant first; as text the 22 characters that Kafka prints."""

    min_bytes = UUID_BYTES

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        need(buffer, offset, UUID_BYTES)
        return uuid_text(buffer[offset : offset + UUID_BYTES]), offset + UUID_BYTES

    def write(self, value: Value) -> bytes:
        try:
            return uuid_bytes(str(value))
        except InvalidUuidError as error:
            raise EncodeError(str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactArray:
    """Unsigned varint of count + 1 (0 = null), then the items; a tuple."""

    item: Kind
    nullable: bool = False
    min_bytes: int = 1

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        claimed, at = read_uvarint(buffer, offset)
        if claimed == 0:
            _check_null(self.nullable, "array", offset)
            return None, at
        need(buffer, at, (claimed - 1) * self.item.min_bytes)
        if isinstance(self.item, Int):
            items_end = at + (claimed - 1) * self.item.min_bytes
            return struct.unpack_from(f">{claimed - 1}{self.item.code}", buffer, at), items_end
        items = []
        for _ in range(claimed - 1):
            item, at = self.item.read(buffer, at)
            items.append(item)
        return tuple(items), at

    def write(self, value: Value) -> bytes:
        if value is None and self.nullable:
            return b"\x00"
        if not isinstance(value, tuple | list):
            raise EncodeError(f"{value!r} is no array")
        if isinstance(self.item, Int):
            return write_uvarint(len(value) + 1) + self.item.write_all(value)
        return write_uvarint(len(value) + 1) + b"".join(self.item.write(item) for item in value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct. A field with a `tag` is optional: absent means `default`, and the default is not written.

    The default of a nullable array may be the empty one: then absent is empty, and null is written explicitly (streams
    records 17 and 22, consumer-offsets-records §4).
    """

    name: str
    kind: Kind
    tag: int | None = None
    default: Value = None


class Struct:
    """Fields in order of the wire, then, if flexible, the tagged ones: a count, then tag, size and payload of each."""

    def __init__(self, *fields: Field, flexible: bool = True) -> None:
        self.fields = fields
        self.flexible = flexible
        self.plain = tuple(field for field in fields if field.tag is None)
        self.tagged = {field.tag: field for field in fields if field.tag is not None}
        self.min_bytes = sum(field.kind.min_bytes for field in self.plain) + (1 if flexible else 0)

    def read(self, buffer: bytes, offset: int) -> tuple[dict[str, Value], int]:
        """The dict of all fields, absent tagged fields at their default, and the offset behind the struct."""
        tree: dict[str, Value] = {}
        for field in self.plain:
            tree[field.name], offset = field.kind.read(buffer, offset)
        if not self.flexible:
            return tree, offset
        for field in self.tagged.values():
            tree[field.name] = field.default
        return tree, self._read_tags(buffer, offset, tree)

    def _read_tags(self, buffer: bytes, offset: int, tree: dict[str, Value]) -> int:
        count, offset = read_uvarint(buffer, offset)
        need(buffer, offset, count * MIN_TAG_BYTES)
        unknown: list[UnknownTag] = []
        for _ in range(count):
            tag, offset = read_uvarint(buffer, offset)
            size, offset = read_uvarint(buffer, offset)
            need(buffer, offset, size)
            field = self.tagged.get(tag)
            if field is None:
                unknown.append(UnknownTag(tag=tag, data=buffer[offset : offset + size]))
            else:
                tree[field.name] = _read_tagged(field, buffer[offset : offset + size], offset)
            offset += size
        if unknown:
            tree[UNKNOWN_TAGS] = tuple(unknown)
        return offset

    def write(self, value: Value) -> bytes:
        """The bytes of a dict; tagged fields that it lacks count as their default."""
        if not isinstance(value, Mapping):
            raise EncodeError(f"{value!r} is no struct")
        parts = []
        for field in self.plain:
            if field.name not in value:
                raise EncodeError(f"the field {field.name} is missing")
            parts.append(field.kind.write(value[field.name]))
        if self.flexible:
            parts.append(self._write_tags(value))
        return b"".join(parts)

    def _write_tags(self, tree: Tree) -> bytes:
        payloads = []
        for tag, field in self.tagged.items():
            value = tree.get(field.name, field.default)
            if value != field.default:
                payloads.append((tag, field.kind.write(value)))
        unknown = tree.get(UNKNOWN_TAGS, ())
        if isinstance(unknown, tuple):
            payloads.extend((kept.tag, kept.data) for kept in unknown if isinstance(kept, UnknownTag))
        payloads.sort(key=lambda payload: payload[0])
        parts = [write_uvarint(len(payloads))]
        for tag, data in payloads:
            parts += (write_uvarint(tag), write_uvarint(len(data)), data)
        return b"".join(parts)


class IntegerRun:
    """The integers that a struct begins with, as one format: the short way to write and read many structs of one kind.

    Made from the struct's table, so that the layout is written down once. `before` and `after` are the formats of
    integers around the run.
    """

    def __init__(self, layout: Struct, *, before: str = "", after: str = "") -> None:
        run = list(itertools.takewhile(lambda field: isinstance(field.kind, Int), layout.plain))
        codes = "".join(field.kind.code for field in run if isinstance(field.kind, Int))
        packed = struct.Struct(f">{before}{codes}{after}")
        self.min_bytes = packed.size
        self.values_of = operator.attrgetter(*(field.name for field in run))
        """The tuple of the run's values, from the attributes of an object that has their names."""
        self.pack = packed.pack
        """The bytes of all integers in order; raises struct.error when one doesn't fit."""
        self.unpack_from = packed.unpack_from
        self.iter_unpack = packed.iter_unpack


class NullableStruct:
    """int8 marker (negative = null, otherwise present), then the struct."""

    min_bytes = 1

    def __init__(self, *fields: Field) -> None:
        self.struct = Struct(*fields)

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        need(buffer, offset, 1)
        if buffer[offset] >= 0x80:
            return None, offset + 1
        return self.struct.read(buffer, offset + 1)

    def write(self, value: Value) -> bytes:
        return b"\xff" if value is None else b"\x01" + self.struct.write(value)


STRING = CompactString()
NULLABLE_STRING = CompactString(nullable=True)
CLASSIC_STRING = ClassicString()
UUID = Uuid()


def _check_null(nullable: bool, subject: str, offset: int) -> None:
    if not nullable:
        raise InvalidLengthError(f"the {subject} at byte {offset} is null, and the field has no null")


def _read_tagged(field: Field, payload: bytes, offset: int) -> Value:
    """A known tagged field must fill its size. (Kafka's readers ignore the size; no writer of theirs gets it wrong.)"""
    try:
        value, end = field.kind.read(payload, 0)
    except BufferUnderflowError:
        end = -1
    if end != len(payload):
        raise InvalidLengthError(
            f"the tagged field {field.name} at byte {offset} does not fill its {len(payload)} bytes"
        )
    return value
