"""Each test file is in one part, and parts are about as large."""

from pathlib import Path

import pytest

from tests.parts import files_of_part

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_each_file_is_in_one_part(count: int) -> None:
    parts = [files_of_part(TESTS, f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(path for part in parts for path in part) == sorted(TESTS.rglob("test_*.py"))


def test_parts_are_about_as_large() -> None:
    first, second = (sum(path.stat().st_size for path in files_of_part(TESTS, part)) for part in ("1/2", "2/2"))
    assert abs(first - second) < 0.2 * (first + second)


@pytest.mark.parametrize("part", ["0/2", "3/2", "1/0", "1", "", "half"])
def test_a_part_that_is_not_there_is_refused(part: str) -> None:
    with pytest.raises(pytest.UsageError, match="--part .*: give a number and how many parts there are, such as 1/2"):
        files_of_part(TESTS, part)
