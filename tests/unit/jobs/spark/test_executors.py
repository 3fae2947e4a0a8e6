"""Tasks are put together by size, run here or on Spark, and a failed one is told in one line."""

import pickle

import pytest

from jobs.errors import JobError
from jobs.progress import Progress
from jobs.spark import executors
from jobs.spark.executors import Engine
from lake.errors import LakeError


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
    assert executors.task_bytes(0) == executors.SMALLEST_TASK_BYTES
    assert executors.task_bytes(1 << 40) == executors.LARGEST_TASK_BYTES
    assert executors.task_bytes(80 << 20) == (80 << 20) // executors.TASKS_AIMED_AT


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (
            "Job aborted\nTraceback\n  File x\nOSError: [Errno 28] No space left on device\n\n\tat org.apache",
            "OSError: [Errno 28] No space left on device",
        ),
        ("Executor lost: worker gone\n\tat org.apache", "Executor lost: worker gone"),
        ("", "no reason given"),
    ],
)
def test_a_failed_task_is_told_by_the_line_that_names_the_error(trace: str, words: str) -> None:
    assert executors.last_words(trace) == words


def test_specs_travel_in_rounds_of_bounded_size_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [b"x" * 400, b"y" * 400, b"z" * 2000, b"w"]
    monkeypatch.setattr(executors, "ROUND_BYTES", 1000)
    rounds = list(executors.work_rounds("stage", specs))
    assert [table.column("task").to_pylist() for table in rounds] == [[0, 1], [2], [3]]
    assert [pickle.loads(spec) for table in rounds for spec in table.column("spec").to_pylist()] == specs
    monkeypatch.setattr(executors, "LARGEST_SPEC_BYTES", 1000)
    with pytest.raises(
        JobError, match="^stage: the spec of task 2 has 0 MB, a task gets at most 0 MB; raise in_process_bytes"
    ):
        list(executors.work_rounds("stage", specs))
