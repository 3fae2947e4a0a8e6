"""The same work again and again until SIGTERM: a pause between two rounds, a longer one while a cluster is away."""

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from state_model.errors import SharelensError

LONGEST_PAUSE_S = 60.0
MEAN_OF = 10
"""So many rounds tell what a round takes: upkeep, which is in a few of them, is spread over the others."""
LONGEST_INTERVAL = 3
"""Intervals grow to so many of the given one."""
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


class Pace:
    """How long after the last one a round begins: after `every_s` seconds, or later where rounds take much time.

    `quota`: the share of one core that they may take, over the last MEAN_OF rounds. The first round does not count,
    because it catches up. An interval is at most LONGEST_INTERVAL times `every_s`.
    """

    def __init__(self, every_s: float, quota: float) -> None:
        self._every_s = every_s
        self._quota = quota
        self._is_first = True
        self._spent_s: deque[float] = deque(maxlen=MEAN_OF)

    def spent(self, processor_s: float) -> None:
        """A round took so much processor time, in seconds."""
        if not self._is_first:
            self._spent_s.append(processor_s)
        self._is_first = False

    def interval_s(self) -> float:
        """Seconds from the beginning of one round to that of the next."""
        mean_s = sum(self._spent_s) / max(1, len(self._spent_s))
        return min(max(self._every_s, mean_s / self._quota), LONGEST_INTERVAL * self._every_s)


def repeat(
    once: Callable[[], None],
    interval_s: Callable[[], float],
    wait: Wait,
    *,
    transient: tuple[type[SharelensError], ...],
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Begins rounds at intervals, at once where the last one took longer, until `wait` says so.

    `interval_s`: seconds from the beginning of the last round to that of the next one. A `transient` error is said,
    once for each text, and the interval doubles up to LONGEST_PAUSE_S until a round succeeds.

    Raises:
        SharelensError: any other error of a round.
    """
    failed, pause_s = "", interval_s()
    while True:
        begun_s = clock()
        try:
            once()
            failed, pause_s = "", interval_s()
        except transient as error:
            if str(error) != failed:
                say(f"{error}; trying again")
            failed, pause_s = str(error), min(max(1.0, 2 * pause_s), max(LONGEST_PAUSE_S, interval_s()))
        if wait(max(0.0, begun_s + pause_s - clock())):
            return
