"""Decodes requests from frames and encodes answers into frames, with kio's message classes."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from sharelens.broker.errors import BrokerError, FrameError
from sharelens.broker.protocol.registry import Answer
from sharelens.kafka_formats.messages.errors import MessageError, TooManyElementsError
from sharelens.kafka_formats.messages.fields import fields_of
from sharelens.kafka_formats.messages.reader import ELEMENTS_MAX, read, read_in_steps
from sharelens.kafka_formats.messages.writer import write_in_steps
from state_model.codec.steps import Steps, run
from state_model.codec.writers import Bytes, Output
from state_model.share_records import StateBatch
from state_model.uuids import uuid_text

FRAME_SIZE = struct.Struct(">i")
FIRST_METADATA_BY_ID: Final = 12
"""The first version of Metadata in which an id can stand for a name."""
_HEAD = struct.Struct(">hhi")


class UnsupportedVersionError(BrokerError):
    """Raised when no handler answers a request's API in its version."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"API {api_key} version {api_version} is not answered here")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


class OversizedRequestError(FrameError):
    """Raised when a request has more array elements than its API allows."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int, reason: str) -> None:
        super().__init__(f"API {api_key} version {api_version}: {reason}")
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


def decode_in_steps(
    frame: bytes, is_supported: Callable[[int, int], bool], elements_max: Callable[[int], int] = lambda _: ELEMENTS_MAX
) -> Steps[Request]:
    """The request of a frame (without its size); reading pauses after every STEP_ELEMENTS array elements.

    Bytes behind the request are ignored, as Kafka does: librdkafka's request for all topics has three extra bytes.

    Raises:
        UnsupportedVersionError: `is_supported` refuses its API key and version.
        OversizedRequestError: it has more array elements than `elements_max` of its API key.
        FrameError: the bytes are no such request.
    """
    if len(frame) < _HEAD.size:
        raise FrameError(f"a request of {len(frame)} bytes has no header")
    api_key, api_version, correlation_id = _HEAD.unpack_from(frame)
    if not is_supported(api_key, api_version):
        raise UnsupportedVersionError(api_key, api_version, correlation_id)
    schema: Any = load_request_schema(api_key, api_version)
    try:
        header, at = read(schema.__header_schema__, frame)
        body, _ = yield from read_in_steps(schema, frame, at, elements_max=elements_max(api_key))
    except TooManyElementsError as error:
        raise OversizedRequestError(api_key, api_version, correlation_id, str(error)) from error
    except MessageError as error:
        raise FrameError(str(error)) from error
    return Request(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=header.client_id or "",
        body=body,
    )


def encode_in_steps(api_key: int, api_version: int, correlation_id: int, answer: Answer) -> Steps[list[Bytes]]:
    """The pieces of a response frame, its size first; byte fields above LARGE_BYTES are not copied.

    Raises:
        TypeError: the answer has a name that no version of the response has.
    """
    schema: Any = load_response_schema(api_key, api_version)
    out = Output()
    out.buffer += FRAME_SIZE.pack(0)
    first = out.buffer
    yield from write_in_steps(schema.__header_schema__, {"correlation_id": correlation_id}, out)
    yield from write_in_steps(schema, answer, out)
    FRAME_SIZE.pack_into(first, 0, out.size_bytes - FRAME_SIZE.size)
    return [piece for piece in out.pieces if len(piece)]


def encode_answer(api_key: int, api_version: int, correlation_id: int, answer: Answer) -> list[Bytes]:
    """The pieces of a response frame, without a pause (see encode_in_steps)."""
    return run(encode_in_steps(api_key, api_version, correlation_id, answer))


def error_response(api_key: int, api_version: int, code: ErrorCode, message: str | None = None) -> Answer | None:
    """An answer with an error code, and a message where there is a field for it; None: only its parts have codes."""
    names = {field.name for field in fields_of(load_response_schema(api_key, api_version))}
    # Answers of streams groups have no null for the list of statuses.
    values: Answer = {"error_code": code, "error_message": message, "status": []}
    return {name: value for name, value in values.items() if name in names} if "error_code" in names else None


def milliseconds(duration: timedelta) -> int:
    """A duration of a request (kio has them as timedelta) in whole milliseconds."""
    return duration // timedelta(milliseconds=1)


def topic_id_text(topic_id: UUID | None) -> str | None:
    """The 22 characters of a topic id of a request; None for the zero id, which means that there is none."""
    return None if topic_id is None else uuid_text(topic_id.bytes)


def metadata_topics(request: Any, version: int) -> list[Any]:
    """The topics that a Metadata request names, each once.

    As soon as one of them has an id, those with an id count alone, without their names (Kafka's
    handleTopicMetadataRequest).
    """
    is_by_id = version >= FIRST_METADATA_BY_ID
    with_id = [replace(topic, name=None) for topic in request.topics if is_by_id and topic.topic_id is not None]
    return list(dict.fromkeys(with_id or request.topics))


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
