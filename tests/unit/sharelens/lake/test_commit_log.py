"""What upkeep knows of a table's log: each commit is looked at once, and no needed file is given up."""

from pathlib import Path

import pytest

from jobs import books
from jobs.upkeep.compaction import worth_joining
from sharelens.lake import vacuum
from sharelens.lake.commit import CHECKPOINT_EVERY, commit, create
from sharelens.lake.lake import Lake
from sharelens.lake.local_storage import LocalStorage
from sharelens.lake.tables import TABLES
from sharelens.lake.transactions import commit_path
from tests.unit.sharelens.lake.test_commit import TABLE, added

LATER_MS = 1 << 60


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table in which each commit replaces the file of the one before."""
    lake = Lake(tmp_path / "lake")
    create(lake, TABLE)
    for run in range(1, 6):
        added(lake, run, "a", removes=tuple(lake.snapshot(TABLE.name).paths))
    return lake


@pytest.mark.slow
def test_a_file_goes_when_no_version_from_the_floor_on_has_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_paths = {path for version in (3, 4, 5) for path in Lake(lake.uri).snapshot(TABLE.name, version).paths}
    monkeypatch.setattr(vacuum, "GRACE_MS", 0)
    lake.commit_log(TABLE.name).times[3] = LATER_MS
    removed = vacuum.remove_files(lake, TABLE.name, 3, now_ms=LATER_MS, dry_run=False)
    assert removed.files == 2
    folder = Path(lake.table_storage(TABLE.name).root)
    assert {path.name for path in folder.glob("*.parquet")} == kept_paths


@pytest.mark.slow
def test_a_file_that_a_commit_removed_needs_no_grace_in_the_process_that_read_the_commit(lake: Lake) -> None:
    folder = Path(lake.table_storage(TABLE.name).root)
    orphan = folder / "of-a-task-that-outlived-its-run.parquet"
    orphan.touch()
    names = {path.name for path in folder.glob("*.parquet")}
    now_ms = books.now_ms()
    assert vacuum.remove_files(Lake(lake.uri), TABLE.name, 3, now_ms=now_ms, dry_run=False).files == 0
    assert vacuum.remove_files(lake, TABLE.name, 0, now_ms=now_ms, dry_run=False).files == 0
    dry = vacuum.remove_files(lake, TABLE.name, 3, now_ms=now_ms, dry_run=True)
    done = vacuum.remove_files(lake, TABLE.name, 3, now_ms=now_ms, dry_run=False)
    assert dry == done
    assert done.files == 2
    assert done.size_bytes > 0
    kept_paths = {path for version in (3, 4, 5) for path in Lake(lake.uri).snapshot(TABLE.name, version).paths}
    assert {path.name for path in folder.glob("*.parquet")} == kept_paths | {orphan.name} < names
    assert vacuum.remove_files(lake, TABLE.name, 3, now_ms=now_ms, dry_run=False).files == 0


def test_a_floor_that_goes_back_gives_up_no_file_of_its_versions(lake: Lake) -> None:
    now_ms = books.now_ms()
    for floor in (0, 4):
        vacuum.remove_files(lake, TABLE.name, floor, now_ms=now_ms, dry_run=True)
    assert vacuum.remove_files(lake, TABLE.name, 2, now_ms=now_ms, dry_run=False).files == 1


@pytest.mark.slow
def test_each_commit_is_read_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []
    original = LocalStorage.read
    monkeypatch.setattr(LocalStorage, "read", lambda storage, path: (paths.append(path), original(storage, path))[1])
    assert len(lake.removed_since(TABLE.name, 1)) == 4
    added(lake, 6, "a", removes=tuple(lake.snapshot(TABLE.name).paths))
    assert len(lake.removed_since(TABLE.name, 2)) == 4
    assert paths == [commit_path(version) for version in (2, 3, 4, 5, 6)]


@pytest.mark.slow
def test_a_log_that_grows_is_known_as_one_that_is_listed(lake: Lake) -> None:
    lake.commit_log(TABLE.name)
    for run in range(6, CHECKPOINT_EVERY + 2):
        commit(lake, TABLE.name, stage="decode", run=run)
    followed, listed = lake.commit_log(TABLE.name), Lake(lake.uri).commit_log(TABLE.name)
    assert (followed.times, followed.checkpoints) == (listed.times, listed.checkpoints)
    assert followed.checkpoints == {CHECKPOINT_EVERY - 1}
    assert followed.oldest == 0
    assert followed.version_at(CHECKPOINT_EVERY, followed.times[4] - 1) <= 4


@pytest.mark.parametrize(
    ("sizes", "joined"),
    [
        ([1, 2, 3], [1, 2, 3]),  # tiny ones, always
        ([1, 2, 50], [1, 2]),  # what the smaller ones don't outweigh stays
        ([20, 30, 50], [20, 30, 50]),
        ([20, 30, 50, 99], [20, 30, 50, 99]),
        ([20, 30, 50, 101], [20, 30, 50]),
        ([60, 30], []),  # one file has nothing to join
        ([200, 5, 5], [5, 5]),  # not small
    ],
)
def test_a_row_is_written_again_when_its_file_has_doubled(sizes: list[int], joined: list[int]) -> None:
    files = {f"{number}-{size}": size for number, size in enumerate(sizes)}
    assert sorted(files[path] for path in worth_joining(files, small_bytes=200, tiny_bytes=10)) == joined


def test_every_partition_column_is_a_boolean() -> None:
    kinds = {str(table.schema.field(name).type) for table in TABLES.values() for name in table.partition_by}
    assert kinds == {"bool"}
