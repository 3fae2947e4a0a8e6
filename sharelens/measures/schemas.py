"""The Arrow schemas of the measures' rows, with a comment for each column; importing them loads no kernels."""

import pyarrow as pa

from state_model.columnar.schemas import COMPLETENESS, LOG_POSITION, SHARE_PARTITION, column

CLASSES = (
    "acknowledged_once",
    "acknowledged_after_retries",
    "archived",
    "open",
    "below_first_start",
    "skipped_by_reset",
    "passed_without_outcome",
    "not_in_evidence",
)
EVENTS = (
    "first_seen",
    "created",
    "recreated",
    "reset",
    "deleted",
    "state_epoch_moved",
    "leader_epoch_moved",
    "start_offset_went_back",
)
SIDES = ("start_offset", "state_epoch", "leader_epoch", "snapshot_epoch")
REDELIVERIES = (
    "retry",
    "delivered_after_acknowledged",
    "replayed_by_reset",
    "replayed_by_recreation",
    "start_went_back",
)

LAG = pa.schema(
    [
        *SHARE_PARTITION[:2],
        column("topic", pa.string(), "name of the topic; null = unknown"),
        SHARE_PARTITION[2],
        column("start_offset", pa.int64(), "start offset (SPSO) as logged; -1 = not determined"),
        column("leader_epoch", pa.int32(), "leader epoch of the state"),
        column(
            "first_incomplete_offset",
            pa.int64(),
            "first offset neither acknowledged nor archived; null = none below the end offset",
        ),
        column("end_offset", pa.int64(), "end offset of the user partition (high watermark); null = unknown"),
        column("end_offset_source", pa.string(), "high_watermark, log_end, log_append_time or end_offsets_file"),
        column(
            "end_offset_inferred",
            pa.int64(),
            "end offset at the cut by the producers' timestamps; null at the end of the log",
        ),
        column("last_stable_offset", pa.int64(), "last stable offset; null = unknown"),
        column("delivery_complete_count", pa.int32(), "delivery complete count (KIP-1226); -1 = not logged"),
        column("lag", pa.int64(), "as Kafka counts it: end - start - delivery complete count; null = unknown"),
        column("lag_inferred", pa.int64(), "lag with end_offset_inferred as the end offset"),
        column("lag_stable", pa.int64(), "lag with the last stable offset as the end offset"),
        column("lag_recounted", pa.int64(), "end - start - offsets that are acknowledged or archived in state batches"),
        column("lag_naive", pa.int64(), "end - start"),
        column("why", pa.string(), "why the figures differ; null = they are equal"),
        column("unknown_reason", pa.string(), "why the lag is unknown; null = the lag is known"),
        column(
            "newest_batch_ms", pa.int64(), "largest timestamp of the user partition's batches from the start offset on"
        ),
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("log_offset", pa.int64(), "state log offset of the last record applied", nullable=False),
        column("log_time_ms", pa.int64(), "log time of the last record applied", nullable=False),
        *COMPLETENESS,
    ]
)

LAG_OVER_TIME = pa.schema(
    [
        *SHARE_PARTITION[:2],
        column("topic", pa.string(), "name of the topic; null = unknown"),
        SHARE_PARTITION[2],
        column("at_ms", pa.int64(), "the moment", nullable=False),
        column("start_offset", pa.int64(), "start offset (SPSO) as logged; -1 = not determined"),
        column("leader_epoch", pa.int32(), "leader epoch of the state"),
        column("delivery_complete_count", pa.int32(), "delivery complete count (KIP-1226); -1 = not logged"),
        column("end_offset_inferred", pa.int64(), "end offset by the batches' timestamps; null = unknown"),
        column("lag_inferred", pa.int64(), "end_offset_inferred - start - delivery complete count; null = unknown"),
        column("unknown_reason", pa.string(), "why the lag is unknown; null = the lag is known"),
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("log_offset", pa.int64(), "state log offset of the last record up to the moment", nullable=False),
        column("log_time_ms", pa.int64(), "log time of that record", nullable=False),
        *COMPLETENESS,
    ]
)

