"""Runs whose tasks fail or whose process is killed are finished by the next run, and readers always see a whole cut.

Every point around every file and commit is tried once on the warm session, where it is passed: in the driver or in a
worker; one lake is killed at several, in one run after another (the soak takes a lake for each). Killed processes come
on top, at moments that no point names.
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
from lake.errors import LakeError
from lake.lake import Lake
from lake.scan import open_lake
from tests.batch_files import broken, state_batches, state_directory
from tests.datasets import dataset
from tests.in_process import ANY_SIZE, make_lake, recorded_lake
from tests.kills import Point, in_turn, kill, points_of
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
KILLS = 12
"""How often one lake is killed, each time some seven points further on."""
ROUNDS = 10
SOAK_ROUNDS = 200
SESSION_EVERY = 4
"""One killed run in so many has a session, with a JVM and workers; the others work as users' small runs do."""
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
        in_process = self.lake("in-process")
        everywhere = points_of(lambda: make_lake(in_process, self.logs))
        undisturbed = self.lake("undisturbed")
        in_driver = points_of(lambda: self.run(undisturbed))
        driven = {name for name, _ in in_driver}
        assert set(in_driver) <= set(everywhere)
        self.points = [
            point for point in everywhere if point in in_driver or (point[0] not in driven and point[1] == 1)
        ]
        self.new = content(undisturbed)
        assert not differences(self.new, content(in_process))

    def lake(self, name: str) -> Path:
        """A lake as it is before the run."""
        return shutil.copytree(self.folder / "before", self.folder / name)

    def run(self, lake: Path) -> None:
        run(RunOptions(lake=Lake(lake), log_dirs=(str(self.logs),)), lambda: self.spark)

    def kill_and_finish(self, points: list[Point]) -> set[str]:
        """Kills a run and those that go on with it, each at its point; the last makes the lake of an undisturbed run.

        Readers see the old cut until the new one is published. The tables in whose tasks a worker failed: its error
        arrives as ours, in one line with the point's name.
        """
        lake, in_tasks = self.lake("killed"), set()
        for point in points:
            error = kill(point, lambda: self.run(lake), raised=(JobError,))
            expected = self.new if point[0] == PUBLISHED else self.old
            assert not differences(content(lake), expected), f"a reader after {point} sees something else"
            if isinstance(error, JobError):
                in_tasks.add(point[0].split(":")[1])
        self.run(lake)
        assert not differences(content(lake), self.new), f"killed at {points}"
        assert current_versions(Lake(lake)) == published_versions(Lake(lake))
        shutil.rmtree(lake)
        return in_tasks


@pytest.fixture(scope="module")
def scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(spark, tmp_path_factory.mktemp("scene"))


def faults_are_mended(scene: Scene, kills: int) -> None:
    in_tasks = set()
    for points in in_turn(scene.points, kills):
        in_tasks |= scene.kill_and_finish(points)
    assert len(scene.points) >= 40
    assert in_tasks >= {"bronze.log_record", "bronze.topic_batch", "silver.share_record", "gold.delivery_history"}


def test_a_fault_at_any_point_is_mended_by_the_next_runs(scene: Scene) -> None:
    faults_are_mended(scene, KILLS)


@pytest.mark.soak
def test_a_fault_at_any_point_is_mended_by_the_next_run(scene: Scene) -> None:
    faults_are_mended(scene, 1)


@pytest.fixture(scope="module")
def logs() -> str:
    return str(dataset("streams") / "logs")


@pytest.fixture(scope="module")
def undisturbed() -> Path:
    return recorded_lake("streams")


def readers_see_a_cut(lake: Path, undisturbed: Path) -> bool:
    """Whether a lake has a published cut; it must be the whole one then."""
    try:
        open_lake(lake)
    except LakeError:
        return False
    assert not differences(content(lake), content(undisturbed))
    return True


def started(lake: Path, logs: str, in_process_bytes: int) -> subprocess.Popen[bytes]:
    """`sharelens run` as a process of its own."""
    command = [sys.executable, "-m", "sharelens", "run", "--lake", str(lake), "--log-dir", logs]
    environment = {**os.environ, "SHARELENS_ENV": "test", "SHARELENS_IN_PROCESS_BYTES": str(in_process_bytes)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed(lake: Path, logs: str, chosen: random.Random, in_process_bytes: int) -> int:
    """Kills a run: at any moment, or shortly after a table's next version appeared. The exit code."""
    process = started(lake, logs, in_process_bytes)
    awaited = chosen.choice(["bronze/ingest_extent", "bronze/log_record", "silver/share_record", None])
    deadline = time.monotonic() + LONGEST_S
    try:
        if awaited is None:
            time.sleep(chosen.uniform(0.5, 2 if in_process_bytes else 8))
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
        in_process_bytes = ANY_SIZE if number % SESSION_EVERY else 0
        codes.append(killed(lake, logs, chosen, in_process_bytes))
        if lake.is_dir():
            readers_see_a_cut(lake, undisturbed)
        asked = {"log_dirs": (logs,), "lock_timeout_s": LONGEST_S, "in_process_bytes": in_process_bytes}
        run(RunOptions(lake=Lake(lake), **asked), lambda: spark)
        assert_same(lake, undisturbed)
    assert codes.count(-signal.SIGKILL) > count // 2


def test_killed_processes_leave_nothing_that_the_next_run_cannot_finish(
    spark: SparkSession, logs: str, undisturbed: Path, tmp_path: Path
) -> None:
    kill_and_finish(ROUNDS, spark, logs, undisturbed, tmp_path)


@pytest.mark.soak
def test_hundreds_of_killed_processes(spark: SparkSession, logs: str, undisturbed: Path, tmp_path: Path) -> None:
    kill_and_finish(SOAK_ROUNDS, spark, logs, undisturbed, tmp_path)
