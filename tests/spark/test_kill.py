"""Runs whose tasks fail or whose process is killed are finished by the next run, and readers always see a whole cut."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.errors import JobError
from jobs.options import RunOptions
from jobs.run import run
from lake import crash_points
from lake.errors import LakeError
from lake.scan import open_lake
from tests.datasets import dataset
from tests.in_process import make_lake
from tests.lakes import assert_same, content, differences

TASK_POINTS = [
    f"file:{table}:{place}"
    for table in ("bronze.log_record", "silver.share_record", "silver.group_record", "gold.share_partition_history")
    for place in ("before", "after")
]
ROUNDS = 10
SOAK_ROUNDS = 300
LONGEST_S = 60.0
"""How long a killed process's JVM and locks may stay."""


@pytest.fixture(scope="module")
def logs() -> str:
    return str(dataset("streams") / "logs")


@pytest.fixture(scope="module")
def undisturbed(logs: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("undisturbed") / "lake"
    make_lake(lake, Path(logs))
    return lake


def readers_see_a_cut(lake: Path, undisturbed: Path) -> bool:
    """Whether a lake has a published cut; it must be the whole one then."""
    try:
        open_lake(lake)
    except LakeError:
        return False
    assert not differences(content(lake), content(undisturbed))
    return True


@pytest.mark.parametrize("point", TASK_POINTS)
def test_a_task_that_dies_fails_the_run_and_the_next_run_finishes_it(
    point: str, spark: SparkSession, logs: str, undisturbed: Path, tmp_path: Path
) -> None:
    options = RunOptions(lake=tmp_path / "lake", log_dirs=(logs,))
    with crash_points.arm(point), pytest.raises(JobError, match="CrashPointReached"):
        run(options, lambda: spark)
    assert not readers_see_a_cut(tmp_path / "lake", undisturbed)
    run(options, lambda: spark)
    assert_same(tmp_path / "lake", undisturbed)


def started(lake: Path, logs: str) -> subprocess.Popen[bytes]:
    """`sharelens run` as a process of its own."""
    command = [sys.executable, "-m", "sharelens", "run", "--lake", str(lake), "--log-dir", logs]
    environment = {**os.environ, "SHARELENS_ENV": "test"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed(lake: Path, logs: str, chosen: random.Random) -> int:
    """Kills a run: at any moment, or shortly after a table's next version appeared. The exit code."""
    process = started(lake, logs)
    awaited = chosen.choice(["bronze/ingest_extent", "bronze/log_record", "silver/share_record", None])
    deadline = time.monotonic() + LONGEST_S
    try:
        if awaited is None:
            time.sleep(chosen.uniform(0.5, 8))
        else:
            version = lake / awaited / "_delta_log" / f"{1:020d}.json"
            while not version.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(chosen.uniform(0, 0.6))
    finally:
        process.send_signal(signal.SIGKILL)
    return process.wait()


def rounds(count: int) -> Iterator[random.Random]:
    seed = random.SystemRandom().randrange(1 << 32)
    for number in range(count):
        yield random.Random(f"{seed} {number}")


def kill_and_finish(count: int, spark: SparkSession, logs: str, undisturbed: Path, tmp_path: Path) -> None:
    codes = []
    for number, chosen in enumerate(rounds(count)):
        lake = tmp_path / str(number)
        codes.append(killed(lake, logs, chosen))
        if lake.is_dir():
            readers_see_a_cut(lake, undisturbed)
        run(RunOptions(lake=lake, log_dirs=(logs,), lock_timeout_s=LONGEST_S), lambda: spark)
        assert_same(lake, undisturbed)
    assert codes.count(-signal.SIGKILL) > count // 2


def test_killed_processes_leave_nothing_that_the_next_run_cannot_finish(
    spark: SparkSession, logs: str, undisturbed: Path, tmp_path: Path
) -> None:
    kill_and_finish(ROUNDS, spark, logs, undisturbed, tmp_path)


@pytest.mark.soak
def test_hundreds_of_killed_processes(spark: SparkSession, logs: str, undisturbed: Path, tmp_path: Path) -> None:
    kill_and_finish(SOAK_ROUNDS, spark, logs, undisturbed, tmp_path)
