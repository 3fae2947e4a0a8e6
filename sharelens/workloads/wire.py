"""Requests without a call in the client library, over a connection of their own."""

import socket
from collections.abc import Mapping
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema

from sharelens.broker.errors import BrokerError
from sharelens.broker.protocol.messages import FRAME_SIZE
from sharelens.kafka_formats.messages.errors import MessageError
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write

RESPONSE_BYTES_MAX: Final = 100 << 20
_CLIENT_ID: Final = "sharelens-workload"


class UnreachableError(BrokerError):
    """Raised when a broker can't be reached or does not answer."""


def ask(bootstrap: str, api_key: int, version: int, body: Mapping[str, Any], *, timeout_s: float = 10) -> Any:
    """kio's response object to one request, whose fields are named as kio's request class has them.

    Raises:
        UnreachableError: no connection, no answer in time, or an invalid answer.
    """
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    request = encode_request(api_key, version, body)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
            connection.sendall(FRAME_SIZE.pack(len(request)) + request)
            (size_bytes,) = FRAME_SIZE.unpack(_receive(connection, FRAME_SIZE.size))
            if not 0 <= size_bytes <= RESPONSE_BYTES_MAX:
                raise UnreachableError(f"{bootstrap} sent a frame of {size_bytes} bytes")
            frame = _receive(connection, size_bytes)
    except (OSError, ValueError) as error:
        raise UnreachableError(f"{bootstrap} does not answer: {error}") from error
    schema: Any = load_response_schema(api_key, version)
    try:
        _, at = read(schema.__header_schema__, frame)
        answer, _ = read(schema, frame, at)
    except MessageError as error:
        raise UnreachableError(f"{bootstrap} sent an invalid answer to API {api_key}: {error}") from error
    return answer


def encode_request(api_key: int, version: int, body: Mapping[str, Any]) -> bytes:
    """A request's frame without its size."""
    schema: Any = load_request_schema(api_key, version)
    header = {
        "request_api_key": api_key,
        "request_api_version": version,
        "correlation_id": 1,
        "client_id": _CLIENT_ID,
    }
    return write(schema.__header_schema__, header) + write(schema, body)


def _receive(connection: socket.socket, size_bytes: int) -> bytes:
    received = bytearray()
    while len(received) < size_bytes:
        piece = connection.recv(min(1 << 20, size_bytes - len(received)))
        if not piece:
            raise ConnectionError("the connection was closed")
        received += piece
    return bytes(received)
