"""Tasks are put together by size, and a failed one is told in one line."""

import pytest

from jobs import executors


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
