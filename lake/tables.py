"""Every table of the lake: schema with a comment per column, key, clustering, partitioning, schema version.

Delta's, Spark's and Arrow's forms of a schema all derive from the Arrow schemas here. A gold table carries, beside
each BIGINT `…_ms`, a guarded TIMESTAMP `…_time` (UTC; null outside years 1-9999).
"""

from dataclasses import dataclass

import pyarrow as pa

from evidence.schemas import CLOCK_STEP, GROUP_RECORD, NAME
from kafka_log import schemas as log_schemas
from kafka_log.dead_letter_records import DLQ_RECORD, LETTER
from measures.dlq_schemas import DLQ_RECONCILIATION
from measures.latency_schemas import AGES, ATTEMPTS_CONTRIBUTION, LATENCY_CONTRIBUTION
from measures.schemas import IS_FINAL, LAG, LIFE, MEASURE_BASE, POISON_RECORD, PROGRESS, REDELIVERED, STALL
from state_model.columnar import schemas as state_schemas
from state_model.columnar.schemas import column

SCHEMA_VERSION = 4
TIME = pa.timestamp("us", tz="UTC")

CLUSTER = column("cluster_id", pa.string(), "Kafka cluster id; `unknown` when no directory named one", nullable=False)
RUN = column("run_id", pa.int64(), "run that wrote the row", nullable=False)
GAP = pa.struct(
    [pa.field("first_offset", pa.int64()), pa.field("last_offset", pa.int64()), pa.field("reason", pa.string())]
)


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
    """`fields` with a TIMESTAMP beside each `…_ms` that is a moment; ages are none."""
    result = []
    for field in fields:
        result.append(field)
        if field.name.endswith("_ms") and field.name not in AGES:
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
_POSITION = ("cluster_id", "log_topic_id", "state_partition", "log_offset")
_SHARE_PARTITION = ("cluster_id", "group_id", "topic_id", "partition")
_LOG = ("log_topic_id", "state_partition")

INGEST_EXTENT = pa.schema(
    [
        column("status", pa.string(), "planned (the run has begun), taken, or dropped by retention", nullable=False),
        column("source_id", pa.string(), "source: node id and directory", nullable=False),
        column("node_id", pa.string(), "broker's node id; null when meta.properties is missing"),
        column("source_uri", pa.string(), "partition directory", nullable=False),
        column("topic", pa.string(), "topic name", nullable=False),
        column("topic_id", pa.string(), "topic id, zero uuid when unknown", nullable=False),
        column("partition", pa.int32(), "partition", nullable=False),
        column(
            "content",
            pa.string(),
            "log_record or topic_batch: the table the rows went to; or the stage that starts over, or what was dropped",
            nullable=False,
        ),
        column("from_offset", pa.int64(), "first offset asked for", nullable=False),
        column("end_offset_exclusive", pa.int64(), "first offset not asked for", nullable=False),
        column("log_start_offset", pa.int64(), "log start offset, the maximum over the copies", nullable=False),
        column(
            "log_start_known",
            pa.bool_(),
            "a checkpoint told it; else the first segment's offset, a guess",
            nullable=False,
        ),
        column(
            "committed_end", pa.int64(), "high watermark by the checkpoint, the maximum over the copies; null = no file"
        ),
        column("held_back", pa.int64(), "offsets at or above the high watermark left for the next run", nullable=False),
        column(
            "unreadable_bytes",
            pa.int64(),
            "bytes behind the last complete batch of the copies, such as an append in progress; null = not counted",
        ),
        column("gaps", pa.list_(GAP), "offset ranges of the extent that the evidence lacks", nullable=False),
        column(
            "rebuild",
            pa.bool_(),
            "fills in older offsets: what was derived from the partition is derived again",
            nullable=False,
        ),
        column("superseded_from", pa.int64(), "rows taken earlier from this offset on were set aside; null = none"),
        column("record_count", pa.int64(), "rows taken", nullable=False),
        column(
            "size_bytes", pa.int64(), "bytes of keys and values (records) or of the batches (headers)", nullable=False
        ),
        column("sha256", pa.string(), "SHA-256 over the splits' SHA-256 of what was taken; null while planned"),
        column(
            "log_time_ms", pa.int64(), "running maximum of record timestamps at the end; null when nothing was taken"
        ),
        column("until_ms", pa.int64(), "--until of the run; null without"),
        column("written_at_ms", pa.int64(), "wall clock of the writer", nullable=False),
        column("sharelens_version", pa.string(), "version of sharelens", nullable=False),
        column("user", pa.string(), "user who ran it", nullable=False),
        column("host", pa.string(), "host it ran on", nullable=False),
    ]
)

