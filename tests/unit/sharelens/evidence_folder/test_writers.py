"""Canonical files: the same rows give the same bytes however they come in pieces, and say what the rows say."""

import csv
import json
import os
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence_folder import writers
from sharelens.evidence_folder.writers import FORMATS, TableFiles, guarded, sorted_rows

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("open", pa.bool_()),
        pa.field("key", pa.binary()),
        pa.field("batches", pa.list_(pa.struct([pa.field("first_offset", pa.int64())]))),
    ]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
            "offset": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
            "open": st.none() | st.booleans(),
            "key": st.none() | st.binary(max_size=4),
            "batches": st.none() | st.lists(st.fixed_dictionaries({"first_offset": st.integers(0, 9)}), max_size=2),
        }
    ),
    max_size=12,
)


def written(folder: Path, parts: list[pa.Table]) -> dict[str, bytes]:
    folder.mkdir()
    with TableFiles(folder, "t", SCHEMA) as files:
        for part in parts:
            files.write(part)
    assert files.record_count == sum(part.num_rows for part in parts)
    return {form: (folder / f"t.{form}").read_bytes() for form in FORMATS}


@pytest.mark.slow
@given(rows=ROWS, cuts=st.lists(st.integers(0, 12), max_size=3), group_rows=st.integers(1, 5))
def test_pieces_leave_no_trace_in_the_bytes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], cuts: list[int], group_rows: int
) -> None:
    folder = tmp_path_factory.mktemp("written")
    full_table = pa.Table.from_pylist(rows, schema=SCHEMA)
    bounds = [0, *sorted(cut for cut in cuts if cut <= len(rows)), len(rows)]
    parts = [full_table.slice(begin, end - begin) for begin, end in pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writers, "GROUP_ROWS", group_rows)
        together = written(folder / "one", [full_table])
        assert written(folder / "two", parts) == together
    assert pq.read_table(folder / "one" / "t.parquet").to_pylist() == rows
    hexed = [{**row, "key": None if row["key"] is None else bytes(row["key"]).hex()} for row in rows]  # type: ignore[call-overload]
    assert json.loads(together["json"]) == hexed


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_a_guarded_cell_begins_no_formula_and_is_told_back_exactly(text: str) -> None:
    cell = guarded(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert cell.removeprefix("'") == text


def test_csv_tells_null_from_the_empty_text_and_reads_back(tmp_path: Path) -> None:
    values = [None, "", 'a "b",\nc', -1, True, [{"first_offset": 1}], "=1+1"]
    table = pa.table({f"c{place}": [value] for place, value in enumerate(values)})
    with TableFiles(tmp_path, "t", table.schema) as files:
        files.write(table)
    text = (tmp_path / "t.csv").read_text(encoding="utf-8")
    head, line = text.split("\n", 1)
    assert head == '"c0","c1","c2","c3","c4","c5","c6"'
    assert line == ',"","a ""b"",\nc",-1,true,"[{""first_offset"": 1}]","\'=1+1"\n'
    (cells,) = csv.reader([line.replace("\n", " ").rstrip()])
    assert cells[2:] == ['a "b", c', "-1", "true", '[{"first_offset": 1}]', "'=1+1"]


def test_files_are_for_their_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    written(tmp_path / "one", [SCHEMA.empty_table()])
    assert {os.stat(tmp_path / "one" / f"t.{form}").st_mode & 0o777 for form in FORMATS} == {0o600}
    with pytest.raises(FileExistsError), TableFiles(tmp_path / "one", "t", SCHEMA):
        raise AssertionError("opened")


def test_text_that_comes_as_a_dictionary_is_written_as_text(tmp_path: Path) -> None:
    plain = pa.table({"name": pa.array(["a", None, "a"])})
    encoded = pa.table({"name": plain.column("name").dictionary_encode()})
    bytes_of = []
    for number, table in enumerate((plain, encoded)):
        (tmp_path / str(number)).mkdir()
        with TableFiles(tmp_path / str(number), "t", table.schema) as files:
            files.write(table)
        bytes_of.append([(tmp_path / str(number) / f"t.{form}").read_bytes() for form in FORMATS])
    assert bytes_of[0] == bytes_of[1]


def test_rows_have_one_order_whatever_order_they_come_in() -> None:
    table = pa.table({"a": [2, 1, 1], "b": ["x", None, "y"], "c": [[1], [2], [3]]})
    assert sorted_rows(table).to_pylist() == sorted_rows(table.take([2, 1, 0])).to_pylist()
