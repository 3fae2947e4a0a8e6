"""Sorting more rows than memory holds, and the groups of files that are rewritten at once."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.upkeep import compaction
from sharelens.lake.parquet import FILE_BYTES
from sharelens.lake.tables import TABLES

SCHEMA = pa.schema([("group_id", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
ROWS = st.lists(
    st.tuples(st.sampled_from([None, "", "a", "b", "é", "\U0001f600"]), st.integers(-1, 2), st.integers(0, 99)),
    max_size=20,
)
HISTORY = TABLES["gold.share_partition_history"]


def table_of(rows: list[tuple[str | None, int, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    table = pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)
    return table.set_column(0, "group_id", table.column("group_id").dictionary_encode())


@pytest.mark.slow
@given(st.lists(ROWS, max_size=12), st.sampled_from([1, 300, 2000, 1 << 20]), st.integers(1, 8))
def test_rows_come_in_order_however_many_lie_in_files(
    tables: list[list[tuple[str | None, int, int]]], run_bytes: int, piece_rows: int
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        ExitStack() as scratch,
        patch.object(compaction, "MERGED_ROWS", piece_rows),
    ):
        parts = compaction.in_order(map(table_of, tables), SCHEMA.names, scratch, Path(folder), run_bytes)
        result = [tuple(row.values()) for part in parts for row in part.to_pylist()]
    assert result == sorted((row for rows in tables for row in rows), key=compaction.sortable)


def file_of(path: str, size: int, state_partition: int | None, group: str | None = "g") -> dict[str, object]:
    return {"path": path, "size_bytes": size, "min.state_partition": state_partition, "min.group_id": group}


@pytest.mark.parametrize(
    ("files", "groups"),
    [
        ([], []),
        ([file_of("a", 1, 3), file_of("b", 1, 2)], [["b", "a"]]),
        ([file_of("a", FILE_BYTES, 3), file_of("b", 1, 2), file_of("c", 1, None)], [["c", "b"], ["a"]]),
        ([file_of("a", FILE_BYTES, 3), file_of("b", 1, 4), file_of("c", 1, 4, None)], [["a"], ["c", "b"]]),
        ([file_of(str(number), FILE_BYTES // 2, number) for number in range(5)], [["0", "1"], ["2", "3"], ["4"]]),
    ],
)
def test_neighbours_by_key_are_rewritten_together_up_to_a_full_file(
    files: list[dict[str, object]], groups: list[list[str]]
) -> None:
    assert compaction.neighbours(HISTORY, files) == groups
