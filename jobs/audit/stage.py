"""Audit: bronze.log_record -> gold.audit_state and gold.audit_finding, incremental, parallel over state partitions.

The state of each audit (gold.audit_state) says up to which run it has audited; its findings follow from it and from
what is known of the end of the log. So a run that was killed between the two tables computes its findings again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evidence.auditing import audited_batches
from evidence.losses import PRUNED, REMOTE, losses_of_extents
from jobs import books, retained
from jobs.audit import standing
from jobs.audit.across import ACROSS, COUNTS_OF_STATE, LOG_FINDING, STORED, across_logs, of_log
from jobs.audit.beside import NO_ROWS, Beside, BesideAudit, commit_beside, look_beside
from jobs.audit.between_logs import BETWEEN, STATES_READ, between_logs
from jobs.audit.records import Topics
from jobs.decode.stage import changed
from jobs.ingest.stage import is_rebuild
from jobs.lake_settings import stored_settings
from jobs.progress import Progress
from jobs.spark import executors
from jobs.spark.executors import Engine
from kafka_log.schemas import LOG_RECORD
from kafka_log.union import log_start
from lake.lake import Lake, LakeView
from lake.parquet import DataFile, ParquetSink, write_rows
from lake.settings_rows import TABLE as SETTINGS
from lake.slices import BRONZE, PartitionKey, Slice, read_unit, slices, units
from lake.tables import BRONZE_LOG_RECORD, TABLES
from measures.settings import DELIVERY_COUNT_LIMIT, GroupSettings, changed_groups, largest
from state_model.audit.columnar.continuation import AUDIT_STATE, FORMAT
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.partition import PartitionAudit
from state_model.columnar.schemas import SHARE_PARTITION_STATE
from state_model.topics import STATE_TOPIC

STATES, FINDINGS = "gold.audit_state", standing.FINDINGS
REPLAYED = "gold.share_partition_state"
PLACE: Final = ("log_topic_id", "state_partition")
PLANNED: Final = [
    "cluster_id", *PLACE, "format", "log_start_offset", "last_log_offset", "run_id",
]  # fmt: skip
NOT_AUDITED: Final = ("topic", "timestamp_type", "base_offset", "producer_epoch")
AUDITED: Final = pa.schema([field for field in LOG_RECORD if field.name not in NOT_AUDITED])
"""The columns of a log record that the audit reads."""
NO_STATES: Final = SHARE_PARTITION_STATE.empty_table()
AT_START: Final = ["log_offset", "log_time_ms", "record_type", "group_id", "topic_id", "partition"]
"""The columns of the record at the log start that the audit reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One state partition to audit: its new slices (all of them when it starts over), and what is known of its log.

    `starts_over`: a state that an earlier run stored does not count. `keeps_below`: but for what it notes below the
    first offset, where retention has dropped the records. `is_new`: the findings of the stored state are not stored.
    `states`: those of the replay; None: it has read records that the audit leaves out. `at_start`: AT_START of the
    record at a log start that has moved.
    """

    cluster_id: str
    topic_id: str
    partition: int
    slices: tuple[Slice, ...]
    starts_over: bool
    is_new: bool
    first_offset: int
    keeps_below: bool
    log_start_offset: int
    has_newest: bool
    states: pa.Table | None
    at_start: pa.Table | None

    @property
    def size_bytes(self) -> int:
        """Bytes that its slices have in their files."""
        return sum(piece.size_bytes for piece in self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The jobs that one executor task audits."""

    lake: LakeView
    run: int
    settings: Mapping[str, GroupSettings]
    beside: Beside
    jobs: tuple[Job, ...]


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
    with ParquetSink(task.lake, TABLES[STATES], constants={"run_id": task.run}) as sink:
        for job in task.jobs:
            stored = states.get(_key(job)) if job.keeps_below or not job.starts_over else None
            audit, beside_audit, records = _audited(job, stored, limits[job.cluster_id], task.beside)
            count += records
            sink.write(audit.state(), cluster_id=job.cluster_id, log_topic_id=job.topic_id)  # a row group of its own
            if job.states is not None:
                audit.compare(job.states)
            audit.close()
            if stored is not None and not job.is_new:
                unchanged.append(standing.leave_unchanged(audit, stored, job.cluster_id, job.topic_id))
            for table, rows in beside_audit.rows().items():
                beside[table].append(rows)
            tables.append(of_log(findings([audit], STORED), job.cluster_id, job.topic_id))
    return Outcome(
        files=tuple(sink.files),
        findings=pa.concat_tables(tables),
        unchanged=pa.concat_tables(unchanged),
        beside={table: pa.concat_tables(rows) for table, rows in beside.items()},
        record_count=count,
    )


