"""A version of a table as a value, through which tasks read anywhere. This module does not use delta-rs."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.lake.parquet import coded_schema
from sharelens.lake.row_groups import GREATEST, LEAST, Footers, Ints, RowGroups, hold_any
from sharelens.lake.storage import Storage
from sharelens.lake.tables import TABLES, TIME

Files = tuple[Mapping[str, Any], ...]
"""Live files of a table, as `Snapshot.files`."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A table at a version.

    `files`: for each live file its path below the table's folder, size_bytes, num_records, statistics (min.x, max.x,
    null_count.x) and partition values (partition.x); `storage`: the table's folder.
    """

    table: str
    version: int
    schema_version: int
    storage: Storage
    files: Files
    conditions: dict[str, pc.Expression] = field(default_factory=dict, compare=False, repr=False)
    """By path the condition that holds for a file's rows, as far as known: files never change, so versions share it."""
    earlier: Footers | None = field(default=None, compare=False, repr=False)
    """The footers of an earlier version, which shares files with this one."""

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: datasets, conditions and footers are made again where the value goes."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__} | {"conditions": {}, "earlier": None}

    def condition(self, file: Mapping[str, Any]) -> pc.Expression:
        """A condition that holds for every row of a file, by its statistics and partition values."""
        path = str(file["path"])
        if path not in self.conditions:
            self.conditions[path] = _guarantee(file, self.schema)
        return self.conditions[path]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return TABLES[self.table].schema

    @property
    def paths(self) -> list[str]:
        """Paths of the live files below the table's folder."""
        return [str(file["path"]) for file in self.files]

    @property
    def size_bytes(self) -> int:
        """Bytes of the live files."""
        return sum(int(file["size_bytes"]) for file in self.files)

    @property
    def record_count(self) -> int:
        """Rows of the live files, by their statistics."""
        return sum(int(file["num_records"] or 0) for file in self.files)

    @property
    def content(self) -> dict[str, Any]:
        """A row of gold.publication's `contents`: live files, their rows, and a digest of their names and sizes."""
        named = sorted(f"{file['path']}\0{file['size_bytes']}\n" for file in self.files)
        digest = hashlib.sha256("".join(named).encode()).hexdigest()
        return {"table": self.table, "files": len(named), "rows": self.record_count, "digest": digest}

    def largest(self, column: str) -> Any:
        """The largest value of a column, by statistics; None when no file has any."""
        bounds = (file.get(f"max.{column}") for file in self.files)
        return max((bound for bound in bounds if bound is not None), default=None)

    def has_only(self, column: str, value: Any) -> bool:
        """Whether all rows are known to have a value: a condition on it would make a scan read the column."""
        kinds = ("min", "max", "null_count")
        return all(tuple(file.get(f"{kind}.{column}") for kind in kinds) == (value, value, 0) for file in self.files)

    def dataset(self, coded: Sequence[str] = ()) -> ds.Dataset:
        """The rows as an Arrow dataset that skips files whose statistics exclude a match.

        `coded`: text columns that are read as dictionaries.
        """
        key = tuple(coded)
        if key not in self._datasets:
            self._datasets[key] = _dataset(self, key)
        return self._datasets[key]

    @cached_property
    def _datasets(self) -> dict[tuple[str, ...], ds.Dataset]:
        return {}

    def rows(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """The rows that meet a condition; of a table without files only the schema counts."""
        if not self.files:
            empty = self.schema.empty_table()
            return empty if columns is None else empty.select(list(columns))
        return self.dataset().to_table(columns=None if columns is None else list(columns), filter=where)

    @cached_property
    def all_rows(self) -> pa.Table:
        """All rows, read once; for small tables."""
        return self.rows()

    def row_groups(self, state_partitions: Ints) -> RowGroups:
        """The row groups of the files that may have rows of some state partitions, which are in order.

        The footers of these files are read, so a task's memory does not grow with the others.
        """
        low, high = self._state_partitions("min", LEAST), self._state_partitions("max", GREATEST)
        return self._footers.row_groups(compress(self.paths, hold_any(low, high, state_partitions)))

    def _state_partitions(self, statistic: str, unknown: int) -> Ints:
        """The lowest or highest state partition of each file."""
        bounds = [file.get(f"{statistic}.state_partition") for file in self.files]
        return np.array([unknown if bound is None else bound for bound in bounds], np.int64)

    @cached_property
    def _footers(self) -> Footers:
        return Footers(TABLES[self.table], self.storage, self.paths, self.earlier)

    @property
    def known_footers(self) -> Footers | None:
        """The footers, of an earlier version where none of this one was read."""
        return self.__dict__.get("_footers", self.earlier)


def _dataset(snapshot: Snapshot, coded: Sequence[str]) -> ds.Dataset:
    system = snapshot.storage.file_system()
    form = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(dictionary_columns=list(coded)) if coded else None,
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True),
    )
    schema = snapshot.schema
    fragments = [
        form.make_fragment(
            str(file["path"]),
            filesystem=system,
            partition_expression=snapshot.condition(file),
            file_size=file.get("size_bytes"),  # a store is asked for it else
        )
        for file in snapshot.files
    ]
    return ds.FileSystemDataset(fragments, coded_schema(schema, coded), form, system)


def _guarantee(file: Mapping[str, Any], schema: pa.Schema) -> pc.Expression:
    """The condition of `Snapshot.condition`."""
    result = pc.scalar(True)
    for column in schema:
        value = file.get(f"partition.{column.name}")
        if value is not None:
            result = result & (pc.field(column.name) == pa.scalar(value).cast(column.type))
        elif column.type != TIME:  # a time stands beside the milliseconds that it is made of
            result = _with_bounds(result, column, file)
    return result


def _with_bounds(guarantee: pc.Expression, field: pa.Field, file: Mapping[str, Any]) -> pc.Expression:
    low, high, nulls = (file.get(f"{kind}.{field.name}") for kind in ("min", "max", "null_count"))
    column = pc.field(field.name)
    if nulls is not None and nulls == file["num_records"]:
        return guarantee & column.is_null()
    if low is None or high is None:
        return guarantee
    if low == high and nulls == 0:  # a scan does not compare a column that has one value
        return guarantee & (column == pa.scalar(low, field.type))
    for bound in (column >= pa.scalar(low, field.type), column <= pa.scalar(high, field.type)):
        guarantee = guarantee & (bound if nulls == 0 else bound | column.is_null())  # the form that Arrow knows
    return guarantee


def files_of(actions: Any) -> Files:
    """`Snapshot.files` of the live files of a table, which delta-rs gives as flat Arrow rows."""
    if actions.num_rows == 0:  # columns without rows cost as much as columns with some
        return ()
    table = pa.table(actions)
    plain = [
        field.name
        for field in table.schema
        if not pa.types.is_timestamp(field.type) and field.name != "modification_time"
    ]
    return tuple(file | {"path": unquote(file["path"])} for file in table.select(plain).to_pylist())
