"""Ingest: log directories -> bronze. It commits the plan first, then the rows.

A killed run is finished from its plan. State partitions are read before user topics, so a lag may be too high by the
records that arrived between, never negative.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.errors import JobError
from jobs.ingest.copies import set_aside, superseded_problems
from jobs.ingest.plan import Extent, weight
from jobs.progress import Progress
from jobs.quarantine import QUARANTINE, new_problems
from jobs.spark import executors
from jobs.spark.executors import Engine
from sharelens.evidence.coverage import ranges_of_offsets
from sharelens.evidence.intervals import Interval, difference, union
from sharelens.evidence.losses import Damage, gap_reason
from sharelens.kafka_log import reader
from sharelens.kafka_log.dead_letter_records import letters_of, without_digests
from sharelens.kafka_log.schemas import PROBLEM
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, ParquetSink, write_rows
from sharelens.lake.tables import BRONZE_LOG_RECORD, BRONZE_TOPIC_BATCH, TABLES
from state_model.topics import RECORD_TOPICS, STATE_TOPIC

TABLE_OF = {"ingest": BRONZE_LOG_RECORD, "topics": BRONZE_TOPIC_BATCH}
"""The table that a reading stage fills."""
HEADER_WEIGHT_BYTES = 1 << 20
"""The weight of reading a batch header, against reading records."""
PartitionKey = tuple[str, int]
"""(topic id, partition) of a log partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A split to read: of log records, or of batch headers."""

    topic_id: str
    partition: int
    work: Any
    from_offset: int
    to_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The splits that one executor task reads, and the table that it writes."""

    lake: Lake
    table: str
    cluster_id: str
    run: int
    pieces: tuple[Piece, ...]
    include_uncommitted: bool
    keep_dlq_values: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """The result of one split. `intervals`: offsets that were read; `sha256`: over keys, values and offsets."""

    topic_id: str
    partition: int
    from_offset: int
    record_count: int
    size_bytes: int
    sha256: bytes
    log_time_ms: int | None
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a task: files of `table`, the result of each split, PROBLEM rows."""

    table: str
    files: tuple[DataFile, ...]
    splits: tuple[SplitResult, ...]
    problems: pa.Table


def read_task(task: Task) -> Outcome:
    """Reads the pieces of a task and writes their rows; runs on an executor."""
    splits: list[SplitResult] = []
    problems: list[pa.Table] = [PROBLEM.empty_table()]
    constants = {"cluster_id": task.cluster_id, "run_id": task.run}
    with ParquetSink(task.lake, TABLES[task.table], constants=constants) as sink:
        for piece in task.pieces:
            chunks = _record_chunks(piece, task) if task.table == BRONZE_LOG_RECORD else _header_chunks(piece)
            splits.append(_take(piece, chunks, sink, problems))
    return Outcome(table=task.table, files=tuple(sink.files), splits=tuple(splits), problems=pa.concat_tables(problems))


def _record_chunks(piece: Piece, task: Task) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """The records of an internal topic, or the dead letters of any other."""
    internal = piece.work.partition.topic in RECORD_TOPICS
    for chunk in reader.read_split(piece.work, include_uncommitted=task.include_uncommitted):
        rows = (
            without_digests(chunk.records) if internal else letters_of(chunk.records, keep_values=task.keep_dlq_values)
        )
        yield rows, chunk.problems


def _header_chunks(piece: Piece) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """The headers of a piece; a batch that a border cuts belongs to the side that holds its last offset."""
    none = pa.RecordBatch.from_pylist([], schema=PROBLEM)
    last = pc.field("last_offset")
    for batch in reader.scan_batches(piece.work, piece.from_offset, piece.to_offset):
        yield batch.filter((last >= piece.from_offset) & (last < piece.to_offset)), none


def _take(
    piece: Piece,
    chunks: Iterator[tuple[pa.RecordBatch, pa.RecordBatch]],
    sink: ParquetSink,
    problems: list[pa.Table],
) -> SplitResult:
    digest = hashlib.sha256()
    count = size = 0
    newest: int | None = None
    intervals: list[Interval] = []
    for rows, troubles in chunks:
        if troubles.num_rows:
            problems.append(pa.Table.from_batches([troubles]))
        if rows.num_rows == 0:
            continue
        chunk_intervals = _intervals(rows)
        if intervals and chunk_intervals[0][0] < intervals[-1][1]:
            raise JobError(f"{piece.topic_id}-{piece.partition}: offset {chunk_intervals[0][0]} was read twice")
        sink.write_together(pa.Table.from_batches([rows]))
        count += rows.num_rows
        size += _weigh(rows, digest)
        stamps = rows.column("timestamp_ms" if "timestamp_ms" in rows.schema.names else "max_timestamp_ms")
        newest = max(pc.max(stamps).as_py(), newest if newest is not None else -(1 << 63))
        intervals = union([*intervals, *chunk_intervals])
    return SplitResult(
        topic_id=piece.topic_id,
        partition=piece.partition,
        from_offset=piece.from_offset,
        record_count=count,
        size_bytes=size,
        sha256=digest.digest(),
        log_time_ms=newest,
        intervals=tuple(intervals),
    )


def _weigh(rows: pa.RecordBatch, digest: Any) -> int:
    """Bytes of keys and values, or of the batches; the same goes into the digest, of a dead letter its digests."""
    if "size_bytes" in rows.schema.names:
        for name in ("base_offset", "size_bytes", "max_timestamp_ms"):
            digest.update(np.ascontiguousarray(rows.column(name).to_numpy()))
        return int(pc.sum(rows.column("size_bytes")).as_py())
    digest.update(np.ascontiguousarray(rows.column("offset").to_numpy()))
    internal = rows.column("topic")[0].as_py() in RECORD_TOPICS
    size = 0
    for name in ("key", "value"):
        column = rows.column(name) if internal else rows.column(f"{name}_sha256").cast(pa.binary())
        size += int(pc.sum(rows.column(f"{name}_size_bytes")).as_py() or 0)
        lengths = pc.fill_null(pc.binary_length(column), -1).to_numpy()
        digest.update(np.ascontiguousarray(lengths))
        size += int(lengths[lengths > 0].sum()) if internal else 0
        digest.update(
            pc.binary_join(pa.ListArray.from_arrays([0, len(column)], pc.fill_null(column, b"")), b"")[0].as_buffer()
        )
    return size


def _intervals(rows: pa.RecordBatch) -> list[Interval]:
    """The offsets of rows in offset order, as intervals."""
    names = ("offset", "offset") if "offset" in rows.schema.names else ("base_offset", "last_offset")
    first, last = (rows.column(name).to_numpy() for name in names)
    return ranges_of_offsets(first, last)


def pieces_of(extents: Sequence[Extent], split_bytes: int) -> list[tuple[Piece, int]]:
    """The extents cut into splits, each with its size in bytes, in (topic id, partition, offset) order."""
    pieces = []
    for extent in sorted(extents, key=lambda e: (e.partition.topic_id, e.partition.partition)):
        topic_id, number = extent.partition.topic_id, extent.partition.partition
        if not extent.partition.copies:
            continue
        for first, end in extent.ranges:
            if extent.content == "topic_batch":
                pieces.append(
                    (
                        Piece(
                            topic_id=topic_id, partition=number, work=extent.partition, from_offset=first, to_offset=end
                        ),
                        HEADER_WEIGHT_BYTES,
                    )
                )
                continue
            cuts = reader.splits(extent.partition, first, end, split_bytes)
            for split in cuts:
                piece = Piece(
                    topic_id=topic_id,
                    partition=number,
                    work=split,
                    from_offset=split.from_offset,
                    to_offset=split.to_offset,
                )
                pieces.append((piece, weight(extent, first, end) // len(cuts)))
    return pieces


def read_extents(
    engine: Engine,
    lake: Lake,
    extents: Sequence[Extent],
    *,
    table: str,
    cluster_id: str,
    run: int,
    include_uncommitted: bool,
    keep_dlq_values: bool,
    split_bytes: int,
    progress: Progress,
) -> list[Outcome]:
    """Reads extents."""
    pieces = pieces_of(extents, split_bytes)
    tasks = [
        Task(
            lake=lake,
            table=table,
            cluster_id=cluster_id,
            run=run,
            pieces=tuple(together),
            include_uncommitted=include_uncommitted,
            keep_dlq_values=keep_dlq_values,
        )
        for together in executors.binned(pieces)
    ]
    size_bytes = sum(size for _, size in pieces)
    return engine.run(f"ingest {table}", read_task, tasks, progress, size_bytes=size_bytes)


def taken_rows(
    planned: Sequence[dict[str, Any]], extents: Sequence[Extent], outcomes: Sequence[Outcome]
) -> list[dict[str, Any]]:
    """The planned rows with counts, digest, log time and gaps; counts stand at a partition's first copy."""
    taken_by_partition: dict[PartitionKey, list[SplitResult]] = {}
    for outcome in outcomes:
        for split in outcome.splits:
            taken_by_partition.setdefault((split.topic_id, split.partition), []).append(split)
    damage: dict[PartitionKey, list[Damage]] = {}
    for problem in (row for outcome in outcomes for row in outcome.problems.to_pylist()):
        if problem["first_offset"] is not None and problem["last_offset"] is not None:
            place = (problem["first_offset"], problem["last_offset"] + 1, problem["reason"])
            damage.setdefault((problem["topic_id"], problem["partition"]), []).append(place)
    result = []
    extent_of = {(e.partition.topic_id, e.partition.partition, e.content): e for e in extents}
    counted: set[tuple[str, int, str]] = set()
    for row in planned:
        key = (row["topic_id"], row["partition"], row["content"])
        if is_rebuild(row):
            result.append({**row, "status": "taken"})
            continue
        extent = extent_of[key]
        pieces = sorted(taken_by_partition.get(key[:2], []), key=lambda t: t.from_offset)
        times = [t.log_time_ms for t in pieces if t.log_time_ms is not None]
        times += [] if extent.log_time_ms is None else [extent.log_time_ms]
        filled = {
            **row,
            "status": "taken",
            "gaps": gaps_of(extent, pieces, damage.get(key[:2], [])),
            "sha256": hashlib.sha256(b"".join(t.sha256 for t in pieces)).hexdigest(),
            "log_time_ms": max(times, default=None),
        }
        if key not in counted:
            filled["record_count"] = sum(t.record_count for t in pieces)
            filled["size_bytes"] = sum(t.size_bytes for t in pieces)
        counted.add(key)
        result.append(filled)
    return result


