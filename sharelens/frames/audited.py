"""The audit as a DataFrame: findings of the share coordinators' invariants, rows of gold.audit_finding.

log records    by state partition      each is audited in log order                       (_audit)
findings       by incarnation of the   rules over all state partitions are tested on the
and counts     state topic             share partitions of each; findings pass through    (_across)
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from evidence.auditing import audited_batches
from evidence.losses import PRUNED
from jobs.audit.across import COUNTS_OF_STATE, LOG_FINDING, STORED, across_logs, of_log
from kafka_log.schemas import LOG_RECORD
from lake.parquet import conform
from measures.settings import DELIVERY_COUNT_LIMIT, NO_SETTINGS, GroupSettings, largest
from sharelens.frames.envelopes import LOG_START, LOSS
from sharelens.frames.logs import state_log_rows
from sharelens.frames.shapes import blanks, checked, in_groups, timed_schema, typed_rows
from state_model.audit.columnar.continuation import AUDIT_STATE
from state_model.audit.columnar.explained import with_causes
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.partition import PartitionAudit
from state_model.columnar.keys import LOG_PARTITION_KEY, STATE_PARTITION_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_CLUSTER = ""
_FINDING = pa.schema([field for field in LOG_FINDING if field.name != "cluster_id"])
_COUNTS = pa.schema(
    [
        _FINDING.field("log_topic_id"),
        *(AUDIT_STATE.field(name) for name in COUNTS_OF_STATE if name in AUDIT_STATE.names),
    ]
)
_OF_PARTITION = pa.schema(
    field.with_nullable(True)
    for field in [*_FINDING, *(field for field in _COUNTS if field.name not in _FINDING.names)]
)
"""A finding, or (`rule` is null) the share partitions and losses of a state partition."""


def audit_findings(
    log_records: "DataFrame",
    *,
    settings: GroupSettings = NO_SETTINGS,
    losses: "DataFrame | None" = None,
    log_starts: "DataFrame | None" = None,
    has_newest: bool = True,
) -> "DataFrame":
    """What in the state log violates the invariants of share coordinators, one row a rule and share partition.

    Tests the rules that need the state log alone. Those that compare it with __consumer_offsets, __cluster_metadata,
    user topics or the coordinator's configuration are left out. Reads its input twice. All records of a state partition
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

    Returns:
        Rows with the columns of gold.audit_finding but cluster_id, topic, first_run_id, withdrawn_run_id and run_id, in
        no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    own = state_log_rows(checked(log_records, LOG_RECORD, "audit_findings", "log_records"))
    facts = _facts(own, losses, log_starts, has_newest)
    rows = own.where(~F.col("uncommitted")).drop("chunk").join(F.broadcast(facts), LOG_PARTITION_KEY)

    def audit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _audit(batches, settings)

    audited = in_groups(rows, LOG_PARTITION_KEY, ["offset"], audit, _OF_PARTITION)
    return in_groups(audited, ["log_topic_id"], ["state_partition"], _across, timed_schema(_FINDING))


def _facts(
    own: "DataFrame", losses: "DataFrame | None", log_starts: "DataFrame | None", has_newest: bool
) -> "DataFrame":
    """What the audit of a state partition must know before its first record: one row each."""
    bounds = own.groupBy(*LOG_PARTITION_KEY).agg(
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


def _audit(batches: Iterator[pa.RecordBatch], settings: GroupSettings) -> Iterator[pa.RecordBatch]:
    """_OF_PARTITION rows of one state partition; its batches come in log order."""
    audit, topic_id = None, ""
    for batch in batches:
        if audit is None:
            topic_id, number, first_offset, log_start_offset, has_newest = (
                batch.column(name)[0].as_py()
                for name in (*LOG_PARTITION_KEY, "first_offset", "log_start_offset", "has_newest")
            )
            audit = PartitionAudit(
                number,
                first_offset=first_offset,
                log_start_offset=log_start_offset,
                has_newest=has_newest,
                limit_of_group=largest(settings, DELIVERY_COUNT_LIMIT),
            )
        rows = typed_rows(batch, LOG_RECORD)
        for _ in audited_batches(audit, rows):
            pass
    if audit is not None:
        counts = audit.state()
        audit.close()
        for some in (counts, of_log(with_causes(findings([audit], STORED)), _NO_CLUSTER, topic_id)):
            yield from _of_partition(some, topic_id)


def _of_partition(rows: pa.Table, topic_id: str) -> Iterator[pa.RecordBatch]:
    """Findings, or counts of a state partition, as _OF_PARTITION rows."""
    known = {name: rows.column(name) for name in rows.column_names}
    known["log_topic_id"] = pa.repeat(topic_id, rows.num_rows)
    columns = [known.get(field.name, blanks(rows.num_rows, field.type)) for field in _OF_PARTITION]
    yield from pa.table(columns, schema=_OF_PARTITION).to_batches()


def _across(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The findings of all state partitions, and those of rules over all of them."""
    timed = timed_schema(_FINDING)
    counts = [_COUNTS.empty_table()]
    for batch in batches:
        is_finding = batch.column("rule").is_valid()
        yield from conform(typed_rows(batch.filter(is_finding), _FINDING), timed).to_batches()
        counts.append(typed_rows(batch.filter(pc.invert(is_finding)), _COUNTS))
    states = pa.concat_tables(counts)
    states = states.append_column("cluster_id", pa.repeat(_NO_CLUSTER, states.num_rows))
    yield from conform(across_logs(states), timed).to_batches()
