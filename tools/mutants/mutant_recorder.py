"""A plugin of pytest, imported from this folder by any tree: which tests run which mutated statement.

MUTANT_RECORDS names the folder of records: a file for each mutant, with a line for each test that ran its statement;
`uses`, with what tests take of `tests.once.made_once`; `seconds`, how long each test took. A line names a test and its
phase, or what was being made once for several tests.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

RECORDS, CURRENT = "MUTANT_RECORDS", "PYTEST_CURRENT_TEST"
_lines: set[tuple[str, str]] = set()


def passed(number: int) -> None:
    """Notes that the test that runs now comes by the statement of mutant `number`."""
    _note(str(number), os.environ.get(CURRENT, ""))


def _note(file: str, line: str) -> None:
    folder = os.environ.get(RECORDS)
    if folder and (file, line) not in _lines:
        _lines.add((file, line))
        with Path(folder, file).open("a", encoding="utf-8") as records:
            records.write(f"{line}\n")


def pytest_configure() -> None:
    """What is made once is recorded under its own name: tests that find it there depend on it as well."""
    from tests import once

    made_once = once.made_once

    @functools.wraps(made_once)
    def recorded(name: str, make: Callable[[Path], object]) -> Path:
        before = os.environ.get(CURRENT, "")
        _note("uses", f"{before}\t{name}")

        def make_recorded(folder: Path) -> None:
            os.environ[CURRENT] = f"once {name}"
            try:
                make(folder)
            finally:
                os.environ[CURRENT] = before

        return made_once(name, make_recorded)

    once.made_once = recorded


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes how long a phase of a test took."""
    _note("seconds", f"{report.nodeid}\t{report.duration}")
