"""The listening sockets and all connections, with the limits that keep clients from taking the broker down."""

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass

from sharelens.broker.errors import BrokerError, listen_problem
from sharelens.broker.protocol.authentication import ConnectionSecurity
from sharelens.broker.protocol.connection import Connection
from sharelens.broker.protocol.dispatch import Dispatcher, Pieces
from sharelens.broker.protocol.registry import ClientConnection

_log = logging.getLogger(__name__)

STOP_GRACE_S = 2.0
IDLE_CHECKS = 4
AUTHENTICATION_TIMEOUT_S = 60.0
"""How long a client may take from its connection to the end of TLS handshake and authentication."""
BACKLOG_MIN = 1024
"""One thread accepts: a burst of clients must not end in retransmissions, which take a second each."""


class ListenError(BrokerError):
    """Raised when a listener's address can't be bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`memory_bytes_max` bounds the unfinished frames and unsent answers of all connections together."""

    frame_bytes_max: int = 100 << 20
    memory_bytes_max: int = 200 << 20
    connections_max: int = 2**31 - 1
    connections_per_host_max: int = 2**31 - 1
    idle_ms: int = 600_000
    authentication_timeout_s: float = AUTHENTICATION_TIMEOUT_S
    backlog: int = 50


class Server:
    """Serves connections with a dispatcher (connection.Host)."""

    def __init__(self, dispatcher: Dispatcher, limits: Limits) -> None:
        self._dispatcher = dispatcher
        self._limits = limits
        self.frame_bytes_max = limits.frame_bytes_max
        self.authentication_timeout_s = limits.authentication_timeout_s
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._last_id = 0
        self._memory_bytes = 0
        self._idle_check: asyncio.TimerHandle | None = None
        self._all_closed = asyncio.Event()

    @property
    def connections(self) -> int:
        """The number of connections."""
        return len(self._connections)

    async def listen(self, name: str, host: str, port: int, security: ConnectionSecurity | None = None) -> int:
        """Listen as listener `name` on an address and return its port, which the system picks for port 0.

        Raises:
            ListenError: the address can't be bound.
        """
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                lambda: self._connect(name, security), host, port, backlog=max(self._limits.backlog, BACKLOG_MIN)
            )
        except OSError as error:
            raise ListenError(listen_problem(host, port, error)) from error
        self._servers.append(server)
        if self._idle_check is None and self._limits.idle_ms > 0:
            self._close_idle()
        return int(server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening, cancel waiting requests, send buffered answers, close all connections."""
        for server in self._servers:
            server.close()
        if self._idle_check is not None:
            self._idle_check.cancel()
        for connection in list(self._connections):
            connection.cancel()
        if self._connections:
            self._all_closed.clear()
            try:
                await asyncio.wait_for(self._all_closed.wait(), STOP_GRACE_S)
            except TimeoutError:
                for connection in list(self._connections):
                    connection.abort()
        self._servers.clear()

    # The interface for connections (connection.Host).

    def dispatch(
        self, frame: bytes, connection: ClientConnection, client_host: str
    ) -> Pieces | Awaitable[Pieces | None] | None:
        """Answer a frame."""
        return self._dispatcher.dispatch(frame, connection, client_host)

    def opened(self, connection: Connection) -> bool:
        """Add a connection; whether the limits allow it."""
        limits = self._limits
        has_room = len(self._connections) < limits.connections_max
        if has_room and limits.connections_per_host_max < limits.connections_max:
            same_host = sum(other.client_host == connection.client_host for other in self._connections)
            has_room = same_host < limits.connections_per_host_max
        if not has_room:
            _log.warning("a connection from %s is refused: too many connections", connection.client_host)
        self._connections.add(connection)
        return has_room

    def closed(self, connection: Connection) -> None:
        """Remove a connection."""
        self._connections.discard(connection)
        if not self._connections:
            self._all_closed.set()

    def memory_changed(self, connection: Connection, change_bytes: int) -> None:
        """Keep the buffers of all connections below the limit: the connection with the largest is closed."""
        self._memory_bytes += change_bytes
        if self._memory_bytes > self._limits.memory_bytes_max:
            largest = max(self._connections, key=lambda other: other.memory_bytes, default=connection)
            _log.warning(
                "connection %d from %s is closed: its buffers take %d of %d bytes, the limit for all is %d",
                *(largest.id, largest.client_host, largest.memory_bytes, self._memory_bytes),
                self._limits.memory_bytes_max,
            )
            largest.abort()

    def _connect(self, listener: str, security: ConnectionSecurity | None) -> Connection:
        self._last_id += 1
        return Connection(self, self._last_id, listener, security)

    def _close_idle(self) -> None:
        """Close connections without a request for connections.max.idle.ms; one timer checks all."""
        loop = asyncio.get_running_loop()
        idle_s = self._limits.idle_ms / 1000
        now_s = loop.time()
        for connection in list(self._connections):
            if not connection.is_busy and now_s - connection.last_active_s > idle_s:
                _log.info("connection %d from %s was idle and is closed", connection.id, connection.client_host)
                connection.close()
        self._idle_check = loop.call_later(idle_s / IDLE_CHECKS, self._close_idle)
