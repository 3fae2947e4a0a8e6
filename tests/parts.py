"""Parts of the tests, each run by a process of its own.

Where tests are short that is quicker than as many workers of pytest-xdist: a worker imports all files, and each result
goes through the process that hands out the tests.
"""

import re
from pathlib import Path

import pytest

PART = re.compile(r"(?P<number>[0-9]+)/(?P<count>[1-9][0-9]*)")


def files_of_part(folder: Path, part: str) -> frozenset[Path]:
    """The test files below a folder that belong to a part: of 1/2 each second one, in the order of their sizes.

    So the parts take about as long as each other.

    Raises:
        pytest.UsageError: when there is no such part.
    """
    match = PART.fullmatch(part)
    if match is None or not 1 <= int(match["number"]) <= int(match["count"]):
        raise pytest.UsageError(f"--part {part}: give a number and how many parts there are, such as 1/2")
    number, count = int(match["number"]), int(match["count"])
    files = sorted(folder.rglob("test_*.py"), key=lambda path: (path.stat().st_size, path))
    return frozenset(files[number - 1 :: count])
