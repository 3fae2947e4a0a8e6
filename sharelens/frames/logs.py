"""Records of logs: from Spark sources to LOG_RECORD rows, and decoded into rows of the silver tables."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.evidence.decoding import DECODABLE, decode_log
from sharelens.evidence.early_draft_records import EARLY_DRAFT_RECORD
from sharelens.evidence.early_draft_records import early_draft_records as draft_rows
from sharelens.evidence.group_decoding import decode_groups
from sharelens.evidence.log_time import NO_LOG_TIME
from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.frames.envelopes import CHUNK_BITS
from sharelens.frames.refusals import Argument, once_each, refuse_other_id, spark_frame
from sharelens.frames.shapes import checked, in_groups, spark_schema, typed_rows
from sharelens.kafka_log.dead_letter_records import DEFAULT_PREFIX, DLQ_RECORD, INTERNAL, letters_of, typed_letters
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model.columnar.keys import LOG_PARTITION_KEY
from state_model.columnar.schemas import LOG_POSITION, SHARE_RECORD, column
from state_model.errors import UsageError
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC
from state_model.uuids import ZERO_UUID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG_TIME = pa.schema(
    [*LOG_POSITION[:2], column("log_time_ms", pa.int64(), "log time after the records that came before")]
)
KAFKA_SOURCE = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)
"""Columns of Spark's own Kafka source; `headers` is there only with the option includeHeaders."""
_LOG_APPEND_TIME_BIT = 8
_UNKNOWN = -1


