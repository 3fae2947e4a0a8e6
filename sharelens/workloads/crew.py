"""The members of a workload: threads that leave cleanly, and processes that are killed repeatedly."""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sharelens.workloads import member
from sharelens.workloads.journal import Journal
from sharelens.workloads.member import Member, Orders
from sharelens.workloads.processes import MemberProcess

LIFE_S: Final = (0.3, 1.5)
"""Time from a member's first delivery to its kill."""
LONELY_S: Final = 5.0
"""Timeout of a first delivery."""
LOOK_S: Final = 0.05


class Crew:
    """A context: at its end all members have left or are dead."""

    def __init__(self, journal: Journal, steady: Sequence[Orders], crashing: Sequence[Orders]) -> None:
        self._journal = journal
        self._steady, self._crashing = steady, crashing
        self._is_over, self._ends_crashes = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._loops: list[threading.Thread] = []

    def __enter__(self) -> "Crew":
        """Start all members."""
        self._threads = [_thread(self._work, orders) for orders in self._steady]
        self._loops = [_thread(self._crash_loop, orders) for orders in self._crashing]
        return self

    def __exit__(self, *error: object) -> None:
        """Stop all members."""
        self.end_crashes()
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def end_crashes(self) -> None:
        """Kill the crashing members for the last time."""
        self._ends_crashes.set()
        for thread in self._loops:
            thread.join()

    def _work(self, orders: Orders) -> None:
        Member(orders, self._journal.write).run(self._is_over.is_set)

    def _crash_loop(self, orders: Orders) -> None:
        dice = random.Random(f"{orders.seed} {orders.member} crashes")
        life = 0
        while not self._ends_crashes.is_set():
            life += 1
            self._live(replace(orders, member=f"{orders.member}-{life}"), dice.uniform(*LIFE_S))

    def _live(self, orders: Orders, life_s: float) -> None:
        """Run a member from its start to its kill."""
        has_work = threading.Event()

        def write(event: str, **fields: object) -> None:
            self._journal.write(event, **fields)
            if event == "delivery":
                has_work.set()

        process = MemberProcess(member.command(orders), write)
        if self._wait(has_work):
            self._ends_crashes.wait(life_s)
        process.kill()
        self._journal.write("killed", group=orders.group, member=orders.member)

    def _wait(self, has_work: threading.Event) -> bool:
        """Whether a delivery came before the timeout and the end of all crashes."""
        for _ in range(int(LONELY_S / LOOK_S)):
            if has_work.wait(LOOK_S):
                return True
            if self._ends_crashes.is_set():
                return False
        return False


def _thread(work: Callable[[Orders], None], orders: Orders) -> threading.Thread:
    thread = threading.Thread(target=work, args=(orders,), name=orders.member, daemon=True)
    thread.start()
    return thread
