"""Serves a page of metrics over HTTP until SIGTERM or SIGINT."""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from sharelens.broker.errors import listen_problem
from sharelens.broker.text_endpoint import PageError, TextEndpoint
from state_model.errors import SharelensError

_log = logging.getLogger(__name__)

Ready = Callable[[str, int], None]
Text = Callable[[], bytes]


class ServeError(SharelensError):
    """Raised when the address can't be listened on."""


def serve(page: Text, content_type: str, host: str, port: int, ready: Ready) -> None:
    """Answers GET /metrics with the page; `ready` gets the address once clients can connect. Raises ServeError.

    The page is made in a thread, one at a time. Where it can't be made, the answer is 503 with the reason.
    """
    asyncio.run(_serve(page, content_type, host, port, ready))


async def _serve(page: Text, content_type: str, host: str, port: int, ready: Ready) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    one_at_a_time = asyncio.Lock()

    async def page_bytes() -> bytes:
        async with one_at_a_time:
            try:
                return await asyncio.to_thread(page)
            except (SharelensError, OSError) as error:
                _log.warning("no page: %s", error)
                raise PageError(str(error)) from error

    await _answer_until(stop, TextEndpoint(page_bytes, content_type), host, port, lambda bound: ready(host, bound))


@contextmanager
def serving(text: Text, content_type: str, host: str, port: int) -> Iterator[int]:
    """Answers GET /metrics from a thread while the block runs; yields the port. `text` is called in that thread.

    Raises:
        ServeError: the address can't be listened on.
    """
    bound: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def page_bytes() -> bytes:
        return text()

    async def answer() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        endpoint = TextEndpoint(page_bytes, content_type)
        await _answer_until(stop, endpoint, host, port, lambda port: bound.set_result((port, loop, stop)))

    def work() -> None:
        try:
            asyncio.run(answer())
        except ServeError as error:
            bound.set_exception(error)

    thread = threading.Thread(target=work, name="metrics", daemon=True)
    thread.start()
    opened, loop, stop = bound.result()
    try:
        yield opened
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _answer_until(
    stop: asyncio.Event, endpoint: TextEndpoint, host: str, port: int, ready: Callable[[int], None]
) -> None:
    try:
        bound = await endpoint.open(host, port)
    except OSError as error:
        raise ServeError(listen_problem(host, port, error)) from error
    try:
        ready(bound)
        await stop.wait()
    finally:
        endpoint.close()
