"""Parquet files of a table, written through Arrow with the statistics that Delta keeps of them."""

import contextlib
import dataclasses
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sharelens.lake import crash_points
from sharelens.lake.errors import LakeError
from sharelens.lake.storage import Storage, TableFolders
from sharelens.lake.tables import TIME, Table, time_name
from state_model.columnar.schemas import TEXT

FILE_BYTES = 128 << 20
ROW_GROUP_ROWS = 1 << 17
TOGETHER_BYTES = 1 << 20
"""From this size in memory on, rows are a row group of their own."""
BATCH_ROWS, BODY_BATCH_ROWS = 1 << 14, 1 << 10
"""Rows that the writer encodes at once: a page ends between two batches, so few where a row may be large."""
LONGEST_STATISTIC = 32
ABOVE_ALL_TEXT = "\U0010ffff" * 8192
"""No string of Kafka's, of at most 32,767 bytes, sorts behind it; Parquet keeps no statistics of the longest ones."""
ALMOST_A_MILLI = timedelta(microseconds=999)
WITH_STATISTICS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_boolean,
    pa.types.is_timestamp,
)
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # 0001-01-01 and 9999-12-31T23:59:59.999


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A Parquet file under the table's folder. `stats`: Delta's numRecords, minValues, maxValues, nullCount."""

    path: str
    size_bytes: int
    stats: dict[str, Any]
    partition_values: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def record_count(self) -> int:
        """Rows in the file."""
        return int(self.stats["numRecords"])


def partition_values(path: str) -> dict[str, str]:
    """The values of the columns that the folders of a data file's path name."""
    pairs = (part.partition("=") for part in path.split("/")[:-1])
    return {name: value for name, equals, value in pairs if equals}


def coded_schema(fields: Iterable[pa.Field], coded: Sequence[str]) -> pa.Schema:
    """The fields with dictionaries for the text columns `coded`."""
    return pa.schema([field.with_type(TEXT) if field.name in coded else field for field in fields])


def conform(rows: pa.Table, schema: pa.Schema, constants: dict[str, Any] | None = None) -> pa.Table:
    """`rows` with exactly the columns of `schema`; text that comes dictionary-encoded stays so.

    `constants` fill columns that are the same in every row; a missing `…_time` is made from its `…_ms`.

    Raises:
        KeyError: a column is neither in `rows` nor in `constants`.
        pa.ArrowInvalid: a value doesn't fit its column.
    """
    constants = constants or {}
    millis = {time_name(field.name): field.name for field in schema if field.name.endswith("_ms")}
    columns = []
    fields = []
    for field in schema:
        if field.name in constants:
            column = _repeated(constants[field.name], field.type, rows.num_rows)
        elif field.type == TIME and field.name not in rows.column_names:
            column = guarded_time(rows.column(millis[field.name]))
        else:
            column = rows.column(field.name)
        encoded = pa.types.is_string(field.type) and pa.types.is_dictionary(column.type)
        fields.append(field.with_type(TEXT) if encoded else field)
        columns.append(column if column.type == fields[-1].type else column.cast(fields[-1].type))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _repeated(value: object, kind: pa.DataType, count: int) -> pa.Array:
    """A column of one value; text dictionary-encoded."""
    if not pa.types.is_string(kind):
        return pa.repeat(pa.scalar(value, kind), count)
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([value], kind))


def guarded_time(millis: pa.ChunkedArray) -> pa.ChunkedArray:
    """Epoch milliseconds as a UTC timestamp; null outside years 1-9999, which Spark can't show."""
    bounds = pc.min_max(millis)
    if bounds["min"].is_valid and (bounds["min"].as_py() < FIRST_MS or bounds["max"].as_py() > LAST_MS):
        inside = pc.and_(pc.greater_equal(millis, FIRST_MS), pc.less_equal(millis, LAST_MS))
        millis = pc.if_else(inside, millis, pa.scalar(None, pa.int64()))
    return pc.multiply(millis, 1000).cast(TIME)


