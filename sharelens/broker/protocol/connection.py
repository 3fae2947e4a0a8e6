"""One client's connection: frames in, one request at a time, answers in order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, cast

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.authentication import ConnectionSecurity, Reply
from sharelens.broker.protocol.dispatch import Pieces
from sharelens.broker.protocol.messages import FRAME_SIZE
from sharelens.broker.protocol.registry import ANONYMOUS, ClientConnection
from state_model.codec.writers import Bytes

_log = logging.getLogger(__name__)

READ_AHEAD_BYTES = 1 << 20
"""Bytes that are read ahead while a request waits; reading is how a disconnect of the client is noticed."""


class Host(Protocol):
    """The parts of the server that a connection uses."""

    frame_bytes_max: int
    authentication_timeout_s: float

    def dispatch(
        self, frame: bytes, connection: ClientConnection, client_host: str
    ) -> Pieces | Awaitable[Pieces | None] | None:
        """Answer a frame (dispatch.Dispatcher)."""

    def opened(self, connection: "Connection") -> bool:
        """Add a connection; whether the limits allow it."""

    def closed(self, connection: "Connection") -> None:
        """Remove a connection."""

    def memory_changed(self, connection: "Connection", change_bytes: int) -> None:
        """The buffers of the connection take so much more (or less) memory."""


class Connection(asyncio.Protocol):
    """Handles one request at a time; the next one after the answer to the last was sent."""

    __slots__ = (
        "_authenticator",
        "_buffer",
        "_channel",
        "_is_busy",
        "_is_reading",
        "_is_scheduled",
        "_is_writable",
        "_on_close",
        "_server",
        "_task",
        "_timer",
        "_transport",
        "client_host",
        "id",
        "last_active_s",
        "listener",
        "memory_bytes",
        "principal",
    )

    def __init__(
        self, server: Host, connection_id: int, listener: str, security: ConnectionSecurity | None = None
    ) -> None:
        self._server = server
        self.id = connection_id
        self.listener = listener
        self.principal = ANONYMOUS
        self.client_host = ""
        self.memory_bytes = 0
        self.last_active_s = 0.0
        self._channel = None if security is None else security.channel()
        self._authenticator = None if security is None else security.authenticator()
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._on_close: list[Callable[[], None]] | None = []
        self._is_busy = False
        self._is_reading = True
        self._is_scheduled = False
        self._is_writable = True

    @property
    def is_busy(self) -> bool:
        """Whether a request is being handled, or its answer waits for the client."""
        return self._is_busy or not self._is_writable

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is closed; at once when it is closed already."""
        if self._on_close is None:
            callback()
        else:
            self._on_close.append(callback)

    def close(self) -> None:
        """Send the buffered answers, then close."""
        if self._transport is not None:
            if self._channel is not None and not self._transport.is_closing():
                self._channel.close()
                self._transport.write(self._channel.pending())
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def cancel(self) -> None:
        """Cancel the waiting request, and close."""
        if self._task is not None:
            self._task.cancel()
        self.close()

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the client's address; the client sends first."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.client_host = f"/{peer[0]}" if peer else "/unknown"
        self.last_active_s = asyncio.get_running_loop().time()
        if not self._server.opened(self):
            self.abort()
        elif not self._is_authenticated:
            timeout_s = self._server.authentication_timeout_s
            self._timer = asyncio.get_running_loop().call_later(timeout_s, self._authentication_overdue)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the request and call the `on_close` callbacks."""
        self._transport = None
        self._account(0)
        self._stop_timer()
        if self._task is not None:
            self._task.cancel()
        callbacks, self._on_close = self._on_close or [], None
        for callback in callbacks:
            try:
                callback()
            except Exception:
                _log.exception("a callback at the end of connection %d failed", self.id)
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        """Buffer the bytes and handle the first complete frame."""
        self.last_active_s = asyncio.get_running_loop().time()
        try:
            self._buffer += data if self._channel is None else self._decrypted(data)
        except FrameError as error:
            self._refuse(error)
            return
        self._handle_next()

    def pause_writing(self) -> None:
        """The client does not read its answers."""
        self._is_writable = False

    def resume_writing(self) -> None:
        """The client has read its answers: handle the next frame."""
        self._is_writable = True
        self._handle_next()

    # From bytes to requests.

    def _handle_next(self) -> None:
        """Handle one frame; the next one waits for the next turn of the loop, so that other clients are served."""
        if self._transport is None or self._transport.is_closing() or self.is_busy or self._is_scheduled:
            self._regulate()
            return
        try:
            frame = self._next_frame()
            if frame is not None:
                self._respond(frame)
                if self._buffer:
                    self._is_scheduled = True
                    asyncio.get_running_loop().call_soon(self._handle_scheduled)
        except FrameError as error:
            self._refuse(error)
        self._regulate()

    def _handle_scheduled(self) -> None:
        self._is_scheduled = False
        self._handle_next()

    def _refuse(self, error: FrameError) -> None:
        _log.info("connection %d from %s is closed: %s", self.id, self.client_host, error)
        if self._channel is None or self._channel.is_open or self._transport is None:
            self.abort()
        else:  # the client of a failed handshake gets its alert
            self._transport.write(self._channel.pending())
            self._transport.close()

    def _next_frame(self) -> bytes | None:
        buffer = self._buffer
        if len(buffer) < FRAME_SIZE.size:
            return None
        (size_bytes,) = FRAME_SIZE.unpack_from(buffer)
        if self._authenticator is None or self._authenticator.is_complete:
            key, limit = "socket.request.max.bytes", self._server.frame_bytes_max
        else:
            key, limit = "sasl.server.max.receive.size", self._authenticator.frame_bytes_max
        if not 0 <= size_bytes <= limit:
            raise FrameError(f"a frame of {size_bytes} bytes is above {key}={limit}")
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

    def _respond(self, frame: bytes) -> None:
        reply = None if self._authenticator is None else self._authenticator.receive(frame)
        if reply is not None:
            self._reply(reply)
            return
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
            self._refuse(error)
        except Exception:
            _log.exception("connection %d from %s is closed", self.id, self.client_host)
            self.abort()
        finally:
            self._task = None
            self._is_busy = False
            self.last_active_s = asyncio.get_running_loop().time()
        self._handle_next()

    def _send(self, pieces: Iterable[Bytes] | None) -> None:
        for piece in pieces or ():
            if self._transport is None:
                return
            if self._channel is None:
                self._transport.write(piece)
            else:
                self._channel.encrypt(piece)
                self._transport.write(self._channel.pending())

    # Before a client has authenticated.

    @property
    def _is_authenticated(self) -> bool:
        has_channel = self._channel is None or self._channel.is_open
        return has_channel and (self._authenticator is None or self._authenticator.is_complete)

    def _decrypted(self, data: bytes) -> bytes:
        """The plaintext of bytes of a client with TLS. Raises FrameError."""
        assert self._channel is not None
        was_open = self._channel.is_open
        plaintext = self._channel.receive(data)
        if self._transport is not None:
            self._transport.write(self._channel.pending())
        if self._channel.is_open and not was_open:
            self.principal = self._channel.principal
            if self._is_authenticated:
                self._stop_timer()
        return plaintext

    def _reply(self, reply: Reply) -> None:
        """Answer in place of the handlers; the answer to a failed authentication is held back."""
        assert self._authenticator is not None
        if self._authenticator.is_complete:
            self.principal = self._authenticator.principal
            self._stop_timer()
        if not reply.closes:
            self._send(reply.pieces)
            return
        self._is_busy = True
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(reply.delay_s, self._send_and_close, reply)

    def _send_and_close(self, reply: Reply) -> None:
        try:
            self._send(reply.pieces)
        except FrameError as error:
            self._refuse(error)
        self.close()

    def _authentication_overdue(self) -> None:
        self._refuse(FrameError(f"no authentication within {self._server.authentication_timeout_s:g} s"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _regulate(self) -> None:
        """Read on or not, and account for the memory of this connection.

        Reading stops while the client does not read its answers, and at READ_AHEAD_BYTES while a request waits.
        """
        if self._transport is None or self._transport.is_closing():
            return
        has_work = self._is_busy or self._is_scheduled
        is_reading = self._is_writable and (not has_work or len(self._buffer) < READ_AHEAD_BYTES)
        if is_reading != self._is_reading:
            self._is_reading = is_reading
            if is_reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
        self._account(len(self._buffer) + self._transport.get_write_buffer_size())

    def _account(self, memory_bytes: int) -> None:
        change_bytes = memory_bytes - self.memory_bytes
        if change_bytes:
            self.memory_bytes = memory_bytes
            self._server.memory_changed(self, change_bytes)
