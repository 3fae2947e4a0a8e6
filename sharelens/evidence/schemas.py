"""Arrow schemas of rows derived from records other than share-group state. The Delta tables derive from them."""

from typing import Final

import pyarrow as pa

from state_model.columnar.schemas import LOG_POSITION, column

DECODED_FROM: Final = "bronze.log_record"
"""The value of `file` in the PROBLEM row of a record that could not be decoded."""

GROUP_RECORD = pa.schema(
    [
        *LOG_POSITION[:1],
        column("partition", pa.int32(), "partition of __consumer_offsets", nullable=False),
        column("log_offset", pa.int64(), "offset of the record", nullable=False),
        column("timestamp_ms", pa.int64(), "record timestamp", nullable=False),
        column("record_type", pa.int16(), "record type of the key", nullable=False),
        column("record_name", pa.string(), "Kafka's name of the record type", nullable=False),
        column("group_id", pa.string(), "group", nullable=False),
        column("member_id", pa.string(), "member id, where the key has one"),
        column("regular_expression", pa.string(), "regular expression of topics, where the key has one (type 16)"),
        column("value_version", pa.int16(), "version of the value schema; null for a tombstone"),
        column("is_tombstone", pa.bool_(), "null value", nullable=False),
        column("value_json", pa.string(), "the value as Kafka's own formatter prints it (JSON); null for a tombstone"),
        column("below_log_start", pa.bool_(), "lies below the log start offset", nullable=False),
        column("uncommitted", pa.bool_(), "was at or above the high watermark when the run read it", nullable=False),
    ]
)
GROUP_RECORD_ORDER = [("partition", "ascending"), ("log_offset", "ascending")]
"""The order of GROUP_RECORD rows in which groups are replayed."""
ODD_GROUP_RECORD = pa.schema(
    [
        GROUP_RECORD.field("log_topic_id"),
        column("partition", pa.int32(), "partition of __consumer_offsets", nullable=False),
        column("log_offset", pa.int64(), "offset of the record", nullable=False),
        column("timestamp_ms", pa.int64(), "record timestamp", nullable=False),
        column("record_type", pa.int16(), "record type of the key", nullable=False),
        column("group_id", pa.string(), "group; null: the key is cut short"),
        column("reason", pa.string(), "why it can't be decoded; null: no release has the record type"),
        column("uncommitted", pa.bool_(), "was at or above the high watermark when the run read it", nullable=False),
    ]
)
"""Records of groups that can't be decoded, and records of types that no release has."""

NAME = pa.schema(
    [
        column("topic_id", pa.string(), "topic id", nullable=False),
        column("topic", pa.string(), "topic name", nullable=False),
        column(
            "source", pa.string(), "partition.metadata, group_record, metadata_record or topic_names", nullable=False
        ),
        column("valid_from_ms", pa.int64(), "earliest log time with this name; null = unknown"),
    ]
)

CLOCK_STEP = pa.schema(
    [
        *LOG_POSITION,
        column(
            "timestamp_ms",
            pa.int64(),
            "timestamp of the first record that is over a minute older than log_time_ms",
            nullable=False,
        ),
        column("log_time_ms", pa.int64(), "log time before that record: the largest earlier timestamp", nullable=False),
    ]
)
