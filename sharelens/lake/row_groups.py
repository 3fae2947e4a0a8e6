"""A table read row group by row group, without those that statistics exclude.

Arrow's datasets do the same for any condition; for a condition about many share partitions, its evaluation for each row
group costs more than reading the row group. Arrow's threads are off: several tasks share the cores.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sharelens.lake.parquet import coded_schema, partition_values
from sharelens.lake.storage import Storage
from sharelens.lake.tables import Table

BATCH_ROWS = 1 << 16
KEPT_BYTES = 8 << 20
"""Rows of small files that are kept in memory, for each table: runs read several times what the runs before wrote."""
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def hold_any(low: Ints, high: Ints, numbers: Ints) -> Flags:
    """Whether one of some numbers, which are in order, lies from each `low` to its `high`."""
    result: Flags = np.searchsorted(numbers, high, "right") > np.searchsorted(numbers, low)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A data file with its footer. `partition_values`: of the columns that only its folder names, as text.

    `bounds`: of its row groups, by column; `rows`: what was read of it, by row groups and columns. Files never change.
    """

    storage: Storage
    path: str
    partition_values: dict[str, str]
    metadata: pq.FileMetaData
    bounds: dict[str, "Bounds"] = field(default_factory=dict)
    rows: dict[tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]], list[pa.Table]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The statistics of a column in each row group: values lie from `low` to `high`; `nulls`: it may have some.

    Where all values are null, `low` is above `high`; without statistics, all values lie between them.
    """

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    nulls: Flags


class Footers:
    """The footers of a table's files at a version, each read when its file is needed.

    `paths`: of the files below the table's folder. `before`: of another version of the table; what it knows of the same
    files is not read again.
    """

    def __init__(self, table: Table, storage: Storage, paths: Iterable[str], before: "Footers | None" = None) -> None:
        earlier_files: Mapping[str, File] = {} if before is None else before._files
        self._files: dict[str, File] = {path: earlier_files[path] for path in paths if path in earlier_files}
        self._table = table
        self._storage = storage
        self._kept_bytes = sum(
            rows.nbytes for file in self._files.values() for read in file.rows.values() for rows in read
        )

    def row_groups(self, paths: Iterable[str]) -> "RowGroups":
        """The row groups of some of the files."""
        return RowGroups(self._table, [self._file(path) for path in sorted(paths)], self)

    def _file(self, path: str) -> File:
        if path not in self._files:
            metadata = pq.read_metadata(path, filesystem=self._storage.file_system())
            values = partition_values(path)
            self._files[path] = File(storage=self._storage, path=path, partition_values=values, metadata=metadata)
        return self._files[path]

    def keeps(self, size: int) -> bool:
        """Whether there is room for more rows in memory, which then are counted."""
        if self._kept_bytes + size > KEPT_BYTES:
            return False
        self._kept_bytes += size
        return True


class RowGroups:
    """Row groups of a table at a version, file after file: every array has one entry a row group."""

    def __init__(self, table: Table, files: Sequence[File], footers: Footers) -> None:
        self._schema = table.schema
        self._files = files
        self._footers = footers
        self._bounds: dict[str, Bounds] = {}
        self.count = sum(file.metadata.num_row_groups for file in files)

    def integers(self, column: str) -> Bounds:
        """The bounds of a column of integers that every file has."""
        return self._column_bounds(column, LEAST, GREATEST, np.dtype(np.int64))

    def may_hold(self, column: str, first: str, last: str) -> Flags:
        """Whether each row group may have a text from `first` to `last`."""
        bounds = self._column_bounds(column, None, None, np.dtype(object))
        within = [
            low is None or (low <= last and high >= first)
            for low, high in zip(bounds.low.tolist(), bounds.high.tolist(), strict=True)
        ]
        return np.array(within, np.bool_)

    def partition_is(self, column: str, text: str) -> Flags:
        """Whether each row group is in a file of a partition value; true without such a partition column."""
        values = [(file.partition_values.get(column, text), file.metadata.num_row_groups) for file in self._files]
        return np.repeat([value == text for value, _ in values], [count for _, count in values]).astype(np.bool_)

    def _column_bounds(self, column: str, least: object, greatest: object, kind: np.dtype[Any]) -> Bounds:
        if column not in self._bounds:
            none = Bounds(low=np.array([], kind), high=np.array([], kind), nulls=np.array([], np.bool_))
            parts = [none, *(_bounds_of(file, column, least, greatest, kind) for file in self._files)]
            low, high, nulls = (
                np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "nulls")
            )
            self._bounds[column] = Bounds(low=low, high=high, nulls=nulls)
        return self._bounds[column]

    def read(self, chosen: Flags, columns: Sequence[str], coded: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Rows of the chosen row groups, about BATCH_ROWS at once; the text columns `coded` as dictionaries."""
        yield from joined(self._of_files(chosen, columns, coded))

    def _of_files(self, chosen: Flags, columns: Sequence[str], coded: Sequence[str]) -> Iterator[pa.Table]:
        """Rows of the chosen row groups in tables of one file each, which may be small."""
        first = 0
        for file in self._files:
            end = first + file.metadata.num_row_groups
            numbers = np.flatnonzero(chosen[first:end]).tolist()
            first = end
            if not numbers:
                continue
            key = (tuple(numbers), tuple(columns), tuple(coded))
            if key in file.rows:
                yield from file.rows[key]
            elif file.metadata.num_rows > BATCH_ROWS:
                yield from self._read(file, numbers, columns, coded)
            else:
                yield from self._cache_rows(file, key, list(self._read(file, numbers, columns, coded)))

    def _cache_rows(self, file: File, key: tuple[Any, ...], rows: list[pa.Table]) -> list[pa.Table]:
        """The rows, kept where there is room."""
        if self._footers.keeps(sum(table.nbytes for table in rows)):
            file.rows[key] = rows
        return rows

    def _read(
        self, file: File, numbers: Sequence[int], columns: Sequence[str], coded: Sequence[str]
    ) -> Iterator[pa.Table]:
        kinds = self.schema(columns, coded)
        stored = [name for name in columns if name not in file.partition_values]
        texts = [name for name in coded if name in stored]
        with pq.ParquetFile(
            file.path,
            metadata=file.metadata,
            read_dictionary=texts,
            pre_buffer=not file.storage.is_local,
            filesystem=file.storage.file_system(),
        ) as opened:
            batches = opened.iter_batches(BATCH_ROWS, row_groups=numbers, columns=stored, use_threads=False)
            for rows in joined(pa.Table.from_batches([batch]) for batch in batches):
                for name, text in file.partition_values.items():
                    if name in columns:
                        value = pa.scalar(text).cast(self._schema.field(name).type)
                        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
                yield rows.select(columns).cast(kinds)

    def schema(self, columns: Sequence[str], coded: Sequence[str] = ()) -> pa.Schema:
        """The types of columns as they are read."""
        return coded_schema([self._schema.field(name) for name in columns], coded)


