"""The pipeline without Spark: every stage counts as small, so its tasks run in this process."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.options import RunOptions
from jobs.run import run
from jobs.summary import Summary
from sharelens.lake.commit import create_tables
from sharelens.lake.lake import Lake
from tests.datasets import dataset
from tests.logs.state_logs import write_log_directory
from tests.once import made_once

ANY_SIZE = 1 << 62
TO_BRONZE = ("ingest", "publish")
TO_SILVER = ("ingest", "decode", "publish")
TO_STATE = ("ingest", "decode", "replay", "publish")
TO_MEASURES = ("ingest", "decode", "replay", "measure", "publish")
TO_AUDIT = ("ingest", "decode", "replay", "audit", "publish")
"""Stages for tests of one stage that look at no table of the others, which take half of a small run."""


def no_session() -> Any:
    """Stands for the session where none may be started."""
    raise AssertionError("a session was asked for")


def run_here(lake: Lake | Path | str, *log_dirs: Path | str, **options: Any) -> Summary:
    """Runs the whole pipeline over log directories."""
    opened = lake if isinstance(lake, Lake) else Lake(lake)
    run_options = RunOptions(lake=opened, log_dirs=tuple(map(str, log_dirs)), in_process_bytes=ANY_SIZE, **options)
    return run(run_options, no_session)


def make_lake(lake: Lake | Path | str, *log_dirs: Path | str, **options: Any) -> Summary:
    """`run_here`; the tables of a new lake are copies of empty ones, as a run that was killed behind their creation
    leaves them.

    Creating them takes a quarter of a small run's processor time, opening them again a sixth: runs over one `Lake` are
    those of a process that runs again and again, runs over a path those of processes one after the other.
    """
    folder = Path(lake.uri) if isinstance(lake, Lake) else lake
    if isinstance(folder, Path) and log_dirs and not folder.exists():
        shutil.copytree(empty_lake(), folder)
    return run_here(lake, *log_dirs, **options)


def empty_lake() -> Path:
    """A lake whose tables have no rows, created once a test run."""
    return made_once("lakes-empty", lambda lake: create_tables(Lake(lake)))


def recorded_lake(scenario: str) -> Path:
    """The lake of a scenario's log, made once a test run: read it, or copy it (shutil.copytree) and change the copy."""
    return made_once(f"lakes/{scenario}", lambda lake: make_lake(lake, dataset(scenario) / "logs"))


def story_lake(name: str, records: Sequence[dict[str, Any]], cluster_id: str | None = None) -> Path:
    """The lake of a small log with these records, made once a test run under a name of its own: read it, or copy it."""

    def make(folder: Path) -> None:
        make_lake(folder / "lake", write_log_directory(folder / "logs", records, cluster_id=cluster_id))

    return made_once(f"stories/{name}", make) / "lake"
