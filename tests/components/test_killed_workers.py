"""Workers of Spark are killed in each stage, and a driver in a late one: the next run ends what was begun."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.publish import current_versions, published_versions
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.datasets import dataset
from tests.lakes import assert_same
from tests.processes.in_process import make_lake, recorded_lake

LOG = "timeouts"
IN_TASKS = (
    "file:bronze.log_record:before", "file:silver.share_record:before", "file:gold.share_partition_history:before",
    "file:bronze.topic_batch:before", "file:gold.stall:before",
)  # fmt: skip
"""Where a task of each stage begins a file."""
IN_THE_DRIVER = "commit:gold.stall:measure:before"
PATIENCE_S = 600


def runs(lake: Path, *points: str) -> "subprocess.CompletedProcess[str]":
    """Runs that are killed at the points, in a process of their own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.processes.killed_workers", str(lake), str(dataset(LOG) / "logs"), *points],
        env=os.environ | {"SHARELENS_ENV": "test"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def is_finished(lake: Path) -> None:
    """The next run makes the lake of an undisturbed one."""
    with pytest.raises(LakeError):
        open_lake(lake)
    make_lake(lake, dataset(LOG) / "logs")
    assert_same(lake, recorded_lake(LOG))
    assert current_versions(Lake(lake)) == published_versions(Lake(lake))


def test_a_worker_that_is_killed_ends_the_run_in_one_line_and_the_next_one_goes_on(tmp_path: Path) -> None:
    done = runs(tmp_path / "lake", *IN_TASKS)
    assert done.returncode == 0, done.stderr[-3000:]
    errors = json.loads(done.stdout.splitlines()[-1])
    assert len(errors) == len(IN_TASKS), errors
    assert all("\n" not in error and "worker" in error for error in errors), errors
    is_finished(tmp_path / "lake")


def test_what_a_killed_driver_left_is_finished_by_the_next_run(tmp_path: Path) -> None:
    done = runs(tmp_path / "lake", "driver", IN_THE_DRIVER)
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
    is_finished(tmp_path / "lake")
