"""Row groups as units: whole ones by their footers, mixed ones looked into; units in offset order."""

from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from sharelens.kafka_log.dead_letter_records import without_digests
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.lake import parquet
from sharelens.lake import slices as lake_slices
from sharelens.lake.commit import commit, create
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import ParquetSink
from sharelens.lake.slices import BRONZE, Slice, read_partitions, read_unit, slices, take_units, units
from sharelens.lake.tables import TABLES
from tests.logs.log_rows import log_rows

TABLE = TABLES["bronze.log_record"]


def rows(partition: int, offsets: Sequence[int], run: int, cluster_id: str = "c") -> pa.Table:
    """Rows of bronze.log_record."""
    count = len(offsets)
    table = pa.Table.from_batches([without_digests(log_rows([b"k"] * count, [b"v"] * count))])
    for name, values in (("partition", [partition] * count), ("offset", offsets), ("timestamp_ms", offsets)):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(name), pa.array(values, table.schema.field(name).type))
    table = table.append_column("cluster_id", pa.array([cluster_id] * count))
    return table.append_column("run_id", pa.array([run] * count))


def lake_of(tmp_path: Path, *files: Sequence[pa.Table]) -> Path:
    """A lake whose bronze.log_record has these files; each table is a row group."""
    create(Lake(tmp_path), TABLE)
    adds = []
    for groups in files:
        with ParquetSink(Lake(tmp_path), TABLE, constants={}) as sink:
            sink.write_all(groups)
        adds += sink.files
    commit(Lake(tmp_path), TABLE.name, stage="ingest", run=1, adds=adds)
    return tmp_path


def bounds(pieces: Sequence[Slice]) -> list[tuple[int, int, int, bool]]:
    return [(piece.first_offset, piece.last_offset, piece.record_count, piece.mixed) for piece in pieces]


def offsets_of(slices_there: Sequence[Slice]) -> list[list[int]]:
    return [read_unit(unit, LOG_RECORD).column("offset").to_pylist() for unit in units(slices_there)]


def only(slices_there: dict[tuple[str, str, int], list[Slice]], partition: int) -> list[Slice]:
    (pieces,) = [pieces for key, pieces in slices_there.items() if key[2] == partition]
    return pieces


def test_a_row_group_of_one_partition_and_run_is_known_by_its_footer(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [rows(0, range(5), 1), rows(1, range(3), 1)], [rows(0, range(5, 9), 2)])
    slices_there = slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9))
    assert bounds(only(slices_there, 0)) == [(0, 4, 5, False), (5, 8, 4, False)]
    assert bounds(only(slices_there, 1)) == [(0, 2, 3, False)]
    assert [piece.newest_ms for piece in only(slices_there, 0)] == [4, 8]
    assert offsets_of(only(slices_there, 0)) == [[0, 1, 2, 3, 4], [5, 6, 7, 8]]


@pytest.mark.parametrize(
    ("runs", "expected"), [((1, 1), [[0, 1]]), ((2, 2), [[2, 3]]), ((0, 2), [[0, 1], [2, 3]]), ((3, 9), [])]
)
def test_only_the_rows_of_the_runs_asked_for(runs: tuple[int, int], expected: list[list[int]], tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [rows(0, [0, 1], 1)], [rows(0, [2, 3], 2)])
    slices_there = slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=runs)
    assert [group for pieces in slices_there.values() for group in offsets_of(pieces)] == expected


def test_a_row_group_that_a_compaction_mixed_gives_each_partition_its_rows(tmp_path: Path) -> None:
    mixed = pa.concat_tables([rows(0, [4, 0, 2], 1), rows(1, [7], 1), rows(0, [9, 1], 2), rows(0, [3], 1, "other")])
    lake = lake_of(tmp_path, [mixed])
    slices_there = slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(1, 1))
    assert {(key[0], key[2]): bounds(pieces) for key, pieces in slices_there.items()} == {
        ("c", 0): [(0, 4, 3, True)],
        ("c", 1): [(7, 7, 1, True)],
        ("other", 0): [(3, 3, 1, True)],
    }
    all_slices = slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9))
    read = {(key[0], key[2]): offsets_of(pieces) for key, pieces in all_slices.items()}
    assert read == {("c", 0): [[0, 1, 2, 4, 9]], ("c", 1): [[7]], ("other", 0): [[3]]}


