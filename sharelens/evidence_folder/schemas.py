"""Columns of the tables that only a folder of evidence has; one place for files, README and reference page."""

import pyarrow as pa

from sharelens.evidence.metadata_schemas import CONFIGURATION_HISTORY
from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.kafka_log.dead_letter_records import DLQ_RECORD
from sharelens.kafka_log.schemas import HEADER
from state_model.columnar.schemas import LOG_POSITION, SHARE_PARTITION, SHARE_RECORD, column

GROUP_ID, TOPIC_ID, PARTITION = (field.with_nullable(True) for field in SHARE_PARTITION)

RAW = pa.schema(
    [
        *LOG_POSITION,
        column("timestamp_ms", pa.int64(), "record timestamp, epoch milliseconds"),
        column("timestamp_type", pa.string(), "CreateTime or LogAppendTime"),
        column("log_time_ms", pa.int64(), "running maximum of record timestamps in the state partition"),
        column("base_offset", pa.int64(), "base offset of the record's batch"),
        column("log_leader_epoch", pa.int32(), "leader epoch of the batch"),
        column("producer_id", pa.int64(), "producer id of the batch, -1 = none"),
        column("producer_epoch", pa.int16(), "producer epoch of the batch, -1 = none"),
        column("attributes", pa.int16(), "batch attributes: codec 0-2, timestamp type 3, transactional 4, control 5"),
        column("uncommitted", pa.bool_(), "was at or above the high watermark when the run read it"),
        column("headers", pa.list_(HEADER), "record headers in order"),
        column("key", pa.binary(), "key bytes, untouched"),
        column("value", pa.binary(), "value bytes, untouched; null = tombstone"),
    ]
)
"""Columns with the bytes of a record."""
DECODED = pa.schema(
    [
        SHARE_RECORD.field("record_type"),
        GROUP_ID,
        TOPIC_ID,
        PARTITION,
        *(
            SHARE_RECORD.field(name)
            for name in (
                "value_version", "snapshot_epoch", "state_epoch", "leader_epoch", "start_offset",
                "delivery_complete_count", "create_timestamp_ms", "write_timestamp_ms", "state_batches",
                "unknown_tags", "trailing_bytes",
            )
        ),
    ]
)  # fmt: skip
"""Columns with the decoded record."""
RECORD = pa.schema(
    [*RAW, *DECODED, column("undecodable", pa.string(), "reason code of a record that can't be decoded; null else")]
)
GROUP_LOG_RECORD = pa.schema(
    [
        *(field for field in GROUP_RECORD if field.name != "below_log_start"),
        column("timestamp_type", pa.string(), "CreateTime or LogAppendTime"),
        column("base_offset", pa.int64(), "base offset of the record's batch"),
        column("key", pa.binary(), "key bytes, untouched"),
        column("value", pa.binary(), "value bytes, untouched; null = tombstone"),
    ]
)
QUARANTINED = pa.schema(
    [
        column("topic", pa.string(), "__share_group_state or __consumer_offsets"),
        column("topic_id", pa.string(), "topic id, zero uuid when unknown"),
        column("partition", pa.int32(), "partition"),
        column("offset", pa.int64(), "first offset concerned; null = unknown"),
        column("last_offset", pa.int64(), "last offset concerned (inclusive); null = unknown"),
        column("file", pa.string(), "name of the segment file; null for a record that was read but not decoded"),
        column("position", pa.int64(), "byte position in the file; null when it does not apply"),
        column("reason", pa.string(), "reason code"),
        column("detail", pa.string(), "explanation in one line"),
        column("bytes", pa.binary(), "the bytes, bounded"),
    ]
)
EXTENT = pa.schema(
    [
        *LOG_POSITION[:2],
        column("first_log_offset", pa.int64(), "first offset of the state partition in the evidence"),
        column("first_log_time_ms", pa.int64(), "log time of that record"),
        column("before_log_offset", pa.int64(), "last offset before the window; -1 = none in the evidence"),
        column("first_window_log_offset", pa.int64(), "first offset in the window; null = no record in it"),
        column("last_window_log_offset", pa.int64(), "last offset in the window (inclusive); null = no record in it"),
        column("window_records", pa.int64(), "records in the window, of all groups"),
        column("group_records", pa.int64(), "records of the group in the window: rows of `records`"),
    ]
)
GAP = pa.schema(
    [
        *LOG_POSITION[:2],
        column("first_log_offset", pa.int64(), "first offset that the evidence lacks"),
        column("last_log_offset", pa.int64(), "last offset that the evidence lacks (inclusive)"),
        column("reason", pa.string(), "pruned, remote, quarantined, truncated, vanished or gap"),
        column("in_window", pa.bool_(), "lies in the window, or reaches into it"),
        column("group_id", pa.string(), "share group of the lost record, where its key could be read"),
        column("topic_id", pa.string(), "topic of the lost record"),
        column("partition", pa.int32(), "partition of the lost record"),
    ]
)
DEAD_LETTER = pa.schema([field for field in DLQ_RECORD if field.name != "below_log_start"])
TRACE_EVENT = pa.schema(
    [
        *LOG_POSITION,
        column("log_time_ms", pa.int64(), "log time of the record"),
        *SHARE_PARTITION,
        column("life_log_offset", pa.int64(), "life of the share partition"),
        column("first_offset", pa.int64(), "first record offset of the event"),
        column("last_offset", pa.int64(), "last record offset of the event (inclusive)"),
        column("event", pa.string(), "name of the event, as in `sharelens trace`"),
        column("state_before", pa.string(), "delivery state before; null = none in the log"),
        column("delivery_count_before", pa.int16(), "delivery count before"),
        column("state_after", pa.string(), "delivery state after; null = none"),
        column("delivery_count_after", pa.int16(), "delivery count after"),
    ]
)
CONFIGURATION = pa.schema(
    [
        CONFIGURATION_HISTORY.field(name)
        for name in (
            "entity_type", "entity", "key", "value", "valid_from_log_offset", "valid_from_ms", "valid_to_log_offset",
            "valid_to_ms", "began_earlier",
        )
    ]
)  # fmt: skip
TOPIC = pa.schema(
    [
        column("topic_id", pa.string(), "topic id, 22 characters"),
        column("topic", pa.string(), "name; null = unknown"),
    ]
)
NOTE = pa.schema(
    [
        column("code", pa.string(), "kind of note"),
        column("incomplete", pa.bool_(), "true = the evidence is incomplete because of it"),
        column("detail", pa.string(), "one sentence"),
    ]
)
