"""One client's connection: frames in, one request at a time, answers in order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from broker.errors import FrameError
from broker.protocol.dispatch import Pieces
from broker.protocol.messages import FRAME_SIZE
from broker.protocol.registry import ClientConnection

_log = logging.getLogger(__name__)

READ_AHEAD_BYTES = 1 << 20
"""How much of what a client sends ahead is taken while its request waits; reading on is how we notice that it left."""
JOINED_BYTES_MAX = 1 << 16
"""Pieces of an answer up to this size are sent as one."""


class Host(Protocol):
    """What a connection needs of its server."""

    frame_bytes_max: int

    def dispatch(
        self, frame: bytes, connection: ClientConnection, client_host: str
    ) -> Pieces | Awaitable[Pieces | None] | None:
        """Answer a frame (dispatch.Dispatcher)."""

    def opened(self, connection: "Connection") -> bool:
        """Whether there is room for one more connection."""

    def closed(self, connection: "Connection") -> None:
        """It has gone."""

    def held(self, connection: "Connection", change_bytes: int) -> None:
        """The connection holds so much more (or less) memory."""


class Connection(asyncio.Protocol):
    """Requests are handled one at a time, and the next not before the answer of the last has left for the client."""

    __slots__ = (
        "_buffer",
        "_is_busy",
        "_is_reading",
        "_is_writable",
        "_on_close",
        "_server",
        "_task",
        "_transport",
        "client_host",
        "held_bytes",
        "id",
        "last_active_s",
    )

    def __init__(self, server: Host, connection_id: int) -> None:
        self._server = server
        self.id = connection_id
        self.client_host = ""
        self.held_bytes = 0
        self.last_active_s = 0.0
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._on_close: list[Callable[[], None]] | None = []
        self._is_busy = False
        self._is_reading = True
        self._is_writable = True

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or its answer has not left yet."""
        return self._is_busy or not self._is_writable

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, when the connection has gone; at once when it has gone already."""
        if self._on_close is None:
            callback()
        else:
            self._on_close.append(callback)

    def close(self) -> None:
        """Send what is on its way, then close."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def cancel(self) -> None:
        """Give up the request that waits, and close."""
        if self._task is not None:
            self._task.cancel()
        self.close()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Kafka's clients begin to talk; nothing is sent before a request came."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.client_host = f"/{peer[0]}" if peer else "/unknown"
        self.last_active_s = asyncio.get_running_loop().time()
        if not self._server.opened(self):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits for this client is told."""
        self._transport = None
        self._account(0)
        if self._task is not None:
            self._task.cancel()
        callbacks, self._on_close = self._on_close or [], None
        for callback in callbacks:
            try:
                callback()
            except Exception:
                _log.exception("a listener to the end of connection %d failed", self.id)
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        """More bytes of a frame, or of several."""
        self.last_active_s = asyncio.get_running_loop().time()
        self._buffer += data
        self._pump()

    def pause_writing(self) -> None:
        """The client reads slower than it asks."""
        self._is_writable = False

    def resume_writing(self) -> None:
        """The answer has left; go on."""
        self._is_writable = True
        self._pump()

    # From bytes to requests.

    def _pump(self) -> None:
        """Answer what is complete, as long as nothing has to be waited for."""
        try:
            while self._transport is not None and not self._transport.is_closing() and not self.is_busy:
                frame = self._next_frame()
                if frame is None:
                    break
                self._answer(frame)
        except FrameError as error:
            _log.info("connection %d from %s is closed: %s", self.id, self.client_host, error)
            self.abort()
        self._regulate()

    def _next_frame(self) -> bytes | None:
        buffer = self._buffer
        if len(buffer) < FRAME_SIZE.size:
            return None
        (size_bytes,) = FRAME_SIZE.unpack_from(buffer)
        if not 0 <= size_bytes <= self._server.frame_bytes_max:
            raise FrameError(f"a frame of {size_bytes} bytes, at most {self._server.frame_bytes_max} are taken")
        end = FRAME_SIZE.size + size_bytes
        if len(buffer) < end:
            return None
        with memoryview(buffer) as view:
            frame = bytes(view[FRAME_SIZE.size : end])
        if len(buffer) == end:
            self._buffer = bytearray()
        else:
            del buffer[:end]
        return frame

    def _answer(self, frame: bytes) -> None:
        outcome = self._server.dispatch(frame, self, self.client_host)
        if outcome is None or isinstance(outcome, list):
            self._send(outcome)
            return
        self._is_busy = True
        self._task = asyncio.get_running_loop().create_task(self._wait(outcome))

    async def _wait(self, outcome: Awaitable[Pieces | None]) -> None:
        try:
            self._send(await outcome)
        except FrameError as error:
            _log.info("connection %d from %s is closed: %s", self.id, self.client_host, error)
            self.abort()
        except Exception:
            _log.exception("connection %d from %s is closed", self.id, self.client_host)
            self.abort()
        finally:
            self._task = None
            self._is_busy = False
            self.last_active_s = asyncio.get_running_loop().time()
        self._pump()

    def _send(self, pieces: Pieces | None) -> None:
        if self._transport is None or not pieces:
            return
        small: Pieces = []
        for piece in pieces:
            if len(piece) <= JOINED_BYTES_MAX:
                small.append(piece)
                continue
            self._transport.write(b"".join(small))
            self._transport.write(piece)
            small = []
        if small:
            self._transport.write(b"".join(small))

    def _regulate(self) -> None:
        """Take no more than a little ahead while a request waits, and say what is held."""
        if self._transport is None or self._transport.is_closing():
            return
        wants_more = not self.is_busy or len(self._buffer) < READ_AHEAD_BYTES
        if wants_more != self._is_reading:
            self._is_reading = wants_more
            if wants_more:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
        self._account(len(self._buffer) + self._transport.get_write_buffer_size())

    def _account(self, held_bytes: int) -> None:
        change_bytes = held_bytes - self.held_bytes
        if change_bytes:
            self.held_bytes = held_bytes
            self._server.held(self, change_bytes)
