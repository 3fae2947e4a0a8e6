"""Files of a table: exact columns, guarded times, honest statistics, nothing left behind by a failure."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.schemas import NAME
from sharelens.lake import parquet
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import FIRST_MS, LAST_MS, ParquetSink, conform, guarded_time, write_rows
from sharelens.lake.tables import TABLES, TIME
from state_model.columnar.schemas import TEXT

TABLE = TABLES["silver.name"]
CONSTANTS = {"cluster_id": "c", "run_id": 7}


def names(*topics: str, valid_from_ms: int | None = None) -> pa.Table:
    rows = [{"topic_id": t, "topic": t, "source": "topic_names", "valid_from_ms": valid_from_ms} for t in topics]
    return pa.Table.from_pylist(rows, schema=NAME)


def test_columns_come_in_the_tables_order_with_its_types_and_constants() -> None:
    shuffled = names("b").select(["topic", "source", "valid_from_ms", "topic_id"])
    conformed = conform(shuffled, TABLE.schema, CONSTANTS)
    assert conformed.schema.field("cluster_id").type == TEXT  # one value in every row: written as a dictionary of one
    plain = conformed.cast(TABLE.schema)
    assert plain.to_pylist()[0]["cluster_id"] == "c"
    assert plain.drop_columns(["cluster_id"]).schema == conformed.drop_columns(["cluster_id"]).schema


def test_text_is_written_the_same_whether_it_comes_encoded_or_not(tmp_path: Path) -> None:
    plain = names("b", "a", "b")
    index = plain.schema.get_field_index("topic")
    encoded = plain.set_column(index, "topic", plain.column("topic").dictionary_encode())
    with ParquetSink(Lake(tmp_path), TABLE, constants={}) as sink:
        sink.write(plain, **CONSTANTS)
        sink.write(encoded, **CONSTANTS)
    (file,) = sink.files
    table = pq.read_table(Lake(tmp_path).table_storage(TABLE.name).path / file.path)
    assert table.schema.field("topic").type == pa.string()
    assert table.slice(0, 3).equals(table.slice(3))
    assert (file.stats["minValues"]["topic"], file.stats["maxValues"]["topic"]) == ("a", "b")


def test_few_rows_share_a_row_group_and_many_have_their_own(tmp_path: Path) -> None:
    many = names(*(f"topic {number:0600}" for number in range(2000)))
    with ParquetSink(Lake(tmp_path), TABLE, constants=CONSTANTS) as sink:
        for rows in (names("a"), names("b"), many, names("c"), names(), names("d")):
            sink.write_together(rows)
    (file,) = sink.files
    written = pq.ParquetFile(Lake(tmp_path).table_storage(TABLE.name).path / file.path)
    assert [written.metadata.row_group(at).num_rows for at in range(written.num_row_groups)] == [2, 2000, 2]
    assert written.read(["topic"]).column("topic").to_pylist()[:2] == ["a", "b"]


def test_a_missing_column_and_a_value_that_does_not_fit_are_refused() -> None:
    with pytest.raises(KeyError):
        conform(names("a").drop_columns(["topic"]), TABLE.schema, CONSTANTS)
    schema = pa.schema([pa.field("partition", pa.int32())])
    with pytest.raises(pa.ArrowInvalid):
        conform(pa.table({"partition": [1 << 40]}), schema)


@given(st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([FIRST_MS - 1, FIRST_MS, LAST_MS, LAST_MS + 1, 0, -1]))
def test_times_are_null_outside_the_years_that_can_be_shown(millis: int) -> None:
    (shown,) = guarded_time(pa.chunked_array([[millis]], pa.int64())).to_pylist()
    if FIRST_MS <= millis <= LAST_MS:
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        assert (shown - epoch) // dt.timedelta(milliseconds=1) == millis
    else:
        assert shown is None


def test_every_time_of_a_gold_table_stands_beside_its_milliseconds() -> None:
    time_field_count = 0
    for table in TABLES.values():
        for field in table.schema:
            if field.type == TIME:
                time_field_count += 1
                beside = {f"{field.name.removesuffix('_time')}_ms", f"{field.name}_ms"} & set(table.schema.names)
                assert [table.schema.field(name).type for name in beside] == [pa.int64()]
    assert time_field_count >= 5


def test_rows_go_into_files_of_about_the_size_asked_for(tmp_path: Path) -> None:
    with ParquetSink(Lake(tmp_path), TABLE, constants=CONSTANTS, file_bytes=1) as sink:
        sink.write_all([names("b"), names(), names("a", "c")])
    assert [file.record_count for file in sink.files] == [1, 2]
    assert sink.record_count == 3
    for file in sink.files:
        path = Lake(tmp_path).table_storage(TABLE.name).path / file.path
        assert path.stat().st_size == file.size_bytes
        assert path.stat().st_mode & 0o777 == 0o600
        assert pq.read_table(path).schema.names == TABLE.schema.names


def test_a_partition_value_is_in_the_path_and_not_in_the_file(tmp_path: Path) -> None:
    table = TABLES["gold.delivery_history"]
    row: dict[str, Any] = {field.name: None for field in table.schema}
    row |= {field.name: 0 for field in table.schema if pa.types.is_integer(field.type)}
    row |= {field.name: "x" for field in table.schema if pa.types.is_string(field.type)}
    rows = pa.Table.from_pylist([row], schema=pa.schema([f.with_nullable(True) for f in table.schema]))
    with ParquetSink(Lake(tmp_path), table, constants={}, partition_values={"is_open": "true"}) as sink:
        sink.write(rows)
    (file,) = sink.files
    assert file.path.startswith("is_open=true/")
    assert "is_open" not in pq.read_schema(Lake(tmp_path).table_storage(table.name).path / file.path).names


def broken_writer(lake: Path) -> None:
    with ParquetSink(Lake(lake), TABLE, constants=CONSTANTS) as sink:
        sink.write(names("a"))
        raise ZeroDivisionError


def test_a_writer_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        broken_writer(tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    assert write_rows(Lake(tmp_path), TABLE, names(), CONSTANTS) == []
    with ParquetSink(Lake(tmp_path), TABLE, constants=CONSTANTS) as sink:
        sink.write(names())
    assert sink.files == []


def test_written_rows_are_sorted_by_the_clustering_columns(tmp_path: Path) -> None:
    (file,) = write_rows(Lake(tmp_path), TABLE, names("c", "a", "b"), CONSTANTS)
    table = pq.read_table(Lake(tmp_path).table_storage(TABLE.name).path / file.path)
    assert table.column("topic_id").to_pylist() == ["a", "b", "c"]


def statistics_of(tmp_path: Path, rows: pa.Table) -> dict[str, Any]:
    (file,) = write_rows(Lake(tmp_path), TABLE, rows, CONSTANTS)
    return file.stats


def test_statistics_are_the_smallest_and_largest_value_of_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 2)
    rows = pa.concat_tables([names("b", "a", valid_from_ms=5), names("d", "c", valid_from_ms=-5), names("e")])
    stats = statistics_of(tmp_path, rows)
    assert stats["numRecords"] == 5
    assert (stats["minValues"]["topic"], stats["maxValues"]["topic"]) == ("a", "e")
    assert (stats["minValues"]["valid_from_ms"], stats["maxValues"]["valid_from_ms"]) == (-5, 5)
    assert (stats["minValues"]["run_id"], stats["nullCount"]["valid_from_ms"]) == (7, 1)


LAST = "\U0010ffff"


@pytest.mark.parametrize("long", ["x" * 33, "ü" * 40, "x" * 32 + LAST * 9, LAST * 40, "x" * 32767, LAST * 8191])
def test_long_text_has_bounds_around_it(long: str, tmp_path: Path) -> None:
    stats = statistics_of(tmp_path, names("b", long))
    assert stats["minValues"]["topic"] <= min("b", long)
    assert stats["maxValues"]["topic"] >= max("b", long)
    assert stats["minValues"]["run_id"] == 7


def test_short_statistics_stand_for_long_text(tmp_path: Path) -> None:
    stats = statistics_of(tmp_path, names("a" * 1000, "b" * 1000))
    assert (len(stats["minValues"]["topic"]), len(stats["maxValues"]["topic"])) == (32, 33)
