"""Rewrites many files as few, sorted by the table's clustering columns, in bounded memory.

    files by their least keys -> groups of neighbours, up to 128 MB, each rewritten by itself
    row groups of a group -> sorted runs of RUN_BYTES -> merged -> files near 128 MB, a log partition a row group

A single run stays in memory. Several runs are spilled beside the table into files that no commit names; they are
deleted after the merge (after a kill, by vacuum). Rows are not changed.
"""

import heapq
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sharelens.lake.lake import Lake
from sharelens.lake.parquet import FILE_BYTES, ROW_GROUP_ROWS, DataFile, ParquetSink
from sharelens.lake.tables import Table

RUN_BYTES = 128 << 20
GROUP_BYTES = 32 << 20
MERGED_ROWS = 1 << 14
"""Rows of a piece in which a merge reads a run."""
ONE_PARTITION = {
    "bronze.log_record": ("cluster_id", "topic_id", "partition"),
    "silver.share_record": ("cluster_id", "log_topic_id", "state_partition"),
}
"""Tables whose row groups have one log partition each (`sharelens.lake.slices`), by these columns."""
LEAST = -(1 << 63)
Ints = npt.NDArray[np.int64]
Keep = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The new files, and the number of dropped rows."""

    files: tuple[DataFile, ...]
    dropped: int


def order_of(table: Table) -> tuple[str, ...]:
    """The columns that order a table's files: its clustering, then the rest of its key."""
    return (*table.clustering, *(name for name in table.key if name not in table.clustering))


def worth_joining(sizes: Mapping[str, int], small_bytes: int, tiny_bytes: int) -> list[str]:
    """Files to join, by their sizes: those below `small_bytes`, without one that the smaller ones don't outweigh.

    So a row is written again when its file has doubled, not in each upkeep; files up to `tiny_bytes` are always joined.
    """
    chosen = sorted((path for path, size in sizes.items() if size < small_bytes), key=lambda path: sizes[path])
    total = sum(sizes[path] for path in chosen)
    while chosen and tiny_bytes < sizes[chosen[-1]] and 2 * sizes[chosen[-1]] > total:
        total -= sizes[chosen.pop()]
    return chosen


