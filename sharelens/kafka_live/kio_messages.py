"""Requests of APIs that kafka-python lacks, by kio's message classes, for its connections to send."""

from collections.abc import Mapping
from typing import Any

from kio.index import load_request_schema, load_response_schema

from sharelens.kafka_formats.messages.errors import MessageError
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write

FRAME_SIZE_BYTES = 4
RESPONSE_ELEMENTS_MAX = 1 << 22
"""Array elements in a response, which describes all groups of a coordinator: groups, members and their partitions."""


class KioRequest:
    """A request with the fields `values`, in the newest of `versions` (lowest, highest) that the broker knows.

    The library sets `API_VERSION`; the other public names are those that it reads.
    """

    def __init__(self, api_key: int, versions: tuple[int, int], values: Mapping[str, Any]) -> None:
        self.API_KEY, self.values = api_key, values
        self.min_version, self.max_version = versions
        self._min_version = self._max_version = None
        self.API_VERSION: int | None = None
        self.name = load_request_schema(api_key, self.max_version).__name__
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
        schema: Any = load_request_schema(self.API_KEY, self.header.api_version)
        fields = {
            "request_api_key": self.header.api_key,
            "request_api_version": self.header.api_version,
            "correlation_id": self.header.correlation_id,
            "client_id": self.header.client_id,
        }
        frame = write(schema.__header_schema__, fields) + write(schema, self.values)
        return len(frame).to_bytes(FRAME_SIZE_BYTES, "big") + frame


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
        header, size = self._read(self._schema.__header_schema__, bytes(buffer))
        buffer.seek(size)
        return header

    def decode(self, buffer: Any) -> Any:
        """The response behind its header."""
        return self._read(self._schema, buffer.read())[0]

    @staticmethod
    def _read(entity: Any, data: bytes) -> tuple[Any, int]:
        """As `read`; raises ValueError, which the connection expects of bytes that are no message."""
        try:
            return read(entity, data, elements_max=RESPONSE_ELEMENTS_MAX)
        except MessageError as error:
            raise ValueError(f"no {entity.__name__}: {error}") from error
