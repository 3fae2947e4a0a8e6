"""Transactions of a table: those that delta-rs gives, with each commit read once at most."""

from pathlib import Path

import pytest

from sharelens.lake.commit import CHECKPOINT_EVERY, commit, create
from sharelens.lake.lake import Lake
from sharelens.lake.local_storage import LocalStorage
from sharelens.lake.tables import TABLES
from sharelens.lake.transactions import commit_path, transactions_of

NAME = "silver.name"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table with commits of two applications, in turn."""
    lake = Lake(tmp_path)
    create(lake, TABLES[NAME])
    for run in range(1, 6):
        commit(lake, NAME, stage="even" if run % 2 == 0 else "odd", run=run)
    return tmp_path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were read, in their order."""
    paths: list[str] = []
    original = LocalStorage.read

    def counted(storage: LocalStorage, path: str) -> bytes:
        paths.append(path)
        return original(storage, path)

    monkeypatch.setattr(LocalStorage, "read", counted)
    return paths


def test_commits_are_read_from_the_newest_one_down_and_once(lake: Path, reads: list[str]) -> None:
    opened = Lake(lake)
    assert opened.transaction(NAME, "odd") == 5
    assert reads == [commit_path(5)]
    assert opened.transaction(NAME, "even") == 4
    assert opened.transaction(NAME, "other") is None
    assert opened.transaction(NAME, "another") is None
    assert reads == [commit_path(version) for version in (5, 4, 3, 2, 1, 0)]
    commit(opened, NAME, stage="even", run=6)
    assert [opened.transaction(NAME, name) for name in ("odd", "even", "other")] == [5, 6, None]
    assert len(reads) == 6
    assert opened.transaction(NAME, "even", version=4) == 4
    assert opened.transaction(NAME, "odd", version=2) == 1


@pytest.mark.slow
def test_the_checkpoint_has_the_transactions_of_commits_that_were_removed(lake: Path) -> None:
    opened = Lake(lake)
    for run in range(6, CHECKPOINT_EVERY + 2):
        commit(opened, NAME, stage="late", run=run)
    for version in range(CHECKPOINT_EVERY):
        (lake / "silver" / "name" / commit_path(version)).unlink()
    opened = Lake(lake)
    expected = {"late": CHECKPOINT_EVERY + 1, "odd": 5, "even": 4, "other": None}
    assert {name: opened.transaction(NAME, name) for name in expected} == expected


def test_text_of_a_user_is_no_transaction() -> None:
    line = b'{"commitInfo":{"userMetadata":"{\\"txn\\":{\\"appId\\":\\"x\\",\\"version\\":1}}"}}\n'
    assert transactions_of(line + b'{"txn":{"appId":"y","version":7}}') == {"y": 7}
