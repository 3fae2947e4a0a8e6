"""Every table of the lake: schema with a comment per column, key, clustering, partitioning, schema version.

Delta's, Spark's and Arrow's forms of a schema all derive from the Arrow schemas here. A gold table carries, beside
each BIGINT `…_ms` that is a moment, a guarded TIMESTAMP `…_time` (UTC; null outside years 1-9999).
"""

from dataclasses import dataclass

import pyarrow as pa

from sharelens.evidence.metadata_schemas import CONFIGURATION_HISTORY, METADATA_RECORD, TOPIC_HISTORY
from sharelens.evidence.schemas import CLOCK_STEP, GROUP_RECORD, NAME, ODD_GROUP_RECORD
from sharelens.groups.schemas import GROUP_HISTORY, MEMBER_HISTORY, SHARE_INITIALIZATION_HISTORY, TASK_HISTORY
from sharelens.kafka_log import schemas as log_schemas
from sharelens.kafka_log.dead_letter_records import DLQ_RECORD, LETTER
from sharelens.lake import settings_rows
from sharelens.lake.table_schemas import INGEST_EXTENT, PUBLICATION, QUALITY_RESULT, TOPIC_START
from sharelens.measures import schemas as measures
from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.measures.latency.schemas import ATTEMPTS_CONTRIBUTION, LATENCY_CONTRIBUTION
from state_model.audit.columnar.continuation import AUDIT_STATE
from state_model.audit.columnar.finding_schema import FINDING
from state_model.audit.columnar.kept_schema import AUDIT_COUNTER, KEPT_RECORD
from state_model.columnar import schemas as state_schemas
from state_model.columnar.schemas import column, is_moment

SCHEMA_VERSION = 9
TIME = pa.timestamp("us", tz="UTC")

