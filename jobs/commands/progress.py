"""Progress bars on stderr, if it is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobs.progress import Progress


@contextmanager
def progress_bars() -> Iterator["Progress"]:
    """One bar a stage while the block runs; no bars when stderr is no terminal."""
    from jobs.progress import Progress

    if not sys.stderr.isatty():
        yield Progress()
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