class ParquetSink:
    """Writes rows of one table into files near `file_bytes`, in the order given.

    Files get their place in the table's folder at once, are on the disk when the sink is closed, and become part of the
    table only by a commit (`sharelens.lake.commit`); files of an interrupted writer are never read.
    """

    def __init__(
        self,
        lake: TableFolders,
        table: Table,
        *,
        constants: dict[str, Any],
        partition_values: dict[str, str] | None = None,
        file_bytes: int = FILE_BYTES,
    ) -> None:
        self._table = table
        self._constants = constants
        self._partition_values = partition_values or {}
        self._storage = lake.table_storage(table.name)
        self._schema = pa.schema([field for field in table.schema if field.name not in self._partition_values])
        self._file_bytes = file_bytes
        self._file: _OpenFile | None = None
        self._files: list[DataFile] = []
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self.record_count = 0

    def __enter__(self) -> "ParquetSink":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._write_pending()
            self._finish()
        elif self._file is not None:
            self._file.discard()

    @property
    def files(self) -> list[DataFile]:
        """The files written so far; complete after the `with` block."""
        return self._files

    def write(self, rows: pa.Table, **constants: object) -> None:
        """Appends rows; an empty table adds none. `constants`: columns that these rows share.

        Raises:
            LakeError: the disk is full; no file is left.
        """
        if rows.num_rows == 0:
            return
        rows = conform(rows, self._schema, {**self._constants, **constants})
        if self._file is None:
            crash_points.passing(f"file:{self._table.name}:before")
            self._file = _OpenFile(self._storage, self._partition_values, self._schema, rows.schema)
        self._file.write(rows)
        self.record_count += rows.num_rows
        if self._file.size_bytes >= self._file_bytes:
            self._finish()

    def write_together(self, rows: pa.Table) -> None:
        """Appends rows; few rows share a row group with those of the calls before and behind. Raises as `write`."""
        if rows.nbytes >= TOGETHER_BYTES:
            self._write_pending()
            self.write(rows)
        elif rows.num_rows:
            self._pending.append(rows)
            self._pending_bytes += rows.nbytes
            if self._pending_bytes >= TOGETHER_BYTES:
                self._write_pending()

    def _write_pending(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if pending:
            self.write(pa.concat_tables(pending))

    def write_all(self, tables: Iterable[pa.Table]) -> None:
        """Appends every table."""
        for rows in tables:
            self.write(rows)

    def _finish(self) -> None:
        if self._file is None:
            return
        self._files.append(self._file.finish())
        self._file = None
        crash_points.passing(f"file:{self._table.name}:after")


class _OpenFile:
    """A data file that is being written; one that fails is removed."""

    def __init__(
        self, storage: Storage, partition_values: dict[str, str], schema: pa.Schema, written: pa.Schema
    ) -> None:
        self._storage = storage
        self._partition_values = partition_values
        self._schema = schema
        folders = [f"{name}={value}" for name, value in partition_values.items()]
        self._path = "/".join([*folders, f"part-{uuid.uuid4()}.zstd.parquet"])
        self._footers: list[pq.FileMetaData] = []
        with self._discarded():
            self._stream = storage.create(self._path)
            # Without Arrow's own schema in the file, text reads as text however it was handed over.
            self._writer = pq.ParquetWriter(
                self._stream, written, store_schema=False, metadata_collector=self._footers, **encoding(schema)
            )

    @property
    def size_bytes(self) -> int:
        """Bytes written so far."""
        return int(self._stream.tell())

    def write(self, rows: pa.Table) -> None:
        """Appends rows, with text as the first ones have it."""
        with self._discarded():
            rows = rows if rows.schema == self._writer.schema else rows.cast(self._writer.schema)
            self._writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)

    def finish(self) -> DataFile:
        """The file, complete and on the disk."""
        with self._discarded():
            self._writer.close()
            size_bytes = self.size_bytes
            self._stream.close()
            self._storage.sync([self._path])
        return DataFile(
            path=self._path,
            size_bytes=size_bytes,
            stats=statistics(self._footers[0], self._schema),
            partition_values=self._partition_values,
        )

    def discard(self) -> None:
        """Removes the file; an error of closing adds no information to the first error."""
        for part in ("_writer", "_stream"):
            with contextlib.suppress(OSError, RuntimeError, AttributeError):
                getattr(self, part).close()
        with contextlib.suppress(OSError, LakeError):
            self._storage.remove(self._path)

    @contextlib.contextmanager
    def _discarded(self) -> Iterator[None]:
        """Removes the file after a failed write; raises the error of a full disk."""
        try:
            yield
        except OSError as error:
            self.discard()
            explained = self._storage.explained(error, self._path)
            if explained is not None:
                raise explained from error
            raise