def _audited(
    job: Job, stored: pa.Table | None, limit_of_group: Callable[[str], int | None], beside: Beside
) -> tuple[PartitionAudit, BesideAudit, int]:
    """The audit after the new records, not closed, what it has beside, and the number of records."""
    audit = PartitionAudit(
        job.partition,
        first_offset=job.first_offset,
        log_start_offset=job.log_start_offset,
        has_newest=job.has_newest,
        limit_of_group=limit_of_group,
        replays=False,
        state=None if job.starts_over else stored,
    )
    if job.keeps_below and stored is not None and stored.column("format")[0].as_py() == FORMAT:
        audit.keep_below(stored, job.first_offset)
    if job.at_start is not None:
        audit.take_log_start(job.at_start)
    beside_audit = BesideAudit(beside, _key(job), audit, goes_on=not job.starts_over and stored is not None)
    count = 0
    for unit in units(job.slices):
        for decoded in audited_batches(audit, read_unit(unit, AUDITED)):
            beside_audit.take(decoded.records)
            count += len(decoded.log_times)
    return audit, beside_audit, count


def _stored_states(lake: LakeView, jobs: Sequence[Job]) -> dict[PartitionKey, pa.Table]:
    """AUDIT_STATE of each job that goes on from a stored state; each state is a row group of its own."""
    numbers = [job.partition for job in jobs if job.keeps_below or not job.starts_over]
    if not numbers:
        return {}
    row_groups = lake.snapshot(STATES).row_groups
    bounds = row_groups.integers("state_partition")
    chosen = np.isin(bounds.low, numbers) | (bounds.low < bounds.high)
    tables = list(
        row_groups.read(chosen, ["cluster_id", *PLACE, *(name for name in AUDIT_STATE.names if name not in PLACE)])
    )
    return _by_place(pa.concat_tables(tables), AUDIT_STATE.names) if tables else {}


def _at(key: PartitionKey) -> pc.Expression:
    """Rows of one state partition."""
    expression = books.of_partitions({key}, *PLACE)
    assert expression is not None
    return expression


def run_audit(engine: Engine, lake: Lake, run: int, progress: Progress) -> dict[str, int]:
    """Audits the records replayed since the last audit; returns the number of audited records and of findings."""
    before = books.done(lake, "audit")
    stored = lake.snapshot(STATES).rows(PLANNED)
    clusters = {row["cluster_id"] for row in books.extents(lake, pc.field("topic") == STATE_TOPIC)}
    settings = {cluster: stored_settings(lake, cluster).groups for cluster in clusters}
    beside, topics, unfit = look_beside(lake, clusters, stored, before)
    jobs = plan_jobs(lake, stored, run, before, settings, unfit)
    view = lake.view([STATES])
    quiet, busy = ([job for job in jobs if bool(job.slices) is is_busy] for is_busy in (False, True))
    groups = executors.binned([(job, job.size_bytes) for job in busy])
    tasks = [Task(lake=view, run=run, settings=settings, beside=beside, jobs=tuple(group)) for group in groups]
    outcomes = engine.run("audit", audit_task, tasks, progress, size_bytes=sum(job.size_bytes for job in busy))
    if quiet:  # no record to read: nothing for executors to do
        outcomes.append(audit_task(Task(lake=view, run=run, settings=settings, beside=beside, jobs=tuple(quiet))))
    return _commit(lake, run, jobs, outcomes, topics)


def _key(job: Job) -> PartitionKey:
    return job.cluster_id, job.topic_id, job.partition


