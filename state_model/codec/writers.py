"""Writers of encodings, the counterparts of the readers. They append to an `Output`."""

import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from state_model.codec.primitives import UNKNOWN_TAGS, UnknownTag, write_length, write_uvarint
from state_model.codec.readers import Convert
from state_model.codec.steps import StepCounter, Steps
from state_model.errors import EncodeError

LARGE_BYTES = 1 << 16
"""Byte fields above this size become pieces of their own and are not copied."""

Bytes: TypeAlias = bytes | bytearray | memoryview


class Output(StepCounter):
    """The pieces of a message in the order of the wire; the last one, `buffer`, grows. Counts what was written."""

    __slots__ = ("buffer", "pieces")

    def __init__(self) -> None:
        super().__init__()
        self.buffer = bytearray()
        self.pieces: list[Bytes] = [self.buffer]

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


Write: TypeAlias = Callable[[Any, Output], None]
WriteInSteps: TypeAlias = Callable[[Any, Output], Steps[None]]
WriteFields: TypeAlias = Callable[[Mapping[str, Any], Output], None]


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes values of one encoding: at once, or, when they may have large arrays, in steps."""

    at_once: Write
    in_steps: WriteInSteps | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A field and its writer. `absent`: the bytes where a mapping lacks it; None: it is required."""

    name: str
    writer: Writer
    absent: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedPart:
    """A tagged field, which is written unless it has its default. `absent`: the default's bytes, None: by value."""

    tag: int
    name: str
    writer: Writer
    default: Any
    absent: bytes | None


def write_at_once(writer: Writer, value: Any) -> bytes:
    """The bytes of a value. Raises EncodeError when it does not fit its encoding."""
    out = Output()
    writer.at_once(value, out)
    return bytes(out.buffer) if len(out.pieces) == 1 else b"".join(out.pieces)


def fixed(name: str, code: str, convert: Convert | None) -> Writer:
    """A value of fixed size, called `name` in errors."""
    pack = struct.Struct(">" + code).pack

    def write(value: Any, out: Output) -> None:
        try:
            out.buffer += pack(value if convert is None else convert(value))
        except struct.error:
            raise EncodeError(f"{value!r} is no {name}") from None

    return Writer(write)


def fixed_run(parts: Sequence[Part], codes: Sequence[str], converts: Sequence[Convert | None]) -> WriteFields:
    """Several fields of fixed size of a mapping in one call; one after the other where one is absent or doesn't fit."""
    values_of = operator.itemgetter(*(part.name for part in parts))
    pack = struct.Struct(">" + "".join(codes)).pack
    conversions = [(index, convert) for index, convert in enumerate(converts) if convert is not None]

    def write(values: Mapping[str, Any], out: Output) -> None:
        try:
            run = values_of(values)
            if conversions:
                run = list(run)
                for index, convert in conversions:
                    run[index] = convert(run[index])
            packed = pack(*run)
        except (KeyError, struct.error):
            for part in parts:
                write_part(part, values, out)
        else:
            out.buffer += packed

    return write


def sized(layout: struct.Struct | None, *, nullable: bool, text_bytes_max: int | None) -> Writer:
    """Strings of at most `text_bytes_max` bytes of UTF-8; None: bytes.

    A lone surrogate becomes a question mark, as in what Java writes.
    """
    null = write_length(-1, layout)
    subject = "bytes" if text_bytes_max is None else "string"

    def write(value: Any, out: Output) -> None:
        if value is None:
            if not nullable:
                raise EncodeError(f"None is no {subject}: the field may not be null")
            out.buffer += null
            return
        data = value
        if text_bytes_max is not None:
            if not isinstance(value, str):
                raise EncodeError(f"{value!r} is no string")
            data = value.encode("utf-8", "replace")
            if len(data) > text_bytes_max:
                raise EncodeError(f"a string of {len(data)} bytes is longer than {text_bytes_max}")
        out.buffer += write_length(len(data), layout)
        out.put(data)

    return Writer(write)


def numbers(element: Writer, code: str, layout: struct.Struct | None, *, nullable: bool) -> Writer:
    """Arrays of numbers, in one call."""
    elements = _elements(layout, nullable=nullable)
    write_element = element.at_once

    def write(values: Any, out: Output) -> None:
        values = elements(values, out)
        try:
            out.buffer += struct.pack(f">{len(values)}{code}", *values)
        except struct.error:
            for value in values:  # which names the value that does not fit
                write_element(value, out)

    return Writer(write)


def array(element: Writer, layout: struct.Struct | None, *, nullable: bool) -> Writer:
    """Arrays of structs, strings or converted values: any collection with a length, or an iterable."""
    elements = _elements(layout, nullable=nullable)
    element_at_once, element_in_steps = element.at_once, element.in_steps

    def at_once(values: Any, out: Output) -> None:
        for value in elements(values, out):
            element_at_once(value, out)

    def in_steps(values: Any, out: Output) -> Steps[None]:
        for value in elements(values, out):
            if element_in_steps is None:
                element_at_once(value, out)
            else:
                yield from element_in_steps(value, out)
            if out.is_pause_due():
                yield

    return Writer(at_once, in_steps)


