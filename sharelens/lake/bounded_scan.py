"""Scans of a table whose memory does not grow with the table: few row groups at once, and in the order of a key.

The functions scan an Arrow dataset of Parquet files, whose partition expressions hold for all rows of a file: they skip
files by these expressions, and row groups by their own statistics.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from sharelens.lake.row_groups import joined

BATCH_ROWS = 1 << 16
READ_ROWS = 1 << 17
TABLE_ROWS = 1 << 15
LEAST = -(1 << 63)
Bound = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The statistics of a column in a row group: all values lie from `low` to `high`; `nulls`: some may be null."""

    low: Any
    high: Any
    nulls: bool


Statistics = Mapping[str, Bounds]
"""By column; columns without statistics are absent."""
Choice = Callable[[Sequence[Statistics]], Sequence[bool]]
"""Which of some row groups, in their order, have to be read."""
Flags = npt.NDArray[np.bool_]


def bounded_scanner(
    dataset: ds.Dataset, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> ds.Scanner:
    """A scanner that decodes one row group ahead of its reader; Arrow's own default is dozens."""
    return dataset.scanner(columns=None if columns is None else list(columns), filter=where, **_bounded(dataset))


_BOUNDED: dict[str, Any] = {"batch_size": BATCH_ROWS, "batch_readahead": 1, "fragment_readahead": 1}
# On a disk column chunks are read as they are decoded; with pre_buffer all of a row group lie in memory first. From a
# store they are read together: a request for each 8 KB would take longer than the scan.
_FROM_DISK = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
_FROM_STORE = ds.ParquetFragmentScanOptions(pre_buffer=True)


def _bounded(dataset: ds.FileSystemDataset) -> dict[str, Any]:
    system = dataset.filesystem
    is_local = isinstance(getattr(system, "base_fs", system), LocalFileSystem)
    return {**_BOUNDED, "fragment_scan_options": _FROM_DISK if is_local else _FROM_STORE}


class BoundedDataset(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow is untyped
    """A dataset whose every scanner is bounded, for libraries that make scanners themselves (DuckDB)."""

    @classmethod
    def of(cls, dataset: ds.FileSystemDataset) -> "BoundedDataset":
        """A bounded dataset over the files of `dataset`."""
        return cls(list(dataset.get_fragments()), dataset.schema, dataset.format, dataset.filesystem)

    def scanner(self, **options: Any) -> ds.Scanner:
        """A scanner with the columns and the filter of `options`."""
        return super().scanner(**{**options, **_bounded(self)})


def tables(
    dataset: ds.Dataset, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> Iterator[pa.Table]:
    """Rows that meet the condition, in any order, in tables of TABLE_ROWS rows and less than BATCH_ROWS more."""
    batches = bounded_scanner(dataset, columns, where).to_batches()
    return joined((pa.Table.from_batches([batch]) for batch in batches), TABLE_ROWS)


def tables_in_order(
    dataset: ds.FileSystemDataset,
    order: Sequence[str],
    columns: Sequence[str],
    where: pc.Expression | None = None,
    choice: Choice | None = None,
) -> Iterator[pa.Table]:
    """Rows that meet the condition, ascending by the integer columns `order`, which are among `columns`.

    Row groups are read by their lower bounds, one at first and then more at once (READ_ROWS); rows wait only for row
    groups that may hold smaller ones. Memory grows with the overlap of row groups, so with the disorder of the
    files and not with their number. `choice` leaves out row groups, of those that may have rows.
    """
    ordered = _by_lower_bound(dataset, order, where)
    if choice is not None:
        chosen = choice([_statistics(group.info, columns) for group in ordered])
        ordered = list(itertools.compress(ordered, chosen))
    waiting: pa.Table | None = None
    for together, upper in _read_together(ordered):
        part = ds.FileSystemDataset(_fragments(together), dataset.schema, dataset.format, dataset.filesystem)
        rows = bounded_scanner(part, columns, where).to_table()
        rows = rows if waiting is None else pa.concat_tables([waiting, rows])
        rows = _sorted(rows, order)
        ready = rows.num_rows if upper is None else int(_below(rows, order, upper).sum())
        if ready:
            yield rows.slice(0, ready)
        waiting = rows.slice(ready)


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """A row group of a file, with the least key that it may hold."""

    bound: Bound
    file: ds.ParquetFileFragment
    info: ds.RowGroupInfo


def _read_together(ordered: Sequence[_RowGroup]) -> Iterator[tuple[list[_RowGroup], Bound | None]]:
    """Runs of row groups, the first of one, each up to twice as large as the one before; with the bound of the next."""
    together: list[_RowGroup] = []
    rows, row_limit = 0, 0
    for group in ordered:
        count = group.info.num_rows
        if together and rows + count > row_limit:
            yield together, group.bound
            together, rows, row_limit = [], 0, min(2 * rows, READ_ROWS)
        together.append(group)
        rows += count
    if together:
        yield together, None


def _fragments(together: Iterable[_RowGroup]) -> list[ds.ParquetFileFragment]:
    """One fragment for each file: a scan opens a file for each fragment."""
    files: dict[str, list[_RowGroup]] = {}
    for group in together:
        files.setdefault(group.file.path, []).append(group)
    return [
        file_groups[0].file.subset(row_group_ids=[group.info.id for group in file_groups])
        for file_groups in files.values()
    ]


def _by_lower_bound(
    dataset: ds.FileSystemDataset, order: Sequence[str], where: pc.Expression | None
) -> list[_RowGroup]:
    """The row groups that may hold rows that meet the condition, by the least key that each may hold."""
    groups = [
        _RowGroup(_lower_bound(piece.row_groups[0], order), file, piece.row_groups[0])
        for file in (dataset.get_fragments() if where is None else dataset.get_fragments(filter=where))
        for piece in file.split_by_row_group(filter=where, schema=dataset.schema)
    ]
    return sorted(groups, key=lambda group: (group.bound, group.file.path, group.info.id))


def _lower_bound(group: ds.RowGroupInfo, order: Sequence[str]) -> Bound:
    statistics = _statistics(group, order)
    bound: list[Any] = [statistics[name].low if name in statistics else None for name in order]
    known_count = next((at for at, value in enumerate(bound) if value is None), len(bound))
    return (*bound[:known_count], *(LEAST for _ in bound[known_count:]))


def _statistics(group: ds.RowGroupInfo, columns: Sequence[str]) -> dict[str, Bounds]:
    """The statistics of some columns in a row group; reading all columns' would cost more than most small questions."""
    metadata = group.metadata
    bounds = {}
    for index in range(metadata.num_columns):
        chunk = metadata.column(index)
        chunk_statistics = chunk.statistics if chunk.path_in_schema in columns else None
        if chunk_statistics is not None and chunk_statistics.has_min_max and chunk_statistics.has_null_count:
            bounds[chunk.path_in_schema] = Bounds(
                chunk_statistics.min, chunk_statistics.max, chunk_statistics.null_count > 0
            )
    return bounds


def _sorted(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """The rows by the integer columns `order`; as they are where they have this order, which most row groups have."""
    columns = [rows.column(name).to_numpy() for name in order]
    later = np.zeros(max(rows.num_rows - 1, 0), np.bool_)
    for column in reversed(columns):
        later = (column[1:] < column[:-1]) | ((column[1:] == column[:-1]) & later)
    return rows.sort_by([(name, "ascending") for name in order]) if later.any() else rows


def row_counts(dataset: ds.Dataset, column: str) -> dict[int, int]:
    """About how many rows have each value of an integer column, by the statistics of row groups.

    The rows of a row group with several values count for its smallest and its largest value, half each.
    """
    counts: dict[int, int] = {}
    for fragment in dataset.get_fragments():
        for group in fragment.row_groups:
            bounds = _statistics(group, [column]).get(column)
            if bounds is None:
                continue
            for value in (bounds.low, bounds.high):
                counts[value] = counts.get(value, 0) + group.num_rows // 2
    return counts


def _below(rows: pa.Table, order: Sequence[str], bound: Bound) -> Flags:
    """Mask of the rows with a key below the bound, compared column by column."""
    below: Flags = np.zeros(rows.num_rows, np.bool_)
    for name, value in zip(reversed(order), reversed(bound), strict=True):
        column = rows.column(name).to_numpy()
        below = (column < value) | ((column == value) & below)
    return below
