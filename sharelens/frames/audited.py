"""The audit as a DataFrame: findings of the share coordinators' invariants, rows of gold.audit_finding.

log records    by state partition      each is audited in log order                       (_audit)
findings       all together            rules over all state partitions and between logs
and states                             are tested on what is left of each; findings pass
                                       through                                            (_across)

A state partition is not spread over tasks: its losses, log times and the records at its log start touch every share
partition in it, and to know them takes the whole log in order.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.evidence.auditing import audited_batches
from sharelens.evidence.incarnations import newest_incarnation
from sharelens.evidence.losses import PRUNED
from sharelens.frames.envelopes import LOG_START, LOSS
from sharelens.frames.logs import state_log_rows
from sharelens.frames.other_logs import OtherLogs
from sharelens.frames.refusals import Argument, once_each
from sharelens.frames.renamed import renamed_parameter
from sharelens.frames.shapes import blanks, checked, in_groups, timed_schema, typed_rows
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.lake.parquet import conform
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, NO_SETTINGS, GroupSettings, largest
from state_model.audit.columnar.across import COUNTS_OF_STATE, LOG_FINDING, STORED, across_logs, of_log
from state_model.audit.columnar.configured import ConfiguredAudit
from state_model.audit.columnar.continuation import AUDIT_STATE, lists_of, rows_of
from state_model.audit.columnar.explained import with_causes
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.kept_records import RecordKeeper
from state_model.audit.columnar.kept_schema import KEPT_RECORD, LIFE
from state_model.audit.columnar.log_pairs import STATES_READ, LogPairs, StoredTopic
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.partitions import LogFacts
from state_model.columnar.keys import LOG_PARTITION_KEY, STATE_PARTITION_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_CLUSTER = ""
_FACTS = ("state_partition", "first_offset", "log_start_offset", "has_newest")
_FINDING = pa.schema([field for field in LOG_FINDING if field.name != "cluster_id"])
_STATE = pa.schema(
    [
        _FINDING.field("log_topic_id"),
        *(AUDIT_STATE.field(name) for name in STATES_READ if name in AUDIT_STATE.names),
        pa.field("first_offset", pa.int64()),
        pa.field("kept", pa.list_(pa.struct(list(KEPT_RECORD)))),
    ]
)
"""What rules over all state partitions, and between logs, read of an audited one: its share partitions and losses, and
the records that its audit keeps."""
_OF_PARTITION = pa.schema(
    field.with_nullable(True) for field in [*_FINDING, *(field for field in _STATE if field.name not in _FINDING.names)]
)
"""A finding, or (`rule` is null) an audited state partition."""


@renamed_parameter("others", "cluster_logs")
def audit_findings(
    log_records: "DataFrame",
    *,
    settings: GroupSettings = NO_SETTINGS,
    losses: "DataFrame | None" = None,
    log_starts: "DataFrame | None" = None,
    has_newest: bool = True,
    cluster_logs: OtherLogs | None = None,
) -> "DataFrame":
    """What in the state log violates the invariants of share coordinators, one row a rule and share partition.

    Tests the rules that need the state log alone; with `cluster_logs` also those that compare it with
    __consumer_offsets, __cluster_metadata, user topics or the coordinator's configuration, but not the rule
    window_over_locks. `untested_rules` names what is left out. Reads its input twice. All records of a state partition
    are in one task.

    Args:
        log_records: LOG_RECORD rows from the beginning of the log, in any order, each offset of a partition once; other
            topics' rows and uncommitted records are left out.
        settings: of the groups (`frames.group_settings`); without them the delivery count limit is unknown.
        losses: ranges that the records lack (`frames.losses`): whether records before the first were pruned, and
            whether some are missing behind the last; None: they were pruned, and none are missing.
        log_starts: `log_topic_id`, `state_partition` and `log_start_offset`; None: behind the records with
            `below_log_start`, not below the first record.
        has_newest: the records go up to the end of the log; else the rule needed_snapshot_pruned is not tested.
        cluster_logs: the other logs of the cluster (`frames.other_logs`); then the log records are of one cluster.

    Returns:
        Rows with the columns of gold.audit_finding but cluster_id, topic, first_run_id, withdrawn_run_id and run_id, in
        no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    state_rows = state_log_rows(checked(log_records, LOG_RECORD, "audit_findings", "log_records"))
    facts = _facts(state_rows, losses, log_starts, has_newest)
    rows = state_rows.where(~F.col("uncommitted")).drop("chunk").join(F.broadcast(facts), LOG_PARTITION_KEY)

    def audit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _audit(batches, settings, cluster_logs)

    def across(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _across(batches, cluster_logs)

    audited = in_groups(rows, LOG_PARTITION_KEY, ["offset"], audit, _OF_PARTITION)
    keys = ["log_topic_id"]
    if cluster_logs is not None:  # all incarnations of the state topic are of one cluster
        audited, keys = audited.withColumn("cluster", F.lit(0)), ["cluster"]
    return in_groups(audited, keys, ["state_partition"], across, timed_schema(_FINDING))


def _facts(
    state_rows: "DataFrame", losses: "DataFrame | None", log_starts: "DataFrame | None", has_newest: bool
) -> "DataFrame":
    """What the audit of a state partition must know before its first record: one row each."""
    bounds = state_rows.groupBy(*LOG_PARTITION_KEY).agg(
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.max(F.when(F.col("below_log_start"), F.col("offset") + 1)).alias("start"),
        F.bool_and(~F.col("uncommitted")).alias("committed"),
    )
    first, is_whole, known_start = F.col("first"), F.lit(has_newest), F.lit(None)
    keys = dict(zip(STATE_PARTITION_KEY, LOG_PARTITION_KEY, strict=True))
    if losses is not None:
        lost = checked(losses, LOSS, "audit_findings", "losses").withColumnRenamed("partition", "user_partition")
        lost = lost.drop("topic_id").withColumnsRenamed(keys)
        is_pruned = (F.col("reason") == PRUNED) & (F.col("first_offset") == 0)
        ends = lost.groupBy(*LOG_PARTITION_KEY).agg(
            F.max(F.when(is_pruned, F.col("last_offset") + 1)).alias("pruned"),
            F.max("last_offset").alias("lost"),
        )
        bounds = bounds.join(F.broadcast(ends), LOG_PARTITION_KEY, "left")
        first = F.coalesce(F.col("pruned"), F.lit(0))
        is_whole &= F.coalesce(F.col("lost") <= F.col("last"), F.lit(True))
    if log_starts is not None:
        starts = checked(log_starts, LOG_START, "audit_findings", "log_starts").withColumnsRenamed(keys)
        starts = starts.groupBy(*LOG_PARTITION_KEY).agg(F.max("log_start_offset").alias("known"))
        bounds = bounds.join(F.broadcast(starts), LOG_PARTITION_KEY, "left")
        known_start = F.col("known")
    return bounds.select(
        *LOG_PARTITION_KEY,
        first.cast("long").alias("first_offset"),
        F.greatest(F.coalesce(known_start, first), "start").cast("long").alias("log_start_offset"),
        (is_whole & F.col("committed")).alias("has_newest"),
    )


def _audit(
    batches: Iterator[pa.RecordBatch], settings: GroupSettings, cluster_logs: OtherLogs | None
) -> Iterator[pa.RecordBatch]:
    """_OF_PARTITION rows of one state partition; its batches come in log order."""
    audit: _StatePartition | None = None
    for batch in once_each(batches, Argument("audit_findings", "log_records"), [*LOG_PARTITION_KEY, "offset"]):
        if audit is None:
            topic_id, *facts = (
                batch.column(name)[0].as_py()
                for name in (*LOG_PARTITION_KEY, "first_offset", "log_start_offset", "has_newest")
            )
            log = LogFacts(**dict(zip(_FACTS, facts, strict=True)))
            audit = _StatePartition(topic_id, log, settings, cluster_logs)
        audit.take(typed_rows(batch, LOG_RECORD))
    if audit is not None:
        yield from audit.rows()


class _StatePartition:
    """The audit of one state partition, with what it keeps for rules between logs."""

    def __init__(self, topic_id: str, log: LogFacts, settings: GroupSettings, cluster_logs: OtherLogs | None) -> None:
        self._topic_id = topic_id
        self._log = log
        self._audit = PartitionAudit(
            log.state_partition,
            first_offset=log.first_offset,
            log_start_offset=log.log_start_offset,
            has_newest=log.has_newest,
            limit_of_group=largest(settings, DELIVERY_COUNT_LIMIT),
        )
        config = None if cluster_logs is None else cluster_logs.coordinator
        self._configured = None if config is None else ConfiguredAudit(config, self._audit)
        self._keeper = None if cluster_logs is None else RecordKeeper(cluster_logs.known_topics, self._audit)

    def take(self, rows: pa.Table) -> None:
        """The next records (LOG_RECORD)."""
        for decoded in audited_batches(self._audit, rows):
            if self._keeper is not None:
                self._keeper.take(decoded.records)
            if self._configured is not None:
                self._configured.take(decoded.records)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """_OF_PARTITION rows, after the last records."""
        state = self._audit.state()
        self._audit.close()
        kept_records = KEPT_RECORD.empty_table() if self._keeper is None else self._keeper.rows()
        lists = lists_of(kept_records, KEPT_RECORD, np.array([kept_records.num_rows]))
        state = state.append_column("first_offset", pa.array([self._log.first_offset])).append_column("kept", lists)
        for part_rows in (state, of_log(findings([self._audit], STORED), _NO_CLUSTER, self._topic_id)):
            yield from _of_partition(part_rows, self._topic_id)


def _of_partition(rows: pa.Table, topic_id: str) -> Iterator[pa.RecordBatch]:
    """Findings, or an audited state partition, as _OF_PARTITION rows."""
    is_finding = "rule" in rows.column_names
    column_by_name = {
        name: rows.column(name) for name in (_FINDING if is_finding else _STATE).names if name != "log_topic_id"
    }
    column_by_name["log_topic_id"] = pa.repeat(topic_id, rows.num_rows)
    columns = [column_by_name.get(field.name, blanks(rows.num_rows, field.type)) for field in _OF_PARTITION]
    yield from pa.table(columns, schema=_OF_PARTITION).to_batches()


def _across(batches: Iterator[pa.RecordBatch], cluster_logs: OtherLogs | None) -> Iterator[pa.RecordBatch]:
    """The findings of all state partitions, and those of rules over all of them."""
    parts, audited = [LOG_FINDING.empty_table()], [_STATE.empty_table()]
    for batch in batches:
        is_finding = batch.column("rule").is_valid()
        rows = typed_rows(batch.filter(is_finding), _FINDING)
        parts.append(rows.append_column("cluster_id", pa.repeat(_NO_CLUSTER, rows.num_rows)).select(LOG_FINDING.names))
        audited.append(typed_rows(batch.filter(pc.invert(is_finding)), _STATE))
    states = pa.concat_tables(audited)
    of_cluster = states.append_column("cluster_id", pa.repeat(_NO_CLUSTER, states.num_rows))
    parts.append(across_logs(of_cluster.select(COUNTS_OF_STATE)))
    if cluster_logs is not None and states.num_rows:
        parts.append(_between_logs(states, cluster_logs))
    rows = with_causes(pa.concat_tables(parts).cast(LOG_FINDING))
    yield from conform(rows, timed_schema(_FINDING)).to_batches()


def _between_logs(states: pa.Table, cluster_logs: OtherLogs) -> pa.Table:
    """LOG_FINDING rows of rules between the logs of a cluster; `states`: _STATE."""
    incarnations = zip(*(states.column(name).to_pylist() for name in ("log_topic_id", "log_time_ms")), strict=True)
    topic_id = str(newest_incarnation(list(incarnations)))
    newest_states = states.filter(pc.field("log_topic_id") == topic_id).sort_by("state_partition")
    kept_records = rows_of(newest_states, "kept", KEPT_RECORD)
    topic = StoredTopic(
        topic_id=topic_id,
        states=newest_states,
        earlier_states=states.filter(pc.field("log_topic_id") != topic_id),
        first_offset=newest_states.column("first_offset")[0].as_py(),
        kept_records=kept_records.filter(pc.field("kind") != LIFE),
        lives=lambda: kept_records.filter(pc.field("kind") == LIFE),
    )
    return of_log(LogPairs(topic.topic(cluster_logs), cluster_logs).proofs().findings(STORED), _NO_CLUSTER, topic_id)
