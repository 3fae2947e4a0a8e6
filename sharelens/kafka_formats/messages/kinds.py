"""kio's message classes as schemas of the one codec: what reads their objects, and writes plain mappings for them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map

from sharelens.kafka_formats.messages.fields import Field, fields_of
from state_model import schema
from state_model.codec.primitives import MAX_UINT32
from state_model.schema import Encoding, Fixed, Struct
from state_model.uuids import uuid_bytes

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_ZERO_UUID_BYTES = bytes(16)


@cache
def kind_of(entity: Any) -> Struct:
    """The schema of a message class, or of a struct inside one.

    It reads objects of the class and skips unknown tags, as Kafka does. It writes mappings: fields that the version
    lacks are dropped, missing ones take the schema's default, else zero, empty or null.
    """
    fields = [_field(entity, field) for field in fields_of(entity)]
    names = frozenset(field.name for field in fields)

    def check_names(values: Mapping[str, Any]) -> None:
        if not values.keys() <= names:
            for name in values:
                if name not in names:
                    _check_name(entity, name)

    return Struct(*fields, flexible=bool(entity.__flexible__), make=entity, keeps_tags=False, check_names=check_names)


def _field(entity: Any, field: Field) -> schema.Field:
    kind = _kind(entity, field)
    is_tagged = field.tag is not None
    assert not is_tagged or field.has_default or field.kafka_type == "uuid", field
    return schema.Field(
        name=field.name,
        kind=kind,
        tag=field.tag,
        default=field.default if is_tagged else None,
        absent=kind.write(_default(field)),
    )


def _kind(entity: Any, field: Field) -> Encoding:
    # The header's client id keeps the old string format in every version.
    is_compact = bool(entity.__flexible__) and (entity.__name__, field.name) != ("RequestHeader", "client_id")
    if field.nested is not None:
        kind: Encoding = kind_of(field.nested)
    elif field.kafka_type in _FIXED:
        kind = _FIXED[field.kafka_type]
    else:
        kind = _sized(field, is_compact)
    if field.is_array:
        array = schema.CompactArray if is_compact else schema.ClassicArray
        return array(item=kind, nullable=field.is_nullable)
    if isinstance(kind, Struct) and field.is_nullable and field.tag is None:
        return schema.Nullable(kind)
    return kind


def _sized(field: Field, is_compact: bool) -> Encoding:
    """Strings and bytes."""
    nullable = field.is_nullable and not field.is_array
    if field.kafka_type == "string":
        if not is_compact:
            return schema.ClassicString(nullable=nullable)
        # Handlers answer names that are too long with an error code.
        return schema.CompactString(nullable=nullable, bytes_max=MAX_UINT32 - 1)
    return schema.CompactBytes(nullable=nullable) if is_compact else schema.ClassicBytes(nullable=nullable)


def _default(field: Field) -> Any:
    if field.nested is not None and not field.is_array and not field.is_nullable:
        return {}
    if field.has_default:
        return field.default
    if field.is_nullable:
        return None
    return () if field.is_array else _ZEROS.get(field.kafka_type, 0)


def _check_name(entity: Any, name: str) -> None:
    if name not in _names_in_any_version(entity.__api_key__, entity.__name__):
        raise TypeError(f"no version of {entity.__name__} has a field {name}")


@cache
def _names_in_any_version(api_key: int, struct_name: str) -> frozenset[str]:
    """Field names of a request, a response or a struct inside one, over all versions."""
    names: set[str] = set()
    for version in schema_name_map[api_key_map[api_key]]:
        messages: tuple[Any, ...] = (load_request_schema(api_key, version), load_response_schema(api_key, version))
        for entity in (struct for message in messages for struct in _structs(message)):
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


def _duration(value: int) -> timedelta:
    return timedelta(milliseconds=value)


def _time(value: int) -> datetime | None:
    return None if value == -1 else _EPOCH + timedelta(milliseconds=value)


def _uuid(value: bytes) -> UUID | None:
    return None if value == _ZERO_UUID_BYTES else UUID(bytes=value)


# The code of struct, what makes kio's value of its number, and what makes the number of a value.
_FIXED: dict[str, Fixed] = {
    name: Fixed(name, code, from_wire=from_wire, to_wire=to_wire)
    for name, code, from_wire, to_wire in (
        ("bool", "?", None, None),
        ("int8", "b", None, None),
        ("uint8", "B", None, None),
        ("int16", "h", None, None),
        ("uint16", "H", None, None),
        ("error_code", "h", ErrorCode, int),
        ("int32", "i", None, None),
        ("uint32", "I", None, None),
        ("timedelta_i32", "i", _duration, _milliseconds),
        ("int64", "q", None, None),
        ("uint64", "Q", None, None),
        ("float64", "d", None, None),
        ("timedelta_i64", "q", _duration, _milliseconds),
        ("datetime_i64", "q", _time, _time_ms),
        ("uuid", "16s", _uuid, _uuid_bytes),
    )
}
_ZEROS: dict[str, Any] = {"string": "", "bytes": b"", "records": b"", "uuid": None}