def log_records(rows: "DataFrame") -> "DataFrame":
    """Records of Kafka logs as they lie in the log, from `spark.read.format("kafka_log")`.

    Args:
        rows: rows of the data source `kafka_log`, or of bronze.log_record; more columns do no harm.

    Returns:
        LOG_RECORD rows (the columns of bronze.log_record but cluster_id, run_id and the digests), as they come.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return checked(rows, LOG_RECORD, "log_records", "rows")


def log_records_of_kafka_source(rows: "DataFrame", topic_ids: Mapping[str, str] | None = None) -> "DataFrame":
    """Records of Kafka logs as they lie in the log, from Spark's own Kafka source (`spark.read.format("kafka")`).

    The source hides internal topics unless spark.sql.streaming.kafka.useDeprecatedOffsetFetching is true.

    Args:
        rows: rows of the source. Dead letters are known by their headers: read them with includeHeaders.
        topic_ids: id by topic name, 22 characters as Kafka prints them; a topic without one has the zero uuid.

    Returns:
        LOG_RECORD rows, as they come. What the source does not hand out is -1 (base_offset, leader_epoch, producer_id,
        producer_epoch) or false (is_control: it leaves control records out; below_log_start, uncommitted: it reads
        what Kafka serves). `attributes` has the timestamp type alone.

    Raises:
        UsageError: a column is missing or has another type; or a value of `topic_ids` is no id.
    """
    function = "log_records_of_kafka_source"
    spark_frame(rows, Argument(function, "rows"))
    for name, topic_id in (topic_ids or {}).items():
        refuse_other_id(topic_id, Argument(function, "topic_ids"), name)
    has_headers = "headers" in rows.columns
    schema = KAFKA_SOURCE.append(LOG_RECORD.field("headers")) if has_headers else KAFKA_SOURCE
    rows = checked(rows, schema, function, "rows")
    ids = F.create_map(*(F.lit(text) for pair in (topic_ids or {"": ZERO_UUID}).items() for text in pair))
    is_append_time = F.col("timestampType") == 1
    headers = F.coalesce(F.col("headers"), F.array()) if has_headers else F.array()
    columns = {
        "topic_id": F.coalesce(F.try_element_at(ids, F.col("topic")), F.lit(ZERO_UUID)),
        "timestamp_ms": F.unix_millis("timestamp"),
        "timestamp_type": F.when(is_append_time, "LogAppendTime").otherwise("CreateTime"),
        "headers": headers,
        "attributes": F.when(is_append_time, _LOG_APPEND_TIME_BIT).otherwise(0),
        **dict.fromkeys(("base_offset", "leader_epoch", "producer_id", "producer_epoch"), F.lit(_UNKNOWN)),
        **dict.fromkeys(("is_control", "below_log_start", "uncommitted"), F.lit(False)),
    }
    fields = spark_schema(LOG_RECORD).fields
    return rows.select(
        *(columns.get(field.name, F.col(field.name)).cast(field.dataType).alias(field.name) for field in fields)
    )


def share_records(log_records: "DataFrame", *, log_times: "DataFrame | None" = None) -> "DataFrame":
    """The records of __share_group_state decoded: snapshots, updates and tombstones of share partitions.

    Reads its input twice (log time is a running maximum over the whole log): cache or store slow inputs.

    Args:
        log_records: LOG_RECORD rows in any order, each offset of a partition once; other topics' rows are left out.
        log_times: `log_topic_id`, `state_partition` and `log_time_ms`: the log time after the records that came
            before these; None: the records begin where the log does.

    Returns:
        SHARE_RECORD rows (the columns of silver.share_record but cluster_id and run_id), in no order. Records that
        can't be decoded are left out; `frames.losses` has them.

    Raises:
        UsageError: a column is missing or has another type. A task fails where an offset comes twice, or an id of a
            topic is none.

    Rules: share-group-state-log §2-3 (bytes); log time is the running maximum of timestamps in a state partition.
    """
    state_rows = state_log_rows(checked(log_records, LOG_RECORD, "share_records", "log_records"))
    key = [*LOG_PARTITION_KEY, "chunk"]
    newest = state_rows.groupBy(*key).agg(F.max("timestamp_ms").alias("newest_ms"))
    earlier = Window.partitionBy(*LOG_PARTITION_KEY).orderBy("chunk").rowsBetween(Window.unboundedPreceding, -1)
    begins = newest.select(*key, F.coalesce(F.max("newest_ms").over(earlier), F.lit(NO_LOG_TIME)).alias("before_ms"))
    if log_times is not None:
        known_times = checked(log_times, LOG_TIME, "share_records", "log_times")
        known_times = known_times.groupBy("log_topic_id", "state_partition").agg(F.max("log_time_ms").alias("known_ms"))
        known_times = known_times.withColumnsRenamed({"log_topic_id": "topic_id", "state_partition": "partition"})
        greatest_ms = F.greatest("before_ms", "known_ms").alias("before_ms")
        begins = begins.join(F.broadcast(known_times), LOG_PARTITION_KEY, "left").select(*key, greatest_ms)
    timed = state_rows.join(F.broadcast(begins), key).select(*DECODABLE.names, "chunk", "before_ms")

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before_ms = NO_LOG_TIME
        for batch in once_each(batches, Argument("share_records", "log_records"), [*LOG_PARTITION_KEY, "offset"]):
            before_ms = max(before_ms, batch.column("before_ms")[0].as_py())
            decoded = decode_log(typed_rows(batch, DECODABLE), before_ms=before_ms)
            before_ms = decoded.log_time_ms
            yield from decoded.records.to_batches()

    return in_groups(timed, key, ["offset"], decode, SHARE_RECORD)


def group_records(log_records: "DataFrame") -> "DataFrame":
    """The records of consumer, share and streams groups in __consumer_offsets, decoded.

    Args:
        log_records: LOG_RECORD rows in any order; other topics' rows are left out.

    Returns:
        GROUP_RECORD rows (the columns of silver.group_record but cluster_id and run_id), in the order of the input.
        Records of other kinds (offset commits, classic groups), control records and records that can't be decoded are
        left out.

    Raises:
        UsageError: a column is missing or has another type.
    """
    rows = checked(log_records, LOG_RECORD, "group_records", "log_records").where(F.col("topic") == OFFSETS_TOPIC)

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from decode_groups(typed_rows(batch, LOG_RECORD)).records.to_batches()

    return rows.mapInArrow(decode, spark_schema(GROUP_RECORD))


def dead_letters(
    log_records: "DataFrame", *, prefix: str | None = DEFAULT_PREFIX, topics: Collection[str] = ()
) -> "DataFrame":
    """The dead letters of share groups (KIP-1191, Kafka 4.4), their headers typed.

    Args:
        log_records: LOG_RECORD rows in any order.
        prefix: searches topics whose name begins with it (errors.deadletterqueue.topic.name.prefix); None: no more
            than `topics`. Kafka's internal topics never are.
        topics: more names of topics, not of Kafka's internal ones.

    Returns:
        DLQ_RECORD rows (the columns of silver.dlq_record but cluster_id and run_id), in the order of the input: records
        with a header `__dlq.errors.*`. A header that can't be read is null, and `header_problem` names it.

    Raises:
        UsageError: a column is missing or has another type; or `topics` can match nothing.
    """
    rows = checked(log_records, LOG_RECORD, "dead_letters", "log_records")
    _refuse_other_topics(topics, Argument("dead_letters", "topics"))
    chosen = F.col("topic").isin(*topics) if topics else F.lit(False)
    if prefix is not None:
        chosen |= F.col("topic").startswith(prefix)
    rows = rows.where(chosen & ~F.col("topic").startswith(INTERNAL))

    def typed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for records in typed_rows(batch, LOG_RECORD).to_batches():
                letters = letters_of(records, keep_values=False)
                yield from typed_letters(pa.Table.from_batches([letters])).to_batches()

    return rows.mapInArrow(typed, spark_schema(DLQ_RECORD))


def _refuse_other_topics(topics: Collection[str], argument: Argument) -> None:
    """Raises UsageError where names of dead-letter topics can match none."""
    if isinstance(topics, str):
        raise UsageError(f"{argument} is a text: pass a collection of names, [{topics!r}]")
    internal = sorted(name for name in topics if name.startswith(INTERNAL))
    if internal:
        raise UsageError(f"{argument} names {', '.join(internal)}: Kafka's internal topics hold no dead letters")


def state_log_rows(log_records: "DataFrame") -> "DataFrame":
    """LOG_RECORD rows of the state topic with the chunk of offsets that each is in."""
    rows = log_records.where(F.col("topic") == STATE_TOPIC)
    return rows.withColumn("chunk", F.shiftright("offset", CHUNK_BITS))


def early_draft_records(log_records: "DataFrame") -> "DataFrame":
    """The control records of KIP-932's early design, decoded, from the logs of user topics.

    Args:
        log_records: LOG_RECORD rows in any order; all but control records are left out.

    Returns:
        EARLY_DRAFT_RECORD rows (sharelens.evidence.early_draft_records), in no order. One that can't be decoded has
        `error`.

    Raises:
        UsageError: a column is missing or has another type.

    Rules: the draft's fields, with the widths and types that docs/explanation/early-design.md assumes.
    """
    rows = checked(log_records, LOG_RECORD, "early_draft_records", "log_records").where("is_control")
    return rows.mapInArrow(_draft_rows, spark_schema(EARLY_DRAFT_RECORD))


def _draft_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from draft_rows(typed_rows(batch, LOG_RECORD)).to_batches()