def is_rebuild(row: dict[str, Any]) -> bool:
    """Whether an extent only makes derived tables start over, without records."""
    return str(row["source_id"]).startswith("rebuild ")


def gaps_of(extent: Extent, pieces: Sequence[SplitResult], damage: Sequence[Damage]) -> list[dict[str, Any]]:
    """The offset ranges of an extent that the evidence lacks, with the reason.

    __share_group_state is neither compacted nor transactional, so there every missing offset is lost. In other topics
    holes are ordinary (compaction, transaction markers), so only offsets with a problem are lost.
    """
    extent_range = (extent.from_offset, extent.end)
    read = [interval for piece in pieces for interval in piece.intervals]
    if extent.partition.topic == STATE_TOPIC or not extent.partition.copies:
        missing = difference([extent_range], [*extent.covered, *read])
    else:
        missing = difference(
            [(max(a, extent_range[0]), min(b, extent_range[1])) for a, b, _ in damage], [*extent.covered, *read]
        )
    log = extent.partition
    return [
        {
            "first_offset": gap[0],
            "last_offset": gap[1] - 1,
            "reason": gap_reason(gap, damage, log.copies, log.log_start_offset),
        }
        for gap in missing
    ]


def commit_taken(
    lake: Lake,
    stage: str,
    run: int,
    outcomes: Sequence[Outcome],
    extents: Sequence[Extent],
    rows: Sequence[dict[str, Any]],
) -> None:
    """Commits bronze: rows, quarantine and, as the mark that the stage is done, the taken extents (`rows`)."""
    table = TABLE_OF[stage]
    cluster_id = rows[0]["cluster_id"] if rows else ""
    if not books.is_committed(lake, QUARANTINE, stage, run):
        parts = [superseded_problems(lake, cluster_id, extents), *(outcome.problems for outcome in outcomes)]
        problems = new_problems(lake, books.of_cluster(pa.concat_tables(parts), cluster_id))
        books.commit(lake, QUARANTINE, stage, run, write_rows(lake, TABLES[QUARANTINE], problems, {"run_id": run}))
    if not books.is_committed(lake, table, stage, run):
        adds = [file for outcome in outcomes for file in outcome.files]
        kept_files, removes = books.rewritten_without(lake, table, set_aside(cluster_id, extents))
        books.commit(lake, table, stage, run, [*adds, *kept_files], removes)
    is_planned = (pc.field("run_id") == run) & (pc.field("status") == "planned")
    kept_files, removes = books.rewritten_without(lake, books.EXTENT, is_planned)
    files = write_rows(lake, TABLES[books.EXTENT], books.rows_table(books.EXTENT, rows), {})
    books.commit(lake, books.EXTENT, stage, run, [*files, *kept_files], removes)