STALL = pa.schema(
    [
        column("since_ms", pa.int64(), "moment since which the record was deliverable and the first incomplete one"),
        column("since_clock", pa.string(), "state_log, log_append_time or create_time (a producer's clock)"),
        column("until_ms", pa.int64(), "log time of the record that ended the stall; null = the stall lasts"),
        column("duration_ms", pa.int64(), "up to the end of the stall or to the cut; null in the lake while it lasts"),
        column(
            "kind",
            pa.string(),
            "dead_letter_pending, window_full, blocked_by_record, silent_with_backlog; idle: never in a lake",
        ),
        column("ended_by", pa.string(), "moved, reset or deleted; null = the stall lasts"),
        *SHARE_PARTITION,
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("life_log_offset", pa.int64(), "life: log offset of the creating or resetting record"),
        column("start_offset", pa.int64(), "logged start offset at its end; the broker's may be ahead", nullable=False),
        column("first_incomplete_offset", pa.int64(), "first offset neither acknowledged nor archived", nullable=False),
        column("last_incomplete_offset", pa.int64(), "last offset of that range; null = the log has no offset above"),
        column("delivery_state", pa.int8(), "delivery state in the log; null = none (acquired, or never delivered)"),
        column("delivery_count", pa.int16(), "delivery count in the log; null = none"),
        column("finished_behind", pa.int64(), "acknowledged or archived offsets above it", nullable=False),
        column("window_used", pa.int64(), "offsets from it to the highest offset in the log; a lower bound"),
        column("window_limit", pa.int64(), "share.partition.max.record.locks of the group; null = unknown"),
        column("window_limit_source", pa.string(), "source of the limit; null = unknown"),
        column("throttled_offsets_inferred", pa.int64(), "offsets that the broker may throttle; null = limit unknown"),
        column("end_offset", pa.int64(), "end offset of the user partition at the cut; null = stall ended, or unknown"),
        column("end_offset_source", pa.string(), "high_watermark, log_end, log_append_time or create_time (a guess)"),
        column("last_state_write_ms", pa.int64(), "log time of the last write before its end, without cold snapshots"),
        column("log_offset", pa.int64(), "state log offset of the last record before its end", nullable=False),
        *COMPLETENESS,
    ]
)  # fmt: skip

IS_FINAL = column(
    "is_final",
    pa.bool_(),
    "no later record of the same life changes the row; a reset, a start offset that goes back or late evidence may",
    nullable=False,
)

PROGRESS = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("start_offset", pa.int64(), "start offset as logged; -1 = not determined; null = deleted"),
        column(
            "first_incomplete_offset",
            pa.int64(),
            "first offset neither acknowledged nor archived; null = no start offset",
        ),
        column("since_log_offset", pa.int64(), "state log offset of the record since which it is"),
        column("since_ms", pa.int64(), "log time of that record"),
        column("highest_earlier_offset", pa.int64(), "largest earlier first incomplete offset; null = none"),
        column("earlier_write_ms", pa.int64(), "log time of the last write before that record; null = none"),
        column(
            "shown_ms",
            pa.int64(),
            "log time of the first record since then that names the offset or a later one; null = none",
        ),
        column("last_write_ms", pa.int64(), "log time of the last write up to log_offset; null = none"),
        column(
            "read_from_log_offset",
            pa.int64(),
            "log offset from which on the next run may need the records; null = the first",
        ),
        column("log_offset", pa.int64(), "state log offset of the last measured record", nullable=False),
        column("log_time_ms", pa.int64(), "log time of that record", nullable=False),
        *COMPLETENESS,
    ]
)

MEASURE_BASE = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("events_from_log_offset", pa.int64(), "log offset: events of records below it are kept", nullable=False),
        column("stalls_from_log_offset", pa.int64(), "log offset: stalls that end below it are kept", nullable=False),
        column("hours_from_ms", pa.int64(), "latency, attempts and lag over time from before are kept", nullable=False),
        column(
            "whole_from_offset",
            pa.int64(),
            "record offset: rows of lower offsets are kept, in lives that began up to lives_to_log_offset",
            nullable=False,
        ),
        column("lives_to_log_offset", pa.int64(), "log offset of the last record measured at the cut", nullable=False),
    ]
)

