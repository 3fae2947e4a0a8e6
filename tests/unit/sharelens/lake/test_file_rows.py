"""Rows of a small table as Python values, version after version."""

from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.upkeep.maintain import MaintainOptions, maintain
from sharelens.lake import file_rows
from sharelens.lake.file_rows import FileRows
from sharelens.lake.lake import Lake
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import TO_SILVER, make_lake

pytestmark = pytest.mark.slow

EXTENT = "bronze.ingest_extent"
CONDITIONS = (None, pc.field("status") == "taken", pc.field("run_id") > 1, pc.field("topic") == "none")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake of three runs and an upkeep."""
    folder = tmp_path_factory.mktemp("file-rows")
    lake = Lake(folder / "lake")
    for end in (1, 2, 3):
        records = [snapshot("g", start=0), *(update("g", start=n, at_ms=START_MS + n) for n in (1, 2))]
        make_lake(lake, write_log_directory(folder / str(end), records[:end]), stages=TO_SILVER)
    maintain(MaintainOptions(lake=lake, dry_run=False))
    return Lake(lake.uri)


@pytest.mark.soak
@given(data=st.data())
def test_the_rows_of_versions_in_any_order_are_those_that_the_table_has(lake: Lake, data: st.DataObject) -> None:
    rows = FileRows()
    newest = lake.version(EXTENT)
    for version in data.draw(st.lists(st.integers(1, newest), min_size=1, max_size=4)):
        at = lake.snapshot(EXTENT, version)
        for where in CONDITIONS:
            expected = at.all_rows if where is None else at.all_rows.filter(where)
            assert rows.select(at, where) == expected.to_pylist()


def test_a_file_is_read_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    plain = file_rows._read
    monkeypatch.setattr(file_rows, "_read", lambda at, path: read.append(path) or plain(at, path))
    rows = FileRows()
    for version in (2, 3, 4):
        rows.select(lake.snapshot(EXTENT, version))
    assert len(read) == len(set(read)) > 1


def test_a_row_that_a_caller_changes_is_unchanged_for_the_next_one(lake: Lake) -> None:
    rows, at = FileRows(), lake.snapshot(EXTENT)
    rows.select(at)[0]["topic"] = "changed"
    assert rows.select(at) == at.all_rows.to_pylist()


def test_a_table_without_rows_has_none(tmp_path: Path) -> None:
    from sharelens.lake.commit import create
    from sharelens.lake.tables import TABLES

    empty = Lake(tmp_path)
    create(empty, TABLES[EXTENT])
    assert FileRows().select(empty.snapshot(EXTENT), CONDITIONS[1]) == []
