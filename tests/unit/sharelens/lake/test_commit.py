"""Commits through delta-rs: what is in them, when they are skipped, and what is refused that it would accept."""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction

from sharelens.lake import commit as commits
from sharelens.lake.commit import CHECKPOINT_EVERY, commit, create, create_tables, write
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, write_rows
from sharelens.lake.tables import NAME, TABLES

TABLE = TABLES["silver.name"]
YEAR_S = 365 * 86_400


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with one new table."""
    entries = Lake(tmp_path / "lake")
    create(entries, TABLE)
    return entries


def files(lake: Lake, run: int, *topics: str) -> list[DataFile]:
    rows = [{"topic_id": topic, "topic": topic, "source": "topic_names", "valid_from_ms": None} for topic in topics]
    return write_rows(lake, TABLE, pa.Table.from_pylist(rows, schema=NAME), {"cluster_id": "c", "run_id": run})


def added(lake: Lake, run: int, *topics: str, stage: str = "decode", removes: tuple[str, ...] = ()) -> int:
    return commit(lake, TABLE.name, stage=stage, run=run, adds=files(lake, run, *topics), removes=removes)


def topics(lake: Lake, version: int | None = None) -> list[str]:
    table = DeltaTable(lake.table_storage(TABLE.name).root, version=version).to_pyarrow_dataset().to_table()
    return sorted(table.column("topic").to_pylist())


def log(lake: Lake) -> Path:
    return lake.table_storage(TABLE.name).path / "_delta_log"


def actions(lake: Lake, version: int) -> list[dict[str, Any]]:
    text = (log(lake) / f"{version:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def commit_of_others(lake: Lake, application: str = "stranger", run: int = 1) -> None:
    """What another program commits to the table."""
    handle = DeltaTable(lake.table_storage(TABLE.name).root)
    add = AddAction(
        path="theirs.parquet", size=1, partition_values={}, modification_time=0, data_change=True, stats="{}"
    )
    handle.create_write_transaction(
        [add],
        mode="append",
        schema=handle.schema(),
        commit_properties=CommitProperties(app_transactions=[Transaction(application, run)]),
    )


def test_creating_twice_is_creating_once(lake: Lake) -> None:
    before = actions(lake, 0)
    create(lake, TABLE)
    create(Lake(lake.uri), TABLE)
    assert (lake.version(TABLE.name), actions(lake, 0)) == (0, before)


def test_versions_add_up_and_stay_readable(lake: Lake) -> None:
    assert added(lake, 1, "a", "b") == 1
    assert added(lake, 2, "c") == 2
    (first,) = lake.snapshot(TABLE.name, 1).paths
    assert commit(lake, TABLE.name, stage="decode", run=3, removes=[first]) == 3
    assert [topics(lake, version) for version in range(4)] == [[], ["a", "b"], ["a", "b", "c"], ["c"]]
    assert [sorted(lake.snapshot(TABLE.name, n).rows().column("topic").to_pylist()) for n in (1, 3)] == [
        ["a", "b"],
        ["c"],
    ]


def test_added_and_removed_files_and_the_transaction_are_one_commit(lake: Lake) -> None:
    added(lake, 1, "a")
    added(lake, 2, "b", removes=tuple(lake.snapshot(TABLE.name).paths))
    kinds = [next(iter(action)) for action in actions(lake, 2)]
    assert sorted(kinds) == ["add", "commitInfo", "remove", "txn"]
    assert topics(lake) == ["b"]


@pytest.mark.parametrize("fresh", [False, True], ids=["the same handle", "a fresh handle"])
def test_a_transaction_that_is_there_is_skipped(lake: Lake, *, fresh: bool) -> None:
    added(lake, 5, "a")
    again = Lake(lake.uri) if fresh else lake
    for run in (5, 4):
        assert added(again, run, "b") == 1
    assert added(again, 5, "c", stage="topics") == 2
    assert topics(lake) == ["a", "c"]
    assert [again.transaction(TABLE.name, stage) for stage in ("decode", "topics", "replay")] == [5, 5, None]


@pytest.mark.slow
def test_a_transaction_of_long_ago_is_remembered_behind_checkpoints(lake: Lake) -> None:
    commit(lake, TABLE.name, stage="replay", run=3)
    for run in range(1, CHECKPOINT_EVERY + 2):
        commit(lake, TABLE.name, stage="decode", run=run)
    assert list(log(lake).glob("*.checkpoint.parquet"))
    assert (lake.transaction(TABLE.name, "replay"), lake.transaction(TABLE.name, "measure")) == (3, None)
    assert Lake(lake.uri).transaction(TABLE.name, "replay") == 3
    assert lake.transaction(TABLE.name, "decode", 5) == 4


def test_a_handle_follows_what_another_one_commits(lake: Lake) -> None:
    other = Lake(lake.uri)
    assert other.snapshot(TABLE.name).files == ()
    added(lake, 1, "a")
    assert other.snapshot(TABLE.name).rows(["topic"]).to_pylist() == [{"topic": "a"}]
    assert (other.version(TABLE.name), other.transaction(TABLE.name, "decode")) == (1, 1)


@pytest.mark.parametrize("before", [0, 1], ids=["a new table", "a table with a commit"])
def test_a_transaction_that_another_one_commits_is_seen_also_where_all_were_known(lake: Lake, before: int) -> None:
    for run in range(1, before + 1):
        added(lake, run, "a")
    last_run = before or None
    assert [lake.transaction(TABLE.name, name) for name in ("decode", "stranger")] == [last_run, None]
    commit_of_others(lake, run=7)
    assert [lake.transaction(TABLE.name, name) for name in ("decode", "stranger")] == [last_run, 7]
    assert added(lake, 2, "b") == before + 2
    assert [lake.transaction(TABLE.name, name) for name in ("decode", "stranger", "replay")] == [2, 7, None]
    assert lake.transaction(TABLE.name, "decode", before) == last_run


def test_a_version_that_another_application_takes_meanwhile_is_an_error(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    adds, begun = files(lake, 1, "a"), lake.handle(TABLE.name)
    commit_of_others(lake)
    monkeypatch.setattr(Lake, "handle", lambda *_: begun)  # as if it came between the look at the table and the commit
    monkeypatch.setattr(Lake, "version", lambda *_: DeltaTable(lake.table_storage(TABLE.name).root).version())
    with pytest.raises(LakeError, match=r"silver.name in .*: version 1 was committed by another writer; run again"):
        write(lake, TABLE.name, {"decode": 1}, adds=adds)
    assert begun.version() == 0


def test_a_version_that_the_same_stage_takes_meanwhile_is_an_error(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    adds, begun = files(lake, 1, "a"), lake.handle(TABLE.name)
    commit_of_others(lake, "decode", 1)
    monkeypatch.setattr(Lake, "handle", lambda *_: begun)
    with pytest.raises(LakeError, match="version 1 was committed by another writer; run again"):
        write(lake, TABLE.name, {"decode": 1}, adds=adds)
    assert not (log(lake) / f"{2:020d}.json").exists()


def test_a_removed_file_that_is_not_live_is_refused_and_nothing_is_written(lake: Lake) -> None:
    added(lake, 1, "a")
    with pytest.raises(LakeError, match=r"unknown.parquet is no live file of the table; run again"):
        commit(lake, TABLE.name, stage="decode", run=2, adds=files(lake, 2, "b"), removes=["unknown.parquet"])
    assert (lake.version(TABLE.name), topics(lake)) == (1, ["a"])


def test_a_table_whose_columns_another_writer_changed_is_refused(lake: Lake) -> None:
    adds = files(lake, 1, "a")
    DeltaTable(lake.table_storage(TABLE.name).root).alter.add_columns([Field("theirs", "string")])
    with pytest.raises(LakeError, match="another writer has changed its columns"):
        commit(lake, TABLE.name, stage="decode", run=1, adds=adds)
    assert lake.version(TABLE.name) == 1


@pytest.mark.slow
def test_checkpoints_are_written_and_remove_no_commit_whatever_its_age(lake: Lake) -> None:
    for run in range(1, CHECKPOINT_EVERY):
        added(lake, run, f"topic-{run:02d}")
    long_ago = time.time() - YEAR_S
    for file in log(lake).iterdir():
        os.utime(file, (long_ago, long_ago))
    again = Lake(lake.uri)
    for run in range(CHECKPOINT_EVERY, 2 * CHECKPOINT_EVERY + 2):
        added(again, run, f"topic-{run:02d}")
    assert len(list(log(lake).glob("*.checkpoint.parquet"))) == 2
    assert len(list(log(lake).glob("*.json"))) == 2 * CHECKPOINT_EVERY + 2


@pytest.mark.slow
def test_what_a_default_hook_would_have_removed(lake: Lake) -> None:
    """The reason for the test above: with log clean-up on, old commits go."""
    for run in range(1, CHECKPOINT_EVERY):
        added(lake, run, f"topic-{run:02d}")
    long_ago = time.time() - YEAR_S
    for file in log(lake).iterdir():
        os.utime(file, (long_ago, long_ago))
    handle = DeltaTable(lake.table_storage(TABLE.name).root)
    handle.create_write_transaction(
        [],
        mode="append",
        schema=handle.schema(),
        commit_properties=CommitProperties(app_transactions=[Transaction("decode", 99)]),
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=True),
    )
    assert len(list(log(lake).glob("*.json"))) < CHECKPOINT_EVERY


@pytest.mark.slow
def test_a_checkpoint_carries_all_that_later_commits_need(lake: Lake) -> None:
    last = CHECKPOINT_EVERY + 2
    for run in range(1, last + 1):
        added(lake, run, f"topic-{run:02d}")
    for old in range(CHECKPOINT_EVERY - 1):
        (log(lake) / f"{old:020d}.json").unlink()
    again = Lake(lake.uri)
    assert again.exists(TABLE.name)
    assert again.transaction(TABLE.name, "decode") == last
    assert topics(lake) == [f"topic-{run:02d}" for run in range(1, last + 1)]
    assert commit(again, TABLE.name, stage="decode", run=last + 1) == last + 1


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_created_with_its_columns_comments_and_properties(name: str, tmp_path: Path) -> None:
    lake, table = Lake(tmp_path), TABLES[name]
    create(lake, table)
    opened = DeltaTable(lake.table_storage(name).root)
    fields = {field.name: field for field in opened.schema().fields}
    assert list(fields) == table.schema.names
    assert {field.name: field.nullable for field in table.schema} == {n: f.nullable for n, f in fields.items()}
    comments = {field.name: (field.metadata or {}).get(b"comment", b"").decode() for field in table.schema}
    assert {name: field.metadata.get("comment", "") for name, field in fields.items()} == comments
    assert lake.schema(name).equals(table.schema)
    metadata, protocol = opened.metadata(), opened.protocol()
    assert (metadata.name, metadata.description) == (table.name, table.comment)
    assert tuple(metadata.partition_columns) == table.partition_by
    assert metadata.configuration["sharelens.schemaVersion"] == str(table.version)
    assert metadata.configuration.get("delta.appendOnly", "false") == str(table.append_only).lower()
    assert protocol.min_reader_version == 1
    assert set(protocol.writer_features or ()) <= {"appendOnly", "invariants"}


def test_every_column_has_its_statistics_read_back(lake: Lake) -> None:
    added(lake, 1, "a", "b")
    (file,) = lake.snapshot(TABLE.name).files
    assert (file["num_records"], file["min.topic"], file["max.topic"]) == (2, "a", "b")
    assert (file["min.run_id"], file["null_count.valid_from_ms"]) == (1, 2)
    wide = TABLES["gold.latency"]  # more columns than delta-rs keeps statistics of unless it is told to
    create(lake, wide)
    stats = {"numRecords": 1, "minValues": {"run_id": 7}, "maxValues": {"run_id": 7}, "nullCount": {"run_id": 0}}
    planted = DataFile(path="is_final=true/a.parquet", size_bytes=1, stats=stats, partition_values={"is_final": "true"})
    (lake.table_storage(wide.name).path / "is_final=true").mkdir()
    commit(lake, wide.name, stage="measure", run=7, adds=[planted])
    (file,) = lake.snapshot(wide.name).files
    assert (file["path"], file["max.run_id"], file["partition.is_final"]) == ("is_final=true/a.parquet", 7, True)


@pytest.mark.slow
def test_files_for_their_owner_alone_whatever_the_mask_of_the_process(lake: Lake) -> None:
    before = os.umask(0o000)
    try:
        for run in range(1, CHECKPOINT_EVERY + 1):
            added(lake, run, "a")
        assert os.umask(0o000) == 0
    finally:
        os.umask(before)
    entries = [entry for entry in lake.table_storage(TABLE.name).path.rglob("*") if entry.is_file()]
    assert {entry.suffix for entry in entries} == {".json", ".parquet", ""}
    assert {entry.stat().st_mode & 0o777 for entry in entries} == {0o600}


def test_a_lake_travels_as_its_address(lake: Lake) -> None:
    added(lake, 1, "a")
    other = pickle.loads(pickle.dumps(lake))
    assert (other.uri, other._handles) == (lake.uri, {})
    view = pickle.loads(pickle.dumps(lake.view([TABLE.name])))
    assert view.snapshot(TABLE.name).rows(["topic"]).to_pylist() == [{"topic": "a"}]


@pytest.mark.slow
def test_a_forked_child_reads_through_snapshots_and_opens_no_table(lake: Lake) -> None:
    added(lake, 1, "a")
    results = multiprocessing.get_context("fork").Queue()

    def child() -> None:
        rows = snapshot.rows(["topic"]).to_pylist()
        try:
            lake._handles.clear()
            lake.snapshot(TABLE.name)
        except RuntimeError as error:
            results.put((rows, str(error)))

    snapshot = lake.snapshot(TABLE.name)
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    rows, message = results.get(timeout=30)
    process.join()
    assert rows == [{"topic": "a"}]
    assert "read through a snapshot of the driver" in message


@pytest.mark.slow
def test_the_process_that_spark_forks_workers_from_never_loads_delta_rs() -> None:
    text = (
        "import sys\n"
        "import jobs.run\n"
        "from jobs.spark.executors import load_kernels\n"
        "from jobs.decode import stage as a; from jobs.replay import stage as b; from jobs.measure import stage as c\n"
        "from jobs.ingest import stage as d; from jobs.measure import reconcile as e\n"
        "assert 'deltalake' not in sys.modules, sorted(m for m in sys.modules if 'delta' in m)\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


@pytest.mark.slow
def test_two_writers_at_once_lose_nothing_and_one_of_them_is_told(lake: Lake) -> None:
    """Without the lock, which keeps two runs apart: each commit is in the table, or its writer got an error."""
    script = (
        "import sys; from sharelens.lake.commit import commit; from sharelens.lake.lake import Lake\n"
        "from sharelens.lake.errors import LakeError\n"
        "from tests.unit.sharelens.lake.test_commit import TABLE, files\n"
        "lake, done = Lake(sys.argv[1]), []\n"
        "for run in range(1, 31):\n"
        "    try:\n"
        "        commit(lake, TABLE.name, stage=sys.argv[2], run=run, adds=files(lake, run, f'{sys.argv[2]}-{run}'))\n"
        "        done.append(run)\n"
        "    except LakeError as error:\n"
        "        assert 'another writer' in str(error), error\n"
        "print(*done)\n"
    )
    command = [sys.executable, "-c", script, lake.uri]
    writers = [subprocess.Popen([*command, stage], stdout=subprocess.PIPE, text=True) for stage in ("one", "two")]
    done = [{int(word) for word in (writer.communicate(timeout=120)[0] or "").split()} for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    committed = set(topics(lake))
    for stage, runs in zip(("one", "two"), done, strict=True):
        assert {f"{stage}-{run}" for run in runs} <= committed
    assert len(committed) == lake.version(TABLE.name)  # no version is lost, and none holds two


def test_what_delta_rs_fails_at_is_one_line(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    adds = files(lake, 1, "a")

    def full(*_: object, **__: object) -> None:
        raise OSError("Generic LocalFileSystem error: No space left on device (os error 28)\nmore\nlines")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", full)
    with pytest.raises(LakeError, match=r"^no space left on the disk at /") as caught:
        commit(lake, TABLE.name, stage="decode", run=1, adds=adds)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_damaged_log_is_one_line(lake: Lake) -> None:
    added(lake, 1, "a")
    added(lake, 2, "b")
    (log(lake) / f"{1:020d}.json").write_text("no JSON\n", encoding="utf-8")
    with pytest.raises(LakeError, match="silver.name in .*: its _delta_log can't be read") as caught:
        Lake(lake.uri).snapshot(TABLE.name)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_all_tables_are_created_at_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    create_tables(lake)
    assert {lake.version(name) for name in TABLES} == {0}
    assert set(lake.unsynced) == set(TABLES)
    assert commits.CHECKPOINT_EVERY == 20
