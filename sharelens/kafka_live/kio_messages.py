"""Requests of APIs that kafka-python lacks, with kio's message classes, for its connections to send."""

import io
from collections.abc import Mapping
from typing import Any

from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer

FRAME_SIZE_BYTES = 4


class KioRequest:
    """A request; `bodies`: kio's object of it in each version that may be sent, of which the newest that the broker
    knows is taken. The library sets `API_VERSION`; the rest are the names that it reads.
    """

    def __init__(self, bodies: Mapping[int, Any]) -> None:
        self.bodies = bodies
        self.min_version, self.max_version = min(bodies), max(bodies)
        self._min_version = self._max_version = None
        newest = bodies[self.max_version]
        self.API_KEY = int(newest.__api_key__)
        self.API_VERSION: int | None = None
        self.name = type(newest).__name__
        self.header: _Header | None = None

    def expect_response(self) -> bool:
        """All of them do."""
        return True

    def with_header(self, correlation_id: int = 0, client_id: str = "") -> None:
        """Sets the header, once the version is known."""
        assert self.API_VERSION is not None
        self.header = _Header(self.API_KEY, self.API_VERSION, correlation_id, client_id)

    def encode(self, *, header: bool, framed: bool) -> bytes:
        """The bytes of a frame, as a connection sends it."""
        assert self.header is not None
        assert header
        assert framed
        body = self.bodies[self.header.api_version]
        out = io.BytesIO()
        schema = body.__header_schema__
        entity_writer(schema)(
            out,
            schema(
                request_api_key=self.header.api_key,
                request_api_version=self.header.api_version,
                correlation_id=self.header.correlation_id,
                client_id=self.header.client_id,
            ),
        )
        entity_writer(type(body))(out, body)
        return len(out.getvalue()).to_bytes(FRAME_SIZE_BYTES, "big") + out.getvalue()


class _Header:
    """What the library keeps of a request until its response comes."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str) -> None:
        self.api_key, self.api_version = api_key, api_version
        self.correlation_id, self.client_id = correlation_id, client_id

    def get_response_class(self) -> "_Response":
        """Reads the response."""
        return _Response(load_response_schema(self.api_key, self.api_version))


class _Response:
    """Reads a response: its header, then kio's object of the rest."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def parse_header(self, buffer: Any) -> Any:
        """The header, which has the `correlation_id`; `buffer` stands behind it afterwards."""
        header, size = entity_reader(self._schema.__header_schema__)(bytes(buffer), 0)
        buffer.seek(size)
        return header

    def decode(self, buffer: Any) -> Any:
        """The response behind its header."""
        try:
            return entity_reader(self._schema)(buffer.read(), 0)[0]
        except Exception as error:  # kio has no one class of its errors
            raise ValueError(f"no {self._schema.__name__}: {error}") from error
