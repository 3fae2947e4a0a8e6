"""Work on several things at once, in threads of this process: only where it is large enough to gain by it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

IN_TURN_BYTES = 1 << 20
"""Work over less is done in turn: threads would hand the interpreter to each other for no gain."""


def threads_for(size_bytes: int, max_threads: int) -> int:
    """How many threads work over `size_bytes` is worth: one, or `max_threads`."""
    return 1 if size_bytes < IN_TURN_BYTES else max_threads


def map_in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, done: Callable[[int], object] | None = None
) -> list[Result]:
    """The result of each item, in their order; one thread, or a single item, is worked on in the calling thread.

    `done` is called there with the number of results, after each. Raises what `work` raises for the first item that
    fails; items that no thread has begun are left out then.
    """
    items = list(items)
    results: list[Result] = []
    with _pool(threads) if min(threads, len(items)) > 1 else nullcontext() as pool:
        for result in map(work, items) if pool is None else pool.map(work, items):
            results.append(result)
            if done is not None:
                done(len(results))
    return results


def stream_in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """As `map_in_threads`, result after result: of the items behind it no more than `threads` have been begun."""
    if min(threads, len(items)) <= 1:
        yield from map(work, items)
        return
    with _pool(threads) as pool:
        ahead = deque(pool.submit(work, item) for item in items[:threads])
        try:
            for item in items[threads:]:
                result = ahead.popleft().result()
                ahead.append(pool.submit(work, item))
                yield result
            while ahead:
                yield ahead.popleft().result()
        finally:
            for pending in ahead:
                pending.cancel()


def _pool(threads: int) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # a short question starts no threads

    return ThreadPoolExecutor(threads)
