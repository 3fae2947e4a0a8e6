"""What all tests share: tiers by folder, hypothesis profiles, one folder and one Spark session a run."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import depths, once, parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).parent
TIERS_OF_FOLDER = {
    "spark": ("spark",),
    "compat": ("compat",),
    "broker": ("broker",),
    "dags": ("airflow", "components"),
    "components": ("components",),
}
THREADS_OF_LIBRARIES = ("TOKIO_WORKER_THREADS", "OMP_NUM_THREADS")
"""Variables with the number of threads of delta-rs and of Arrow."""
MARKED_FILE = "\npytestmark = pytest.mark.{}\n"
DESELECTED_FILES = ("slow", "components")
"""Marks of whole files that runs leave out."""
WAITING = ("broker", "dags", "docs")  # folders whose tests wait for processes and locks longer than they compute
FILES_OF_PART = pytest.StashKey[frozenset[Path]]()

depths.load_profile()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option --part."""
    help_text = "run the test files of one part, such as 1/2; those of other parts are not imported"
    parser.addoption("--part", metavar="NUMBER/COUNT", help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the run's folder before workers start, so that all of them share what is unpacked.

    Workers are as many as processors: more than one thread in each costs a sixth more processor time, and gains none.
    """
    os.environ.setdefault("SHARELENS_ARCHIVES_DIR", str(once.run_folder() / "archives"))  # for processes, too
    if config.option.part is not None:
        config.stash[FILES_OF_PART] = parts.files_of_part(TESTS, config.option.part)
    if config.option.part is not None or getattr(config.option, "numprocesses", None):
        for name in THREADS_OF_LIBRARIES:
            os.environ.setdefault(name, "1")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is deselected as a whole is not even imported: that is most of what a short run would wait for."""
    if collection_path.parent == TESTS:
        tiers = TIERS_OF_FOLDER.get(collection_path.name, ())
        return True if any(f"not {tier}" in config.option.markexpr for tier in tiers) else None
    if collection_path.name.startswith("test_"):
        of_part = config.stash.get(FILES_OF_PART, None)
        if of_part is not None and collection_path not in of_part:
            return True
        text = collection_path.read_text(encoding="utf-8")
        left_out = [mark for mark in DESELECTED_FILES if f"not {mark}" in config.option.markexpr]
        return True if any(MARKED_FILE.format(mark) in text for mark in left_out) else None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test's folder says what it needs: tests/spark a session, tests/compat recorded logs, tests/broker a broker.

    Those that wait come first, in any order among themselves: others compute meanwhile, and none is waited for last.
    """
    for item in items:
        for tier in TIERS_OF_FOLDER.get(_folder(item), ()):
            item.add_marker(getattr(pytest.mark, tier))
    depths.leave_cases_to_soak(items)
    items.sort(key=lambda item: _folder(item) not in WAITING)


def pytest_collection_finish() -> None:
    """The collector passes over modules and collected tests, which stay: it would walk them again and again."""
    gc.collect()
    gc.freeze()


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """The one Spark session of a test run: two cores, small and quick to start, not for large data."""
    from sharelens.configuration.settings import load_settings
    from sharelens.spark.session import spark_session

    session = spark_session("tests", load_settings(environment="test"))
    yield session
    session.stop()
