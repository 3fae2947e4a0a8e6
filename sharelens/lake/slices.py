"""Row groups as units of streaming: the row groups with a log partition's rows, in offset order.

Where a run has many rows of a log partition, and behind upkeep, a row group has one log partition, so the footer
suffices. Of row groups with several log partitions, or with rows of further runs, six thin columns are read.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sharelens.lake.snapshot import Snapshot
from sharelens.lake.storage import Storage

PartitionKey = tuple[str, str, int]
"""(cluster id, topic id, partition) of a log partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of the columns that place a row in a log: topic id, partition, offset, timestamp."""

    topic_id: str
    partition: str
    offset: str
    timestamp: str


EVERY_RUN = (0, (1 << 63) - 1)
BRONZE = Columns(topic_id="topic_id", partition="partition", offset="offset", timestamp="timestamp_ms")
SILVER = Columns(topic_id="log_topic_id", partition="state_partition", offset="log_offset", timestamp="log_time_ms")
SHARED_OUT = ("size_bytes", "value_count")
"""What a mixed row group has is shared out among its slices, by their rows."""
UNIT_ROWS, UNIT_VALUES = 1 << 17, 1 << 19
"""What a unit has at most: few records with long lists, or well compressed ones, take as much memory as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The rows of one log partition in one row group. Offsets, and the run ids of `runs`, are inclusive.

    `value_count`: values of the column that has most; a column of lists may have more than there are rows.
    """

    storage: Storage
    path: str
    row_group: int
    mixed: bool
    columns: Columns
    cluster_id: str
    topic_id: str
    partition: int
    first_offset: int
    last_offset: int
    record_count: int
    value_count: int
    oldest_ms: int
    newest_ms: int
    size_bytes: int
    runs: tuple[int, int]


def slices(
    snapshot: Snapshot,
    columns: Columns,
    *,
    runs: tuple[int, int],
    only: Iterable[PartitionKey] | None = None,
    begins: Mapping[PartitionKey, int] | None = None,
) -> dict[PartitionKey, list[Slice]]:
    """The slices of a table's rows with run_id in `runs` (inclusive), by log partition, in offset order.

    `begins`: by log partition the offset below which rows are left out.
    """
    keys = None if only is None else set(only)
    slices_by_partition: dict[PartitionKey, list[Slice]] = {}
    for file in snapshot.files:
        low, high = file.get("min.run_id"), file.get("max.run_id")
        if low is not None and high is not None and (high < runs[0] or low > runs[1]):
            continue
        for piece in _slices_of(snapshot.storage, str(file["path"]), columns, runs):
            key = (piece.cluster_id, piece.topic_id, piece.partition)
            begin = (begins or {}).get(key, piece.first_offset)
            if (keys is None or key in keys) and piece.last_offset >= begin:
                slices_by_partition.setdefault(key, []).append(_from(piece, begin))
    for pieces in slices_by_partition.values():
        pieces.sort(key=lambda piece: (piece.first_offset, piece.last_offset))
    return slices_by_partition


def _from(piece: Slice, begin: int) -> Slice:
    """The slice without the rows below an offset; its count of records is then an upper bound."""
    if begin <= piece.first_offset:
        return piece
    return replace(piece, mixed=True, first_offset=begin)


def units(pieces: Sequence[Slice]) -> Iterator[list[Slice]]:
    """Neighbouring slices whose offsets overlap go together, so that units are in offset order."""
    unit: list[Slice] = []
    end = 0
    for piece in pieces:
        if unit and piece.first_offset > end:
            yield unit
            unit = []
        end = piece.last_offset if not unit else max(end, piece.last_offset)
        unit.append(piece)
    if unit:
        yield unit


def take_units(waiting: deque[list[Slice]], rows: int) -> list[Slice]:
    """Removes units from the front, and returns them as one: the first, and more as long as all have at most `rows`
    rows (UNIT_ROWS at most) and UNIT_VALUES values.

    What a unit costs for each share partition is paid once for all of them (docs/adr/0021).
    """
    unit: list[Slice] = []
    rows_left, values_left = min(rows, UNIT_ROWS), UNIT_VALUES
    while waiting:
        rows_left -= sum(piece.record_count for piece in waiting[0])
        values_left -= sum(piece.value_count for piece in waiting[0])
        if unit and min(rows_left, values_left) < 0:
            break
        unit += waiting.popleft()
    return unit


def read_unit(unit: Sequence[Slice], schema: pa.Schema) -> pa.Table:
    """The rows of a unit in offset order, with the columns of `schema`.

    Text is read dictionary-encoded where the schema says so.
    """
    table = _read(unit, schema)
    offsets = table.column(unit[0].columns.offset).to_numpy()
    if len(offsets) > 1 and (np.diff(offsets) < 0).any():
        table = table.take(pa.array(np.argsort(offsets, kind="stable")))
    return table


def read_partitions(pieces: Sequence[Slice], schema: pa.Schema) -> pa.Table:
    """The rows of slices of one topic by partition, then by offset; `schema` has the columns of both.

    Text is read dictionary-encoded where the schema says so.
    """
    names = pieces[0].columns
    rows = _read(pieces, schema)
    offsets, partitions = (rows.column(name).to_numpy() for name in (names.offset, names.partition))
    steps = np.diff(partitions)
    if ((steps > 0) | ((steps == 0) & (np.diff(offsets) >= 0))).all():
        return rows
    return rows.take(pa.array(np.lexsort((offsets, partitions))))


def _opened(storage: Storage, path: str, encoded: Sequence[str] = ()) -> pq.ParquetFile:
    """A data file. In a store the column chunks of a row group are read together, not with a request for each."""
    return pq.ParquetFile(
        path,
        read_dictionary=list(encoded) or None,
        filesystem=storage.file_system(),
        pre_buffer=not storage.is_local,
    )


def _read(pieces: Sequence[Slice], schema: pa.Schema) -> pa.Table:
    """The rows of slices: each file is opened once, and each row group is read once."""
    encoded = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    tables = []
    for path in dict.fromkeys(piece.path for piece in pieces):
        path_pieces = [piece for piece in pieces if piece.path == path]
        with _opened(path_pieces[0].storage, path, encoded) as file:
            whole_groups = [piece.row_group for piece in path_pieces if not piece.mixed]
            if whole_groups:
                rows = file.read_row_groups(whole_groups, columns=schema.names, use_threads=False)
                tables.append(rows.select(schema.names).cast(schema))
            mixed: dict[int, list[Slice]] = {}
            for piece in path_pieces:
                if piece.mixed:
                    mixed.setdefault(piece.row_group, []).append(piece)
            tables += [_read_mixed(file, number, mixed_pieces, schema) for number, mixed_pieces in mixed.items()]
    return pa.concat_tables(tables)


def _read_mixed(file: pq.ParquetFile, number: int, pieces: Sequence[Slice], schema: pa.Schema) -> pa.Table:
    """The rows of some slices of one row group."""
    names, runs = pieces[0].columns, pieces[0].runs
    extra = ["cluster_id", names.topic_id, names.partition, names.offset, "run_id"]
    rows = file.read_row_group(number, columns=[*dict.fromkeys([*schema.names, *extra])], use_threads=False)
    partitions, offsets, run_ids = (rows.column(name).to_numpy() for name in (names.partition, names.offset, "run_id"))
    chosen = np.zeros(rows.num_rows, np.bool_)
    of_topic: dict[tuple[str, str], dict[int, int]] = {}
    for piece in pieces:
        of_topic.setdefault((piece.cluster_id, piece.topic_id), {})[piece.partition] = piece.first_offset
    for (cluster_id, topic_id), begins in of_topic.items():
        in_topic = pc.and_(
            pc.equal(rows.column("cluster_id"), cluster_id), pc.equal(rows.column(names.topic_id), topic_id)
        )
        numbers = np.array(sorted(begins))
        at = np.minimum(np.searchsorted(numbers, partitions), len(numbers) - 1)
        firsts = np.array([begins[number] for number in numbers.tolist()])
        chosen |= in_topic.to_numpy() & (numbers[at] == partitions) & (offsets >= firsts[at])
    chosen &= (run_ids >= runs[0]) & (run_ids <= runs[1])
    rows = rows.select(schema.names).cast(schema)
    return rows if chosen.all() else rows.filter(pa.array(chosen))


def _slices_of(storage: Storage, path: str, columns: Columns, runs: tuple[int, int]) -> Iterator[Slice]:
    with _opened(storage, path) as file:
        metadata = file.metadata
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            chunks = [group.column(index) for index in range(group.num_columns)]
            bounds = _bounds(chunks)
            common = {
                "storage": storage,
                "path": path,
                "row_group": number,
                "columns": columns,
                "runs": runs,
                "size_bytes": group.total_byte_size,
                "value_count": max(chunk.num_values for chunk in chunks),
            }
            names = ("cluster_id", columns.topic_id, columns.partition)
            single = all(name in bounds and bounds[name][0] == bounds[name][1] for name in names)
            low, high = bounds.get("run_id", EVERY_RUN)
            if single and (low == high or runs[0] <= low <= high <= runs[1]):
                if runs[0] <= low <= high <= runs[1]:
                    yield Slice(
                        **common,
                        mixed=False,
                        cluster_id=bounds["cluster_id"][0],
                        topic_id=bounds[columns.topic_id][0],
                        partition=bounds[columns.partition][0],
                        first_offset=bounds[columns.offset][0],
                        last_offset=bounds[columns.offset][1],
                        record_count=group.num_rows,
                        oldest_ms=bounds[columns.timestamp][0],
                        newest_ms=bounds[columns.timestamp][1],
                    )
            else:
                yield from _mixed(file, number, columns, runs, common)


def _bounds(chunks: Iterable[pq.ColumnChunkMetaData]) -> dict[str, tuple[Any, Any]]:
    result = {}
    for chunk in chunks:
        if chunk.statistics is not None and chunk.statistics.has_min_max:
            result[chunk.path_in_schema] = (chunk.statistics.min, chunk.statistics.max)
    return result


def _mixed(
    file: pq.ParquetFile, number: int, columns: Columns, runs: tuple[int, int], common: dict[str, Any]
) -> Iterator[Slice]:
    """Slices of a row group with several log partitions or runs."""
    names = ["cluster_id", columns.topic_id, columns.partition, columns.offset, columns.timestamp, "run_id"]
    thin = file.read_row_group(number, columns=names, use_threads=False)
    rows_of_group = thin.num_rows
    thin = thin.filter(
        pc.and_(pc.greater_equal(thin.column("run_id"), runs[0]), pc.less_equal(thin.column("run_id"), runs[1]))
    )
    grouped = thin.group_by(names[:3]).aggregate(
        [
            (columns.offset, "min"),
            (columns.offset, "max"),
            (columns.offset, "count"),
            (columns.timestamp, "min"),
            (columns.timestamp, "max"),
        ]
    )
    for row in grouped.to_pylist():
        yield Slice(
            **common | {name: common[name] * row[f"{columns.offset}_count"] // rows_of_group for name in SHARED_OUT},
            mixed=True,
            cluster_id=row["cluster_id"],
            topic_id=row[columns.topic_id],
            partition=row[columns.partition],
            first_offset=row[f"{columns.offset}_min"],
            last_offset=row[f"{columns.offset}_max"],
            record_count=row[f"{columns.offset}_count"],
            oldest_ms=row[f"{columns.timestamp}_min"],
            newest_ms=row[f"{columns.timestamp}_max"],
        )