def neighbours(table: Table, files: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Paths of files (`Snapshot.files`) in groups, neighbours by key: those of a group become one file.

    What is sorted and merged at once has a bound, FILE_BYTES or a single file, whatever the number of files.
    """
    columns = [*(["state_partition"] if "state_partition" in table.schema.names else []), *order_of(table)]
    ordered = sorted(files, key=lambda file: sortable(file.get(f"min.{name}") for name in columns))
    groups: list[list[str]] = []
    size = 0
    for file in ordered:
        size += int(file["size_bytes"])
        if not groups or size > FILE_BYTES:
            groups.append([])
            size = int(file["size_bytes"])
        groups[-1].append(str(file["path"]))
    return groups


def rewrite(
    lake: Lake, table: Table, paths: Sequence[str], partition_values: dict[str, str], keep: Keep, run_bytes: int
) -> Rewritten:
    """The rows of files of a table (of one partition of it) that `keep` leaves, sorted, in new files."""
    order = tuple(name for name in order_of(table) if name not in partition_values)
    dropped = 0

    def kept_rows() -> Iterator[pa.Table]:
        nonlocal dropped
        for rows in row_groups(lake, table, paths, partition_values):
            remaining_rows = keep(rows)
            dropped += rows.num_rows - remaining_rows.num_rows
            yield remaining_rows

    with (
        ExitStack() as scratch,
        ParquetSink(lake, table, constants={}, partition_values=partition_values) as sink,
    ):
        storage = lake.table_storage(table.name)
        folder = storage.root if storage.is_local else scratch.enter_context(tempfile.TemporaryDirectory())
        ordered = in_order(kept_rows(), order, scratch, Path(folder), run_bytes)
        for rows in _as_groups(ordered, ONE_PARTITION.get(table.name, ())):
            sink.write(rows.unify_dictionaries())
    return Rewritten(files=tuple(sink.files), dropped=dropped)


def row_groups(
    lake: Lake, table: Table, paths: Sequence[str], partition_values: dict[str, str], columns: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """The row groups of files of a table, one after the other; text dictionary-encoded. `columns`: only these."""
    schema = pa.schema([field for field in table.schema if field.name not in partition_values])
    fields = [field for field in schema if not columns or field.name in columns]
    text = [field.name for field in fields if pa.types.is_string(field.type)]
    storage = lake.table_storage(table.name)
    system = storage.file_system()
    for path in paths:
        with pq.ParquetFile(path, read_dictionary=text, filesystem=system, pre_buffer=not storage.is_local) as file:
            for number in range(file.metadata.num_row_groups):
                rows = file.read_row_group(number, columns=[field.name for field in fields], use_threads=False)
                yield rows.select([field.name for field in fields])


def in_order(
    tables: Iterable[pa.Table], order: Sequence[str], scratch: ExitStack, folder: Path, run_bytes: int
) -> Iterator[pa.Table]:
    """All rows in order; more than `run_bytes` of them go through files in `folder`."""
    spilled: list[Path] = []
    pending: list[pa.Table] = []
    size = 0
    for rows in tables:
        pending.append(rows)
        size += rows.nbytes
        if size >= run_bytes:
            spilled.append(_spill(_sorted(pending, order), scratch, folder / f"run-{len(spilled)}.parquet"))
            pending, size = [], 0
    rest = _sorted(pending, order) if pending else None
    if not spilled:
        if rest is not None:
            yield rest
        return
    if rest is not None:
        spilled.append(_spill(rest, scratch, folder / f"run-{len(spilled)}.parquet"))
    yield from _merged(spilled, order, run_bytes)


def _spill(rows: pa.Table, scratch: ExitStack, path: Path) -> Path:
    scratch.callback(path.unlink, missing_ok=True)
    pq.write_table(rows, path, row_group_size=MERGED_ROWS, compression="zstd", compression_level=1)
    return path


def _sorted(tables: Sequence[pa.Table], order: Sequence[str]) -> pa.Table:
    rows = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    keys = [_ranks(rows.column(name)) for name in reversed(order)]
    return rows.take(pa.array(np.lexsort(keys)))


def _ranks(column: pa.ChunkedArray) -> Ints:
    """Integers in the order of the values, null first."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_integer(column.type):
        result: Ints = pc.fill_null(column.cast(pa.int64()), LEAST).to_numpy()
        return result
    values = column.combine_chunks()
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    ranks = np.empty(len(coded.dictionary) + 1, np.int64)
    ranks[pc.array_sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    ranks[-1] = -1
    codes: Ints = pc.fill_null(coded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return ranks[codes]


def _merged(paths: Sequence[Path], order: Sequence[str], run_bytes: int) -> Iterator[pa.Table]:
    """The rows of sorted files in order, with about `run_bytes` of them and two pieces of each file in memory.

    Of the files that have more, the one whose last row that was read sorts first is read on. Rows up to that one are
    safe to return: later rows sort behind it.
    """
    with ExitStack() as opened:
        pieces = [_pieces(opened.enter_context(pq.ParquetFile(path)), number) for number, path in enumerate(paths)]
        unread: list[tuple[tuple[Any, ...], int]] = [((), number) for number in range(len(paths))]
        pending: list[pa.Table] = []
        while unread:
            size = sum(rows.nbytes for rows in pending)
            goes_on = True
            while goes_on:
                _, number = heapq.heappop(unread)
                rows, has_more = next(pieces[number])
                pending.append(rows)
                size += rows.nbytes
                if has_more:
                    heapq.heappush(unread, (_last_key(rows, order), number))
                goes_on = bool(unread) and (size < run_bytes or unread[0][0] == ())
            rows = _sorted(pending, order)
            end = rows.num_rows
            if unread:
                places = np.flatnonzero(rows.column(_SOURCE).to_numpy() == unread[0][1])
                end = int(places[-1]) + 1 if len(places) else 0
            yield rows.slice(0, end).drop_columns([_SOURCE])
            pending = [rows.slice(end)]


_SOURCE = "_source"


def _pieces(file: pq.ParquetFile, source: int) -> Iterator[tuple[pa.Table, bool]]:
    """The row groups of a sorted file, each with whether there is another one."""
    count = file.metadata.num_row_groups
    for number in range(count):
        rows = file.read_row_group(number, use_threads=False)
        yield rows.append_column(_SOURCE, pa.repeat(source, rows.num_rows)), number + 1 < count


def _last_key(rows: pa.Table, order: Sequence[str]) -> tuple[Any, ...]:
    """The key of the last row, as a value that sorts as `_ranks`."""
    return sortable(rows.column(name)[-1].as_py() for name in order)


def sortable(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values of some columns as one that can be compared, null first."""
    return tuple((value is not None, value) for value in values)


def _as_groups(tables: Iterable[pa.Table], constant: Sequence[str]) -> Iterator[pa.Table]:
    """The rows in pieces for a row group each: of bounded size, with one value of the columns `constant`."""
    pending: list[pa.Table] = []
    count = size = 0
    for rows in tables:
        borders = _borders(rows, constant)
        for first, end in pairwise(borders):
            piece = rows.slice(first, end - first)
            full = count + piece.num_rows > ROW_GROUP_ROWS or size > GROUP_BYTES
            if pending and (full or not _same(pending[-1], piece, constant)):
                yield pa.concat_tables(pending)
                pending, count, size = [], 0, 0
            pending.append(piece)
            count += piece.num_rows
            size += rows.nbytes * piece.num_rows // rows.num_rows
    if pending:
        yield pa.concat_tables(pending)


def _borders(rows: pa.Table, constant: Sequence[str]) -> list[int]:
    """Where pieces begin and where the last one ends: every ROW_GROUP_ROWS / 8 rows, and where a value changes."""
    if rows.num_rows == 0:
        return []
    cut = np.zeros(rows.num_rows + 1, np.bool_)
    cut[:: ROW_GROUP_ROWS // 8] = True
    cut[-1] = True
    for name in constant:
        cut[1:-1] |= np.diff(_ranks(rows.column(name))) != 0
    return [int(place) for place in np.flatnonzero(cut)]


def _same(left_table: pa.Table, right: pa.Table, constant: Sequence[str]) -> bool:
    """Whether both hold the same values of the columns `constant`, of which each holds one value."""
    return all(left_table.column(name)[0].as_py() == right.column(name)[0].as_py() for name in constant)
