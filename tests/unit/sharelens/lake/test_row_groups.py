from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.lake.commit import commit, create
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import ParquetSink, conform
from sharelens.lake.row_groups import joined
from sharelens.lake.tables import TABLES

TABLE = "gold.redelivered_record"
SCHEMA = pa.schema([field for field in TABLES[TABLE].schema if field.name != "is_final"])
ROWS = st.lists(st.tuples(st.sampled_from(["a", "g", "z"]), st.integers(0, 5), st.integers(0, 99)), max_size=12)
FILES = st.lists(st.tuples(st.booleans(), st.lists(ROWS, min_size=1, max_size=3)), max_size=3)
ALL = np.arange(100)
COLUMNS = ["group_id", "state_partition", "last_offset", "is_final"]


def rows_of(rows: list[tuple[str, int, int]]) -> pa.Table:
    values = {
        "group_id": pa.array([group for group, _, _ in rows], pa.string()),
        "state_partition": pa.array([number for _, number, _ in rows], pa.int32()),
        "last_offset": pa.array([last for _, _, last in rows], pa.int64()),
    }
    blank = {pa.string(): "", pa.bool_(): False}
    default_values = {f.name: None if f.nullable and f.type != pa.string() else blank.get(f.type, 0) for f in SCHEMA}
    return conform(
        pa.table(values), SCHEMA, {name: value for name, value in default_values.items() if name not in values}
    )


def write(lake: Path, files: list[tuple[bool, list[list[tuple[str, int, int]]]]]) -> None:
    """Files of the table, each with a row group for every list of rows."""
    create(Lake(lake), TABLES[TABLE])
    adds = []
    for final, groups in files:
        values = {"is_final": str(final).lower()}
        with ParquetSink(Lake(lake), TABLES[TABLE], constants={}, partition_values=values) as sink:
            for rows in groups:
                sink.write(rows_of(rows))
        adds += sink.files
    commit(Lake(lake), TABLE, stage="test", run=1, adds=adds)


def as_set(rows: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in rows.to_pylist())


@pytest.mark.slow
@given(FILES, st.integers(0, 5), st.integers(0, 99))
def test_what_statistics_leave_holds_every_row_that_is_asked_for(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[bool, list[list[tuple[str, int, int]]]]],
    number: int,
    least: int,
) -> None:
    lake = tmp_path_factory.mktemp("lake")
    write(lake, files)
    groups = Lake(lake).snapshot(TABLE).row_groups(np.array([number]))
    numbers, lasts = groups.integers("state_partition"), groups.integers("last_offset")
    chosen = (
        (numbers.low <= number)
        & (numbers.high >= number)
        & (lasts.high >= least)
        & groups.may_hold("group_id", "g", "g")
    )
    read = [groups.schema(COLUMNS).empty_table(), *groups.read(chosen, COLUMNS)]
    condition = (
        (pc.field("state_partition") == number) & (pc.field("last_offset") >= least) & (pc.field("group_id") == "g")
    )
    expected = Lake(lake).snapshot(TABLE).dataset().to_table(columns=COLUMNS, filter=condition)
    assert as_set(pa.concat_tables(read).filter(condition)) == as_set(expected)


def test_row_groups_that_statistics_exclude_are_not_chosen(tmp_path: Path) -> None:
    write(tmp_path, [(True, [[("a", 1, 10), ("b", 1, 20)], [("c", 2, 30)]]), (False, [[("d", 2, 40)]])])
    groups = Lake(tmp_path).snapshot(TABLE).row_groups(ALL)
    read = {
        text: [rows.num_rows for rows in groups.read(groups.may_hold("group_id", text, text), COLUMNS)]
        for text in "abcde"
    }
    assert read == {"a": [2], "b": [2], "c": [1], "d": [1], "e": []}
    assert sorted(groups.integers("last_offset").low.tolist()) == [10, 30, 40]


def test_files_without_the_state_partitions_are_not_opened(tmp_path: Path) -> None:
    write(tmp_path, [(True, [[("a", 1, 10)], [("b", 2, 20)]]), (True, [[("c", 3, 30)]]), (True, [[("d", 5, 40)]])])
    snapshot = Lake(tmp_path).snapshot(TABLE)
    damaged = next(file for file in snapshot.files if file["max.state_partition"] == 3)
    (tmp_path / "gold" / "redelivered_record" / damaged["path"]).write_bytes(b"")
    groups = snapshot.row_groups(np.array([2, 4, 5]))
    assert sorted(groups.integers("last_offset").low.tolist()) == [10, 20, 40]


def test_a_column_of_nulls_has_no_values_between_its_bounds(tmp_path: Path) -> None:
    write(tmp_path, [(True, [[("a", 1, 10)]])])
    bounds = Lake(tmp_path).snapshot(TABLE).row_groups(ALL).integers("earlier_life_log_offset")
    assert (bounds.low > bounds.high).all()
    assert bounds.nulls.all()


def test_text_is_read_as_dictionaries_where_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, [(True, [[("a", 1, 10)], [("b", 2, 20)]])])
    groups = Lake(tmp_path).snapshot(TABLE).row_groups(ALL)
    (rows,) = groups.read(np.ones(groups.count, np.bool_), ["group_id", "is_final"], ["group_id"])
    assert pa.types.is_dictionary(rows.schema.field("group_id").type)
    assert rows.to_pylist() == [{"group_id": "a", "is_final": True}, {"group_id": "b", "is_final": True}]


@given(st.lists(st.integers(0, 3), max_size=8), st.integers(1, 5))
def test_neighbouring_tables_come_together_and_none_is_empty(sizes: list[int], least: int) -> None:
    numbers = iter(range(sum(sizes)))
    tables = [pa.table({"n": pa.array([next(numbers) for _ in range(size)], pa.int64())}) for size in sizes]
    together = list(joined(tables, least))
    assert [number for table in together for number in table.column("n").to_pylist()] == list(range(sum(sizes)))
    assert all(table.num_rows >= least for table in together[:-1])
    assert all(table.num_rows for table in together)
