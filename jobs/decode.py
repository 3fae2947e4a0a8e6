"""Decode: bronze.log_record -> silver.share_record, silver.group_record and silver.name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, executors
from jobs.errors import JobError
from jobs.executors import Session
from jobs.groups import decode_groups
from jobs.ingest import KEPT_BYTES, QUARANTINE, new_problems
from jobs.plan import DAWN, OFFSETS_TOPIC, STATE_TOPIC
from jobs.progress import Progress
from kafka_log.schemas import LOG_RECORD, PROBLEM
from kafka_log.union import LogPartition
from lake import scan
from lake.delta import DataFile
from lake.parquet import ParquetSink, write_rows
from lake.slices import BRONZE, PartitionKey, Slice, read_unit, slices, units
from lake.tables import CLOCK_STEP, NAME, TABLES
from state_model.columnar.clock import clock_steps
from state_model.columnar.decode import decode_share_records
from state_model.uuids import ZERO_UUID

SHARE_RECORD, GROUP, NAMES = "silver.share_record", "silver.group_record", "silver.name"
CLOCK_STEPS = "silver.clock_step"
DECODED_FROM = "bronze.log_record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Slices of one log partition that are decoded together; `log_time_ms`: running maximum before them."""

    topic: str
    slices: tuple[Slice, ...]
    log_time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one executor task decodes."""

    lake: Path
    cluster_id: str
    run: int
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a task: files by table, PROBLEM rows, rows decoded, group records by type name, topic names seen."""

    files: dict[str, tuple[DataFile, ...]]
    problems: pa.Table
    counts: dict[str, int]
    names: pa.Table
    clock_steps: pa.Table


def decode_task(task: Task) -> Outcome:
    """Decodes the units of a task and writes their rows; runs on an executor."""
    constants = {"cluster_id": task.cluster_id, "run_id": task.run}
    problems = [PROBLEM.empty_table()]
    names = [NAME.empty_table()]
    steps = [CLOCK_STEP.empty_table()]
    counts: dict[str, int] = {}
    with (
        ParquetSink(task.lake, TABLES[SHARE_RECORD], constants=constants) as shares,
        ParquetSink(task.lake, TABLES[GROUP], constants=constants) as groups,
    ):
        for unit in task.units:
            rows = read_unit(unit.slices, LOG_RECORD)
            if unit.topic == STATE_TOPIC:
                running = log_times(rows, unit)
                steps.append(clock_steps(rows, running).cast(CLOCK_STEP))
                problems.append(_decode_shares(rows, running, unit, shares))
            else:
                decoded = decode_groups(rows)
                groups.write(decoded.records)
                names.append(decoded.names)
                problems.append(decoded.problems)
                for name, number in decoded.counts.items():
                    counts[name] = counts.get(name, 0) + number
    return Outcome(
        files={SHARE_RECORD: tuple(shares.files), GROUP: tuple(groups.files)},
        problems=pa.concat_tables(problems),
        counts={**counts, SHARE_RECORD: shares.record_count, GROUP: groups.record_count},
        names=pa.concat_tables(names),
        clock_steps=pa.concat_tables(steps),
    )


def log_times(rows: pa.Table, unit: Unit) -> npt.NDArray[np.int64]:
    """Running maximum of the record timestamps of a unit.

    Raises:
        JobError: an offset occurs twice, which bronze must not hold.
    """
    if (np.diff(rows.column("offset").to_numpy()) <= 0).any():
        piece = unit.slices[0]
        raise JobError(f"{unit.topic}-{piece.partition}: bronze holds an offset twice near {piece.first_offset}")
    return np.maximum.accumulate(np.maximum(rows.column("timestamp_ms").to_numpy(), unit.log_time_ms))


def _decode_shares(rows: pa.Table, running: npt.NDArray[np.int64], unit: Unit, sink: ParquetSink) -> pa.Table:
    """Writes the decoded records of a unit; the problems."""
    batch = rows.combine_chunks().to_batches()[0]
    decoded = decode_share_records(batch, log_time_ms=running)
    sink.write(pa.Table.from_batches([decoded.records]))
    return share_problems(decoded.problems, unit.topic)


def share_problems(problems: pa.RecordBatch, topic: str) -> pa.Table:
    """PROBLEM rows of records that could not be decoded."""
    found = pa.Table.from_batches([problems])
    count = found.num_rows
    value = pc.binary_slice(pc.fill_null(found.column("value"), b""), 0, KEPT_BYTES)
    key = pc.binary_slice(pc.fill_null(found.column("key"), b""), 0, KEPT_BYTES)
    columns = {
        "source_id": pa.repeat("", count),
        "topic": pa.repeat(topic, count),
        "topic_id": found.column("log_topic_id"),
        "partition": found.column("state_partition"),
        "file": pa.repeat(DECODED_FROM, count),
        "position": found.column("log_offset"),
        "offset": found.column("log_offset"),
        "last_offset": found.column("log_offset"),
        "reason": found.column("reason"),
        "detail": found.column("detail"),
        "bytes": pc.binary_join_element_wise(key, value, b""),
    }
    return pa.table(columns).cast(PROBLEM)


def changed(lake: Path, after: int, contents: Sequence[str]) -> dict[PartitionKey, dict[str, Any]]:
    """Log partitions with extents of runs after `after`: the newest row of each, `rebuild` if any of them says so."""
    rows = books.extents(
        lake, (pc.field("run_id") > after) & (pc.field("status") == "taken") & pc.field("content").isin(list(contents))
    )
    result = {}
    for key, group in books.by_partition(rows).items():
        newest = max(group, key=lambda r: r["run_id"])
        result[key] = {**newest, "rebuild": any(r["rebuild"] for r in group)}
    return result