TOPIC_START = pa.schema(
    [
        *state_schemas.LOG_POSITION[:2],
        *state_schemas.SHARE_PARTITION[1:],
        column(
            "start_offset",
            pa.int64(),
            "smallest start offset of all its records, of any group and life: below it no share group was served",
            nullable=False,
        ),
    ]
)

PUBLISHED_TABLE = pa.struct([pa.field("table", pa.string()), pa.field("version", pa.int64())])
EVIDENCE = pa.struct(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("log_topic_id", pa.string()),
        pa.field("state_partition", pa.int32()),
        pa.field("first_log_offset", pa.int64()),
        pa.field("end_log_offset_exclusive", pa.int64()),
        pa.field("first_log_time_ms", pa.int64()),
        pa.field("log_time_ms", pa.int64()),
        pa.field("held_back", pa.int64()),
    ]
)
PUBLICATION = pa.schema(
    [
        column("published_at_ms", pa.int64(), "wall clock", nullable=False),
        column("tables", pa.list_(PUBLISHED_TABLE), "the version of every table in this cut", nullable=False),
        column("evidence", pa.list_(EVIDENCE), "the log range of every state partition", nullable=False),
        column("sharelens_version", pa.string(), "version of sharelens", nullable=False),
    ]
)

QUALITY_RESULT = pa.schema(
    [
        column("check_id", pa.int64(), "number of the check", nullable=False),
        column("checked_ms", pa.int64(), "wall clock", nullable=False),
        column("table_name", pa.string(), "table that was checked", nullable=False),
        column("version", pa.int64(), "version of that table", nullable=False),
        column("slice", pa.string(), "rows that were looked at, by run", nullable=False),
        column("slice_rows", pa.int64(), "how many they were", nullable=False),
        column("level", pa.string(), "blocking or warning", nullable=False),
        column("kind", pa.string(), "shape, nullability, keys, ranges, references, stage, freshness or volume"),
        column("expectation", pa.string(), "name of the expectation, as the reference page lists it", nullable=False),
        column("expectation_type", pa.string(), "class of Great Expectations", nullable=False),
        column("column_name", pa.string(), "column or counted fact that it is about"),
        column("success", pa.bool_(), "met; null = not judged, details say why"),
        column("unexpected_count", pa.int64(), "values that did not meet it", nullable=False),
        column("observed", pa.string(), "what was seen", nullable=False),
        column("details", pa.string(), "one line for a person; empty when there is nothing to add", nullable=False),
    ]
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            name="bronze.log_record",
            comment="one record of __share_group_state or __consumer_offsets, bytes untouched, or one dead letter",
            schema=_schema(LETTER),
            key=("cluster_id", "topic_id", "partition", "offset"),
            clustering=("topic_id", "partition", "offset"),
        ),
        Table(
            name="bronze.topic_batch",
            comment="one record batch header of a user topic that share state speaks of",
            schema=_schema(log_schemas.TOPIC_BATCH),
            key=("cluster_id", "topic_id", "partition", "base_offset"),
            clustering=("topic_id", "partition", "base_offset"),
        ),
        Table(
            name="bronze.ingest_extent",
            comment="what one run took of one partition from one source",
            schema=_schema(INGEST_EXTENT),
            key=("cluster_id", "run_id", "source_id", "topic_id", "partition"),
            clustering=("topic_id", "partition", "from_offset"),
        ),
        Table(
            name="bronze.quarantine",
            comment="what could not be read or was set aside",
            schema=_schema(log_schemas.PROBLEM),
            key=("cluster_id", "source_id", "topic_id", "partition", "file", "position", "offset", "reason"),
            clustering=("topic_id", "partition", "position"),
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
            comment="one share-group or streams-group record of __consumer_offsets",
            schema=_schema(GROUP_RECORD),
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
            comment="topic id and name, as one source tells them",
            schema=_schema(NAME),
            key=("cluster_id", "topic_id", "topic", "source"),
            clustering=("topic_id",),
        ),
        Table(
            name="silver.clock_step",
            comment="one place where a broker's clock went back by over a minute",
            schema=_schema(CLOCK_STEP),
            key=_POSITION,
            clustering=("log_topic_id", "state_partition", "log_offset"),
        ),
        Table(
            name="silver.topic_start",
            comment="a user partition that share state speaks of, as one state partition tells it",
            schema=_schema(TOPIC_START),
            key=("cluster_id", "log_topic_id", "state_partition", "topic_id", "partition"),
            clustering=("topic_id", "partition"),
        ),
        Table(
            name="gold.share_partition_state",
            comment="the state now: what ReadShareGroupState would answer, and all that the next run folds on",
            schema=_gold(state_schemas.PLACED_STATE),
            key=(*_SHARE_PARTITION, *_LOG),
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name="gold.share_partition_base",
            comment="the state where retention has cut silver.share_record: what a rebuild folds on",
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
            comment="one range of the coalesced state that stays identical in consecutive states",
            schema=_gold(state_schemas.DELIVERY_HISTORY),
            key=(*_SHARE_PARTITION, *_LOG, "first_offset", "valid_from_log_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset", "valid_from_log_offset"),
            partition_by=("is_open",),
        ),
        Table(
            name="gold.stall",
            comment="one interval of a minute or more in which the first incomplete offset stood still, or still does",
            schema=_gold(_with_topic(STALL).append(IS_FINAL)),
            key=(*_SHARE_PARTITION, "state_partition", "log_offset"),
            clustering=("group_id", "topic_id", "partition", "log_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.poison_record",
            comment="one run of record offsets that a group archived, or is about to, in one life",
            schema=_gold(_with_topic(POISON_RECORD).append(IS_FINAL)),
            key=(*_SHARE_PARTITION, "state_partition", "life_log_offset", "offset"),
            clustering=("group_id", "topic_id", "partition", "offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.redelivered_record",
            comment="one range of record offsets that a group got more than once, why, and the records that prove it",
            schema=_gold(_with_topic(REDELIVERED).append(IS_FINAL)),
            key=(*_SHARE_PARTITION, *_LOG, "life", "kind", "first_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.latency",
            comment="what a share partition settled of 4,096 record offsets in an hour: ages and deliveries, to add up",
            schema=_gold(_with_topic(LATENCY_CONTRIBUTION).append(IS_FINAL)),
            key=(*_SHARE_PARTITION, *_LOG, "hour_ms", "outcome", "first_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.attempts",
            comment="record offsets of a share partition by hour, outcome, delivery count and block of 4,096 offsets",
            schema=_gold(_with_topic(ATTEMPTS_CONTRIBUTION).append(IS_FINAL)),
            key=(*_SHARE_PARTITION, *_LOG, "hour_ms", "outcome", "delivery_count", "first_offset"),
            clustering=("group_id", "topic_id", "partition", "first_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.life_event",
            comment="one event in the life of a share partition: creation, reset, deletion, a move of an epoch",
            schema=_gold(_with_topic(LIFE).append(IS_FINAL)),
            key=(*_SHARE_PARTITION, *_LOG, "log_offset", "event"),
            clustering=("group_id", "topic_id", "partition", "log_offset"),
            partition_by=("is_final",),
        ),
        Table(
            name="gold.progress",
            comment="where a share partition stands, since which record, and how far the measures have read",
            schema=_gold(PROGRESS),
            key=(*_SHARE_PARTITION, *_LOG),
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name="gold.measure_base",
            comment="where retention has cut the histories of a share partition, and measures stay as they are",
            schema=_gold(MEASURE_BASE),
            key=(*_SHARE_PARTITION, *_LOG, "run_id"),
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name="gold.dlq_reconciliation",
            comment="one dead letter, or one run of records whose dead letter is due and not there",
            schema=_gold(DLQ_RECONCILIATION),
            key=(
                *_SHARE_PARTITION,
                "offset",
                "state_partition",
                "life_log_offset",
                "dlq_topic",
                "dlq_topic_id",
                "dlq_partition",
                "dlq_offset",
            ),
            clustering=("group_id", "topic_id", "partition", "offset"),
        ),
        Table(
            name="gold.lag",
            comment="how far a share partition is behind now, and why its figures differ",
            schema=_gold(LAG),
            key=_SHARE_PARTITION,
            clustering=("group_id", "topic_id", "partition"),
        ),
        Table(
            name="gold.quality_result",
            comment="what one check found of one expectation of one table; the newest version counts, no cut lists it",
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
