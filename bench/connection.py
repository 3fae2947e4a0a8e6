"""A connection to a broker that stays open, for requests without a call in the client library."""

import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from kio.index import load_response_schema

from sharelens.broker.protocol.messages import FRAME_SIZE
from sharelens.kafka_formats.messages.reader import read
from sharelens.workloads.wire import encode_request

TIMEOUT_S = 60.0


class Connection:
    """One request at a time."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._socket.close()

    def ask(self, api_key: int, version: int, body: Mapping[str, Any]) -> Any:
        """kio's response object to a request, as sharelens.workloads.wire.ask. Raises OSError."""
        request = encode_request(api_key, version, body)
        self._socket.sendall(FRAME_SIZE.pack(len(request)) + request)
        (size,) = FRAME_SIZE.unpack(self._received(FRAME_SIZE.size))
        schema: Any = load_response_schema(api_key, version)
        frame = self._received(size)
        answer, _ = read(schema, frame, read(schema.__header_schema__, frame)[1])
        return answer

    def _received(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            data += piece
        return data
