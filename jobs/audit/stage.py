"""Audit: bronze.log_record -> gold.audit_state and gold.audit_finding, incremental, parallel over state partitions.

The state of each audit (gold.audit_state) says up to which run it has audited; its findings follow from it and from
what is known of the end of the log. So a run that was killed between the two tables computes its findings again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, retained
from jobs.audit import standing
from jobs.audit.beside import commit_beside, look_beside
from jobs.audit.between_logs import between_logs
from jobs.audit.records import Topics, stored_others
from jobs.audit.tasks import Job, Outcome, Task, audit_task, of_jobs
from jobs.ingest.stage import is_rebuild
from jobs.lake_settings import stored_settings
from jobs.progress import Progress
from jobs.spark import executors
from jobs.spark.executors import Engine
from sharelens.evidence.losses import PRUNED, REMOTE, losses_of_extents
from sharelens.kafka_log.bounds import log_start
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, write_rows
from sharelens.lake.settings_rows import TABLE as SETTINGS
from sharelens.lake.slices import BRONZE, PartitionKey, Slice, slices
from sharelens.lake.tables import BRONZE_LOG_RECORD, GOLD_AUDIT_STATE, TABLES
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, GroupSettings, changed_groups
from state_model.audit.columnar.across import ACROSS, COUNTS_OF_STATE, LOG_FINDING, PLACE, across_logs
from state_model.audit.columnar.continuation import FORMATS
from state_model.audit.columnar.explained import with_causes
from state_model.audit.columnar.log_pairs import BETWEEN, STATES_READ
from state_model.audit.columnar.partitions import LogFacts
from state_model.audit.columnar.replayed import COMPARED
from state_model.topics import STATE_TOPIC

FINDINGS = standing.FINDINGS
REPLAYED = "gold.share_partition_state"
PLANNED: Final = [
    "cluster_id", *PLACE, "format", "log_start_offset", "last_log_offset", "run_id",
]  # fmt: skip
AT_START: Final = ["state_partition", "log_offset", "log_time_ms", "record_type", "group_id", "topic_id", "partition"]
"""The columns of the record at the log start that the audit reads."""


def _at(key: PartitionKey) -> pc.Expression:
    """Rows of one state partition."""
    expression = books.of_partitions({key}, *PLACE)
    assert expression is not None
    return expression


def run_audit(engine: Engine, lake: Lake, run: int, progress: Progress) -> dict[str, int]:
    """Audits the records replayed since the last audit; returns the number of audited records and of findings."""
    before = books.done(lake, "audit")
    stored = lake.snapshot(GOLD_AUDIT_STATE).rows(PLANNED)
    clusters = pc.unique(lake.snapshot(books.EXTENT).all_rows.column("cluster_id")).to_pylist()
    settings = {cluster: stored_settings(lake, cluster).groups for cluster in clusters}
    kept_records = stored_others(lake)
    beside, topics, unfit = look_beside(lake, clusters, kept_records, stored, before)
    jobs = plan_jobs(lake, stored, run, before, settings, unfit)
    replayed = lake.snapshot(REPLAYED).rows(["cluster_id", "log_topic_id", *COMPARED])
    view = lake.view([GOLD_AUDIT_STATE])

    def task_of(task_jobs: Sequence[Job]) -> Task:
        replayed_rows = of_jobs(replayed, task_jobs)
        return Task(lake=view, run=run, settings=settings, beside=beside, jobs=tuple(task_jobs), replayed=replayed_rows)

    quiet, busy = ([job for job in jobs if bool(job.slices) is is_busy] for is_busy in (False, True))
    groups = executors.binned([(job, job.size_bytes) for job in busy])
    tasks = [task_of(group) for group in groups]
    outcomes = engine.run("audit", audit_task, tasks, progress, size_bytes=sum(job.size_bytes for job in busy))
    if quiet:  # no record to read: nothing for executors to do
        outcomes.append(audit_task(task_of(quiet)))
    return _commit(lake, run, jobs, outcomes, stored, topics, kept_records)


def plan_jobs(
    lake: Lake, stored: pa.Table, run: int, before: int, settings: Mapping[str, GroupSettings], unfit: set[PartitionKey]
) -> list[Job]:
    """One job for each state partition with news, and for each one with groups whose settings changed.

    `stored`: PLANNED columns of gold.audit_state. `unfit`: audited ones that have to start over.
    """
    state_by_partition = {tuple(row[name] for name in ("cluster_id", *PLACE)): row for row in stored.to_pylist()}
    news = books.changed(lake, before, ["log_record", "replay", "audit"])
    rows = {key: row for key, row in news.items() if row["topic"] == STATE_TOPIC}
    every = books.by_partition(
        books.extents(lake, (pc.field("topic") == STATE_TOPIC) & (pc.field("status") == "taken"))
    )
    late = {key for key, row in rows.items() if row["rebuild"]}
    late |= {key for key in rows if key not in state_by_partition or state_by_partition[key]["format"] not in FORMATS}
    late |= _with_other_limits(lake, stored, before, settings)
    late |= unfit
    keys = sorted(rows.keys() | late)
    begins = retained.offsets(retained.cuts(lake, retained.BRONZE)) if late else {}
    pieces = _new_slices(lake, state_by_partition, keys, late, run, begins)
    starts = {key: log_start((row["log_start_offset"], row["log_start_known"]) for row in every[key]) for key in keys}
    at_start = _records_at_start(lake, {key: starts[key] for key in keys if key not in late}, state_by_partition)
    return [
        Job(
            cluster_id=key[0],
            topic_id=key[1],
            slices=tuple(pieces.get(key, ())),
            starts_over=key in late,
            is_new=key in late or state_by_partition[key]["run_id"] > before,
            keeps_below=key in late and begins.get(key, 0) > 0,
            is_compared=not has_uncommitted(every[key]),
            log=LogFacts(
                state_partition=key[2],
                first_offset=max(first_offset(every[key]), begins.get(key, 0)),
                log_start_offset=starts[key],
                has_newest=has_newest(every[key]),
            ),
            at_start=at_start.get(key),
        )
        for key in keys
    ]


def _new_slices(
    lake: Lake, state_by_partition: Mapping[PartitionKey, Mapping[str, Any]], keys: Iterable[PartitionKey],
    late: set[PartitionKey], run: int, begins: Mapping[PartitionKey, int],
) -> dict[PartitionKey, list[Slice]]:  # fmt: skip
    """The slices that no stored state has; of state partitions that start over, all that retention left (`begins`)."""
    records = lake.snapshot(BRONZE_LOG_RECORD)
    by_run: dict[int, set[PartitionKey]] = {}
    for key in keys:
        by_run.setdefault(-1 if key in late else state_by_partition[key]["run_id"], set()).add(key)
    result: dict[PartitionKey, list[Slice]] = {}
    for audited, keys_of_run in by_run.items():
        begins_of_run = begins if audited < 0 else None
        result |= slices(records, BRONZE, runs=(audited + 1, run), only=keys_of_run, begins=begins_of_run)
    return result


def _records_at_start(
    lake: Lake, starts: Mapping[PartitionKey, int], state_by_partition: Mapping[PartitionKey, Mapping[str, Any]]
) -> dict[PartitionKey, pa.Table]:
    """AT_START of the records at log starts that have moved to audited records."""
    moved = {
        key: start
        for key, start in starts.items()
        if state_by_partition[key]["log_start_offset"] != start
        and 0 < start <= state_by_partition[key]["last_log_offset"]
    }
    if not moved:
        return {}
    where = pc.scalar(False)
    for key, start in moved.items():
        where |= _at(key) & (pc.field("log_offset") == start)
    columns = dict.fromkeys(("cluster_id", *PLACE, *AT_START))
    rows = lake.snapshot("silver.share_record").rows(list(columns), where)
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
        cluster_states = lake.snapshot(GOLD_AUDIT_STATE).rows(
            [*PLACE, "share_partitions"], pc.field("cluster_id") == cluster
        )
        for topic_id, number, share_partitions in zip(*cluster_states.columns, strict=True):
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


def _commit(
    lake: Lake,
    run: int,
    jobs: Sequence[Job],
    outcomes: Sequence[Outcome],
    stored: pa.Table,
    topics: Topics,
    kept_records: pa.Table,
) -> dict[str, int]:
    """Commits the tables of a run; returns its counts. `stored`: PLANNED; `kept_records`: records.stored_others."""
    keys = {job.key for job in jobs}
    begins = {job.key: job.log.first_offset if job.keeps_below else 0 for job in jobs if job.starts_over}
    kept_records = commit_beside(
        lake, run, topics, kept_records, [outcome.beside for outcome in outcomes], keys, begins
    )
    if not books.is_committed(lake, GOLD_AUDIT_STATE, "audit", run):
        kept_files, removes = _states_without(lake, stored, keys)
        books.commit(
            lake, GOLD_AUDIT_STATE, "audit", run, [*(f for o in outcomes for f in o.files), *kept_files], removes
        )
    states = lake.snapshot(GOLD_AUDIT_STATE).rows(STATES_READ)
    across = [across_logs(states.select(COUNTS_OF_STATE)), between_logs(lake, states, topics, kept_records)]
    fresh = pa.concat_tables([LOG_FINDING.empty_table(), *(outcome.findings for outcome in outcomes), *across])
    unchanged = pa.concat_tables([standing.NONE_UNCHANGED, *(outcome.unchanged for outcome in outcomes)])
    count = _commit_findings(lake, run, keys, fresh, unchanged)
    return {"audited_records": sum(outcome.record_count for outcome in outcomes), "findings": count}


def _commit_findings(lake: Lake, run: int, keys: set[PartitionKey], fresh: pa.Table, unchanged: pa.Table) -> int:
    """Commits the findings after a run that audited some state partitions; returns how many stand.

    `fresh`: LOG_FINDING rows; `unchanged`: identities of findings that stay as they are.
    """
    snapshot = lake.snapshot(FINDINGS)
    earlier_findings = snapshot.rows([*standing.IDENTITY, "topic"])
    other_findings = standing.parted(earlier_findings, unchanged)[1]
    names = _with_topics(lake, earlier_findings.drop_columns(["topic"])).column("topic")
    if not fresh.num_rows and not other_findings.num_rows and names.equals(earlier_findings.column("topic")):
        books.commit(lake, FINDINGS, "audit", run)
        return int(earlier_findings.num_rows)
    same, other_findings = standing.parted(snapshot.rows(), unchanged)
    judged = standing.merged(other_findings, fresh, _judged(other_findings, keys), run)
    same = same.select(judged.column_names).cast(judged.schema)
    rows = _with_topics(lake, _with_causes(pa.concat_tables([judged, same])))
    books.commit(lake, FINDINGS, "audit", run, write_rows(lake, TABLES[FINDINGS], rows, {}), snapshot.paths)
    return int(rows.filter(pc.field("withdrawn_run_id").is_null()).num_rows)


def _with_causes(rows: pa.Table) -> pa.Table:
    """The rows, those that stand with their causes among all findings of their cluster that stand."""
    is_standing = pc.field("withdrawn_run_id").is_null()
    standing_rows, tables = rows.filter(is_standing), [rows.filter(~is_standing)]
    for cluster in pc.unique(standing_rows.column("cluster_id")).to_pylist():
        tables.append(with_causes(standing_rows.filter(pc.field("cluster_id") == cluster)))
    return pa.concat_tables(tables)


def _states_without(lake: Lake, stored: pa.Table, keys: set[PartitionKey]) -> tuple[list[DataFile], list[str]]:
    """New files with the states of other state partitions, and the paths of the files that hold those of `keys`."""
    places = stored.select(["cluster_id", *PLACE])
    if keys.issuperset(zip(*(column.to_pylist() for column in places.columns), strict=True)):
        return [], lake.snapshot(GOLD_AUDIT_STATE).paths  # nothing to read and to keep
    return books.rewritten_without(lake, GOLD_AUDIT_STATE, books.of_partitions(keys, *PLACE))


def _judged(stored: pa.Table, keys: set[PartitionKey]) -> list[bool]:
    """Whether a run that audited some state partitions judged each stored finding."""
    across = {rule.code for rule in (*ACROSS, *BETWEEN)}
    return [identity[1] in across or (identity[0], *identity[2:4]) in keys for identity in standing.identities(stored)]


def _with_topics(lake: Lake, rows: pa.Table) -> pa.Table:
    """The rows with the newest names of their topics."""
    name_rows = lake.snapshot("silver.name").rows(["cluster_id", "topic_id", "topic", "run_id"]).sort_by("run_id")
    keys = _topic_keys(name_rows).to_pylist()
    names = dict(zip(keys, name_rows.column("topic").to_pylist(), strict=True))
    places = pc.index_in(_topic_keys(rows), value_set=pa.array(list(names), pa.string()))
    return rows.append_column("topic", pa.array(list(names.values()), pa.string()).take(places))


def _topic_keys(rows: pa.Table) -> pa.ChunkedArray:
    """Cluster and topic id (22 characters) as one text."""
    return pc.binary_join_element_wise(rows.column("cluster_id"), rows.column("topic_id"), "/")
