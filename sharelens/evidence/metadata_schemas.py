"""The Arrow schemas of the metadata log in a lake, with a comment for each column."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from state_model.columnar.schemas import column

METADATA_RECORD = pa.schema(
    [
        column(
            "snapshot_end_offset", pa.int64(), "end offset (exclusive) of the snapshot of the record; null = the log"
        ),
        column("log_offset", pa.int64(), "offset of the record in the log, or in its snapshot", nullable=False),
        column("timestamp_ms", pa.int64(), "record timestamp; null = the record can't be decoded"),
        column(
            "log_time_ms",
            pa.int64(),
            "log time, idle records left out; null = the record can't be decoded",
        ),
        column("is_control", pa.bool_(), "record of a control batch; null = the record can't be decoded"),
        column("record_type", pa.int16(), "number of the record type; null = the record can't be decoded"),
        column("record_name", pa.string(), "Kafka's name of the record type; null = the record can't be decoded"),
        column("topic_id", pa.string(), "topic id, where the record has one"),
        column("value_version", pa.int16(), "version of the value schema; null = the record can't be decoded"),
        column(
            "value_json",
            pa.string(),
            "the fields of a value that is safe to keep (JSON); of a sensitive setting `hidden` has the length",
        ),
        column("size_bytes", pa.int32(), "size of the value; null = the record can't be decoded"),
        column("undecoded_reason", pa.string(), "why the record can't be decoded; null when it can"),
        column("uncommitted", pa.bool_(), "was not surely committed when the run read it", nullable=False),
    ]
)
"""One row for each record, idle ones (NO_OP_RECORD) left out."""


def _validity(subject: str) -> Sequence[pa.Field]:
    return [
        column("valid_from_log_offset", pa.int64(), f"offset of the record that set the {subject}", nullable=False),
        column("valid_from_ms", pa.int64(), "log time of that record", nullable=False),
        column("valid_to_log_offset", pa.int64(), f"offset of the record that ended the {subject}; null = in force"),
        column("valid_to_ms", pa.int64(), "log time of that record; null = in force"),
        column("began_earlier", pa.bool_(), "from a snapshot: in force at valid_from already", nullable=False),
        column("completeness", pa.string(), "complete, incomplete or uncommitted", nullable=False),
        column("completeness_reason", pa.string(), "gap or uncommitted; null when complete"),
    ]


CONFIGURATION_HISTORY: Final = pa.schema(
    [
        column(
            "entity_type",
            pa.string(),
            "group, topic, broker, client_metrics (settings), feature, or registration (of a broker)",
            nullable=False,
        ),
        column("entity", pa.string(), "group, topic, broker id (empty: all brokers), or feature", nullable=False),
        column("key", pa.string(), "setting, `level` of a feature, or field of a registration", nullable=False),
        column("value", pa.string(), "the value as text; null = sensitive, or a registration without the field"),
        column("is_sensitive", pa.bool_(), "the value can be a secret and is not kept", nullable=False),
        column("value_size_bytes", pa.int32(), "size of a sensitive value; else null"),
        *_validity("value"),
    ]
)
"""One row for each value of a key and the time in which it was in force."""

TOPIC_HISTORY: Final = pa.schema(
    [
        column("topic_id", pa.string(), "topic id", nullable=False),
        column("topic", pa.string(), "name of the topic; null = unknown"),
        column("partition", pa.int32(), "partition of the topic", nullable=False),
        column("leader", pa.int32(), "broker id of the leader; -1 = none", nullable=False),
        column("leader_epoch", pa.int32(), "leader epoch", nullable=False),
        column("partition_epoch", pa.int32(), "partition epoch", nullable=False),
        column("replicas", pa.list_(pa.int32()), "broker ids of the replicas", nullable=False),
        column("isr", pa.list_(pa.int32()), "broker ids of the in-sync replicas", nullable=False),
        column("recovering", pa.bool_(), "the leader was elected uncleanly and recovers", nullable=False),
        *_validity("values"),
    ]
)
"""One row for each change of a topic partition; a topic has as many partitions as rows in force."""
