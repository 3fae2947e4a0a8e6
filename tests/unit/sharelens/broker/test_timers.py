"""The clock and the timers of a running broker."""

import asyncio
import time

from sharelens.broker.timers import LoopTimers


def test_timers_fire_once_in_order_unless_cancelled_or_stopped():
    async def run():
        timers = LoopTimers(asyncio.get_running_loop())
        fired = []
        done = asyncio.Event()
        timers.after_ms(10, lambda: fired.append("late"))
        timers.after_ms(0, lambda: fired.append("soon"))
        timers.after_ms(0, lambda: fired.append("never")).cancel()
        timers.after_ms(20, done.set)
        assert fired == []
        await asyncio.wait_for(done.wait(), 10)
        assert fired == ["soon", "late"]
        timers.after_ms(0, lambda: fired.append("after the stop"))
        timers.stop()
        for _ in range(3):
            await asyncio.sleep(0)
        assert fired == ["soon", "late"]

    asyncio.run(run())


def test_the_clock_is_the_systems():
    async def run():
        return LoopTimers(asyncio.get_running_loop()).now_ms()

    before = time.time_ns() // 1_000_000
    assert before <= asyncio.run(run()) <= time.time_ns() // 1_000_000
