"""The books of a lake: done stages, and files rewritten without some rows."""

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

from jobs import books
from sharelens.lake.lake import Lake
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two runs with three records each; tests that change it copy it."""
    folder = tmp_path_factory.mktemp("books")
    story = [snapshot(), *(update(batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(5))]
    for count in (3, 6):
        make_lake(folder / "lake", write_log_directory(folder / f"logs-{count}", story[:count]))
    return folder / "lake"


def test_only_files_with_rows_to_drop_are_rewritten(two_runs: Path, tmp_path: Path) -> None:
    lake = Path(shutil.copytree(two_runs, tmp_path / "lake"))
    name = "bronze.log_record"
    before = Lake(lake).snapshot(name).files
    adds, removes = books.rewritten_without(Lake(lake), name, pc.field("offset") >= 4)
    assert len(before) == 2
    assert removes == [file["path"] for file in before if file["max.offset"] == 5]
    books.commit(Lake(lake), name, "ingest", 99, adds, removes)
    assert sorted(Lake(lake).snapshot(name).dataset().to_table().column("offset").to_pylist()) == [0, 1, 2, 3]


def test_nothing_to_drop_rewrites_nothing(two_runs: Path) -> None:
    assert books.rewritten_without(Lake(two_runs), "bronze.log_record", None) == ([], [])
    assert books.rewritten_without(Lake(two_runs), "bronze.log_record", pc.field("offset") > 99) == ([], [])


def test_a_run_leaves_a_table_without_changes_as_it_is(two_runs: Path) -> None:
    lake = Lake(two_runs)
    assert (lake.version("silver.clock_step"), lake.transaction("silver.clock_step", "decode")) == (1, 1)
    assert books.is_committed(lake, "silver.clock_step", "decode", 2)
    assert not books.is_committed(lake, "silver.clock_step", "decode", 3)


def test_a_stage_is_done_once_its_last_commit_is_there(two_runs: Path) -> None:
    assert {
        books.done(Lake(two_runs), stage) for stage in ("ingest-plan", "ingest", "decode", "replay", "publish")
    } == {2}
    assert books.is_committed(Lake(two_runs), "silver.share_record", "decode", 2)
    assert not books.is_committed(Lake(two_runs), "silver.share_record", "decode", 3)
