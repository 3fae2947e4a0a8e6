"""Processes that ask questions and draw pictures, each with a bound of time and memory."""

import asyncio
import multiprocessing
import resource
import signal
import sys
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from pebble import ProcessExpired, ProcessPool

from sharelens.pages.answers import PageError

PROCESSES = 2
MOST_WAITING = 64
"""Questions that wait or run at once; further ones are refused."""
T = TypeVar("T")


class Workers:
    """The processes. `timeout_s`: of a question; `most_bytes`: memory of a process; `processes`: how many at most."""

    def __init__(self, *, timeout_s: float, most_bytes: int, processes: int = PROCESSES) -> None:
        self._timeout_s, self._most_bytes, self._processes, self._open = timeout_s, most_bytes, processes, 0
        self._pool = self._started()

    async def ask(self, function: Callable[..., T], *arguments: object) -> T:
        """What the function returns in a worker.

        Raises:
            PageError: of the function; or it took too long or too much memory, or too many questions wait.
        """
        if self._open >= MOST_WAITING:
            raise PageError(f"{MOST_WAITING} questions wait already; try again in a moment")
        self._open += 1
        try:
            return await self._answered(function, arguments)
        except TimeoutError:
            raise PageError(
                f"no answer within {self._timeout_s:g} s (--timeout): narrow the question, or run its command"
            ) from None
        except ProcessExpired:
            raise PageError("the question's process ended; it may need more memory (--max-memory)") from None
        except BrokenProcessPool as error:
            raise PageError(f"no process can be started for the question: {error.__cause__ or error}") from error
        finally:
            self._open -= 1

    def ask_now(self, function: Callable[..., T], *arguments: object) -> T:
        """As `ask`, for callers without an event loop."""
        return asyncio.run(self.ask(function, *arguments))

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the processes and what they do."""
        _end(self._pool)

    async def _answered(self, function: Callable[..., T], arguments: tuple[object, ...]) -> T:
        """What the function returns; asked of new processes where those of the pool ended while they were idle."""
        pool = self._pool
        try:
            return await self._scheduled(pool, function, arguments)
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = self._started()
                await asyncio.to_thread(_end, pool)
            return await self._scheduled(self._pool, function, arguments)

    async def _scheduled(self, pool: ProcessPool, function: Callable[..., T], arguments: tuple[object, ...]) -> T:
        try:
            future = pool.schedule(_answer, args=(function, *arguments), timeout=self._timeout_s)
        except RuntimeError as error:  # a pool that is broken says so in its own words
            raise BrokenProcessPool(str(error)) from error
        return await asyncio.wrap_future(future)

    def _started(self) -> ProcessPool:
        """New processes. They share no file with this one: cleaners of /tmp take the socket of a server of forks."""
        context = multiprocessing.get_context("spawn")
        return ProcessPool(
            max_workers=self._processes, initializer=_begin, initargs=(self._most_bytes,), context=context
        )


def _end(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def _answer(function: Callable[..., T], *arguments: object) -> T:
    """What the function returns; the memory that it no longer needs goes back to the system."""
    try:
        return function(*arguments)
    finally:
        if "pyarrow" in sys.modules:
            sys.modules["pyarrow"].default_memory_pool().release_unused()


def _begin(most_bytes: int) -> None:
    """Bounds the memory that a worker can allocate; the process that serves pages ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes if hard < 0 else min(most_bytes, hard), hard))