def joined(tables: Iterable[pa.Table], least: int = BATCH_ROWS) -> Iterator[pa.Table]:
    """Neighbouring tables together, in tables of `least` rows at least but for the last one; none is empty."""
    pending: list[pa.Table] = []
    count = 0
    for rows in tables:
        if rows.num_rows:
            pending.append(rows)
            count += rows.num_rows
        if count >= least:
            yield _as_one(pending)
            pending, count = [], 0
    if pending:
        yield _as_one(pending)


def _as_one(tables: Sequence[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


def _chunks(file: File, column: str) -> Iterator[pq.ColumnChunkMetaData]:
    leaves = file.metadata.schema
    at = next(number for number in range(len(leaves)) if leaves.column(number).path == column)
    for number in range(file.metadata.num_row_groups):
        yield file.metadata.row_group(number).column(at)


def _bounds_of(file: File, column: str, least: object, max_value: object, kind: np.dtype[Any]) -> Bounds:
    """The bounds of a column in each row group of a file."""
    if column not in file.bounds:
        bounds = [_bounds_of_chunk(chunk, least, max_value) for chunk in _chunks(file, column)]
        low, high, nulls = (
            np.array([chunk_bounds[number] for chunk_bounds in bounds], kind if number < 2 else np.bool_)
            for number in range(3)
        )
        file.bounds[column] = Bounds(low=low, high=high, nulls=nulls)
    return file.bounds[column]


def _bounds_of_chunk(chunk: pq.ColumnChunkMetaData, least: object, max_value: object) -> tuple[object, object, bool]:
    statistics = chunk.statistics
    if statistics is None:
        return least, max_value, True
    nulls = statistics.null_count > 0
    if statistics.has_min_max:
        return statistics.min, statistics.max, nulls
    return (max_value, least, True) if statistics.null_count >= chunk.num_values else (least, max_value, nulls)
