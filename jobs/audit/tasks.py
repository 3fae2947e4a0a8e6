"""The tasks of the audit: state partitions are audited together, as far as their records fit into memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.audit import standing
from jobs.audit.beside import NO_ROWS, Beside, BesideAudit
from sharelens.evidence.auditing import audited_batches
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.lake.lake import LakeView
from sharelens.lake.parquet import DataFile, ParquetSink
from sharelens.lake.row_groups import hold_any
from sharelens.lake.slices import PartitionKey, Slice, read_partitions, read_unit, units
from sharelens.lake.tables import GOLD_AUDIT_STATE, TABLES
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, GroupSettings, largest
from state_model.audit.columnar.across import LOG_FINDING, STORED, of_log
from state_model.audit.columnar.continuation import AUDIT_STATE, FORMATS
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.partitions import LogFacts, PartitionsAudit
from state_model.audit.columnar.replayed import COMPARED

NOT_AUDITED: Final = ("topic", "timestamp_type", "base_offset", "producer_epoch")
AUDITED: Final = pa.schema([field for field in LOG_RECORD if field.name not in NOT_AUDITED])
"""The columns of a log record that the audit reads."""
TOGETHER_BYTES: Final = 32 << 20
"""Bytes of records, as they are in their files, that are audited at once at most, but for those of one row group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One state partition to audit: its new slices (all of them when it starts over), and what is known of its log.

    `starts_over`: a state that an earlier run stored does not count. `keeps_below`: but for what it notes below the
    first offset, where retention has dropped the records. `is_new`: the findings of the stored state are not stored.
    `is_compared`: with the states of the replay, unless it has read records that the audit leaves out. `at_start`:
    AT_START of the record at a log start that has moved.
    """

    cluster_id: str
    topic_id: str
    slices: tuple[Slice, ...]
    starts_over: bool
    is_new: bool
    keeps_below: bool
    is_compared: bool
    log: LogFacts
    at_start: pa.Table | None

    @property
    def key(self) -> PartitionKey:
        """The state partition."""
        return self.cluster_id, self.topic_id, self.log.state_partition

    @property
    def size_bytes(self) -> int:
        """Bytes that its slices have in their files."""
        return sum(piece.size_bytes for piece in self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The jobs that one executor task audits, by state partition; `replayed`: the replay's states, to compare with."""

    lake: LakeView
    run: int
    settings: Mapping[str, GroupSettings]
    beside: Beside
    jobs: tuple[Job, ...]
    replayed: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a task: files of gold.audit_state, LOG_FINDING rows, the number of records.

    `unchanged`: the identities (standing.IDENTITY) of findings that stay as they are stored. `beside`: rows of NO_ROWS.
    """

    files: tuple[DataFile, ...]
    findings: pa.Table
    unchanged: pa.Table
    beside: Mapping[str, pa.Table]
    record_count: int


def audit_task(task: Task) -> Outcome:
    """Audits the state partitions of a task and writes their states; runs on an executor."""
    tables, unchanged, count = [LOG_FINDING.empty_table()], [standing.NONE_UNCHANGED], 0
    beside = {table: [none] for table, none in NO_ROWS.items()}
    limits = {cluster_id: largest(settings, DELIVERY_COUNT_LIMIT) for cluster_id, settings in task.settings.items()}
    states = _stored_states(task.lake, task.jobs)
    with ParquetSink(task.lake, TABLES[GOLD_AUDIT_STATE], constants={"run_id": task.run}) as sink:
        for jobs in together(task.jobs):
            cluster_id, topic_id, _ = jobs[0].key
            audit, beside_audit, records = _audited(jobs, of_jobs(states, jobs), limits[cluster_id], task.beside)
            count += records
            sink.write(audit.state(), cluster_id=cluster_id, log_topic_id=topic_id)  # a row group of its own
            compared = np.array([job.is_compared for job in jobs])
            audit.compare(of_jobs(task.replayed, jobs).select(COMPARED), compared)
            audit.close()
            is_stored = np.array([not job.is_new for job in jobs])
            unchanged.append(standing.leave_unchanged(audit, is_stored, cluster_id, topic_id))
            for table, rows in beside_audit.rows().items():
                beside[table].append(rows)
            tables.append(of_log(findings([audit], STORED), cluster_id, topic_id))
    return Outcome(
        files=tuple(sink.files),
        findings=pa.concat_tables(tables),
        unchanged=pa.concat_tables(unchanged),
        beside={table: pa.concat_tables(rows) for table, rows in beside.items()},
        record_count=count,
    )


def together(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Neighbouring jobs of one incarnation of the state topic that are audited at once: their records fit into memory.

    What an audit costs beside its records, it costs once for all of them.
    """
    neighbours: list[Job] = []
    size = 0
    for job in jobs:
        if neighbours and (
            job.keeps_below
            or neighbours[-1].keeps_below
            or neighbours[-1].key[:2] != job.key[:2]
            or size + job.size_bytes > TOGETHER_BYTES
        ):
            yield neighbours
            neighbours, size = [], 0
        neighbours.append(job)
        size += job.size_bytes
    if neighbours:
        yield neighbours


