"""One page of text over HTTP for scrapers, computed for each GET. The number of clients is bounded."""

import asyncio
from collections.abc import Awaitable, Callable

from sharelens.broker.errors import BrokerError

PATHS = ("/", "/metrics")
REQUEST_BYTES_MAX = 8192
REQUEST_TIMEOUT_S = 5.0
CLIENTS_MAX = 16

Page = Callable[[], Awaitable[bytes]]


class PageError(BrokerError):
    """Raised when the page can't be computed now; its message is the body of a response with status 503."""


class TextEndpoint:
    """Answers GET /metrics and refuses everything else; a client that is too slow or sends too much is disconnected."""

    def __init__(self, page: Page, content_type: str) -> None:
        self._page = page
        self._content_type = content_type
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()

    async def open(self, host: str, port: int) -> int:
        """Listen on an address and return the port, which the system picks for port 0. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._clients):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= CLIENTS_MAX:
            writer.close()
            return
        self._clients.add(writer)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            answer = await self._answer(head)
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError):
            writer.transport.abort()
        finally:
            self._clients.discard(writer)
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        words = head.partition(b"\r\n")[0].decode("ascii", "replace").split()
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return self._response("400 Bad Request", b"")
        if words[0] not in ("GET", "HEAD"):
            return self._response("405 Method Not Allowed", b"")
        if words[1].partition("?")[0] not in PATHS:
            return self._response("404 Not Found", b"")
        try:
            body = await self._page()
        except PageError as none:
            return self._response("503 Service Unavailable", f"{none}\n".encode())
        return self._response("200 OK", body, has_body=words[0] == "GET")

    def _response(self, status: str, body: bytes, *, has_body: bool = True) -> bytes:
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {self._content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode("ascii") + (body if has_body else b"")
