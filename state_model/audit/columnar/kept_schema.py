"""Schemas of the rows that the audit keeps with its states: records (kept_records) and update counters (configured)."""

from typing import Final

import pyarrow as pa

from state_model.columnar.schemas import SHARE_PARTITION, column

LIFE, AHEAD, WINDOW, NEWEST, TOPIC = "life", "ahead", "window", "newest", "topic"
KEPT_RECORD: Final = pa.schema(
    [
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("kind", pa.string(), "life, ahead, window, newest or topic: why it is kept", nullable=False),
        column("group_id", pa.string(), "share group; null for a topic"),
        *SHARE_PARTITION[1:],
        column("log_offset", pa.int64(), "offset of the record in the state partition; null for a topic"),
        column("log_time_ms", pa.int64(), "log time of the record; of a topic when its leader epoch began"),
        column("state_epoch", pa.int64(), "state epoch of a life; null = tombstone"),
        column("is_creation", pa.bool_(), "the record creates the share partition; of a life alone"),
        column("leader_epoch", pa.int32(), "leader epoch; of a topic the largest known one, null = unknown"),
        column("start_offset", pa.int64(), "start offset (SPSO)"),
        column("delivery_complete_count", pa.int32(), "delivery complete count"),
        column("last_offset", pa.int64(), "largest last offset of its state batches; null = none"),
    ]
)
AUDIT_COUNTER: Final = pa.schema(
    [
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("last_log_offset", pa.int64(), "log offset of the last audited record", nullable=False),
        column("least_updates", pa.int64(), "smallest number of updates per snapshot", nullable=False),
        column("most_updates", pa.int64(), "largest number of updates per snapshot", nullable=False),
        column("interval_ms", pa.int64(), "smallest interval of cold snapshots", nullable=False),
        column("from_ms", pa.int64(), "from when on this configuration of the coordinator is known", nullable=False),
        column(
            "counters", pa.list_(pa.int64()), "updates and newest snapshots, as the audit numbers them", nullable=False
        ),
    ]
)
