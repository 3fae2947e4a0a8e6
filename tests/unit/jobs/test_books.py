"""What the books say a lake holds, and files rewritten without some rows."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from jobs import books
from lake.lake import Lake
from tests.in_process import make_lake
from tests.state_logs import START_MS, snapshot, update, write_log_directory

pytestmark = pytest.mark.slow


def extent(run: int, first: int, end: int, *, source: str = "one", **more: Any) -> dict[str, Any]:
    """A taken row of bronze.ingest_extent, as far as coverage looks at it."""
    plain = {"committed_end": None, "superseded_from": None, "gaps": [], "log_time_ms": None}
    described = {"run_id": run, "from_offset": first, "end_offset_exclusive": end, "source_id": source}
    return {**plain, **described, **more}


def gap(first: int, last: int) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "reason": "quarantined"}


@pytest.mark.parametrize(
    ("rows", "held", "end"),
    [
        pytest.param([], [], 0, id="nothing taken"),
        pytest.param([extent(1, 0, 5), extent(2, 5, 9)], [(0, 9)], 9, id="runs that go on"),
        pytest.param([extent(1, 4, 9), extent(2, 0, 4, source="two")], [(0, 9)], 9, id="a first part that came last"),
        pytest.param([extent(1, 0, 9, gaps=[gap(2, 3)])], [(0, 2), (4, 9)], 9, id="a gap is not held"),
        pytest.param(
            [extent(1, 0, 9, gaps=[gap(2, 3)]), extent(2, 2, 4, source="two")], [(0, 9)], 9, id="a gap that was filled"
        ),
        pytest.param([extent(1, 0, 9, committed_end=6)], [(0, 6)], 6, id="uncommitted rows are read again"),
        pytest.param(
            [extent(1, 0, 9), extent(2, 5, 7, source="two", superseded_from=5)], [(0, 7)], 7, id="another end won"
        ),
    ],
)
def test_coverage(rows: list[dict[str, Any]], held: list[tuple[int, int]], end: int) -> None:
    found = books.coverage(rows)
    assert (found.held, found.end) == (held, end)


def test_a_source_is_asked_once_for_what_it_does_not_have_and_another_one_may_have_it() -> None:
    found = books.coverage([extent(1, 0, 9, gaps=[gap(2, 3)])])
    assert found.wanted("one", (0, 12)) == [(9, 12)]
    assert found.wanted("two", (0, 12)) == [(2, 4), (9, 12)]
    assert found.before(3).wanted("one", (0, 12)) == [(3, 12)]


def test_a_source_that_had_vanished_is_asked_again() -> None:
    gone = {"first_offset": 2, "last_offset": 8, "reason": "vanished"}
    found = books.coverage([extent(1, 0, 9, gaps=[gone])])
    assert found.wanted("one", (0, 12)) == [(2, 12)]


def test_log_time_never_goes_back() -> None:
    assert books.coverage([extent(1, 0, 5, log_time_ms=70), extent(2, 5, 9, log_time_ms=50)]).log_time_ms == 70


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


def test_a_stage_is_done_once_its_last_commit_is_there(two_runs: Path) -> None:
    assert {
        books.done(Lake(two_runs), stage) for stage in ("ingest-plan", "ingest", "decode", "replay", "publish")
    } == {2}
    assert books.is_committed(Lake(two_runs), "silver.share_record", "decode", 2)
    assert not books.is_committed(Lake(two_runs), "silver.share_record", "decode", 3)