@lru_cache(maxsize=128)
def encoding(schema: pa.Schema) -> Mapping[str, Any]:
    """Writer settings for the columns of `schema`.

    64-bit numbers as deltas, repeating values by dictionary, bodies plain; zstd over all: half the bytes and 60 % of
    the time of dictionaries everywhere, measured on the delivery history. Every plain column has statistics, not
    bodies and lists: delta-rs takes a NOT NULL column that has none, in a file that has some, for one without rows.
    """
    deltas: dict[str, str] = {}
    repeating: list[str] = []
    telling: list[str] = []
    bodies = False
    for path, kind in _leaves(schema):
        if pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
            deltas[path] = "DELTA_BINARY_PACKED"
        elif not pa.types.is_binary(kind) or path == "key":
            repeating.append(path)
        bodies = bodies or pa.types.is_binary(kind)
        if path in schema.names and not pa.types.is_binary(kind):
            telling.append(path)
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": repeating,
        "column_encoding": deltas,
        "write_statistics": telling,
        "write_batch_size": BODY_BATCH_ROWS if bodies else BATCH_ROWS,
    }


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Parquet's paths of the leaf columns with their types."""
    for field in schema:
        yield from _leaves_of(field.name, field.type)


def _leaves_of(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_list(kind):
        yield from _leaves_of(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves_of(f"{path}.{field.name}", field.type)
    else:
        yield path, kind


def write_rows(lake: TableFolders, table: Table, rows: pa.Table, constants: dict[str, Any]) -> list[DataFile]:
    """Writes `rows`, sorted by the table's clustering columns, as files of the table; [] for no rows."""
    if rows.num_rows == 0:
        return []
    order = [(name, "ascending") for name in table.clustering if name in rows.column_names]
    with ParquetSink(lake, table, constants=constants) as sink:
        sink.write(rows.sort_by(order))
    return sink.files


def statistics(metadata: pq.FileMetaData, schema: pa.Schema) -> dict[str, Any]:
    """Delta statistics from a Parquet footer: of every plain column; long text and times by bounds around them."""
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    useful = {f.name for f in schema if any(is_kind(f.type) for is_kind in WITH_STATISTICS)}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            chunk = row_group.column(index)
            name = chunk.path_in_schema
            if name not in useful or chunk.statistics is None:
                continue
            chunk_statistics = chunk.statistics
            nulls[name] = nulls.get(name, 0) + chunk_statistics.null_count
            bounds = _bounds(chunk_statistics, chunk.num_values)
            if bounds is not None:
                lowest[name] = min(lowest.get(name, bounds[0]), bounds[0])
                highest[name] = max(highest.get(name, bounds[1]), bounds[1])
    return {"numRecords": metadata.num_rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


def _bounds(chunk_statistics: pq.Statistics, value_count: int) -> tuple[Any, Any] | None:
    """Values around all those of a column chunk; None when all of them are null."""
    if not chunk_statistics.has_min_max:
        return None if chunk_statistics.null_count >= value_count else ("", ABOVE_ALL_TEXT)
    if isinstance(chunk_statistics.max, datetime):
        return _in_millis(chunk_statistics.min), _in_millis(chunk_statistics.max + ALMOST_A_MILLI)
    if not isinstance(chunk_statistics.max, str):
        return chunk_statistics.min, chunk_statistics.max
    highest = chunk_statistics.max
    if len(highest) > LONGEST_STATISTIC and highest[LONGEST_STATISTIC] != ABOVE_ALL_TEXT[0]:
        highest = highest[:LONGEST_STATISTIC] + ABOVE_ALL_TEXT[0]
    return chunk_statistics.min[:LONGEST_STATISTIC], highest


def _in_millis(moment: datetime) -> str:
    """A time as Delta's statistics have it, cut to milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