def of_jobs(rows: pa.Table, jobs: Sequence[Job]) -> pa.Table:
    """The rows of the jobs' state partitions, by the columns cluster_id and PLACE."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for job in jobs:
        numbers.setdefault((job.cluster_id, job.topic_id), []).append(job.log.state_partition)
    is_chosen = np.zeros(rows.num_rows, np.bool_)
    for (cluster_id, topic_id), partition_numbers in numbers.items():
        is_of_topic = pc.and_(
            pc.equal(rows.column("cluster_id"), cluster_id), pc.equal(rows.column("log_topic_id"), topic_id)
        )
        is_chosen |= is_of_topic.to_numpy() & np.isin(rows.column("state_partition").to_numpy(), partition_numbers)
    return rows if is_chosen.all() else rows.filter(pa.array(is_chosen))


def _audited(
    jobs: Sequence[Job], stored: pa.Table, limit_of_group: Callable[[str], int | None], beside: Beside
) -> tuple[PartitionsAudit, BesideAudit, int]:
    """The audit of some state partitions after their new records, not closed, what it has beside, their number."""
    keeps_below = jobs[0].keeps_below
    logs = [job.log for job in jobs]
    states = None if keeps_below else stored
    if len(logs) == 1:
        audit: PartitionsAudit = PartitionAudit.of_log(logs[0], limit_of_group=limit_of_group, state=states)
    else:
        audit = PartitionsAudit(logs, limit_of_group=limit_of_group, states=states)
    if keeps_below and stored.num_rows and stored.column("format")[0].as_py() in FORMATS:
        audit.keep_below(stored, logs[0].first_offset)
    for job in jobs:
        if job.at_start is not None:
            audit.take_log_start(job.at_start)
    resumed = [] if states is None else states.column("state_partition").to_pylist()
    beside_audit = BesideAudit(beside, jobs[0].key[:2], audit, resumed=resumed)
    count = 0
    for rows in _records(jobs):
        for decoded in audited_batches(audit, rows):
            beside_audit.take(decoded.records)
            count += len(decoded.log_times)
    return audit, beside_audit, count


def _records(jobs: Sequence[Job]) -> Iterator[pa.Table]:
    """AUDITED rows by state partition, then by offset; those of several jobs at once."""
    if len(jobs) == 1:
        yield from (read_unit(unit, AUDITED) for unit in units(jobs[0].slices))
        return
    pieces = [piece for job in jobs for piece in job.slices]
    if pieces:
        yield read_partitions(pieces, AUDITED)


def _stored_states(lake: LakeView, jobs: Sequence[Job]) -> pa.Table:
    """AUDIT_STATE, with cluster_id and log_topic_id, of the jobs that go on from a stored state, by state partition."""
    jobs = [job for job in jobs if job.keeps_below or not job.starts_over]
    columns = ["cluster_id", "log_topic_id", *AUDIT_STATE.names]
    if not jobs:
        return TABLES[GOLD_AUDIT_STATE].schema.empty_table().select(columns)
    numbers = np.array(sorted({job.log.state_partition for job in jobs}))
    row_groups = lake.snapshot(GOLD_AUDIT_STATE).row_groups(numbers)
    bounds = row_groups.integers("state_partition")
    chosen = hold_any(bounds.low, bounds.high, numbers)
    states = of_jobs(pa.concat_tables(row_groups.read(chosen, columns)), jobs)
    return _by_state_partition(states)


def _by_state_partition(states: pa.Table) -> pa.Table:
    """The rows in the order of state partitions, as slices: a state is large, and its lists are joined later anyway."""
    order = np.argsort(states.column("state_partition").to_numpy(), kind="stable")
    cuts = np.flatnonzero(np.diff(order) != 1) + 1
    return pa.concat_tables([states.slice(run[0], len(run)) for run in np.split(order, cuts) if len(run)])