def test_slices_that_overlap_are_read_together_and_in_order(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [rows(0, [0, 2, 4], 1), rows(0, [6, 7], 1)], [rows(0, [1, 3], 2)])
    (pieces,) = slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9)).values()
    assert offsets_of(pieces) == [[0, 1, 2, 3, 4], [6, 7]]


def test_only_the_columns_of_the_schema_are_read(tmp_path: Path) -> None:
    for number, group in enumerate(([rows(0, [0, 1], 1)], [pa.concat_tables([rows(0, [0, 1], 1), rows(1, [5], 1)])])):
        lake = lake_of(tmp_path / str(number), group)
        pieces = only(slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9)), 0)
        assert read_unit(pieces, pa.schema([LOG_RECORD.field("offset")])).column_names == ["offset"]


def test_partitions_that_are_not_wanted_are_left_out(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [rows(0, [0], 1), rows(1, [0], 1)])
    chosen = [key for key in slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9)) if key[2] == 1]
    assert list(slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9), only=chosen)) == chosen


def test_a_partition_of_many_row_groups_streams_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 2)
    lake = lake_of(tmp_path, [rows(0, range(7), 1)])
    (pieces,) = slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9)).values()
    assert [len(unit) for unit in units(pieces)] == [1, 1, 1, 1]
    assert offsets_of(pieces) == [[0, 1], [2, 3], [4, 5], [6]]


def test_several_partitions_are_read_at_once_each_in_order(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path,
        [rows(1, [4, 5], 2), pa.concat_tables([rows(2, [1], 1), rows(0, [2, 3], 1), rows(2, [0], 1)])],
        [rows(1, [2, 3], 1), rows(0, [0, 1], 1)],
    )
    slices_there = slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9))
    pieces = [piece for key, key_slices in slices_there.items() if key[2] != 0 for piece in key_slices]
    read = read_partitions(pieces, LOG_RECORD)
    places = zip(*(read.column(name).to_pylist() for name in ("partition", "offset")), strict=True)
    assert list(places) == [(1, 2), (1, 3), (1, 4), (1, 5), (2, 0), (2, 1)]
    assert read.schema == LOG_RECORD


def all_taken(pieces: Sequence[Slice], rows: int) -> list[list[Slice]]:
    waiting, result = deque(units(pieces)), []
    while waiting:
        result.append(take_units(waiting, rows))
    return result


def test_units_are_taken_together_as_far_as_rows_and_values_fit_and_one_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ([rows(0, [first, first + 1], 1) for first in range(0, 12, 2)], [rows(0, [3, 12], 2)])
    (pieces,) = slices(Lake(lake_of(tmp_path, *files)).snapshot(TABLE.name), BRONZE, runs=(0, 9)).values()
    assert [len(unit) for unit in units(pieces)] == [1, 6]
    assert [len(unit) for unit in all_taken(pieces, 4)] == [1, 6]
    in_order = pieces[:2] + pieces[3:]
    assert all_taken(in_order, 4) == [in_order[:2], in_order[2:4], in_order[4:]]
    assert all_taken(in_order, 5) == all_taken(in_order, 4)
    assert all_taken(in_order, 0) == [[piece] for piece in in_order]
    monkeypatch.setattr(lake_slices, "UNIT_ROWS", 6)
    assert all_taken(in_order, 100) == [in_order[:3], in_order[3:]]
    monkeypatch.setattr(lake_slices, "UNIT_VALUES", 3)
    assert all_taken(in_order, 100) == [[piece] for piece in in_order]


def test_a_slice_counts_the_values_of_its_longest_list(tmp_path: Path) -> None:
    headers = pa.array([[(b"n", b"v")] * 5, []], LOG_RECORD.field("headers").type)
    two = rows(0, [0, 1], 1)
    at = two.schema.get_field_index("headers")
    lake = lake_of(tmp_path, [two.set_column(at, two.schema.field(at), headers)])
    assert [piece.value_count for piece in only(slices(Lake(lake).snapshot(TABLE.name), BRONZE, runs=(0, 9)), 0)] == [6]
