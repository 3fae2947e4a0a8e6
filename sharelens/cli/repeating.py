"""The same work again and again until SIGTERM: a pause between two rounds, a longer one while a cluster is away."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from state_model.errors import SharelensError

LONGEST_PAUSE_S = 60.0
Wait = Callable[[float], bool]
"""Waits so many seconds; true when the rounds are to end."""


@contextmanager
def until_sigterm() -> Iterator[Wait]:
    """A wait that SIGTERM ends, at once or, in the middle of a round, when the round is done."""
    ending = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ending.set())
    try:
        yield ending.wait
    finally:
        signal.signal(signal.SIGTERM, before)


def repeat(
    once: Callable[[], None],
    every_s: float,
    wait: Wait,
    *,
    transient: tuple[type[SharelensError], ...],
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Begins a round every `every_s` seconds, at once where the last one took longer, until `wait` says so.

    A `transient` error is said, once for each text, and the pause doubles up to LONGEST_PAUSE_S until a round succeeds.

    Raises:
        SharelensError: any other error of a round.
    """
    failed, pause_s = "", every_s
    while True:
        begun_s = clock()
        try:
            once()
            failed, pause_s = "", every_s
        except transient as error:
            if str(error) != failed:
                say(f"{error}; trying again")
            failed, pause_s = str(error), min(max(1.0, 2 * pause_s), max(LONGEST_PAUSE_S, every_s))
        if wait(max(0.0, begun_s + pause_s - clock())):
            return