def _elements(layout: struct.Struct | None, *, nullable: bool) -> Callable[[Any, Output], Any]:
    """The elements of an array, after their number has been written; none for null."""
    null = write_length(-1, layout)

    def elements(values: Any, out: Output) -> Any:
        if values is None and nullable:
            out.buffer += null
            return ()
        if not hasattr(values, "__len__"):
            try:
                values = tuple(values)
            except TypeError:
                raise EncodeError(f"{values!r} is no array") from None
        out.buffer += write_length(len(values), layout)
        return values

    return elements


def nullable_struct(inner: Writer) -> Writer:
    """A struct that may be null has -1 or 1 before it (KIP-893)."""
    return _marked_struct(inner, null=b"\xff")


def tagged_nullable_struct(inner: Writer) -> Writer:
    """A struct that may be null has 0 or 1 before it in a tagged field."""
    return _marked_struct(inner, null=b"\x00")


def _marked_struct(inner: Writer, *, null: bytes) -> Writer:
    inner_at_once = inner.at_once

    def write(value: Any, out: Output) -> None:
        if value is None:
            out.buffer += null
        else:
            out.buffer += b"\x01"
            inner_at_once(value, out)

    return Writer(write)


def write_part(part: Part, values: Mapping[str, Any], out: Output) -> None:
    """A field of a mapping. Raises EncodeError when it is required and missing."""
    if part.name in values:
        part.writer.at_once(values[part.name], out)
    else:
        write_absent(part, out)


def write_absent(part: Part, out: Output) -> None:
    """What stands for a field that is missing. Raises EncodeError when it is required."""
    if part.absent is None:
        raise EncodeError(f"the field {part.name} is missing")
    out.buffer += part.absent


def struct_of(
    parts: Sequence[Part | WriteFields],
    tagged: Sequence[TaggedPart] | None,
    check_names: Callable[[Mapping[str, Any]], None] | None,
) -> Writer:
    """A mapping of fields by name; a part that is no field writes several. `tagged` None: no tagged fields."""

    has_tags = bool(tagged)

    def finish(values: Mapping[str, Any], out: Output) -> None:
        if has_tags or (tagged is not None and UNKNOWN_TAGS in values):
            _write_tags(tagged or (), values, out)
        elif tagged is not None:
            out.buffer += b"\x00"
        if check_names is not None:
            check_names(values)

    fields = [(part.name, part.writer, part) if isinstance(part, Part) else ("", Writer(part), None) for part in parts]
    has_arrays = any(writer.in_steps is not None for _, writer, _ in fields)
    return Writer(_struct_at_once(fields, finish), _struct_in_steps(fields, finish) if has_arrays else None)


FieldWriters: TypeAlias = Sequence[tuple[str, Writer, Part | None]]
"""Name and writer of each field with its part; without a part the writer takes the mapping, for several fields."""


def _struct_at_once(fields: FieldWriters, finish: WriteFields) -> Write:
    once = [(name, writer.at_once, part) for name, writer, part in fields]

    def write(values: Any, out: Output) -> None:
        _check_struct(values)
        for name, write_value, part in once:
            if part is None:
                write_value(values, out)
            elif name in values:
                write_value(values[name], out)
            else:
                write_absent(part, out)
        finish(values, out)

    return write


def _struct_in_steps(fields: FieldWriters, finish: WriteFields) -> WriteInSteps:
    each = [(name, writer.at_once, writer.in_steps, part) for name, writer, part in fields]

    def write(values: Any, out: Output) -> Steps[None]:
        _check_struct(values)
        for name, at_once, in_steps, part in each:
            if part is None:
                at_once(values, out)
            elif name not in values:
                write_absent(part, out)
            elif in_steps is None:
                at_once(values[name], out)
            else:
                yield from in_steps(values[name], out)
        finish(values, out)

    return write


def _check_struct(values: Any) -> None:
    if type(values) is not dict and not isinstance(values, Mapping):
        raise EncodeError(f"{values!r} is no struct")


def _write_tags(tagged: Sequence[TaggedPart], values: Mapping[str, Any], out: Output) -> None:
    """The tagged fields whose value is not the default and those that were kept unread, in the order of their tags."""
    payloads = []
    for part in tagged:
        value = values.get(part.name, part.default)
        if value == part.default or (value is None and part.absent is not None):
            continue
        data = write_at_once(part.writer, value)
        if data != part.absent:
            payloads.append((part.tag, data))
    unknown = values.get(UNKNOWN_TAGS, ())
    if unknown and isinstance(unknown, tuple):
        payloads += [
            (unknown_tag.tag, unknown_tag.data) for unknown_tag in unknown if isinstance(unknown_tag, UnknownTag)
        ]
        payloads.sort(key=operator.itemgetter(0))
    out.buffer += write_uvarint(len(payloads))
    for tag, data in payloads:
        out.buffer += write_uvarint(tag) + write_uvarint(len(data)) + data
