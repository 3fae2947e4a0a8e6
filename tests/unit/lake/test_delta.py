"""Delta commits: what is in them, when they are skipped, and that every reader of Delta understands them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from evidence.schemas import NAME
from lake import delta
from lake.errors import LakeError
from lake.parquet import write_rows
from lake.tables import TABLES

TABLE = TABLES["silver.name"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The folder of a new table."""
    found = delta.table_path(tmp_path, TABLE.name)
    delta.create(found, TABLE)
    return found


def files(path: Path, run: int, *topics: str) -> list[delta.DataFile]:
    rows = [{"topic_id": topic, "topic": topic, "source": "topic_names", "valid_from_ms": None} for topic in topics]
    constants = {"cluster_id": "c", "run_id": run}
    return write_rows(path.parents[1], TABLE, pa.Table.from_pylist(rows, schema=NAME), constants)


def topics(path: Path, version: int | None = None) -> list[str]:
    table = DeltaTable(path, version=version).to_pyarrow_dataset().to_table()
    return sorted(table.column("topic").to_pylist())


def actions(path: Path, version: int) -> list[dict[str, Any]]:
    text = (path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_creating_twice_is_creating_once(path: Path) -> None:
    before = actions(path, 0)
    delta.create(path, TABLE)
    assert (delta.latest_version(path), actions(path, 0)) == (0, before)


def test_versions_add_up_and_stay_readable(path: Path) -> None:
    assert delta.commit(path, operation="decode", txn=("decode", 1), adds=files(path, 1, "a", "b")) == 1
    assert delta.commit(path, operation="decode", txn=("decode", 2), adds=files(path, 2, "c")) == 2
    (first,) = [file["path"] for file in delta.live_files(path, 1)]
    assert delta.commit(path, operation="decode", txn=("decode", 3), removes=[first]) == 3
    assert [topics(path, version) for version in range(4)] == [[], ["a", "b"], ["a", "b", "c"], ["c"]]


def test_a_transaction_that_is_there_is_skipped(path: Path) -> None:
    delta.commit(path, operation="decode", txn=("decode", 5), adds=files(path, 5, "a"))
    for again in (5, 4):
        assert delta.commit(path, operation="decode", txn=("decode", again), adds=files(path, 5, "b")) == 1
    assert delta.commit(path, operation="topics", txn=("topics", 5), adds=files(path, 5, "c")) == 2
    assert topics(path) == ["a", "c"]
    assert (delta.committed_txn(path, "decode"), delta.committed_txn(path, "topics")) == (5, 5)
    assert delta.committed_txn(path, "replay") is None


def test_a_transaction_that_the_newest_commits_tell_is_found_without_opening_the_table(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta.commit(path, operation="decode", txn=("decode", 4), adds=files(path, 4, "a"))
    delta.commit(path, operation="topics", txn=("topics", 5), adds=files(path, 5, "b"))
    monkeypatch.delattr(delta, "by_delta_rs")
    assert (delta.committed_txn(path, "decode"), delta.committed_txn(path, "topics")) == (4, 5)


def test_a_transaction_of_long_ago_is_found_behind_the_commits_of_another(path: Path) -> None:
    delta.commit(path, operation="replay", txn=("replay", 3))
    for run in range(1, delta.CHECKPOINT_EVERY + 2):
        delta.commit(path, operation="decode", txn=("decode", run))
    assert (delta.committed_txn(path, "replay"), delta.committed_txn(path, "measure")) == (3, None)


def test_in_commit_timestamps_only_rise_even_when_the_clock_steps_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "_now_ms", iter([9_000, 9_000, 5_000, 5_000, 5_000, 5_000]).__next__)
    for run in (1, 2, 3):
        delta.commit(path, operation="decode", txn=("decode", run))
    infos = [actions(path, version)[0]["commitInfo"] for version in (0, 1, 2, 3)]
    stamps = [info["inCommitTimestamp"] for info in infos]
    assert stamps == sorted(set(stamps))
    assert [info["operation"] for info in infos] == ["CREATE TABLE", "decode", "decode", "decode"]


def test_a_version_that_another_writer_took_is_never_overwritten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delta.commit(path, operation="decode", txn=("decode", 1), adds=files(path, 1, "a"))
    monkeypatch.setattr(delta, "latest_version", lambda _: 0)
    with pytest.raises(LakeError, match="version 1 .* another writer; run again"):
        delta.commit(path, operation="decode", txn=("decode", 2), adds=files(path, 2, "b"))
    assert topics(path) == ["a"]
    assert not list((path / "_delta_log").glob(".commit-*"))


def test_a_table_that_took_the_place_of_another_is_looked_at_anew(path: Path) -> None:
    delta.commit(path, operation="decode", txn=("decode", 7))
    assert delta.committed_txn(path, "decode") == 7
    shutil.rmtree(path)
    delta.create(path, TABLE)
    delta.commit(path, operation="decode", txn=("decode", 3))
    assert delta.committed_txn(path, "decode") == 3


def test_a_checkpoint_carries_all_that_later_commits_need(path: Path) -> None:
    for run in range(1, delta.CHECKPOINT_EVERY + 3):
        delta.commit(path, operation="decode", txn=("decode", run), adds=files(path, run, f"topic-{run:02d}"))
    assert (path / "_delta_log" / "_last_checkpoint").exists()
    for old in range(delta.CHECKPOINT_EVERY):
        (path / "_delta_log" / f"{old:020d}.json").unlink()
    last = delta.CHECKPOINT_EVERY + 2
    assert delta.exists(path)
    assert delta.committed_txn(path, "decode") == last
    assert topics(path) == [f"topic-{run:02d}" for run in range(1, last + 1)]
    assert delta.commit(path, operation="decode", txn=("decode", last + 1)) == last + 1


def test_the_protocol_lets_every_reader_in_and_names_what_writers_must_know(path: Path) -> None:
    protocol = next(action["protocol"] for action in actions(path, 0) if "protocol" in action)
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (1, 7)
    assert "inCommitTimestamp" in protocol["writerFeatures"]
    metadata = DeltaTable(path).metadata()
    assert metadata.configuration["sharelens.schemaVersion"] == str(TABLE.version)


@pytest.mark.parametrize("name", TABLES)
def test_the_schema_of_every_table_survives_the_way_through_delta(name: str, tmp_path: Path) -> None:
    path = delta.table_path(tmp_path, name)
    delta.create(path, TABLES[name])
    told = {field.name: field for field in DeltaTable(path).schema().fields}
    assert list(told) == TABLES[name].schema.names
    assert {field.name: field.nullable for field in TABLES[name].schema} == {n: f.nullable for n, f in told.items()}


def test_files_for_their_owner_alone(path: Path) -> None:
    delta.commit(path, operation="decode", txn=("decode", 1), adds=files(path, 1, "a"))
    found = [entry for entry in path.rglob("*") if entry.is_file()]
    assert len(found) >= 3
    assert {entry.stat().st_mode & 0o077 for entry in found} == {0}