CLUSTER = column("cluster_id", pa.string(), "Kafka cluster id; `unknown` when no directory has one", nullable=False)
RUN = column("run_id", pa.int64(), "run that wrote the row", nullable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: `name` is layer.table; `key` and `clustering` are column names, in order."""

    name: str
    comment: str
    schema: pa.Schema
    key: tuple[str, ...]
    clustering: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    append_only: bool = False
    version: int = SCHEMA_VERSION


def time_name(name: str) -> str:
    """Name of the TIMESTAMP beside a `…_ms` column: log_time_ms has log_time, valid_from_ms has valid_from_time."""
    return name.removesuffix("_ms").removesuffix("_time") + "_time"


def with_times(fields: list[pa.Field]) -> list[pa.Field]:
    """`fields` with a TIMESTAMP beside each `…_ms` that is a moment."""
    result = []
    for field in fields:
        result.append(field)
        if is_moment(field.name):
            result.append(
                column(time_name(field.name), TIME, f"{field.name} as a timestamp; null outside years 1-9999")
            )
    return result


def _schema(fields: list[pa.Field] | pa.Schema) -> pa.Schema:
    return pa.schema([CLUSTER, *fields, RUN])


def _gold(fields: list[pa.Field] | pa.Schema) -> pa.Schema:
    return _schema(with_times(list(fields)))


def _with_topic(schema: pa.Schema) -> pa.Schema:
    """The columns with the topic's name behind its id."""
    return schema.insert(schema.get_field_index("topic_id") + 1, TOPIC)


TOPIC = column("topic", pa.string(), "name of the topic; null = unknown")
LOG_TOPIC_ID = column(
    "log_topic_id", pa.string(), "id of the audited __share_group_state, zero uuid when unknown", nullable=False
)
STANDING = (
    column("first_run_id", pa.int64(), "run that wrote the finding first", nullable=False),
    column(
        "withdrawn_run_id",
        pa.int64(),
        "run whose evidence or settings refuted the finding; null: it stands. Null again when a later run has it again",
    ),
)
_POSITION = ("cluster_id", "log_topic_id", "state_partition", "log_offset")
_SHARE_PARTITION = ("cluster_id", "group_id", "topic_id", "partition")
_LOG = ("log_topic_id", "state_partition")
_LETTER = ("dlq_topic", "dlq_topic_id", "dlq_partition", "dlq_offset")

BRONZE_LOG_RECORD, BRONZE_TOPIC_BATCH = "bronze.log_record", "bronze.topic_batch"
SILVER_METADATA_RECORD = "silver.metadata_record"
GOLD_AUDIT_STATE = "gold.audit_state"
TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            name=BRONZE_LOG_RECORD,
            comment="one record of __share_group_state or __consumer_offsets, bytes untouched, or one dead letter",
            schema=_schema(LETTER),
            key=("cluster_id", "topic_id", "partition", "offset"),
            clustering=("topic_id", "partition", "offset"),
        ),
        Table(
            name=BRONZE_TOPIC_BATCH,
            comment="one record batch header of a user topic with share state, or that a streams group reads",
            schema=_schema(log_schemas.TOPIC_BATCH),
            key=("cluster_id", "topic_id", "partition", "base_offset"),
            clustering=("topic_id", "partition", "base_offset"),
        ),
        Table(
            name="bronze.ingest_extent",
            comment="the extent that one run ingested of one partition from one source",
            schema=_schema(INGEST_EXTENT),
            key=("cluster_id", "run_id", "source_id", "topic_id", "partition"),
            clustering=("topic_id", "partition", "from_offset"),
        ),
        Table(
            name="bronze.quarantine",
            comment="bytes that could not be decoded, and rows that a better copy replaced",
            schema=_schema(log_schemas.PROBLEM),
            key=("cluster_id", "source_id", "topic_id", "partition", "file", "position", "first_offset", "reason"),
            clustering=("topic_id", "partition", "position"),
        ),
        Table(
            name=settings_rows.TABLE,
            comment="one setting or end offset, of a file or a cluster, or what a batch says of a record that waits",
            schema=_schema(settings_rows.SETTING),
            key=("cluster_id", "kind", "valid_from_ms", "entity", "name", "run_id"),
            clustering=("kind", "valid_from_ms", "entity", "name"),
        ),
        Table(
            name="silver.share_record",
            comment="one ShareSnapshot, ShareUpdate or tombstone",
            schema=_schema(state_schemas.SHARE_RECORD),
            key=_POSITION,
            clustering=("log_topic_id", "state_partition", "log_offset"),
        ),
        Table(
            name="silver.group_record",
            comment="one record of __consumer_offsets of a consumer, share or streams group",
            schema=_schema(GROUP_RECORD),
            key=("cluster_id", "log_topic_id", "partition", "log_offset"),
            clustering=("log_topic_id", "partition", "log_offset"),
        ),
        Table(
            name="silver.odd_group_record",
            comment="one record of a group that can't be decoded, or of a type that no release of Kafka has",
            schema=_schema(ODD_GROUP_RECORD),
            key=("cluster_id", "log_topic_id", "partition", "log_offset"),
            clustering=("log_topic_id", "partition", "log_offset"),
        ),
        Table(
            name="silver.dlq_record",
            comment="one dead letter of a share group, its headers typed",
            schema=_schema(DLQ_RECORD),
            key=("cluster_id", "dlq_topic_id", "dlq_partition", "dlq_offset"),
            clustering=("dlq_topic_id", "dlq_partition", "dlq_offset"),
        ),
        Table(
            name="silver.name",
            comment="one topic id and name from one source",
            schema=_schema(NAME),
            key=("cluster_id", "topic_id", "topic", "source"),
            clustering=("topic_id",),
        ),
        Table(
            name=SILVER_METADATA_RECORD,
            comment="one record of __cluster_metadata, or of a snapshot that fills a gap; no secrets, no NO_OP records",
            schema=_schema(METADATA_RECORD),
            key=("cluster_id", "snapshot_end_offset", "log_offset"),
            clustering=("snapshot_end_offset", "log_offset"),
        ),
        Table(
            name="silver.clock_step",
            comment="one position in the state log where a broker's clock went back by over a minute",
            schema=_schema(CLOCK_STEP),
            key=_POSITION,
            clustering=("log_topic_id", "state_partition", "log_offset"),
        ),
        Table(
            name="silver.topic_start",
            comment="one user partition with share state in one state partition",
            schema=_schema(TOPIC_START),
            key=("cluster_id", "log_topic_id", "state_partition", "topic_id", "partition"),
            clustering=("topic_id", "partition"),
        ),
        Table(
            name="gold.share_partition_state",
            comment="the newest state: what ReadShareGroupState returns; the next run continues from it",
            schema=_gold(state_schemas.PLACED_STATE),
            key=(*_SHARE_PARTITION, *_LOG),
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name="gold.share_partition_base",
            comment="the state at the offset where retention cut silver.share_record; a rebuild starts from it",
            schema=_gold(state_schemas.PLACED_STATE),
            key=(*_SHARE_PARTITION, *_LOG, "run_id"),
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name="gold.share_partition_history",
            comment="the coordinator's scalars after each record",
            schema=_gold(state_schemas.SHARE_PARTITION_HISTORY),
            key=(*_SHARE_PARTITION, *_LOG, "log_offset"),
            clustering=("group_id", "topic_id", "partition", "log_offset"),
        ),
        Table(
            name="gold.delivery_history",
            comment="one range of the coalesced state that is the same in consecutive states",
            schema=_gold(state_schemas.DELIVERY_HISTORY),
            key=(*_SHARE_PARTITION, *_LOG, "first_offset", "valid_from_log_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset", "valid_from_log_offset"),
            partition_by=("is_open",),
        ),
        Table(
            name="gold.stall",
            comment="a stall of the first incomplete offset: of a minute or more if over, of any length while it lasts",
            schema=_gold(_with_topic(measures.STALL).append(measures.IS_FINAL)),
            key=(*_SHARE_PARTITION, "state_partition", "log_offset"),
            clustering=("group_id", "topic_id", "partition", "log_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.poison_record",
            comment="one range of record offsets that a group archived, or is archiving, in one life",
            schema=_gold(_with_topic(measures.POISON_RECORD).append(measures.IS_FINAL)),
            key=(*_SHARE_PARTITION, "state_partition", "life_log_offset", "first_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.redelivered_record",
            comment="one range of record offsets that a group received more than once, with cause and evidence",
            schema=_gold(_with_topic(measures.REDELIVERED).append(measures.IS_FINAL)),
            key=(*_SHARE_PARTITION, *_LOG, "life_log_offset", "kind", "first_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.latency",
            comment="outcomes of a block of 4,096 record offsets in an hour: ages and deliveries; rows add up",
            schema=_gold(_with_topic(LATENCY_CONTRIBUTION).append(measures.IS_FINAL)),
            key=(*_SHARE_PARTITION, *_LOG, "hour_ms", "outcome", "first_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.attempts",
            comment="record offsets of a share partition by hour, outcome, delivery count and block of 4,096 offsets",
            schema=_gold(_with_topic(ATTEMPTS_CONTRIBUTION).append(measures.IS_FINAL)),
            key=(*_SHARE_PARTITION, *_LOG, "hour_ms", "outcome", "delivery_count", "first_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.life_event",
            comment="one event in the life of a share partition: creation, reset, deletion, a move of an epoch",
            schema=_gold(_with_topic(measures.LIFE).append(measures.IS_FINAL)),
            key=(*_SHARE_PARTITION, *_LOG, "log_offset", "event"),
            clustering=("group_id", "topic_id", "partition", "log_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.lag_over_time",
            comment="lag, start and end of a share partition at a minute of log time; a row holds until its next one",
            schema=_gold(measures.LAG_OVER_TIME.append(measures.IS_FINAL)),
            key=(*_SHARE_PARTITION, "state_partition", "at_ms"),
            clustering=("group_id", "topic_id", "partition", "at_ms"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.progress",
            comment="first incomplete offset of a share partition, since when, and the last measured record",
            schema=_gold(measures.PROGRESS),
            key=(*_SHARE_PARTITION, *_LOG),
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name="gold.measure_base",
            comment="where retention cut the histories of a share partition: measures below stay as they are",
            schema=_gold(measures.MEASURE_BASE),
            key=(*_SHARE_PARTITION, *_LOG, "run_id"),
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name="gold.dlq_reconciliation",
            comment="one dead letter, or one range of records whose dead letter is missing",
            schema=_gold(DLQ_RECONCILIATION),
            key=(*_SHARE_PARTITION, "first_offset", "state_partition", "life_log_offset", *_LETTER),
            clustering=("group_id", "topic_id", "partition", "first_offset"),
        ),
        Table(
            name="gold.lag",
            comment="the current lag of a share partition, and why its figures differ",
            schema=_gold(measures.LAG),
            key=_SHARE_PARTITION,
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name=GOLD_AUDIT_STATE,
            comment="the audit of one state partition so far; the audit's own, the next run continues from it",
            schema=_gold([LOG_TOPIC_ID, *AUDIT_STATE]),
            key=("cluster_id", *_LOG),
            clustering=_LOG,
        ),
        Table(
            name="gold.audit_record",
            comment="one record of the state log that the audit compares again with other logs in each run",
            schema=_gold([LOG_TOPIC_ID, *KEPT_RECORD]),
            key=("cluster_id", *_LOG, "kind", "log_offset", "group_id", "topic_id", "partition"),
            clustering=_LOG,
        ),
        Table(
            name="gold.audit_counter",
            comment="the coordinator's counters of updates in a state partition, where its configuration is known",
            schema=_gold([LOG_TOPIC_ID, *AUDIT_COUNTER]),
            key=("cluster_id", *_LOG),
            clustering=_LOG,
        ),
        Table(
            name="gold.audit_finding",
            comment="one rule of the audit that a share partition, or a log, violates",
            schema=_gold(_with_topic(pa.schema([LOG_TOPIC_ID, *FINDING, *STANDING]))),
            key=("cluster_id", "rule", *_LOG, "group_id", "topic_id", "partition"),
            clustering=("group_id", "topic_id", "partition", "rule", "state_partition"),
        ),
        Table(
            name="gold.configuration_history",
            comment="one value of a setting, feature or broker registration, and the time in which it was in force",
            schema=_gold(CONFIGURATION_HISTORY),
            key=("cluster_id", "entity_type", "entity", "key", "valid_from_log_offset"),
            clustering=("entity_type", "entity", "key", "valid_from_log_offset"),
        ),
        Table(
            name="gold.topic_history",
            comment="leader, epochs and replicas of a topic partition, and the time in which they were valid",
            schema=_gold(TOPIC_HISTORY),
            key=("cluster_id", "topic_id", "partition", "valid_from_log_offset"),
            clustering=("topic_id", "partition", "valid_from_log_offset"),
        ),
        Table(
            name="gold.group_history",
            comment="state, epochs and number of members of a group, and the time in which they were valid",
            schema=_gold(GROUP_HISTORY),
            key=("cluster_id", "group_id", "log_partition", "valid_from_log_offset"),
            clustering=("group_id", "log_partition", "valid_from_log_offset"),
        ),
        Table(
            name="gold.member_history",
            comment="metadata, epochs and assignments of a member, and the time in which they were valid",
            schema=_gold(MEMBER_HISTORY),
            key=("cluster_id", "group_id", "member_id", "log_partition", "valid_from_log_offset"),
            clustering=("group_id", "member_id", "log_partition", "valid_from_log_offset"),
        ),
        Table(
            name="gold.share_initialization_history",
            comment="the time in which a share partition was initializing, initialized or being deleted",
            schema=_gold(SHARE_INITIALIZATION_HISTORY),
            key=(*_SHARE_PARTITION, "status", "log_partition", "valid_from_log_offset"),
            clustering=("group_id", "topic_id", "partition", "valid_from_log_offset"),
        ),
        Table(
            name="gold.task_history",
            comment="a task of a streams group in the assignment of a member, and the time in which it was there",
            schema=_gold(TASK_HISTORY),
            key=(
                "cluster_id",
                "group_id",
                "subtopology_id",
                "partition",
                "task_type",
                "member_id",
                "status",
                "log_partition",
                "valid_from_log_offset",
            ),
            clustering=("group_id", "subtopology_id", "partition", "valid_from_log_offset"),
        ),
        Table(
            name="gold.quality_result",
            comment="the result of one expectation in one check; always read at the newest version, part of no cut",
            schema=_gold(QUALITY_RESULT),
            key=("cluster_id", "check_id", "table_name", "level", "expectation"),
            clustering=("check_id", "table_name", "level", "expectation"),
        ),
        Table(
            name="gold.publication",
            comment="one published cut: the version of every table",
            schema=_schema(PUBLICATION),
            key=("run_id",),
            clustering=("run_id",),
        ),
    )
}
