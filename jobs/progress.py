"""Reports the progress of long work to a callback of the caller."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.25


class Progress:
    """Reports (stage, tasks done, tasks in all) to a callback; without a callback it does not poll."""

    def __init__(self, report: Callable[[str, int, int], None] | None = None) -> None:
        self._report = report

    def at(self, name: str, done: int, total: int) -> None:
        """Reports how many tasks of a stage that runs in this process are done."""
        if self._report is not None:
            self._report(name, done, total)

    @contextmanager
    def waiting(self, name: str) -> Iterator[None]:
        """Reports work without countable tasks while the block runs: (name, 0, 0), at the end (name, 1, 1)."""
        self.at(name, 0, 0)
        yield
        self.at(name, 1, 1)

    @contextmanager
    def stage(self, name: str, total: int, spark: "SparkSession") -> Iterator[None]:
        """Reports the running tasks of a Spark action while the block runs."""
        if self._report is None:
            yield
            return
        self._report(name, 0, total)
        done = threading.Event()
        tracker = spark.sparkContext.statusTracker()
        poller = threading.Thread(target=_poll, args=(self._report, name, total, tracker, done), daemon=True)
        poller.start()
        try:
            yield
        finally:
            done.set()
            poller.join()
        self._report(name, total, total)


def _poll(report: Callable[[str, int, int], None], name: str, total: int, tracker: Any, done: threading.Event) -> None:
    while not done.wait(POLL_S):
        for stage_id in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage_id)
            if info is not None and info.numTasks == total:
                report(name, info.numCompletedTasks, total)
