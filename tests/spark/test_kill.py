"""Runs whose tasks fail or whose process is killed are finished by the next run, and readers always see a whole cut.

Every point around every file and commit is tried once on the warm session, where it is passed: in the driver or in a
worker. Killed processes come on top, at moments that no point names.
"""

import os
import random
import shutil
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
from jobs.publish import current_versions, published_versions
from jobs.run import run
from lake import crash_points
from lake.crash_points import CrashPointReached
from lake.errors import LakeError
from lake.scan import open_lake
from tests.batch_files import broken, state_batches, state_directory
from tests.datasets import dataset
from tests.in_process import make_lake
from tests.lakes import assert_same, content, differences
from tests.state_logs import START_MS, snapshot, tombstone, update
from tests.user_topics import write_orders

STORY = [
    snapshot("g", start=12),
    snapshot("h", start=30),
    *(update("g", batches=[(12 + n, 12 + n, 2, 1)], at_ms=START_MS + n) for n in range(4)),
    tombstone("h", at_ms=START_MS + 8),
    update("g", start=14, at_ms=START_MS + 9),
]
BROKEN = 3
"""The record of STORY whose batch can't be read: quarantine has files too."""
BEFORE_MS = START_MS + 2
"""Up to here a lake was made before the run that is killed."""
PUBLISHED = "commit:gold.publication:publish:after"
ROUNDS = 10
SOAK_ROUNDS = 200
LONGEST_S = 60.0
"""How long a killed process's JVM and locks may stay."""


class Scene:
    """A run on the warm session that goes on from an earlier one, and every point that it passes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        batches = state_batches(STORY)
        batches[BROKEN] = broken(batches[BROKEN])
        self.logs = state_directory(folder / "logs", batches)
        make_lake(folder / "before", self.logs, until_ms=BEFORE_MS)
        write_orders(self.logs)
        self.old = content(folder / "before")
        with crash_points.record() as everywhere:
            make_lake(self.lake("in-process"), self.logs)
        undisturbed = self.lake("undisturbed")
        with crash_points.record() as in_driver:
            self.run(undisturbed)
        self.new = content(undisturbed)
        assert not differences(self.new, content(folder / "in-process"))
        self.points = [(name, in_driver[: at + 1].count(name)) for at, name in enumerate(in_driver)]
        self.points += [(name, 1) for name in sorted(set(everywhere) - set(in_driver))]

    def lake(self, name: str) -> Path:
        """A lake as it is before the run."""
        return shutil.copytree(self.folder / "before", self.folder / name)

    def run(self, lake: Path) -> None:
        run(RunOptions(lake=lake, log_dirs=(str(self.logs),)), lambda: self.spark)

    def kill(self, lake: Path, name: str, occurrence: int) -> bool:
        """Runs into a point; readers see the old cut afterwards, or the new one once it is published.

        True when a task failed, in a worker: its error arrives as ours, in one line with the point's name.
        """
        with crash_points.arm(name, occurrence), pytest.raises((CrashPointReached, JobError), match=name) as raised:
            self.run(lake)
        expected = self.new if name == PUBLISHED else self.old
        assert not differences(content(lake), expected), f"a reader after {name} sees something else"
        return raised.type is JobError

    def finish(self, lake: Path, why: str) -> None:
        """The next run makes the lake of an undisturbed one."""
        self.run(lake)
        assert not differences(content(lake), self.new), f"killed at {why}"
        assert current_versions(lake) == published_versions(lake)
        shutil.rmtree(lake)


@pytest.fixture(scope="module")
def scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(spark, tmp_path_factory.mktemp("scene"))


def test_a_fault_at_any_point_is_mended_by_the_next_run(scene: Scene) -> None:
    in_tasks = set()
    for name, occurrence in scene.points:
        lake = scene.lake("killed")
        if scene.kill(lake, name, occurrence):
            in_tasks.add(name.split(":")[1])
        scene.finish(lake, f"{name} ({occurrence})")
    assert len(scene.points) >= 40
    assert in_tasks >= {"bronze.log_record", "bronze.topic_batch", "silver.share_record", "gold.delivery_history"}


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
