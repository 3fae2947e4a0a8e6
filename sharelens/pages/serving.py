"""Serves pages over HTTP until a signal, or until some time passed without a request."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from state_model.errors import SharelensError

HEAD_S = 10.0
"""Time for the head of a request."""
IDLE_S = 5
"""Time that a connection may stay open between requests."""
MOST_CONNECTIONS = 800
"""Connections at once: a process may usually have 1,024 open files."""
CHECK_S = 1.0


class Idle:
    """An application, and the moment of the last request to it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._last_s, self._open = app, time.monotonic(), 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1
            self._last_s = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Time since the last request; 0 during one."""
        return 0.0 if self._open else time.monotonic() - self._last_s


class _Punctual(H11Protocol):
    """Closes connections that ask for nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the time in which the first request has to come."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Begins the time in which a request has to be complete."""
        super().data_received(data)
        self._expect_request()

    def _expect_request(self) -> None:
        self.loop.call_later(HEAD_S, self._close_without_request, self.cycle)

    def _close_without_request(self, before: RequestResponseCycle | None) -> None:
        is_idle = before is None or before.response_complete
        if self.cycle is before and is_idle and not self.transport.is_closing():
            self.transport.close()


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises SharelensError: the address is taken or not of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SharelensError(f"explore: {host}:{port}: {error.strerror or error}; give another --port") from error
    listener.set_inheritable(False)
    return listener


def serve(app: ASGIApp, listener: socket.socket, *, idle_exit_s: float | None, announce: Callable[[], Any]) -> None:
    """Serves until a signal, or until `idle_exit_s` passed without a request; `announce` is called once it listens."""
    idle = Idle(app)
    config = uvicorn.Config(
        idle, http=_Punctual, ws="none", lifespan="off", loop="asyncio", log_level="critical", access_log=False,
        server_header=False, timeout_keep_alive=IDLE_S, limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)

    async def run() -> None:
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        announce()
        while not serving.done():
            await asyncio.wait([serving], timeout=CHECK_S)
            if idle_exit_s is not None and idle.idle_s >= idle_exit_s:
                server.should_exit = True
        await serving

    asyncio.run(run())