POISON_RECORD = pa.schema(
    [
        *SHARE_PARTITION,
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("life_log_offset", pa.int64(), "life: log offset of the creating or resetting record"),
        column("first_offset", pa.int64(), "first record offset of a range of equal records", nullable=False),
        column("last_offset", pa.int64(), "last offset of the range (inclusive)", nullable=False),
        column("delivery_state", pa.int8(), "4 ARCHIVED, 3 ARCHIVING (a dead letter is due), 0 AVAILABLE"),
        column("delivery_state_name", pa.string(), "name of the delivery state"),
        column("delivery_count", pa.int16(), "delivery count", nullable=False),
        column("cause", pa.string(), "rejected, delivery_limit, gap or unknown; null for a record near the limit"),
        column("cause_source", pa.string(), "dead_letter (or state ARCHIVING), configuration, headers or inferred"),
        column("delivery_count_limit", pa.int64(), "share.delivery.count.limit of the group; null = unknown"),
        column("delivery_count_limit_source", pa.string(), "source of the limit; null = unknown"),
        column("first_outcome_ms", pa.int64(), "log time of the record's first outcome in this life"),
        column("last_outcome_ms", pa.int64(), "log time of the state log record with this delivery state"),
        column("archiving_ms", pa.int64(), "log time of ARCHIVING: a dead letter is due; null = no ARCHIVING"),
        column("log_offset", pa.int64(), "state log offset of that record", nullable=False),
        *COMPLETENESS,
    ]
)

REDELIVERED = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("first_offset", pa.int64(), "first record offset of the range", nullable=False),
        column("last_offset", pa.int64(), "last record offset of the range (inclusive)", nullable=False),
        column("kind", pa.string(), "; ".join(REDELIVERIES), nullable=False),
        column(
            "times_acknowledged",
            pa.int32(),
            "times that it became ACKNOWLEDGED in this life; replayed_...: in all lives up to this one",
            nullable=False,
        ),
        column(
            "max_delivery_count",
            pa.int16(),
            "largest delivery count in this life; replayed_...: in all lives up to this one",
            nullable=False,
        ),
        column(
            "life_log_offset",
            pa.int64(),
            "life of the later delivery: log offset of its first record",
            nullable=False,
        ),
        column("earlier_life_log_offset", pa.int64(), "life of the earlier delivery for replayed_...; else null"),
        column("first_log_offset", pa.int64(), "evidence: an outcome of the earlier delivery", nullable=False),
        column(
            "cause_log_offset",
            pa.int64(),
            "evidence: record that made it deliverable again (reset, re-creation, start offset moved back); else null",
        ),
        column("last_log_offset", pa.int64(), "evidence: the newest outcome of the later delivery", nullable=False),
        column("last_ms", pa.int64(), "log_time_ms of that record", nullable=False),
        *COMPLETENESS,
    ]
)

ACCOUNTED = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("first_offset", pa.int64(), "first record offset of the range", nullable=False),
        column("last_offset", pa.int64(), "last record offset of the range (inclusive)", nullable=False),
        column("class", pa.string(), "; ".join(CLASSES), nullable=False),
        column(
            "reason",
            pa.string(),
            "of passed_without_outcome: aborted, control, expired, compacted (by the topic), unknown, life_ended; "
            "of open: aborted, control (not delivered yet), start_undetermined; of other classes a remark or null",
        ),
        column("delivery_count", pa.int16(), "delivery count of the outcome that decides the class; null = none"),
        column("life_log_offset", pa.int64(), "life that decides the class; null = no life reached the offset"),
        column("log_offset", pa.int64(), "state log offset of the outcome that decides the class; null = none"),
    ]
)