def run_decode(spark: Session, lake: Path, run: int, progress: Progress) -> dict[str, int]:
    """Decodes what was taken since the last decode; rows by table and group record type."""
    before = books.done(lake, "decode")
    partitions = {
        k: r for k, r in changed(lake, before, ["log_record"]).items() if r["topic"] in (STATE_TOPIC, OFFSETS_TOPIC)
    }
    late = {key for key, row in partitions.items() if row["rebuild"]}
    fresh = slices(lake, DECODED_FROM, BRONZE, runs=(before + 1, run), only=set(partitions) - late)
    whole = slices(lake, DECODED_FROM, BRONZE, runs=(0, run), only=late) if late else {}
    earlier = books.by_partition(books.extents(lake, (pc.field("run_id") <= before) & (pc.field("status") == "taken")))
    planned: list[tuple[Unit, int]] = []
    for key, pieces in sorted({**fresh, **whole}.items()):
        begun = max((r["log_time_ms"] for r in earlier.get(key, []) if r["log_time_ms"] is not None), default=DAWN)
        planned += units_of(partitions[key]["topic"], pieces, DAWN if key in late else begun)
    cluster_id = next((row["cluster_id"] for row in partitions.values()), "")
    tasks = [Task(lake=lake, cluster_id=cluster_id, run=run, units=tuple(group)) for group in executors.binned(planned)]
    outcomes = executors.run_tasks(spark, "decode", decode_task, tasks, progress)
    return _commit(lake, run, outcomes, late, cluster_id)


def units_of(topic: str, pieces: Sequence[Slice], log_time_ms: int) -> list[tuple[Unit, int]]:
    """Slices of one log partition as units with their size in bytes, log time running on."""
    result = []
    for unit in units(pieces):
        result.append((Unit(topic=topic, slices=tuple(unit), log_time_ms=log_time_ms), sum(s.size_bytes for s in unit)))
        log_time_ms = max(log_time_ms, *(piece.newest_ms for piece in unit))
    return result


def _commit(
    lake: Path, run: int, outcomes: Sequence[Outcome], late: set[PartitionKey], cluster_id: str
) -> dict[str, int]:
    constants = {"cluster_id": cluster_id, "run_id": run}
    place = {GROUP: ("log_topic_id", "partition"), SHARE_RECORD: ("log_topic_id", "state_partition")}
    found = pa.concat_tables([PROBLEM.empty_table(), *(o.problems for o in outcomes)])
    if not books.is_committed(lake, QUARANTINE, "decode", run):
        files = write_rows(lake, TABLES[QUARANTINE], new_problems(lake, found), constants)
        books.commit(lake, QUARANTINE, "decode", run, files)
    if not books.is_committed(lake, NAMES, "decode", run):
        names = new_names(lake, pa.concat_tables([NAME.empty_table(), *(o.names for o in outcomes)]))
        books.commit(lake, NAMES, "decode", run, write_rows(lake, TABLES[NAMES], names, constants))
    if not books.is_committed(lake, CLOCK_STEPS, "decode", run):
        steps = pa.concat_tables([CLOCK_STEP.empty_table(), *(o.clock_steps for o in outcomes)])
        drop = books.of_partitions(late, *place[SHARE_RECORD]) if late else None
        kept, removes = ([], []) if drop is None else books.rewritten_without(lake, CLOCK_STEPS, drop)
        files = write_rows(lake, TABLES[CLOCK_STEPS], steps, constants)
        books.commit(lake, CLOCK_STEPS, "decode", run, [*files, *kept], removes)
    for name in (GROUP, SHARE_RECORD):
        if books.is_committed(lake, name, "decode", run):
            continue
        adds = [file for outcome in outcomes for file in outcome.files[name]]
        kept, removes = (
            books.rewritten_without(lake, name, books.of_partitions(late, *place[name])) if late else ([], [])
        )
        books.commit(lake, name, "decode", run, [*adds, *kept], removes)
    counts: dict[str, int] = {"problems": found.num_rows}
    for outcome in outcomes:
        for name, number in outcome.counts.items():
            counts[name] = counts.get(name, 0) + number
    return counts


def new_names(lake: Path, names: pa.Table) -> pa.Table:
    """`names` (NAME rows) without those that the lake knows; one row a (topic id, topic)."""
    held = scan.dataset_at(lake, NAMES).to_table(columns=["topic_id", "topic"]).to_pylist()
    known = {(row["topic_id"], row["topic"]) for row in held}
    rows = []
    for row in names.to_pylist():
        if (row["topic_id"], row["topic"]) not in known:
            known.add((row["topic_id"], row["topic"]))
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=NAME)


def told_names(lake: Path, partitions: Sequence[LogPartition], given: dict[str, str]) -> pa.Table:
    """NAME rows that partition directories and --topic-names tell and the lake doesn't know yet."""
    found = {(p.topic_id, p.topic): "partition.metadata" for p in partitions if p.topic_id != ZERO_UUID}
    found |= {pair: "topic_names" for pair in given.items() if pair not in found}
    rows = [
        {"topic_id": topic_id, "topic": topic, "source": source, "valid_from_ms": None}
        for (topic_id, topic), source in sorted(found.items())
    ]
    return new_names(lake, pa.Table.from_pylist(rows, schema=NAME))


def commit_names(lake: Path, stage: str, run: int, cluster_id: str, names: pa.Table) -> None:
    """Commits names to silver.name for a stage of a run."""
    files = write_rows(lake, TABLES[NAMES], names, {"cluster_id": cluster_id, "run_id": run})
    books.commit(lake, NAMES, stage, run, files)
