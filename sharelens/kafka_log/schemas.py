"""Arrow schemas of the rows read from a log directory. One place; tables and the data source derive from it."""

import pyarrow as pa

from state_model.columnar.schemas import column

HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

LOG_RECORD = pa.schema(
    [
        column("topic", pa.string(), "name of the log's topic", nullable=False),
        column("topic_id", pa.string(), "id of the log's topic, 22 characters; zero uuid when unknown", nullable=False),
        column("partition", pa.int32(), "partition of the log's topic", nullable=False),
        column("offset", pa.int64(), "offset of the record in its partition", nullable=False),
        column(
            "timestamp_ms",
            pa.int64(),
            "record timestamp, epoch milliseconds (LogAppendTime: the batch's)",
            nullable=False,
        ),
        column("timestamp_type", pa.string(), "CreateTime or LogAppendTime", nullable=False),
        column("key", pa.binary(), "key bytes, untouched; null as in the log"),
        column("value", pa.binary(), "value bytes, untouched; null = tombstone"),
        column("headers", pa.list_(HEADER), "record headers in order; empty when there are none"),
        column("base_offset", pa.int64(), "base offset of the record's batch", nullable=False),
        column("leader_epoch", pa.int32(), "partition leader epoch of the batch", nullable=False),
        column("producer_id", pa.int64(), "producer id of the batch, -1 = none", nullable=False),
        column("producer_epoch", pa.int16(), "producer epoch of the batch, -1 = none", nullable=False),
        column(
            "attributes",
            pa.int16(),
            "batch attributes: codec 0-2, timestamp type 3, transactional 4, control 5",
            nullable=False,
        ),
        column("is_control", pa.bool_(), "record of a control batch (transaction marker)", nullable=False),
        column(
            "below_log_start",
            pa.bool_(),
            "lies below the log start offset: Kafka no longer serves it",
            nullable=False,
        ),
        column("uncommitted", pa.bool_(), "was at or above the high watermark when the run read it", nullable=False),
    ]
)

PROBLEM = pa.schema(
    [
        column("source_id", pa.string(), "source of the bytes", nullable=False),
        column("topic", pa.string(), "topic name", nullable=False),
        column("topic_id", pa.string(), "topic id, zero uuid when unknown", nullable=False),
        column("partition", pa.int32(), "partition", nullable=False),
        column("file", pa.string(), "segment file (URI), or the table of the bytes", nullable=False),
        column("position", pa.int64(), "byte position in the file; -1 when it does not apply", nullable=False),
        column("first_offset", pa.int64(), "first offset concerned; null = unknown"),
        column("last_offset", pa.int64(), "last offset concerned (inclusive); null = unknown"),
        column("reason", pa.string(), "reason code, see the reference page", nullable=False),
        column("detail", pa.string(), "explanation in one line", nullable=False),
        column("bytes", pa.binary(), "the bytes, bounded; of user and dead-letter topics the header only"),
    ]
)

TOPIC_BATCH = pa.schema(
    [
        column("topic", pa.string(), "topic name", nullable=False),
        column("topic_id", pa.string(), "topic id, zero uuid when unknown", nullable=False),
        column("partition", pa.int32(), "partition", nullable=False),
        column("base_offset", pa.int64(), "first offset of the batch", nullable=False),
        column("last_offset", pa.int64(), "last offset of the batch (inclusive)", nullable=False),
        column("base_timestamp_ms", pa.int64(), "base timestamp of the batch", nullable=False),
        column("max_timestamp_ms", pa.int64(), "max timestamp of the batch", nullable=False),
        column("timestamp_type", pa.string(), "CreateTime or LogAppendTime", nullable=False),
        column("record_count", pa.int32(), "records in the batch by its header", nullable=False),
        column("size_bytes", pa.int32(), "bytes of the batch on disk, header included", nullable=False),
        column("producer_id", pa.int64(), "producer id, -1 = none", nullable=False),
        column("producer_epoch", pa.int16(), "producer epoch, -1 = none", nullable=False),
        column("base_sequence", pa.int32(), "base sequence, -1 = none", nullable=False),
        column("leader_epoch", pa.int32(), "partition leader epoch", nullable=False),
        column("transactional", pa.bool_(), "batch of a transaction", nullable=False),
        column("control_type", pa.string(), "COMMIT, ABORT or OTHER for a control batch, else null"),
        column("below_log_start", pa.bool_(), "batch ends below the log start offset", nullable=False),
        column("uncommitted", pa.bool_(), "was at or above the high watermark when the run read it", nullable=False),
    ]
)
