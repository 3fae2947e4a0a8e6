"""Message schemas as data; the reader and the writer of a message both come from its one table.

A kind reads and writes a field: `read(buffer, offset) -> (value, next_offset)` and `write(value) -> bytes`.
Values are plain: int, str (uuids as 22 characters), bytes, None, tuples for arrays, dicts with snake_case keys for
structs.
Encodings are those of Kafka's generated messages (share-group-state-log §3, consumer-offsets-records §1). Every length
is checked against the remaining bytes before they are read or memory is allocated, so a false count costs no memory.

Records have such values. The broker's requests and answers have others (a struct's `make`, a fixed kind's conversions)
and are read and written in steps by the `reader` and `writer` of a kind (`state_model.codec`).
"""

import itertools
import operator
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, Union

from state_model.codec import readers, writers
from state_model.codec.primitives import MAX_STRING_BYTES, UnknownTag
from state_model.codec.readers import Convert, Reader
from state_model.codec.writers import Writer
from state_model.errors import EncodeError, InvalidUuidError
from state_model.uuids import UUID_BYTES, uuid_bytes, uuid_text

Value: TypeAlias = Union[int, str, bytes, UnknownTag, tuple["Value", ...], Mapping[str, "Value"], None]  # noqa: UP007 - forward references
Tree: TypeAlias = Mapping[str, Value]

_INT16_LENGTH = struct.Struct(">h")
_INT32_LENGTH = struct.Struct(">i")


class Kind(Protocol):
    """The encoding of a field; `min_bytes` is the size of the smallest value."""

    @property
    def min_bytes(self) -> int: ...

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]: ...

    def write(self, value: Value) -> bytes: ...


class Encoding:
    """A kind that is put together from readers and writers of the codec."""

    def __init__(self, min_bytes: int, reader: Reader, writer: Writer) -> None:
        self.min_bytes = min_bytes
        self.reader = reader
        self.writer = writer

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        """The value at an offset, and the offset behind it. Raises DecodeError."""
        return readers.read_at_once(self.reader, buffer, offset)

    def write(self, value: Value) -> bytes:
        """The bytes of a value. Raises EncodeError."""
        return writers.write_at_once(self.writer, value)


class Fixed(Encoding):
    """A big-endian value of fixed size; `code` is its format in the struct module.

    `from_wire` and `to_wire` convert the number or bytes of the format; None: they are the value.
    """

    def __init__(
        self, name: str, code: str, *, from_wire: Convert | None = None, to_wire: Convert | None = None
    ) -> None:
        self.name = name
        self.code = code
        self.from_wire = from_wire
        self.to_wire = to_wire
        reader, writer = readers.fixed(code, from_wire), writers.fixed(name, code, to_wire)
        super().__init__(struct.calcsize(">" + code), reader, writer)


class Int(Fixed):
    """A big-endian integer."""

    def __init__(self, name: str, code: str) -> None:
        super().__init__(name, code)


INT8 = Int("int8", "b")
INT16 = Int("int16", "h")
INT32 = Int("int32", "i")
INT64 = Int("int64", "q")
UINT16 = Int("uint16", "H")


def _uuid_bytes(value: Value) -> bytes:
    try:
        return uuid_bytes(str(value))
    except InvalidUuidError as error:
        raise EncodeError(str(error)) from None


class Uuid(Fixed):
    """16 bytes, most significant first; as text the 22 characters that Kafka prints."""

    def __init__(self) -> None:
        super().__init__("uuid", f"{UUID_BYTES}s", from_wire=uuid_text, to_wire=_uuid_bytes)


class ClassicString(Encoding):
    """int16 length (-1 = null), then UTF-8; the form of record keys."""

    def __init__(self, *, nullable: bool = False) -> None:
        self.nullable = nullable
        super().__init__(2, *_sized(_INT16_LENGTH, nullable=nullable, text_bytes_max=MAX_STRING_BYTES))


class CompactString(Encoding):
    """Unsigned varint of length + 1 (0 = null), then UTF-8; the form of flexible messages.

    Kafka bounds the length by that of a classic string; a reader that answers a longer one itself gives `bytes_max`.
    """

    def __init__(self, *, nullable: bool = False, bytes_max: int = MAX_STRING_BYTES) -> None:
        self.nullable = nullable
        super().__init__(1, *_sized(None, nullable=nullable, text_bytes_max=bytes_max))


class ClassicBytes(Encoding):
    """int32 length (-1 = null), then bytes."""

    def __init__(self, *, nullable: bool = False) -> None:
        super().__init__(4, *_sized(_INT32_LENGTH, nullable=nullable, text_bytes_max=None))


class CompactBytes(Encoding):
    """Unsigned varint of length + 1 (0 = null), then bytes."""

    def __init__(self, *, nullable: bool = False) -> None:
        super().__init__(1, *_sized(None, nullable=nullable, text_bytes_max=None))


def _sized(layout: struct.Struct | None, *, nullable: bool, text_bytes_max: int | None) -> tuple[Reader, Writer]:
    return (
        readers.sized(layout, nullable=nullable, text_bytes_max=text_bytes_max),
        writers.sized(layout, nullable=nullable, text_bytes_max=text_bytes_max),
    )


class CompactArray(Encoding):
    """Unsigned varint of count + 1 (0 = null), then the items; a tuple."""

    def __init__(self, *, item: Kind, nullable: bool = False) -> None:
        self.item = item
        self.nullable = nullable
        super().__init__(1, *_array(item, None, nullable=nullable))


class ClassicArray(Encoding):
    """int32 count (-1 = null), then the items; a tuple."""

    def __init__(self, *, item: Kind, nullable: bool = False) -> None:
        self.item = item
        self.nullable = nullable
        super().__init__(4, *_array(item, _INT32_LENGTH, nullable=nullable))