def plan_jobs(
    lake: Lake, stored: pa.Table, run: int, before: int, settings: Mapping[str, GroupSettings], unfit: set[PartitionKey]
) -> list[Job]:
    """One job for each state partition with news, and for each one with groups whose settings changed.

    `stored`: PLANNED columns of gold.audit_state. `unfit`: audited ones that have to start over.
    """
    known = {tuple(row[name] for name in ("cluster_id", *PLACE)): row for row in stored.to_pylist()}
    news = changed(lake, before, ["log_record", "replay", "audit"])
    rows = {key: row for key, row in news.items() if row["topic"] == STATE_TOPIC}
    every = books.by_partition(
        books.extents(lake, (pc.field("topic") == STATE_TOPIC) & (pc.field("status") == "taken"))
    )
    late = {key for key, row in rows.items() if row["rebuild"]}
    late |= {key for key in rows if key not in known or known[key]["format"] != FORMAT}
    late |= _with_other_limits(lake, stored, before, settings)
    late |= unfit
    keys = sorted(rows.keys() | late)
    pieces = _new_slices(lake, known, keys, late, run)
    starts = {key: log_start((row["log_start_offset"], row["log_start_known"]) for row in every[key]) for key in keys}
    at_start = _records_at_start(lake, {key: starts[key] for key in keys if key not in late}, known)
    states = lake.snapshot(REPLAYED).rows(["cluster_id", *SHARE_PARTITION_STATE.names])
    states_at = _by_place(states, SHARE_PARTITION_STATE.names)
    begins = retained.offsets(retained.cuts(lake, retained.BRONZE)) if late else {}
    return [
        Job(
            cluster_id=key[0],
            topic_id=key[1],
            partition=key[2],
            slices=tuple(pieces.get(key, ())),
            starts_over=key in late,
            is_new=key in late or known[key]["run_id"] > before,
            first_offset=max(first_offset(every[key]), begins.get(key, 0)),
            keeps_below=key in late and begins.get(key, 0) > 0,
            log_start_offset=starts[key],
            has_newest=has_newest(every[key]),
            states=None if has_uncommitted(every[key]) else states_at.get(key, NO_STATES),
            at_start=at_start.get(key),
        )
        for key in keys
    ]


def _by_place(rows: pa.Table, names: Sequence[str]) -> dict[PartitionKey, pa.Table]:
    """The columns `names` of the rows of each state partition."""
    place = ["cluster_id", *PLACE]
    numbered = rows.select(place).append_column("row", pa.array(np.arange(rows.num_rows)))
    grouped = numbered.group_by(place, use_threads=False).aggregate([("row", "list")])
    keys = zip(*(grouped.column(name).to_pylist() for name in place), strict=True)
    rows = rows.select(names).combine_chunks()
    return {key: rows.take(numbers.values) for key, numbers in zip(keys, grouped.column("row_list"), strict=True)}


def _new_slices(
    lake: Lake, known: Mapping[PartitionKey, Mapping[str, Any]], keys: Iterable[PartitionKey],
    late: set[PartitionKey], run: int,
) -> dict[PartitionKey, list[Slice]]:  # fmt: skip
    """The slices that no stored state has; of state partitions that start over, all that retention left."""
    records = lake.snapshot(BRONZE_LOG_RECORD)
    by_run: dict[int, set[PartitionKey]] = {}
    for key in keys:
        by_run.setdefault(-1 if key in late else known[key]["run_id"], set()).add(key)
    result: dict[PartitionKey, list[Slice]] = {}
    for audited, some in by_run.items():
        begins = retained.offsets(retained.cuts(lake, retained.BRONZE)) if audited < 0 else None
        result |= slices(records, BRONZE, runs=(audited + 1, run), only=some, begins=begins)
    return result


def _records_at_start(
    lake: Lake, starts: Mapping[PartitionKey, int], known: Mapping[PartitionKey, Mapping[str, Any]]
) -> dict[PartitionKey, pa.Table]:
    """AT_START of the records at log starts that have moved to audited records."""
    moved = {
        key: start
        for key, start in starts.items()
        if known[key]["log_start_offset"] != start and 0 < start <= known[key]["last_log_offset"]
    }
    if not moved:
        return {}
    where = pc.scalar(False)
    for key, start in moved.items():
        where |= _at(key) & (pc.field("log_offset") == start)
    rows = lake.snapshot("silver.share_record").rows(["cluster_id", *PLACE, *AT_START], where)
    return {key: rows.filter(_at(key)).select(AT_START) for key in moved}


def _with_other_limits(
    lake: Lake, stored: pa.Table, before: int, settings: Mapping[str, GroupSettings]
) -> set[PartitionKey]:
    """Audited state partitions with a group whose delivery count limit is another one since run `before`."""
    if stored.num_rows == 0 or books.done(lake, "settings") <= before:
        return set()
    rows = lake.snapshot(SETTINGS).rows(["cluster_id"], pc.field("run_id") > before)
    result = set()
    for cluster in rows.column("cluster_id").unique().to_pylist():
        earlier = stored_settings(lake, cluster, before).groups
        mine = lake.snapshot(STATES).rows([*PLACE, "share_partitions"], pc.field("cluster_id") == cluster)
        for topic_id, number, share_partitions in zip(*mine.columns, strict=True):
            groups = pc.unique(share_partitions.values.field("group_id")).to_pylist()
            if changed_groups(earlier, settings[cluster], groups, [DELIVERY_COUNT_LIMIT]):
                result.add((cluster, topic_id.as_py(), number.as_py()))
    return result


