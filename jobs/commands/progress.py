"""The progress of a command on stderr: bars on a terminal, elsewhere a line now and then once it has taken long."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sharelens.output import say
from sharelens.parameters.times import lasted

if TYPE_CHECKING:
    from jobs.progress import Progress

QUIET_S, LINE_S = 60.0, 10.0
"""For how long a command prints no line, and the time between two lines then."""


@contextmanager
def progress_bars() -> Iterator["Progress"]:
    """One bar a stage while the block runs; lines where stderr is no terminal."""
    from jobs.progress import Progress

    if not sys.stderr.isatty():
        lines = Lines(say)
        with lines.printed():
            yield Progress(lines.report)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def report(stage: str, done: int, total: int) -> None:
            size = total or None  # a bar without a size moves by itself
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=size)
            bars.update(tasks[stage], completed=done, total=size)

        yield Progress(report)


class Lines:
    """Lines about the stage that runs: tasks done, their rate, and the time that the others will take."""

    def __init__(self, line: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._line, self._clock = line, clock
        self._lock = threading.Lock()
        self._stage, self._done, self._total, self._begun_s = "", 0, 0, clock()

    def report(self, stage: str, done: int, total: int) -> None:
        """Takes the progress of a stage, as `jobs.progress.Progress` reports it."""
        with self._lock:
            if stage != self._stage:
                self._begun_s = self._clock()
            self._stage, self._done, self._total = stage, done, total

    @contextmanager
    def printed(self, quiet_s: float = QUIET_S, every_s: float = LINE_S) -> Iterator[None]:
        """Prints a line every `every_s` seconds while the block runs, the first one after `quiet_s`."""
        ended = threading.Event()

        def go_on() -> None:
            pause_s = quiet_s
            while not ended.wait(pause_s):
                pause_s = every_s
                text = self.text()
                if text:
                    self._line(text)

        printer = threading.Thread(target=go_on, daemon=True)
        printer.start()
        try:
            yield
        finally:
            ended.set()
            printer.join()

    def text(self) -> str:
        """The line; empty before the first stage."""
        with self._lock:
            stage, done, total = self._stage, self._done, self._total
            passed_s = self._clock() - self._begun_s
        if not stage:
            return ""
        if total == 0:
            return f"{stage}: for {lasted(int(passed_s) * 1000)}"
        line = f"{stage}: {done:,} of {total:,} tasks"
        if done == 0 or passed_s <= 0:
            return f"{line}, for {lasted(int(passed_s) * 1000)}"
        left_s = (total - done) * passed_s / done
        return f"{line}, {done / passed_s:.1f} a second, about {lasted(int(left_s) * 1000)} left"
