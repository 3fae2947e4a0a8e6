"""Runs whose tasks fail or whose process is killed are finished by the next run, and readers always see a whole cut.

On the warm session a run stops where a stage's workers begin, and where the files of its workers are all there and none
is committed; one lake is killed at all of them, in one run after another (the soak takes a lake for each point, and
points within workers). What a worker leaves between its first and its last point, and what the driver does between two
commits, is the same without Spark: tests/unit/jobs/test_run_killed.py kills the same run at each of its points. Killed
processes come on top, at moments that no point names.
"""

import random
import shutil
import signal
import time
from collections import Counter
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.errors import JobError
from jobs.options import RunOptions
from jobs.publish import current_versions, published_versions
from jobs.run import run
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.datasets import dataset
from tests.lakes import assert_same, content, differences, shared_content
from tests.processes import interrupted_run, killed_commands
from tests.processes.in_process import ANY_SIZE, make_lake, recorded_lake
from tests.processes.kills import Point, in_turn, kill, points_of

PUBLISHED = "commit:gold.publication:publish:after"
STAGES_WITH_TASKS = 5
FIRST_OF_TASKS = {
    "bronze.log_record", "silver.share_record", "gold.share_partition_history", "bronze.topic_batch", "gold.stall",
}  # fmt: skip
"""Of each of these stages the table whose file a task begins first."""
ROUNDS = 200
SESSION_EVERY = 5
"""One killed run in so many has a session, with a JVM and workers; the others work as users' small runs do."""
LONGEST_S = 60.0
"""How long a killed process's JVM and locks may stay."""


class Scene:
    """A run on the warm session that goes on from an earlier one, and the points that it passes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        _, self.logs = interrupted_run.lake_and_logs(folder)
        self.old = content(folder / "before")
        in_process = self.lake("in-process")
        everywhere = points_of(lambda: make_lake(in_process, self.logs))
        undisturbed = self.lake("undisturbed")
        in_driver = points_of(lambda: self.run(undisturbed))
        passes = Counter(name for name, _ in everywhere)
        passes.subtract(name for name, _ in in_driver)
        assert min(passes.values()) >= 0
        in_workers = [number <= passes[name] for name, number in everywhere]
        self.all_points = [
            point
            for point, is_worker in zip(everywhere, in_workers, strict=True)
            if point[1] == 1 or (not is_worker and point in in_driver)
        ]
        self.points = around_workers(everywhere, in_workers)
        self.new = content(undisturbed)
        assert not differences(self.new, content(in_process))

    def lake(self, name: str) -> Path:
        """A lake as it is before the run."""
        return shutil.copytree(self.folder / "before", self.folder / name)

    def run(self, lake: Path) -> None:
        run(RunOptions(lake=Lake(lake), log_dirs=(str(self.logs),)), lambda: self.spark)

    def kill_and_finish(self, points: list[Point]) -> set[str]:
        """Kills a run and those that go on with it, each at its point; the last makes the lake of an undisturbed run.

        Readers see the old cut until the new one is published. Returns the tables in whose tasks a worker failed: its
        error arrives as ours, in one line with the point's name.
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


def around_workers(points: list[Point], in_workers: list[bool]) -> list[Point]:
    """Where the workers of each stage begin, and the driver's next point, if no worker passes its name.

    Each worker counts its own passes, so only first passes are points of workers.
    """
    of_workers = {name for (name, _), is_worker in zip(points, in_workers, strict=True) if is_worker}
    ends: list[Point] = []
    for is_worker, group in groupby(zip(points, in_workers, strict=True), key=itemgetter(1)):
        passed = [point for point, _ in group]
        if is_worker:
            ends += [point for point in passed if point[1] == 1][:1]
        elif ends and passed[0][0] not in of_workers:
            ends.append(passed[0])
    return ends


@pytest.fixture(scope="module")
def scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(spark, tmp_path_factory.mktemp("scene"))


def faults_are_mended(scene: Scene, points: list[Point], kills: int) -> None:
    in_tasks = set()
    for lake_points in in_turn(points, kills):
        in_tasks |= scene.kill_and_finish(lake_points)
    assert in_tasks >= FIRST_OF_TASKS


@pytest.mark.soak
def test_a_fault_in_tasks_and_behind_them_is_mended_by_the_next_runs(scene: Scene) -> None:
    assert len(scene.points) >= 2 * STAGES_WITH_TASKS
    faults_are_mended(scene, scene.points, len(scene.points))


@pytest.mark.soak
def test_a_fault_at_any_point_is_mended_by_the_next_run(scene: Scene) -> None:
    assert len(scene.all_points) >= 40
    faults_are_mended(scene, scene.all_points, 1)


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
    assert not differences(content(lake), shared_content(undisturbed))
    return True


def killed(lake: Path, logs: str, chosen: random.Random, in_process_bytes: int) -> int:
    """Kills a run: at any moment, or shortly after a table's next version appeared. The exit code."""
    words = ["run", "--lake", str(lake), "--log-dir", logs]
    process = killed_commands.begun(words, {"SHARELENS_IN_PROCESS_BYTES": str(in_process_bytes)})
    awaited = chosen.choice(["bronze/ingest_extent", "bronze/log_record", "silver/share_record", None])
    try:
        if awaited is None:
            time.sleep(chosen.uniform(0, 1.5 if in_process_bytes else 8))
        else:
            version = lake / awaited / "_delta_log" / f"{1:020d}.json"
            killed_commands.wait_for(version, process, LONGEST_S)
            time.sleep(chosen.uniform(0, 0.6))
    finally:
        code = killed_commands.ended(process)
    return code


def kill_and_finish(count: int, spark: SparkSession, logs: str, undisturbed: Path, tmp_path: Path) -> None:
    codes = []
    for number, chosen in enumerate(killed_commands.rounds(count)):
        lake = tmp_path / str(number)
        in_process_bytes = ANY_SIZE if number % SESSION_EVERY else 0
        codes.append(killed(lake, logs, chosen, in_process_bytes))
        if lake.is_dir():
            readers_see_a_cut(lake, undisturbed)
        options = {"log_dirs": (logs,), "lock_timeout_s": LONGEST_S, "in_process_bytes": in_process_bytes}
        run(RunOptions(lake=Lake(lake), **options), lambda: spark)
        assert_same(lake, undisturbed)
    assert codes.count(-signal.SIGKILL) > count // 2


@pytest.mark.soak
def test_hundreds_of_killed_processes_leave_nothing_that_the_next_run_cannot_finish(
    spark: SparkSession, logs: str, undisturbed: Path, tmp_path: Path
) -> None:
    kill_and_finish(ROUNDS, spark, logs, undisturbed, tmp_path)
