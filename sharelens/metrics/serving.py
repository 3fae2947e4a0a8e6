"""Serves a page of metrics over HTTP until SIGTERM or SIGINT."""

import asyncio
import logging
import signal
from collections.abc import Callable

from broker.text_endpoint import PageError, TextEndpoint
from sharelens.metrics.reading import Page
from state_model.errors import SharelensError

_log = logging.getLogger(__name__)

Ready = Callable[[str, int], None]


class ServeError(SharelensError):
    """Raised when the address can't be listened on."""


def serve(page: Page, content_type: str, host: str, port: int, ready: Ready) -> None:
    """Answers GET /metrics with the page; `ready` gets the address once clients can connect. Raises ServeError.

    The page is made in a thread, one at a time. Where it can't be made, the answer is 503 with the reason.
    """
    asyncio.run(_serve(page, content_type, host, port, ready))


async def _serve(page: Page, content_type: str, host: str, port: int, ready: Ready) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    one_at_a_time = asyncio.Lock()

    async def made() -> bytes:
        async with one_at_a_time:
            try:
                return await asyncio.to_thread(page.text)
            except (SharelensError, OSError) as error:
                _log.warning("no page: %s", error)
                raise PageError(str(error)) from error

    endpoint = TextEndpoint(made, content_type)
    try:
        bound = await endpoint.open(host, port)
    except OSError as error:
        raise ServeError(f"can't listen on {host}:{port}: {error.strerror or error}") from error
    try:
        ready(host, bound)
        await stop.wait()
    finally:
        endpoint.close()
