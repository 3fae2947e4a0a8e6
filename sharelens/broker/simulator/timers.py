"""Virtual time: it advances from timer to timer."""

import heapq
from collections.abc import Callable


class _Timer:
    __slots__ = ("callback", "owner")

    def __init__(self, callback: Callable[[], None], owner: "VirtualTimers") -> None:
        self.callback: Callable[[], None] | None = callback
        self.owner = owner

    def cancel(self) -> None:
        """Cancel the timer."""
        self.callback = None


class Clock:
    """The time and all timers. Timers of the same time fire in the order in which they were started."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._queue: list[tuple[int, int, _Timer]] = []
        self._count = 0

    def set(self, due_ms: int, timer: _Timer) -> None:
        """Start a timer, not before the current time."""
        self._count += 1
        heapq.heappush(self._queue, (max(due_ms, self.now_ms), self._count, timer))

    def run_while(self, goes_on: Callable[[], bool]) -> None:
        """Fire timers while there are any and `goes_on` returns true."""
        queue = self._queue
        while queue and goes_on():
            due_ms, _, timer = heapq.heappop(queue)
            if timer.callback is not None and not timer.owner.is_stopped:
                self.now_ms = due_ms
                timer.callback()


class VirtualTimers:
    """Timers on a clock (sharelens.broker.timers.StoppableTimers); stopped ones don't fire."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.is_stopped = False

    def now_ms(self) -> int:
        """The clock's time in milliseconds since the epoch."""
        return self._clock.now_ms

    def after_ms(self, delay_ms: int, callback: Callable[[], None]) -> _Timer:
        """Call `callback` once, when `delay_ms` have passed."""
        timer = _Timer(callback, self)
        self._clock.set(self._clock.now_ms + delay_ms, timer)
        return timer

    def stop(self) -> None:
        """Stop all of these timers."""
        self.is_stopped = True
