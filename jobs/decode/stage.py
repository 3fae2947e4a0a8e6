"""Decode: bronze.log_record -> silver.share_record, group_record and dlq_record, and the small tables that follow."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, retained
from jobs.decode.merged import LEAST, merged
from jobs.decode.topic_starts import STARTS, lowest, named_starts
from jobs.errors import JobError
from jobs.ingest.names import NAMES
from jobs.progress import Progress
from jobs.quarantine import QUARANTINE, new_problems
from jobs.spark import executors
from jobs.spark.executors import Engine
from sharelens.evidence.clock_steps import clock_steps
from sharelens.evidence.coverage import newest_log_time
from sharelens.evidence.decoding import decode_logs, problem_rows
from sharelens.evidence.group_decoding import decode_groups
from sharelens.evidence.log_time import NO_LOG_TIME
from sharelens.evidence.schemas import CLOCK_STEP, DECODED_FROM, NAME, ODD_GROUP_RECORD
from sharelens.evidence.undecoded_groups import DECODED_FROM_RUN, decoded_from
from sharelens.kafka_log.dead_letter_records import LETTER, typed_letters
from sharelens.kafka_log.schemas import LOG_RECORD, PROBLEM
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, ParquetSink, write_rows
from sharelens.lake.slices import BRONZE, PartitionKey, Slice, read_partitions, read_unit, slices, units
from sharelens.lake.table_schemas import TOPIC_START
from sharelens.lake.tables import TABLES
from state_model.topics import OFFSETS_TOPIC, RECORD_TOPICS, STATE_TOPIC

SHARE_RECORD, GROUP, LETTERS = "silver.share_record", "silver.group_record", "silver.dlq_record"
CLOCK_STEPS, ODD_GROUP = "silver.clock_step", "silver.odd_group_record"
TOGETHER_BYTES = 1 << 20
"""About this much of small state partitions is decoded at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Slices of one log partition that are decoded together; `log_time_ms`: running maximum before them."""

    cluster_id: str
    topic: str
    slices: tuple[Slice, ...]
    log_time_ms: int

    @property
    def topic_id(self) -> str:
        """The topic's id."""
        return self.slices[0].topic_id

    @property
    def size_bytes(self) -> int:
        """Bytes that its slices have in their files."""
        return sum(piece.size_bytes for piece in self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The units that one executor task decodes."""

    lake: Lake
    run: int
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a task: files by table, rows for the driver to write by table (with cluster_id), counts by name."""

    files: dict[str, tuple[DataFile, ...]]
    rows: dict[str, pa.Table]
    counts: dict[str, int]


SMALL_TABLES = {
    QUARANTINE: PROBLEM,
    NAMES: NAME,
    CLOCK_STEPS: CLOCK_STEP,
    STARTS: TOPIC_START,
    ODD_GROUP: ODD_GROUP_RECORD,
}
"""Tables of which a task yields few rows; the driver writes them."""


def no_rows(table: str) -> pa.Table:
    """An empty table of SMALL_TABLES with the cluster column."""
    return books.of_cluster(SMALL_TABLES[table].empty_table(), "")


def _joined(table: str, parts: Sequence[pa.Table]) -> pa.Table:
    """Rows of a table of SMALL_TABLES."""
    rows = pa.concat_tables(parts)
    return lowest(rows) if table == STARTS else rows


def decode_task(task: Task) -> Outcome:
    """Decodes the units of a task and writes their rows; runs on an executor."""
    constants = {"run_id": task.run}
    small = {table: [no_rows(table)] for table in SMALL_TABLES}
    counts: dict[str, int] = {}
    with (
        ParquetSink(task.lake, TABLES[SHARE_RECORD], constants=constants) as shares,
        ParquetSink(task.lake, TABLES[GROUP], constants=constants) as groups,
        ParquetSink(task.lake, TABLES[LETTERS], constants=constants) as letters,
    ):
        for neighbours in together(task.units):
            unit = neighbours[0]
            if unit.topic not in RECORD_TOPICS:
                letters.write(typed_letters(read_unit(unit.slices, LETTER)), cluster_id=unit.cluster_id)
                continue
            if unit.topic == STATE_TOPIC:
                small_rows = _decode_shares(neighbours, shares)
            else:
                decoded = decode_groups(read_unit(unit.slices, LOG_RECORD))
                groups.write(books.of_cluster(decoded.records, unit.cluster_id))
                small_rows = {NAMES: decoded.names, QUARANTINE: decoded.problems, ODD_GROUP: decoded.odd_records}
                for name, number in decoded.counts.items():
                    counts[name] = counts.get(name, 0) + number
            for table, few in small_rows.items():
                small[table].append(books.of_cluster(few, unit.cluster_id))
    return Outcome(
        files={SHARE_RECORD: tuple(shares.files), GROUP: tuple(groups.files), LETTERS: tuple(letters.files)},
        rows={table: _joined(table, tables) for table, tables in small.items()},
        counts={
            **counts,
            SHARE_RECORD: shares.record_count,
            GROUP: groups.record_count,
            LETTERS: letters.record_count,
        },
    )


def together(planned: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Neighbouring units that are decoded at once: small ones of one state topic; else each alone.

    What decoding costs beside its records, it costs once for all of them, and their rows are one row group.
    """
    for (_, topic, _), topic_units in itertools.groupby(
        planned, lambda unit: (unit.cluster_id, unit.topic, unit.topic_id)
    ):
        sizes = [(unit, unit.size_bytes) for unit in topic_units]
        yield from executors.binned(sizes, TOGETHER_BYTES if topic == STATE_TOPIC else 0)


def _decode_shares(topic_units: Sequence[Unit], sink: ParquetSink) -> dict[str, pa.Table]:
    """Writes the decoded records of some units of one state topic; the rows for other tables.

    Raises:
        JobError: bronze holds an offset twice.
    """
    before_ms: dict[int, int] = {}
    for unit in topic_units:
        before_ms.setdefault(unit.slices[0].partition, unit.log_time_ms)
    rows = read_partitions([piece for unit in topic_units for piece in unit.slices], LOG_RECORD)
    try:
        decoded = decode_logs(rows, [before_ms[number] for number in sorted(before_ms)])
    except ValueError as error:
        raise JobError(f"{topic_units[0].topic}: bronze holds an offset twice: {error}") from error
    sink.write(books.of_cluster(decoded.records, topic_units[0].cluster_id))
    return {
        QUARANTINE: problem_rows(decoded.problems),
        CLOCK_STEPS: clock_steps(rows, decoded.log_times),
        STARTS: named_starts(decoded.records),
    }


def run_decode(engine: Engine, lake: Lake, run: int, progress: Progress) -> dict[str, int]:
    """Decodes the records taken since the last decode; returns row counts by table and group record type."""
    before = books.done(lake, "decode")
    partitions = books.changed(lake, before, ["log_record"])
    late = {key for key, row in partitions.items() if row["rebuild"]}
    fresh = slices(lake.snapshot(DECODED_FROM), BRONZE, runs=(before + 1, run), only=set(partitions) - late)
    begins = retained.offsets(retained.cuts(lake, retained.BRONZE)) if late else {}
    whole_slices = slices(lake.snapshot(DECODED_FROM), BRONZE, runs=(0, run), only=late, begins=begins) if late else {}
    earlier = books.by_partition(books.extents(lake, (pc.field("run_id") <= before) & (pc.field("status") == "taken")))
    planned: list[tuple[Unit, int]] = []
    for key, pieces in sorted({**fresh, **whole_slices}.items()):
        begun = None if key in late else newest_log_time(earlier.get(key, []))
        planned += units_of(partitions[key]["topic"], key[0], pieces, NO_LOG_TIME if begun is None else begun)
    tasks = [Task(lake=lake, run=run, units=tuple(group)) for group in executors.binned(planned)]
    size_bytes = sum(size for _, size in planned)
    outcomes = engine.run("decode", decode_task, tasks, progress, size_bytes=size_bytes)
    group_logs = {key for key, rows in earlier.items() if rows[0]["topic"] == OFFSETS_TOPIC}
    written = lake.transaction(GROUP, DECODED_FROM_RUN)
    first_run = decoded_from(before, run, written, is_rebuilt=group_logs <= late)
    marks = {} if first_run == written else {DECODED_FROM_RUN: first_run}
    return _commit(lake, run, outcomes, late, begins, marks)


def units_of(topic: str, cluster_id: str, pieces: Sequence[Slice], log_time_ms: int) -> list[tuple[Unit, int]]:
    """Slices of one log partition as units with their size in bytes, log time running on."""
    result = []
    for unit in units(pieces):
        planned = Unit(cluster_id=cluster_id, topic=topic, slices=tuple(unit), log_time_ms=log_time_ms)
        result.append((planned, planned.size_bytes))
        log_time_ms = max(log_time_ms, *(piece.newest_ms for piece in unit))
    return result


def _commit(
    lake: Lake,
    run: int,
    outcomes: Sequence[Outcome],
    late: set[PartitionKey],
    begins: dict[PartitionKey, int],
    group_marks: Mapping[str, int],
) -> dict[str, int]:
    """Commits the rows of the tasks; silver.share_record last, as the mark that decode is done.

    Below `begins`, where retention has cut bronze, rows stay as they are. `group_marks`: of silver.group_record.
    """
    small = {table: _joined(table, [no_rows(table), *(o.rows[table] for o in outcomes)]) for table in SMALL_TABLES}
    fresh = {QUARANTINE: new_problems(lake, small[QUARANTINE])}
    fresh |= {name: small[name] for name in (CLOCK_STEPS, ODD_GROUP)}
    place, of_groups = ("log_topic_id", "state_partition", "log_offset"), ("log_topic_id", "partition", "log_offset")
    replaced = {CLOCK_STEPS: place, GROUP: of_groups, ODD_GROUP: of_groups, SHARE_RECORD: place}
    replaced[LETTERS] = ("dlq_topic_id", "dlq_partition", "dlq_offset")
    starts_over = books.of_partitions(late - begins.keys(), *place[:2])
    for name in (QUARANTINE, NAMES, CLOCK_STEPS, STARTS, ODD_GROUP, GROUP, LETTERS, SHARE_RECORD):
        if books.is_committed(lake, name, "decode", run):
            continue
        drop = retained.derived_again(late, *replaced[name], begins) if name in replaced else None
        if name in LEAST:
            adds, removes = merged(lake, name, small[name], run, starts_over if name == STARTS else None)
        else:
            adds = [file for outcome in outcomes for file in outcome.files.get(name, ())]
            adds += write_rows(lake, TABLES[name], fresh[name], {"run_id": run}) if name in fresh else []
            if name != QUARANTINE:  # ingest writes to this table as well; each problem has one row
                drop = books.with_unfinished(lake, name, "decode", run, drop)
            kept_files, removes = books.rewritten_without(lake, name, drop)
            adds += kept_files
        books.commit(lake, name, "decode", run, adds, removes, marks=group_marks if name == GROUP else {})
    counts: dict[str, int] = {"problems": small[QUARANTINE].num_rows}
    for outcome in outcomes:
        for name, number in outcome.counts.items():
            counts[name] = counts.get(name, 0) + number
    return counts
