"""Data files as an Arrow dataset: statistics leave out files that hold no match, and never one that does."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sharelens.lake import snapshot
from sharelens.lake.locations import resolve
from sharelens.lake.snapshot import Snapshot
from sharelens.lake.tables import Table

SCHEMA = pa.schema([("is_open", pa.bool_()), ("word", pa.string()), ("number", pa.int64())])
ROWS: dict[str, list[tuple[str | None, int | None]]] = {
    "is_open=true/a": [("a", 1), ("b", 2)],
    "is_open=false/b": [("c", None), (None, 5)],
    "is_open=false/c": [(None, None)],
}


def files(root: Path, *, stats: bool) -> list[dict[str, Any]]:
    """What is told of the files, which are written."""
    files_there = []
    for path, rows in ROWS.items():
        table = pa.Table.from_pylist(
            [{"word": word, "number": number} for word, number in rows], schema=SCHEMA.remove(0)
        )
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / path)
        action: dict[str, Any] = {"path": path, "num_records": len(rows), "partition.is_open": path.split("/")[0][8:]}
        for name in ("word", "number") if stats else ():
            bounds = pc.min_max(table.column(name)).as_py()
            action |= {f"min.{name}": bounds["min"], f"max.{name}": bounds["max"]}
            action[f"null_count.{name}"] = table.column(name).null_count
        files_there.append(action)
    return files_there


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(name="gold.word", comment="words", schema=SCHEMA, key=(), clustering=())
    monkeypatch.setitem(snapshot.TABLES, table.name, table)


def snapshot_of(root: Path, content: list[dict[str, Any]]) -> Snapshot:
    return Snapshot(table="gold.word", version=1, schema_version=1, storage=resolve(root), files=tuple(content))


@pytest.mark.parametrize("stats", [True, False], ids=["action", "unknown"])
@pytest.mark.parametrize(
    ("where", "near"),
    [
        (pc.field("number") == 2, "a"),
        (pc.field("number") >= 5, "b"),
        (pc.field("number").is_null(), "bc"),
        (pc.field("word") == "c", "b"),
        (pc.field("word").is_null(), "bc"),
        (pc.field("is_open"), "a"),
        (~pc.field("is_open") & (pc.field("word") > "b"), "b"),
        (pc.field("word") == "x", ""),
    ],
    ids=str,
)
def test_a_condition_finds_its_rows_and_opens_no_other_file(
    where: pc.Expression, near: str, *, stats: bool, tmp_path: Path
) -> None:
    dataset = snapshot_of(tmp_path, files(tmp_path, stats=stats)).dataset()
    rows = [(path.startswith("is_open=true"), *row) for path, content in ROWS.items() for row in content]
    full_table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(SCHEMA.names)}, schema=SCHEMA)
    assert dataset.to_table(filter=where).sort_by("number").equals(full_table.filter(where).sort_by("number"))
    opened = "".join(sorted(fragment.path[-1] for fragment in dataset.get_fragments(filter=where)))
    assert opened == near if stats else set(near) <= set(opened)


def test_text_is_read_as_dictionaries_where_it_is_asked_for(tmp_path: Path) -> None:
    rows = snapshot_of(tmp_path, files(tmp_path, stats=True)).dataset(["word"]).to_table()
    assert rows.schema.field("word").type == pa.dictionary(pa.int32(), pa.string())
    assert sorted(rows.column("word").to_pylist(), key=str) == [None, None, "a", "b", "c"]


def test_no_files_are_no_rows(tmp_path: Path) -> None:
    empty = snapshot_of(tmp_path, [])
    assert empty.dataset().to_table().equals(SCHEMA.empty_table())
    assert empty.rows(["word"]).equals(SCHEMA.empty_table().select(["word"]))


def test_a_snapshot_travels_as_its_fields_and_reads_the_same_where_it_arrives(tmp_path: Path) -> None:
    sent = snapshot_of(tmp_path, files(tmp_path, stats=True))
    before = len(pickle.dumps(sent))
    rows = sent.dataset().to_table()
    assert sent.row_groups(np.array([0])).count == len(ROWS)
    arrived = pickle.loads(pickle.dumps(sent))
    assert (arrived, len(pickle.dumps(sent))) == (sent, before)
    assert arrived.rows().equals(rows)
    with pytest.raises(AttributeError):
        arrived.version = 2


def test_sums_and_bounds_come_from_the_statistics(tmp_path: Path) -> None:
    content = [{**file, "size_bytes": 10} for file in files(tmp_path, stats=True)]
    sent = snapshot_of(tmp_path, content)
    assert (sent.record_count, sent.size_bytes, sent.largest("number"), sent.largest("nothing")) == (5, 30, 5, None)


@pytest.mark.parametrize(("words", "is_known"), [(["a", "a"], True), (["a", None], False), (["a", "b"], False)])
def test_a_column_with_one_value_in_a_file_needs_no_comparison(
    tmp_path: Path, words: list[str | None], is_known: bool
) -> None:
    table = pa.table({"word": pa.array(words, pa.string()), "number": pa.array([1, 2], pa.int64())})
    (tmp_path / "is_open=true").mkdir()
    pq.write_table(table, tmp_path / "is_open=true" / "d")
    bounds = pc.min_max(table.column("word")).as_py()
    file = {"path": "is_open=true/d", "num_records": 2, "partition.is_open": "true"}
    file |= {"min.word": bounds["min"], "max.word": bounds["max"], "null_count.word": table.column("word").null_count}
    dataset = snapshot_of(tmp_path, [file]).dataset()
    (fragment,) = dataset.get_fragments()
    assert ('word == "a"' in str(fragment.partition_expression)) is is_known
    files_there = dataset.to_table(columns=["number"], filter=pc.field("word") == "a").column("number").to_pylist()
    assert files_there == [number for number, word in enumerate(words, 1) if word == "a"]


@pytest.mark.parametrize(
    ("rows", "value", "expected"),
    [
        ([["a", "a"], ["a"]], "a", True),
        ([["a", "a"], ["b"]], "a", False),
        ([["a", None], ["a"]], "a", False),
        ([[None]], "a", False),
        ([], "a", True),
    ],
)
def test_a_value_is_the_only_one_where_statistics_of_all_files_say_so(
    rows: list[list[str | None]], value: str, expected: bool, tmp_path: Path
) -> None:
    content = []
    for number, words in enumerate(rows):
        non_null_words = sorted(word for word in words if word is not None)
        statistics = {"min.word": non_null_words[0], "max.word": non_null_words[-1]} if non_null_words else {}
        content.append({"path": str(number), "null_count.word": words.count(None), **statistics})
    assert snapshot_of(tmp_path, content).has_only("word", value) is expected


def test_without_statistics_no_value_is_known_to_be_the_only_one(tmp_path: Path) -> None:
    assert not snapshot_of(tmp_path, [{"path": "a"}]).has_only("word", "a")
