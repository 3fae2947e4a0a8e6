"""The pipeline without Spark: every stage counts as small, so its tasks run in this process."""

from pathlib import Path
from typing import Any

from jobs.options import RunOptions
from jobs.run import Summary, run
from tests.datasets import dataset
from tests.once import made_once

ANY_SIZE = 1 << 62


def no_session() -> Any:
    """Stands for the session where none may be started."""
    raise AssertionError("a session was asked for")


def make_lake(lake: Path, *log_dirs: Path, **options: Any) -> Summary:
    """Runs the whole pipeline over log directories."""
    asked = RunOptions(lake=lake, log_dirs=tuple(map(str, log_dirs)), in_process_bytes=ANY_SIZE, **options)
    return run(asked, no_session)


def recorded_lake(scenario: str) -> Path:
    """The lake of a scenario's log, made once a test run: read it, or copy it (shutil.copytree) and change the copy."""
    return made_once(f"lakes/{scenario}", lambda lake: make_lake(lake, dataset(scenario) / "logs"))
