"""The clock and the timers of a running broker."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from sharelens.broker.ports import Timers


class StoppableTimers(Timers, Protocol):
    """The timers of a broker, which can be stopped."""

    def stop(self) -> None:
        """Stop all timers before the logs are closed."""


class LoopTimers:
    """Timers on the running asyncio loop, wall-clock time from the system (sharelens.broker.ports.Timers)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_stopped = False

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def after_ms(self, delay_ms: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `callback` once, not before `delay_ms` have passed."""
        return self._loop.call_later(max(0, delay_ms) / 1000, self._fire, callback)

    def stop(self) -> None:
        """Stop all timers before the logs are closed."""
        self._is_stopped = True

    def _fire(self, callback: Callable[[], None]) -> None:
        if not self._is_stopped:
            callback()
