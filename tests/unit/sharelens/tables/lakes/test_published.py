"""Rows of a table at earlier publications of a lake."""

import shutil
from pathlib import Path

import pytest

from sharelens.lake.scan import open_lake, versions_of
from sharelens.tables.lakes.published import PublishedLake, publications
from sharelens.tables.opening import open_cut
from sharelens.tables.where import ALL_KEYS, Keys
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

COLUMNS = ["group_id", "start_offset"]


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three runs, each with one record more: groups g, h and g again."""
    folder = tmp_path_factory.mktemp("three")
    story = [snapshot("g"), snapshot("h", 1, at_ms=START_MS + 1000), update("g", start_offset=5, at_ms=START_MS + 2000)]
    for count in (1, 2, 3):
        logs = write_log_directory(folder / f"logs-{count}", story[:count])
        shutil.rmtree(folder / "logs", ignore_errors=True)
        make_lake(folder / "lake", Path(shutil.copytree(logs, folder / "logs")))
    return folder / "lake"


def published(lake: Path) -> tuple[PublishedLake, list[int]]:
    """The lake at its newest cut, and the ages of its earlier publications, the oldest last."""
    origin = open_cut(open_lake(str(lake)), None).publications
    assert isinstance(origin, PublishedLake)
    *earlier, newest = publications(origin.lake).column("published_at_ms").to_pylist()
    return origin, [newest - at_ms for at_ms in reversed(earlier)]


def read(origin: PublishedLake, ages_ms: list[int], keys: Keys = ALL_KEYS) -> list[tuple[int, list[dict[str, object]]]]:
    earlier = origin.earlier_rows("gold.lag", COLUMNS, ages_ms, keys)
    return [(at_ms - START_MS, sorted(rows.to_pylist(), key=str)) for at_ms, rows in earlier]


def test_an_age_has_the_newest_publication_that_is_so_old(three_runs: Path) -> None:
    origin, (second, first) = published(three_runs)
    g, h = ({"group_id": group, "start_offset": 0} for group in "gh")
    assert read(origin, [first, second]) == [(0, [g]), (1000, [g, h])]
    assert read(origin, [second, second + 1, first]) == [(1000, [g, h]), (0, [g])]
    assert read(origin, [first + 1]) == []


def test_the_keys_choose_rows(three_runs: Path) -> None:
    origin, (second, first) = published(three_runs)
    keys = Keys(groups=frozenset({"h"}))
    assert read(origin, [first, second], keys) == [(0, []), (1000, [{"group_id": "h", "start_offset": 0}])]


def test_nothing_is_read_where_files_of_a_publication_are_gone(three_runs: Path, tmp_path: Path) -> None:
    origin, ages_ms = published(Path(shutil.copytree(three_runs, tmp_path / "lake")))
    lake, publication = origin.lake.lake, publications(origin.lake).to_pylist()[0]
    (path,) = lake.snapshot("gold.lag", versions_of(publication)["gold.lag"]).paths
    (tmp_path / "lake" / "gold" / "lag" / path).unlink()
    assert read(origin, ages_ms) == read(origin, ages_ms[1:]) == []
