"""Tasks are put together by size, run here or on Spark, and a failed one is told in one line."""

import pickle
import socket
import sys
from importlib import metadata

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import sharelens
from jobs.errors import JobError
from jobs.progress import Progress
from jobs.spark import executors
from jobs.spark.executors import Engine
from sharelens.lake.errors import LakeError


class SessionStartedError(AssertionError):
    """Raised in place of starting Spark."""


def start() -> None:
    raise SessionStartedError


def doubled(number: int) -> int:
    return 2 * number


@pytest.mark.parametrize("size_bytes", [0, 99, 100])
def test_a_stage_that_reads_little_runs_in_this_process_in_order_and_reports(size_bytes: int) -> None:
    calls: list[tuple[str, int, int]] = []
    engine = Engine(start, in_process_bytes=100)
    progress = Progress(lambda *step: calls.append(step))
    assert engine.run("double", doubled, [3, 1], progress, size_bytes=size_bytes) == [6, 2]
    assert engine.used == executors.LOCAL
    assert calls == [("double", 0, 2), ("double", 1, 2), ("double", 2, 2)]


@pytest.mark.parametrize(("in_process_bytes", "size_bytes"), [(100, 101), (0, 0)])
def test_a_stage_that_reads_much_needs_a_session_and_so_does_every_one_at_nought(
    in_process_bytes: int, size_bytes: int
) -> None:
    engine = Engine(start, in_process_bytes=in_process_bytes)
    with pytest.raises(SessionStartedError):
        engine.run("double", doubled, [3], Progress(), size_bytes=size_bytes)


def test_once_a_session_is_there_it_computes_the_small_stages_too() -> None:
    engine = Engine(lambda: "a session", in_process_bytes=100)  # type: ignore[arg-type, return-value]
    assert engine.spark() == "a session"
    with pytest.raises(AttributeError, match="sparkContext"):
        engine.run("double", doubled, [3], Progress(), size_bytes=1)


def test_no_task_needs_nothing() -> None:
    engine = Engine(start)
    assert engine.run("double", doubled, [], Progress(), size_bytes=1 << 40) == []
    assert engine.used is None


def test_a_task_that_fails_here_is_told_as_on_spark() -> None:
    def refuses(_: int) -> int:
        raise LakeError("do this instead")

    engine = Engine(start, in_process_bytes=100)
    with pytest.raises(LakeError, match="do this instead"):
        engine.run("refuse", refuses, [1], Progress(), size_bytes=1)
    with pytest.raises(JobError, match="divide: a task failed: ZeroDivisionError: .* by zero; run again"):
        engine.run("divide", lambda number: 1 // number, [1, 0], Progress(), size_bytes=1)


@pytest.mark.parametrize(
    ("sizes", "target", "bins"),
    [
        ([], 10, []),
        ([3, 3, 3], 10, [[0, 1, 2]]),
        ([10, 10], 10, [[0], [1]]),
        ([3, 8, 1], 10, [[0, 1], [2]]),  # full once the target is reached
        ([3, 30, 1], 10, [[0], [1], [2]]),  # what would double the target begins a task of its own
    ],
)
def test_neighbours_share_a_task_until_its_size_is_reached(
    sizes: list[int], target: int, bins: list[list[int]]
) -> None:
    assert executors.binned(list(enumerate(sizes)), target) == bins


def test_the_size_of_a_task_follows_the_work_within_bounds() -> None:
    assert executors.task_bytes(executors.SMALLEST_TASK_BYTES) == executors.SMALLEST_TASK_BYTES
    assert executors.task_bytes(1 << 40) == executors.LARGEST_TASK_BYTES
    assert executors.task_bytes(80 << 20) == (80 << 20) // executors.TASKS_AIMED_AT


@pytest.mark.parametrize("total", [0, 1, 3 << 20, (2 << 20) + 10, 50 << 20, (1 << 30) + (1 << 20)])
def test_tasks_are_equal_parts(total: int) -> None:
    sizes = [min(1 << 18, total - begin) for begin in range(0, total, 1 << 18)] or [0, 0]
    weights = [sum(sizes[item] for item in task) for task in executors.binned(list(enumerate(sizes)))]
    assert sum(weights) == total
    assert max(weights) - min(weights) < len(weights) << 18
    assert max(weights) <= executors.LARGEST_TASK_BYTES + (1 << 18)


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (
            "Job aborted\nTraceback\n  File x\nOSError: [Errno 28] No space left on device\n\n\tat org.apache",
            "OSError: [Errno 28] No space left on device",
        ),
        (
            "An error occurred while calling x\n: SparkException: Python worker exited unexpectedly (crashed).\n\tat",
            "its Python worker was ended from outside, as a system does that is short of memory",
        ),
        ("Executor lost: worker gone\n\tat org.apache", "Executor lost: worker gone"),
        ("", "no reason given"),
    ],
)
def test_a_failed_task_is_told_by_the_line_that_names_the_error(trace: str, words: str) -> None:
    assert executors.last_words(trace) == words


def test_specs_travel_in_waves_of_bounded_size_and_number_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [b"x" * 400, b"y" * 400, b"z" * 2000, b"v", b"w"]
    monkeypatch.setattr(executors, "WAVE_BYTES", 1000)
    waves = list(executors.waves("stage", specs, 2))
    assert [table.column("task").to_pylist() for table in waves] == [[0, 1], [2], [3, 4]]
    assert [pickle.loads(spec) for table in waves for spec in table.column("spec").to_pylist()] == specs
    assert [table.num_rows for table in executors.waves("stage", specs, 1)] == [1] * len(specs)
    monkeypatch.setattr(executors, "LARGEST_SPEC_BYTES", 1000)
    with pytest.raises(
        JobError, match="^stage: the spec of task 2 has 0 MB, a task gets at most 0 MB; raise in_process_bytes"
    ):
        list(executors.waves("stage", specs, 2))


def test_a_failed_task_names_its_executor_on_a_cluster_alone() -> None:
    lost = "Job aborted: Lost task 0.3 in stage 0.0 (TID 3) ({}): org.apache.spark.api.python.PythonException"
    assert executors.executor_of(lost.format("10.0.0.7 executor 12")) == "10.0.0.7 executor 12"
    assert executors.executor_of(lost.format("localhost executor driver")) == ""


def answers(work: object) -> list[dict[str, object]]:
    """What an executor without state of this process returns for one task."""
    rows = pa.RecordBatch.from_pydict({"task": [7], "spec": [pickle.dumps(21)]}, schema=executors.WORK)
    return [row for batch in cloudpickle.loads(cloudpickle.dumps(work))([rows]) for row in batch.to_pylist()]


def test_an_executor_with_our_packages_returns_the_result_of_each_task() -> None:
    (row,) = answers(executors.shipped(doubled))
    assert (row["task"], pickle.loads(row["result"])) == (7, 42)  # type: ignore[arg-type]


def test_an_executor_with_another_version_or_none_says_so_with_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    work = executors.shipped(doubled)
    monkeypatch.setattr(metadata, "version", lambda _: "0.0.1")
    (row,) = answers(work)
    where = f"the executor on {socket.gethostname()} ({sys.executable})"
    assert row == {"task": -1, "result": f"{where} has sharelens 0.0.1, the driver {sharelens.__version__}".encode()}

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    (row,) = answers(work)
    assert f"{where} lacks sharelens {sharelens.__version__} (No package" in row["result"].decode()  # type: ignore[attr-defined]
