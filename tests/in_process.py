"""The pipeline without Spark: tasks run in this process, pickled on the way in and out as executors would get them."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from jobs import executors
from jobs.options import RunOptions
from jobs.run import Summary, run


def _run_tasks(
    session: object, name: str, function: Callable[[Any], Any], specs: Sequence[Any], progress: object
) -> list[Any]:
    def carried(value: Any) -> Any:
        return pickle.loads(pickle.dumps(value))

    return [carried(function(carried(spec))) for spec in specs]


@contextmanager
def tasks_in_process() -> Iterator[Callable[[], Any]]:
    """While the block runs, tasks need no Spark; gives what stands for the session."""
    with mock.patch.object(executors, "run_tasks", _run_tasks):
        yield lambda: SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))


def make_lake(lake: Path, *log_dirs: Path, **options: Any) -> Summary:
    """Runs the whole pipeline over log directories."""
    with tasks_in_process() as session:
        return run(RunOptions(lake=lake, log_dirs=tuple(map(str, log_dirs)), **options), session)