def _array(item: Kind, layout: struct.Struct | None, *, nullable: bool) -> tuple[Reader, Writer]:
    reader, writer = _reader(item), _writer(item)
    if isinstance(item, Fixed) and item.from_wire is None and item.to_wire is None:
        return (
            readers.numbers(item.code, layout, nullable=nullable),
            writers.numbers(writer, item.code, layout, nullable=nullable),
        )
    return (
        readers.array(reader, item.min_bytes, layout, nullable=nullable),
        writers.array(writer, layout, nullable=nullable),
    )


def _reader(kind: Kind) -> Reader:
    if isinstance(kind, Encoding):
        return kind.reader
    return Reader(lambda buffer, offset, _budget: kind.read(buffer, offset))


def _writer(kind: Kind) -> Writer:
    if isinstance(kind, Encoding):
        return kind.writer
    return Writer(lambda value, out: out.put(kind.write(value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct. A field with a `tag` is optional: absent means `default`, and the default is not written.

    The default of a nullable array or struct may be the empty one: then absent is empty, and null is written explicitly
    (group records 5, 8, 17 and 22, consumer-offsets-records §4). All values that lack the field share the default.

    Attributes:
        absent: the bytes that stand for the field where a mapping lacks it (or, with a tag, has None or these bytes'
            value: it is not written then); None: a field without a tag is required, and one with a tag goes by value.
    """

    name: str
    kind: Kind
    tag: int | None = None
    default: Value = None
    absent: bytes | None = None


class Struct(Encoding):
    """Fields in order of the wire, then, if flexible, the tagged ones: a count, then tag, size and payload of each.

    Args:
        make: what makes the value of the dict of all fields; None: the dict is it.
        keeps_tags: whether tagged fields that the schema does not name are kept under UNKNOWN_TAGS.
        check_names: called with each mapping that was written; None: other names are ignored.
    """

    def __init__(
        self,
        *fields: Field,
        flexible: bool = True,
        make: Callable[..., Any] | None = None,
        keeps_tags: bool = True,
        check_names: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.fields = fields
        self.flexible = flexible
        self.plain = tuple(field for field in fields if field.tag is None)
        self.tagged = {field.tag: field for field in fields if field.tag is not None}
        runs = _runs(self.plain)
        reader = readers.struct_of(
            [_read_part(run) for run in runs],
            {tag: (field.name, _reader(field.kind)) for tag, field in self.tagged.items()} if flexible else None,
            {field.name: field.default for field in self.tagged.values()} if flexible else {},
            make=make,
            keeps_tags=keeps_tags,
        )
        tagged = [
            writers.TaggedPart(
                tag=tag, name=field.name, writer=_writer(field.kind), default=field.default, absent=field.absent
            )
            for tag, field in sorted(self.tagged.items())
        ]
        writer = writers.struct_of([_write_part(run) for run in runs], tagged if flexible else None, check_names)
        min_bytes = sum(field.kind.min_bytes for field in self.plain) + (1 if flexible else 0)
        super().__init__(min_bytes, reader, writer)

    def read(self, buffer: bytes, offset: int) -> tuple[dict[str, Value], int]:
        """The dict of all fields, absent tagged fields at their default, and the offset behind the struct."""
        return readers.read_at_once(self.reader, buffer, offset)


def _runs(fields: tuple[Field, ...]) -> list[list[Field]]:
    """The fields, those of fixed size that follow each other together."""
    runs: list[list[Field]] = []
    is_run = False
    for field in fields:
        is_fixed = isinstance(field.kind, Fixed)
        if is_fixed and is_run:
            runs[-1].append(field)
        else:
            runs.append([field])
        is_run = is_fixed
    return runs


def _read_part(run: list[Field]) -> readers.Part:
    kinds = [field.kind for field in run if isinstance(field.kind, Fixed)]
    if len(run) == 1:
        return readers.Part(names=run[0].name, reader=_reader(run[0].kind))
    reader = readers.fixed_run([kind.code for kind in kinds], [kind.from_wire for kind in kinds])
    return readers.Part(names=tuple(field.name for field in run), reader=reader)


def _write_part(run: list[Field]) -> writers.Part | writers.WriteFields:
    kinds = [field.kind for field in run if isinstance(field.kind, Fixed)]
    parts = [writers.Part(name=field.name, writer=_writer(field.kind), absent=field.absent) for field in run]
    if len(parts) == 1:
        return parts[0]
    return writers.fixed_run(parts, [kind.code for kind in kinds], [kind.to_wire for kind in kinds])


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


class Nullable(Encoding):
    """int8 marker (negative = null, otherwise present), then a struct.

    In a tagged field the marker is an unsigned varint: 0 = null, otherwise present.
    """

    def __init__(self, layout: Struct, *, is_tagged: bool = False) -> None:
        self.struct = layout
        self.is_tagged = is_tagged
        if is_tagged:
            reader, writer = (
                readers.tagged_nullable_struct(layout.reader),
                writers.tagged_nullable_struct(layout.writer),
            )
        else:
            reader, writer = readers.nullable_struct(layout.reader), writers.nullable_struct(layout.writer)
        super().__init__(1, reader, writer)


class NullableStruct(Nullable):
    """A nullable struct of its own fields."""

    def __init__(self, *fields: Field, is_tagged: bool = False) -> None:
        super().__init__(Struct(*fields), is_tagged=is_tagged)


STRING = CompactString()
NULLABLE_STRING = CompactString(nullable=True)
CLASSIC_STRING = ClassicString()
UUID = Uuid()