def first_offset(extents: Sequence[dict[str, Any]]) -> int:
    """Where the log of a state partition begins by all its taken extents: behind what was pruned or moved away."""
    begin = min((row["from_offset"] for row in extents if row["content"] == "log_record"), default=0)
    for loss in losses_of_extents(extents):
        if loss.first_offset == begin and loss.reason in (PRUNED, REMOTE):
            begin = loss.last_offset + 1
    return int(begin)


def _newest(extents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The extents of the newest run that read the log."""
    read = [row for row in extents if row["content"] == "log_record" and not is_rebuild(row)]
    run = max((row["run_id"] for row in read), default=0)
    return [row for row in read if row["run_id"] == run]


def has_newest(extents: Sequence[dict[str, Any]]) -> bool:
    """Whether the newest run read the log up to its end, all of it committed."""
    rows = _newest(extents)
    end = max((row["end_offset_exclusive"] for row in rows), default=0)
    return bool(rows) and all(
        row["until_ms"] is None
        and row["held_back"] == 0
        and not row["unreadable_bytes"]
        and row["committed_end"] in (None, end)
        for row in rows
    )


def has_uncommitted(extents: Sequence[dict[str, Any]]) -> bool:
    """Whether the newest run took records that were not committed."""
    return any(
        row["committed_end"] is not None and row["committed_end"] < row["end_offset_exclusive"]
        for row in _newest(extents)
    )


def _commit(lake: Lake, run: int, jobs: Sequence[Job], outcomes: Sequence[Outcome], topics: Topics) -> dict[str, int]:
    keys = {_key(job) for job in jobs}
    begins = {_key(job): job.first_offset if job.keeps_below else 0 for job in jobs if job.starts_over}
    commit_beside(lake, run, topics, [outcome.beside for outcome in outcomes], keys, begins)
    if not books.is_committed(lake, STATES, "audit", run):
        kept, removes = books.rewritten_without(lake, STATES, books.of_partitions(keys, *PLACE))
        books.commit(lake, STATES, "audit", run, [*(f for o in outcomes for f in o.files), *kept], removes)
    fresh = pa.concat_tables([LOG_FINDING.empty_table(), *(outcome.findings for outcome in outcomes)])
    states = lake.snapshot(STATES).rows(STATES_READ)
    fresh = pa.concat_tables([fresh, across_logs(states.select(COUNTS_OF_STATE)), between_logs(lake, states, topics)])
    unchanged = pa.concat_tables([standing.NONE_UNCHANGED, *(outcome.unchanged for outcome in outcomes)])
    same, stored = standing.parted(lake.snapshot(FINDINGS).rows(), unchanged)
    judged = standing.merged(stored, fresh, _judged(stored, keys), run)
    same = same.select(judged.column_names).cast(judged.schema)
    rows = _with_topics(lake, pa.concat_tables([judged, same]))
    files, removes = write_rows(lake, TABLES[FINDINGS], rows, {}), lake.snapshot(FINDINGS).paths
    books.commit(lake, FINDINGS, "audit", run, files, removes)
    stands = rows.filter(pc.field("withdrawn_run_id").is_null())
    return {"audited_records": sum(outcome.record_count for outcome in outcomes), "findings": stands.num_rows}


def _judged(stored: pa.Table, keys: set[PartitionKey]) -> list[bool]:
    """Whether a run that audited some state partitions judged each stored finding."""
    across = {rule.code for rule in (*ACROSS, *BETWEEN)}
    return [identity[1] in across or (identity[0], *identity[2:4]) in keys for identity in standing.identities(stored)]


def _with_topics(lake: Lake, rows: pa.Table) -> pa.Table:
    """The rows with the newest names of their topics."""
    known = lake.snapshot("silver.name").rows(["cluster_id", "topic_id", "topic", "run_id"]).sort_by("run_id")
    keys = _topic_keys(known).to_pylist()
    names = dict(zip(keys, known.column("topic").to_pylist(), strict=True))
    places = pc.index_in(_topic_keys(rows), value_set=pa.array(list(names), pa.string()))
    return rows.append_column("topic", pa.array(list(names.values()), pa.string()).take(places))


def _topic_keys(rows: pa.Table) -> pa.ChunkedArray:
    """Cluster and topic id (22 characters) as one text."""
    return pc.binary_join_element_wise(rows.column("cluster_id"), rows.column("topic_id"), "/")