LIFE = pa.schema(
    [
        *LOG_POSITION,
        column("log_time_ms", pa.int64(), "log_time_ms of the record", nullable=False),
        *SHARE_PARTITION,
        column("event", pa.string(), "; ".join(EVENTS), nullable=False),
        *(
            column(f"{name}_{side}", pa.int64(), f"{name.replace('_', ' ')} {side} the record; null = none")
            for name in SIDES
            for side in ("before", "after")
        ),
        column("life_log_offset", pa.int64(), "life after the record; of deleted: the life that ended"),
        column("skipped_first_offset", pa.int64(), "first offset that the new life skipped; null = none"),
        column("skipped_last_offset", pa.int64(), "last offset that the new life skipped; null = none"),
        column("replayed_first_offset", pa.int64(), "first offset that the new life delivers again; null = none"),
        column("replayed_last_offset", pa.int64(), "last offset below the earlier start offset; null = none"),
        column(
            "settled_skipped",
            pa.int64(),
            "skipped offsets that were acknowledged or archived before; null = no offset skipped",
        ),
        column(
            "settled_dropped",
            pa.int64(),
            "acknowledged or archived offsets above both start offsets: their outcome is lost; null = no reset",
        ),
        *COMPLETENESS,
    ]
)

DELETED_BY = column(
    "deleted_by_inferred",
    pa.string(),
    "of deleted: topic, group or group_offsets (of the topic), by __consumer_offsets; null = unknown",
)

COST = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("records", pa.int64(), "records of the share partition in the evidence", nullable=False),
        column("snapshots", pa.int64(), "snapshots among them", nullable=False),
        column(
            "cold_snapshots",
            pa.int64(),
            "snapshots that repeat the state (write and create timestamps differ)",
            nullable=False,
        ),
        column("updates", pa.int64(), "updates among them", nullable=False),
        column("tombstones", pa.int64(), "tombstones among them", nullable=False),
        column("bytes", pa.int64(), "bytes of their keys and values", nullable=False),
        column("snapshot_bytes", pa.int64(), "bytes of the snapshots", nullable=False),
        column("cold_snapshot_bytes", pa.int64(), "bytes of the cold snapshots", nullable=False),
        column(
            "acknowledged_offsets", pa.int64(), "offsets that became ACKNOWLEDGED; each time counts", nullable=False
        ),
        column("updates_per_acknowledged", pa.float64(), "updates per acknowledged offset; null = no such offset"),
        column("snapshots_per_acknowledged", pa.float64(), "snapshots per acknowledged offset; null = no such offset"),
        column("bytes_per_acknowledged", pa.float64(), "bytes per acknowledged offset; null = no such offset"),
        column("span_updates_mean", pa.float64(), "mean number of updates between two snapshots; null = no snapshot"),
        column("span_updates_max", pa.int64(), "largest number of updates between two snapshots; null = no snapshot"),
        column("last_snapshot_log_offset", pa.int64(), "newest snapshot or tombstone; null = none in the evidence"),
    ]
)

PRUNING = pa.schema(
    [
        *LOG_POSITION[:2],
        column("records", pa.int64(), "records in the evidence", nullable=False),
        column("bytes", pa.int64(), "bytes of their keys and values", nullable=False),
        column("prune_log_offset", pa.int64(), "log offset up to which Kafka can prune; null = no live snapshot"),
        column("freeable_records", pa.int64(), "records above the log start offset that pruning frees", nullable=False),
        column("freeable_bytes", pa.int64(), "bytes of those records", nullable=False),
        column("held_up_by_group_id", pa.string(), "group of the share partition whose snapshot is the oldest"),
        column("held_up_by_topic_id", pa.string(), "its topic"),
        column("held_up_by_partition", pa.int32(), "its partition"),
        column("held_up_ms", pa.int64(), "log time from that snapshot to the end of the state partition"),
        column("pruning_stalls", pa.bool_(), "held_up_ms is over 10 minutes, two rounds of the cold snapshot job"),
    ]
)

DRAFT_COST = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("acknowledged_offsets", pa.int64(), "offsets that became ACKNOWLEDGED", nullable=False),
        column("records", pa.int64(), "records of the history", nullable=False),
        column("bytes", pa.int64(), "bytes of their keys and values", nullable=False),
        column("most_records_to_replay", pa.int64(), "records from a snapshot on, at most", nullable=False),
        column("draft_records", pa.int64(), "records of the early design", nullable=False),
        column("draft_checkpoints", pa.int64(), "checkpoints among them", nullable=False),
        column("draft_bytes", pa.int64(), "bytes of their keys and values", nullable=False),
        column("draft_most_records_to_replay", pa.int64(), "records from a checkpoint on, at most", nullable=False),
        *COMPLETENESS,
    ]
)
"""One row a share partition; incomplete ones are left out."""
