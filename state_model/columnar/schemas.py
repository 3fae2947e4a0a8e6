"""Arrow schemas of decoded and replayed share-group state. One place; the Delta tables derive from it."""

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())
"""Text with few values in many rows; Parquet's writer takes the codes as they are."""

DURATIONS = frozenset(
    {"duration_ms", "held_up_ms", "longest_without_owner_ms", "rebalance_timeout_ms", "stable_after_ms"}
)


def column(name: str, kind: pa.DataType, comment: str, *, nullable: bool = True) -> pa.Field:
    """A field whose comment travels with it into Parquet, Delta and the reference pages."""
    return pa.field(name, kind, nullable=nullable, metadata={"comment": comment})


def comment(field: pa.Field) -> str:
    """The documented meaning of a column; empty: it has none."""
    return str((field.metadata or {}).get(b"comment", b"").decode())


def is_moment(name: str) -> bool:
    """Whether a column of this name holds moments (epoch milliseconds); other `…_ms` are lengths of time."""
    return name.endswith("_ms") and name not in DURATIONS and not name.startswith("age_")


RECORD_TYPE = "snapshot, update or tombstone; UNKNOWN(7) for a type that this version does not know"
STATE_BATCH = pa.struct(
    [
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("delivery_state", pa.int8()),
        pa.field("delivery_count", pa.int16()),
    ]
)
UNKNOWN_TAG = pa.struct(
    [
        pa.field("batch_index", pa.int32()),  # null: the record itself; else the index of the state batch
        pa.field("tag", pa.int64()),
        pa.field("data", pa.binary()),
    ]
)
DATED_BATCH = pa.struct(
    [
        *STATE_BATCH,
        pa.field("valid_from_log_offset", pa.int64()),
        pa.field("valid_from_ms", pa.int64()),
    ]
)

LOG_POSITION = [
    column("log_topic_id", pa.string(), "id of the state topic of the record", nullable=False),
    column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
    column("log_offset", pa.int64(), "offset of the record in the state partition", nullable=False),
]
SHARE_PARTITION = [
    column("group_id", pa.string(), "share group", nullable=False),
    column("topic_id", pa.string(), "id of the user topic, 22 characters", nullable=False),
    column("partition", pa.int32(), "partition of the user topic", nullable=False),
]

SHARE_RECORD = pa.schema(
    [
        *LOG_POSITION,
        column("timestamp_ms", pa.int64(), "record timestamp, epoch milliseconds", nullable=False),
        column(
            "log_time_ms", pa.int64(), "running maximum of record timestamps in the state partition", nullable=False
        ),
        column("record_type", pa.string(), RECORD_TYPE, nullable=False),
        *SHARE_PARTITION,
        column("value_version", pa.int16(), "version of the value schema; null without a decoded value"),
        column("snapshot_epoch", pa.int32(), "snapshot epoch of the value"),
        column("state_epoch", pa.int32(), "state epoch; snapshots only"),
        column("leader_epoch", pa.int32(), "leader epoch of the value"),
        column("start_offset", pa.int64(), "start offset (SPSO); -1 = not determined (snapshot) or unchanged (update)"),
        column(
            "delivery_complete_count", pa.int32(), "as logged; -1 = not in the bytes (KIP-1226); null for a tombstone"
        ),
        column("create_timestamp_ms", pa.int64(), "snapshots only, epoch milliseconds"),
        column("write_timestamp_ms", pa.int64(), "snapshots only, epoch milliseconds"),
        column("state_batches", pa.list_(STATE_BATCH), "state batches exactly as logged; null for a tombstone"),
        column("unknown_tags", pa.list_(UNKNOWN_TAG), "tagged fields that sharelens does not know; empty = none"),
        column(
            "trailing_bytes", pa.int32(), "bytes after the value, which the broker ignores; usually 0", nullable=False
        ),
        column("record_bytes", pa.int32(), "bytes of key and value", nullable=False),
        column("log_leader_epoch", pa.int32(), "leader epoch of the state topic's batch", nullable=False),
        column("below_log_start", pa.bool_(), "lies below the log start offset", nullable=False),
        column("uncommitted", pa.bool_(), "was at or above the high watermark when the run read it", nullable=False),
    ]
)


def encoded(schema: pa.Schema) -> pa.Schema:
    """The schema with its text columns dictionary-encoded, so that keys are compared and kept as numbers."""
    return pa.schema([field.with_type(TEXT) if pa.types.is_string(field.type) else field for field in schema])


def plain(rows: pa.Table) -> pa.Table:
    """The rows with dictionary-encoded text as text, as sorting and joins of Arrow need it."""
    schema = [field.with_type(pa.string()) if field.type == TEXT else field for field in rows.schema]
    return rows.cast(pa.schema(schema))


