"""Scans that read few row groups at once, and no more of a file than a question needs."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given
from hypothesis import strategies as st

from sharelens.lake.bounded_scan import BoundedDataset, row_counts, tables, tables_in_order
from tests.depths import in_soak

ORDER = ["state_partition", "log_offset"]
GROUP_ROWS, GROUPS = 8_000, 50
LAST_GROUP = GROUP_ROWS * (GROUPS - 1)
PLACES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), unique=True, max_size=40)


class CountingFileSystem(LocalFileSystem):
    """A local file system that counts the bytes that are read."""

    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.bytes_read = 0

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        file = super()._open(path, mode, **options)
        plain = file.f.read

        def read(*arguments: int) -> bytes:
            content: bytes = plain(*arguments)
            self.bytes_read += len(content)
            return content

        file.read = read
        return file


def rows(places: list[tuple[int, int]]) -> pa.Table:
    columns = zip(*places, strict=True) if places else ([], [])
    return pa.table(dict(zip(ORDER, (pa.array(column, pa.int64()) for column in columns), strict=True)))


def split(table: pa.Table, cuts: list[int]) -> Iterator[pa.Table]:
    for first, end in itertools.pairwise(sorted({0, *(cut % (table.num_rows + 1) for cut in cuts), table.num_rows})):
        yield table.slice(first, end - first)


@given(PLACES, st.lists(st.integers(0, 40), max_size=6), st.integers(1, 3), st.booleans())
def test_rows_come_in_order_whatever_row_group_they_lie_in(
    tmp_path_factory: pytest.TempPathFactory,
    places: list[tuple[int, int]],
    cuts: list[int],
    files: int,
    is_sorted: bool,
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for number in range(files):
        file_rows = rows(sorted(places[number::files]) if is_sorted else places[number::files])
        with pq.ParquetWriter(folder / f"{number}.parquet", file_rows.schema) as writer:
            for part in split(file_rows, cuts):
                writer.write_table(part)
    dataset = ds.dataset(folder, schema=rows([]).schema)
    for where, expected in ((None, places), (pc.field("state_partition") == 1, [p for p in places if p[0] == 1])):
        parts = [part.to_pylist() for part in tables_in_order(dataset, ORDER, ORDER, where)]
        assert all(parts)
        assert [tuple(row.values()) for part in parts for row in part] == sorted(expected)
        assert sum(part.num_rows for part in tables(dataset, ORDER, where)) == len(expected)


@pytest.fixture
def counted(tmp_path: Path) -> tuple[ds.FileSystemDataset, CountingFileSystem, int]:
    """A dataset of one file with GROUPS row groups, ten share partitions in turn, and the size of the file."""
    count = GROUP_ROWS * GROUPS
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "state_partition": pa.array(np.zeros(count), pa.int32()),
            "log_offset": np.arange(count),
            "group_id": [f"g{row // GROUP_ROWS % 10}" for row in range(count)],
            "value": random.integers(0, 1 << 62, count),
        }
    )
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=GROUP_ROWS)
    system = CountingFileSystem()
    dataset = ds.dataset(str(path), filesystem=pafs.PyFileSystem(pafs.FSSpecHandler(system)))
    assert isinstance(dataset, ds.FileSystemDataset)
    return dataset, system, path.stat().st_size


Counted = tuple[ds.FileSystemDataset, CountingFileSystem, int]


@pytest.mark.slow
def test_who_stops_early_has_read_the_first_row_groups_alone(counted: Counted) -> None:
    dataset, system, size = counted
    first = next(tables_in_order(dataset, ORDER, dataset.schema.names))
    assert first.column("log_offset").to_pylist() == list(range(GROUP_ROWS))
    assert 0 < system.bytes_read < size / 5


@pytest.mark.slow
def test_row_groups_that_statistics_exclude_are_not_read(counted: Counted) -> None:
    dataset, system, size = counted
    where = pc.field("group_id") == "g3"
    read_tables = pa.concat_tables(list(tables_in_order(dataset, ORDER, dataset.schema.names, where)))
    assert read_tables.num_rows == GROUP_ROWS * GROUPS // 10
    assert 0 < system.bytes_read < size / 3
    before = system.bytes_read
    assert sum(part.num_rows for part in tables(dataset, dataset.schema.names, where)) == read_tables.num_rows
    assert system.bytes_read - before < size / 3


@pytest.mark.slow
def test_a_choice_sees_the_bounds_of_each_row_group_and_leaves_out_what_it_does_not_need(counted: Counted) -> None:
    dataset, system, size = counted
    read_tables = tables_in_order(
        dataset, ORDER, ORDER, choice=lambda groups: [bounds["log_offset"].low >= LAST_GROUP for bounds in groups]
    )
    offsets = pa.concat_tables(list(read_tables)).column("log_offset").to_pylist()
    assert offsets == list(range(LAST_GROUP, LAST_GROUP + GROUP_ROWS))
    assert system.bytes_read < size / 5


@pytest.mark.slow
def test_a_bounded_dataset_has_the_same_rows(counted: Counted) -> None:
    dataset, _, _ = counted
    where = pc.field("log_offset") >= LAST_GROUP + 7
    for columns in (None, ["value"]):
        bounded = BoundedDataset.of(dataset).scanner(columns=columns, filter=where).to_table()
        assert bounded.equals(dataset.to_table(columns=columns, filter=where))


MEMORY = """
import resource, sys
import pyarrow.dataset as ds
from sharelens.lake.bounded_scan import tables, tables_in_order
dataset = ds.dataset(sys.argv[2])
if sys.argv[1] == "order":
    count = sum(part.num_rows for part in tables_in_order(dataset, ["log_offset"], dataset.schema.names))
else:
    count = sum(part.num_rows for part in tables(dataset, dataset.schema.names))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("way", ["order", *in_soak("any")])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, way: str) -> None:
    peaks = []
    for name, groups in (("small", 8), ("large", 80)):
        path = tmp_path / f"{name}.parquet"
        with pq.ParquetWriter(path, pa.schema([("log_offset", pa.int64()), ("spans", pa.list_(pa.int64()))])) as writer:
            for group in range(groups):
                offsets = np.arange(group * 50_000, (group + 1) * 50_000)
                lists = pa.ListArray.from_arrays(pa.array(np.arange(50_001) * 8, pa.int32()), np.repeat(offsets, 8))
                writer.write_table(pa.table({"log_offset": offsets, "spans": lists}, schema=writer.schema))
        command = [sys.executable, "-c", MEMORY, way, str(path)]
        several_threads = {**os.environ, "OMP_NUM_THREADS": "4"}
        ended = subprocess.run(command, env=several_threads, capture_output=True, text=True, check=True)
        count, peak_kib = map(int, ended.stdout.split())
        assert count == groups * 50_000
        peaks.append(peak_kib)
    assert peaks[1] < peaks[0] + 64 * 1024  # the large file has 270 MiB more


def test_rows_are_counted_by_value_without_reading_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    rows = pa.table({"state_partition": pa.array([1] * 6 + [2] * 2 + [3] * 4, pa.int32())})
    pq.write_table(rows, path, row_group_size=4)
    system = CountingFileSystem()
    dataset = ds.dataset(str(path), filesystem=pafs.PyFileSystem(pafs.FSSpecHandler(system)))
    assert row_counts(dataset, "state_partition") == {1: 4 + 2, 2: 2, 3: 4}
    assert row_counts(dataset, "unknown") == {}
