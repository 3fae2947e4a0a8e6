"""Requests out of frames, answers into frames, with kio's message classes.

Handlers answer with plain mappings, so that one handler serves all versions of an API: the class of the request's
version says which fields go onto the wire. Fields that the version lacks are dropped, missing ones take the schema's
default, else zero, empty or null.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer

from broker.errors import BrokerError, FrameError
from broker.protocol.reader import read
from broker.protocol.registry import Answer
from broker.protocol.schema import Field, fields_of
from state_model.share_records import StateBatch
from state_model.uuids import uuid_bytes, uuid_text

FRAME_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hhi")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERROR_CODES = {int(code): code for code in ErrorCode}

Bytes = bytes | bytearray | memoryview


class UnsupportedVersionError(BrokerError):
    """Raised when a request names an API or a version that is not answered here."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"API {api_key} version {api_version} is not answered here")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A decoded request: the header's fields and kio's object of the body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    body: Any


def decode_request(frame: bytes, is_supported: Callable[[int, int], bool]) -> Request:
    """The request of a frame (without its size).

    Bytes behind the request are ignored, as Kafka does: librdkafka's request for all topics has three too many.

    Raises:
        UnsupportedVersionError: `is_supported` refuses its API key and version.
        FrameError: the bytes are no such request.
    """
    if len(frame) < _HEAD.size:
        raise FrameError(f"a request of {len(frame)} bytes has no header")
    api_key, api_version, correlation_id = _HEAD.unpack_from(frame)
    if not is_supported(api_key, api_version):
        raise UnsupportedVersionError(api_key, api_version, correlation_id)
    schema: Any = load_request_schema(api_key, api_version)
    header, at = read(schema.__header_schema__, frame)
    body, _ = read(schema, frame, at)
    return Request(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=header.client_id or "",
        body=body,
    )


class _Pieces:
    """What an answer is written into; large pieces are kept as they are, never copied together."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[Bytes] = []

    def write(self, piece: Bytes) -> int:
        self.pieces.append(piece)
        return len(piece)


def encode_answer(api_key: int, api_version: int, correlation_id: int, answer: Answer) -> list[Bytes]:
    """The pieces of a response frame, its size first."""
    schema: Any = load_response_schema(api_key, api_version)
    out = _Pieces()
    header = schema.__header_schema__
    entity_writer(header)(out, header(correlation_id=correlation_id))  # type: ignore[arg-type]
    entity_writer(schema)(out, build(schema, answer))  # type: ignore[arg-type]
    size_bytes = sum(map(len, out.pieces))
    return [FRAME_SIZE.pack(size_bytes), *out.pieces]


def has_error_code(api_key: int, api_version: int) -> bool:
    """Whether the response has an error code of its own, beside those of its parts."""
    return any(field.name == "error_code" for field in fields_of(load_response_schema(api_key, api_version)))


def milliseconds(duration: timedelta) -> int:
    """A duration of a request (kio has them as timedelta) in whole milliseconds."""
    return duration // timedelta(milliseconds=1)


def topic_id_text(topic_id: UUID | None) -> str | None:
    """The 22 characters of a topic id of a request; None for the zero id, which means that there is none."""
    return None if topic_id is None else uuid_text(topic_id.bytes)


def build(schema: Any, answer: Mapping[str, Any]) -> Any:
    """kio's object of a response class from a mapping.

    Raises:
        TypeError: the mapping has a name that no version of the response has.
    """
    return _builder(schema)(answer)


@cache
def _builder(schema: Any) -> Callable[[Mapping[str, Any]], Any]:
    plan = [(field.name, _converter(field), _default(field)) for field in fields_of(schema)]
    names = frozenset(name for name, _, _ in plan)

    def build_entity(answer: Mapping[str, Any]) -> Any:
        values = {}
        for name, convert, default in plan:
            if name in answer:
                given = answer[name]
                values[name] = given if convert is None else convert(given)
            else:
                values[name] = default
        for name in answer:
            if name not in names:
                _check_name(schema, name)
        return schema(**values)

    return build_entity


def _converter(field: Field) -> Callable[[Any], Any] | None:
    """What turns a plain value into what kio's field takes; None when that is the same."""
    element = _builder(field.nested) if field.nested is not None else _PRIMITIVES.get(field.kafka_type)
    if field.is_array:
        return _array_converter(element)
    if field.nested is not None and field.is_nullable:
        return lambda given: None if given is None else element(given)  # type: ignore[misc]
    return element


def _array_converter(element: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if element is None:
        return lambda given: None if given is None else tuple(given)
    return lambda given: None if given is None else tuple([element(item) for item in given])


def _error_code(given: int) -> ErrorCode:
    return _ERROR_CODES[given]


def _uuid(given: str | UUID | None) -> UUID | None:
    return UUID(bytes=uuid_bytes(given)) if isinstance(given, str) else given


def _duration(given: int | timedelta) -> timedelta:
    return given if isinstance(given, timedelta) else timedelta(milliseconds=given)


def _time(given: int | datetime | None) -> datetime | None:
    if isinstance(given, int):
        return None if given < 0 else _EPOCH + timedelta(milliseconds=given)
    return given


_PRIMITIVES: dict[str, Callable[[Any], Any]] = {
    "error_code": _error_code,
    "uuid": _uuid,
    "timedelta_i32": _duration,
    "timedelta_i64": _duration,
    "datetime_i64": _time,
}
_ZEROS: dict[str, Any] = {
    "error_code": ErrorCode.none,
    "uuid": None,
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
    "datetime_i64": _EPOCH,
    "string": "",
    "bytes": b"",
    "records": b"",
    "bool": False,
    "float64": 0.0,
}


def _default(field: Field) -> Any:
    if field.has_default:
        return field.default
    if field.is_nullable:
        return None
    if field.is_array:
        return ()
    return build(field.nested, {}) if field.nested is not None else _ZEROS.get(field.kafka_type, 0)


def _check_name(schema: Any, name: str) -> None:
    if name not in _names_in_any_version(schema.__api_key__, schema.__name__):
        raise TypeError(f"no version of {schema.__name__} has a field {name}")


@cache
def _names_in_any_version(api_key: int, struct_name: str) -> frozenset[str]:
    """Field names of a response or of a struct inside it, over all versions; asked only for names that one lacks."""
    names: set[str] = set()
    for version in schema_name_map[api_key_map[api_key]]:
        for entity in _structs(load_response_schema(api_key, version)):
            if entity.__name__ == struct_name:
                names.update(field.name for field in fields_of(entity))
    return frozenset(names)


def _structs(entity: Any) -> list[Any]:
    """A class and all classes nested in it."""
    inner = [field.nested for field in fields_of(entity) if field.nested is not None]
    return [entity, *(found for nested in inner for found in _structs(nested))]


def state_batches_of(sent: Iterable[Any]) -> tuple[StateBatch, ...]:
    """The state batches of a message of the share coordinator's APIs, in its order."""
    return tuple(
        StateBatch(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in sent
    )