ENCODED_RECORD = encoded(SHARE_RECORD)
REPLAYED = pa.schema(
    [
        field
        for field in ENCODED_RECORD
        if field.name
        not in (
            "value_version",
            "unknown_tags",
            "trailing_bytes",
            "record_bytes",
            "log_leader_epoch",
            "below_log_start",
        )
    ]
)
"""The columns of SHARE_RECORD that replay reads, text dictionary-encoded."""

SCALARS = [
    column("snapshot_epoch", pa.int32(), "snapshot epoch of the state"),
    column("state_epoch", pa.int32(), "state epoch of the state"),
    column("leader_epoch", pa.int32(), "leader epoch of the state"),
    column("start_offset", pa.int64(), "start offset (SPSO); -1 = not determined"),
    column("delivery_complete_count", pa.int32(), "delivery complete count (KIP-1226); -1 = unknown"),
    column(
        "create_timestamp_ms",
        pa.int64(),
        "createTimestamp of the newest snapshot; 0 for a provisional state",
    ),
    column("write_timestamp_ms", pa.int64(), "writeTimestamp of the newest snapshot; 0 for a provisional state"),
]
FROM_LOG = [
    column("leader_epoch_max_from_log", pa.int32(), "largest leader epoch replayed since the last tombstone"),
    column("state_epoch_max_from_log", pa.int32(), "largest state epoch replayed since the last tombstone"),
    column("update_count_from_log", pa.int32(), "update counter of the coordinator, recomputed"),
    column("snapshot_log_offset", pa.int64(), "log offset of the newest snapshot; null = provisional"),
    column("life_log_offset", pa.int64(), "life: log offset of the record that created or reset the share partition"),
]
COMPLETENESS = [
    column("completeness", pa.string(), "complete, provisional, incomplete or uncommitted", nullable=False),
    column(
        "completeness_reason",
        pa.string(),
        "orphan, gap, quarantined, truncated, unknown_state, uncommitted; null when complete",
    ),
]

SHARE_PARTITION_HISTORY = pa.schema(
    [
        *LOG_POSITION,
        column("timestamp_ms", pa.int64(), "record timestamp", nullable=False),
        column("log_time_ms", pa.int64(), "running maximum of record timestamps", nullable=False),
        column("record_type", pa.string(), RECORD_TYPE, nullable=False),
        *SHARE_PARTITION,
        *SCALARS,
        *FROM_LOG,
        column("state_batch_count", pa.int32(), "ranges of the coalesced state after the record", nullable=False),
        *COMPLETENESS,
    ]
)

DELIVERY_HISTORY = pa.schema(
    [
        column("log_topic_id", pa.string(), "id of the state topic", nullable=False),
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        *SHARE_PARTITION,
        column(
            "life_log_offset",
            pa.int64(),
            "life: log offset of the record that created or reset the share partition",
            nullable=False,
        ),
        column("first_offset", pa.int64(), "first record offset of the range", nullable=False),
        column("last_offset", pa.int64(), "last record offset of the range (inclusive)", nullable=False),
        column(
            "delivery_state",
            pa.int8(),
            "0 AVAILABLE, 1 ACQUIRED, 2 ACKNOWLEDGED, 3 ARCHIVING, 4 ARCHIVED; any other: of a later Kafka",
            nullable=False,
        ),
        column(
            "delivery_state_name",
            pa.string(),
            "name of the delivery state; UNKNOWN(5) for one of a later Kafka",
            nullable=False,
        ),
        column("delivery_count", pa.int16(), "delivery count", nullable=False),
        column(
            "valid_from_log_offset", pa.int64(), "state log offset of the record that began the range", nullable=False
        ),
        column("valid_from_ms", pa.int64(), "log_time_ms of that record", nullable=False),
        column("valid_to_log_offset", pa.int64(), "state log offset of the record that ended the range; null = open"),
        column("valid_to_ms", pa.int64(), "log_time_ms of that record; null = open"),
        column("is_open", pa.bool_(), "part of the newest state", nullable=False),
        column(
            "end_reason", pa.string(), "changed, split_or_joined, start_offset_passed, reset or deleted; null = open"
        ),
    ]
)

SHARE_PARTITION_STATE = pa.schema(
    [
        *SHARE_PARTITION,
        *LOG_POSITION,
        column("log_time_ms", pa.int64(), "log_time_ms of the last record applied", nullable=False),
        *SCALARS,
        *FROM_LOG,
        column(
            "state_batches",
            pa.list_(DATED_BATCH),
            "coalesced state: ascending, disjoint, equal neighbours joined",
            nullable=False,
        ),
        column(
            "below_log_start",
            pa.bool_(),
            "the newest snapshot lies below the log start offset",
            nullable=False,
        ),
        *COMPLETENESS,
    ]
)
PLACED_STATE = SHARE_PARTITION_STATE.append(
    column(
        "misplaced",
        pa.bool_(),
        "not the share partition's state: its newest records are in another state partition, to which its key hashes",
        nullable=False,
    )
)
