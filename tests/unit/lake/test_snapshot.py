"""A table as its log tells it: what delta-rs reads, at every version, however the log goes on."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lake import delta
from lake.snapshot import NOTHING, by_delta_rs, checkpointed, following
from lake.tables import TABLES

TABLE = TABLES["gold.delivery_history"]
APPLICATIONS = ("replay", "maintain", "nobody")


def file(number: int, *, is_open: bool = False) -> delta.DataFile:
    """A file that is told of, whether it is there or not."""
    stats = {
        "numRecords": number + 1,
        "minValues": {"group_id": "ä", "first_offset": -number, "valid_from_time": "2026-01-01T00:00:00.000Z"},
        "maxValues": {"group_id": "\U0010ffff", "first_offset": number, "valid_from_time": "2026-01-02T00:00:00.000Z"},
        "nullCount": {"group_id": 0, "first_offset": 1, "valid_from_time": 0},
    }
    folder = f"is_open={str(is_open).lower()}"
    return delta.DataFile(
        path=f"{folder}/{number}.parquet",
        size_bytes=number,
        stats=stats,
        partition_values=delta.partition_values(f"{folder}/"),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of some versions: files come and go, two applications commit."""
    found = delta.table_path(tmp_path, TABLE.name)
    delta.create(found, TABLE)
    for run in range(1, 6):
        gone = [file(run - 1).path] if run in (3, 5) else []
        delta.commit(
            found, operation="replay", txn=("replay", run), adds=[file(run), file(run + 50, is_open=True)], removes=gone
        )
    delta.commit(found, operation="maintain", txn=("maintain", 9), adds=[file(99)], removes=[file(1).path])
    return found


def told(path: Path, version: int | None) -> list[dict[str, Any]]:
    """What delta-rs tells of the files, in the words of a snapshot."""
    rows = pa.table(DeltaTable(path, version=version).get_add_actions(flatten=True)).to_pylist()
    return sorted(map(known, rows), key=lambda row: str(row["path"]))


def known(row: dict[str, Any]) -> dict[str, Any]:
    names = ("path", "size_bytes", "num_records", "min.group_id", "max.first_offset", "null_count.first_offset")
    return {name: row.get(name) for name in names}


def assert_read(path: Path, version: int | None = None) -> None:
    found, opened = delta.snapshot(path, version), DeltaTable(path, version=version)
    rows = sorted(map(known, found.files.values()), key=lambda row: str(row["path"]))
    assert rows == told(path, version)
    assert found.configuration == opened.metadata().configuration
    assert {name: found.transaction(name) for name in APPLICATIONS} == {
        name: opened.transaction_version(name) for name in APPLICATIONS
    }


def more(path: Path, count: int) -> None:
    for run in range(100, 100 + count):
        delta.commit(path, operation="replay", txn=("replay", run), adds=[file(run)])


def forget() -> None:
    """As a process that has read nothing yet."""
    delta._Log.of.cache_clear()


@pytest.mark.parametrize("order", [(0, 3, 6), (6, 3, 0), (3, 6, 3)], ids=["rising", "falling", "there and back"])
def test_each_version_is_what_delta_rs_reads_in_whatever_order_they_are_asked_for(
    path: Path, order: tuple[int, ...]
) -> None:
    forget()
    for version in order:
        assert_read(path, version)
    assert_read(path)


def test_a_log_that_goes_on_is_read_from_where_it_was_read_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_read(path)
    more(path, 1)
    for number in range(6):
        delta.commit_file(path, number).write_text("", encoding="utf-8")
    monkeypatch.delattr(delta, "by_delta_rs")
    found = delta.snapshot(path)
    assert (found.transaction("replay"), found.transaction("maintain")) == (100, 9)
    assert file(100).path in found.files


def test_a_long_log_begins_with_its_checkpoint(path: Path) -> None:
    more(path, 2 * delta.CHECKPOINT_EVERY)
    forget()
    for number in range(delta.CHECKPOINT_EVERY):
        delta.commit_file(path, number).unlink()
    assert_read(path)
    assert_read(path, delta.CHECKPOINT_EVERY + 1)
    more(path, 1)
    assert_read(path)
    forget()
    assert_read(path)


def test_a_checkpoint_that_goes_takes_nothing_with_it_that_was_read(path: Path) -> None:
    more(path, delta.CHECKPOINT_EVERY)
    forget()
    assert_read(path)
    for checkpoint in (path / "_delta_log").glob(f"*.{delta.CHECKPOINT}"):
        checkpoint.unlink()
    assert delta.snapshot(path).transaction("nobody") is None
    assert delta.snapshot(path).transaction("maintain") == 9


def test_a_checkpoint_that_tells_statistics_in_columns_is_left_to_delta_rs(tmp_path: Path) -> None:
    held = {name: [None] for name in ("txn", "metaData", "protocol")}
    for names, known in ((("path",), True), (("path", "stats_parsed"), False)):
        kind = pa.struct([(name, pa.string()) for name in names])
        pq.write_table(pa.table({"add": pa.array([None], kind), **held}), tmp_path / "one.parquet")
        assert (checkpointed(tmp_path / "one.parquet") is not None) == known


def test_a_newest_commit_that_was_taken_back_is_not_believed(path: Path) -> None:
    assert_read(path)
    delta.commit_file(path, delta.latest_version(path)).unlink()
    assert delta.latest_version(path) == 5
    assert_read(path)
    delta.commit(path, operation="replay", txn=("replay", 77))
    assert_read(path)


def test_a_table_in_the_place_of_another_is_read_anew(path: Path) -> None:
    assert_read(path)
    files = sorted((path / "_delta_log").iterdir())
    texts = [one.read_bytes() for one in files]
    for one in files:
        one.unlink()
    for one, text in zip(files, texts, strict=True):
        one.write_bytes(text.replace(b'"appId": "replay"', b'"appId": "nobody"'))
    assert_read(path)
    assert delta.snapshot(path).transaction("nobody") == 5


@pytest.mark.parametrize(
    "action",
    [
        {"add": {"path": "a%20b.parquet", "size": 1, "partitionValues": {}}},
        {"remove": {"path": "a%20b.parquet"}},
        {"add": {"path": "a.parquet", "size": 1, "partitionValues": {}, "deletionVector": {"storageType": "u"}}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}},
    ],
    ids=["escaped", "escaped and gone", "rows left out", "newer readers alone"],
)
def test_what_is_not_known_here_is_left_to_delta_rs(action: dict[str, Any]) -> None:
    assert following(NOTHING, ["", '{"txn": {"appId": "a", "version": 1}}']) is not None
    assert following(NOTHING, [json.dumps(action)]) is None


def test_a_table_that_asks_more_of_a_reader_is_refused(path: Path) -> None:
    features = ["deletionVectors"]
    action = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    delta.commit(path, operation="alter", txn=("alter", 1), alteration=[{"protocol": action}])
    for read in (delta.snapshot, lambda of: by_delta_rs(of, None)):
        with pytest.raises(DeltaError, match="deletionVectors"):
            read(path)


def test_a_log_that_can_not_be_read_says_so_as_delta_rs_does(path: Path) -> None:
    forget()
    delta.commit_file(path, 3).write_text("no JSON\n", encoding="utf-8")
    with pytest.raises(DeltaError):
        delta.snapshot(path)


def test_statistics_that_are_not_told_are_none() -> None:
    bare = {"add": {"path": "a.parquet", "size": 1, "partitionValues": {}}}
    found = following(NOTHING, [json.dumps(bare)])
    assert found is not None
    assert found.files == {"a.parquet": {"path": "a.parquet", "size_bytes": 1, "num_records": None}}
