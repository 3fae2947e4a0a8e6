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
MEMBERS = pa.list_(
    pa.struct(
        [
            pa.field("member_id", pa.string()),
            pa.field("client_id", pa.string()),
            pa.field("client_host", pa.string()),
            pa.field("member_epoch", pa.int32()),
            pa.field("subscribed_topics", pa.list_(pa.string())),
        ]
    )
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
            "first offset from the start offset on that no state batch holds as done; null = none below the end offset",
        ),
        column("end_offset", pa.int64(), "end offset of the user partition (high watermark); null = unknown"),
        column("end_offset_source", pa.string(), "high_watermark, log_end, log_append_time or end_offsets_file"),
        column(
            "end_offset_inferred", pa.int64(), "end offset at the moment by the producers' timestamps; null = not asked"
        ),
        column("last_stable_offset", pa.int64(), "last stable offset; null = unknown"),
        column("delivery_complete_count", pa.int32(), "delivery complete count (KIP-1226); -1 = not logged"),
        column("lag", pa.int64(), "Kafka's: end - start - delivery complete count; null = unknown"),
        column("lag_inferred", pa.int64(), "the same with end_offset_inferred"),
        column("lag_stable", pa.int64(), "the same up to the last stable offset"),
        column("lag_recounted", pa.int64(), "end - start - offsets that state batches hold as done"),
        column("lag_naive", pa.int64(), "end - start"),
        column("why", pa.string(), "what makes the figures differ; null = nothing does"),
        column("unknown_reason", pa.string(), "why the lag is unknown; null when it is known"),
        column(
            "newest_batch_ms", pa.int64(), "largest timestamp in the user partition's headers from the start offset on"
        ),
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("log_offset", pa.int64(), "offset there of the last record applied", nullable=False),
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
        column("unknown_reason", pa.string(), "why the lag is unknown; null when it is known"),
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("log_offset", pa.int64(), "offset there of the last record by the moment", nullable=False),
        column("log_time_ms", pa.int64(), "log time of that record", nullable=False),
        *COMPLETENESS,
    ]
)

STALL = pa.schema(
    [
        column("since_ms", pa.int64(), "since when the record could be worked on and was the first incomplete one"),
        column("since_clock", pa.string(), "state_log, log_append_time or create_time (a producer's clock)"),
        column("until_ms", pa.int64(), "log time of the record that ended it; null = it stands still"),
        column("duration_ms", pa.int64(), "until its end or the moment asked for; null = neither"),
        column("kind", pa.string(), "dead_letter_pending, window_full, blocked_by_record, silent_with_backlog or idle"),
        column("ended_by", pa.string(), "moved, reset or deleted; null = it stands still"),
        *SHARE_PARTITION,
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("life_log_offset", pa.int64(), "the life it belongs to: log offset of the creating or resetting record"),
        column("start_offset", pa.int64(), "logged start offset at its end; it trails the broker's", nullable=False),
        column("first_incomplete_offset", pa.int64(), "first offset that is not done", nullable=False),
        column("last_incomplete_offset", pa.int64(), "last offset of that range; null = nothing logged behind it"),
        column("delivery_state", pa.int8(), "delivery state logged there; null = none was (held or never delivered)"),
        column("delivery_count", pa.int16(), "delivery count logged there; null = none was"),
        column("finished_behind", pa.int64(), "offsets behind it that are acknowledged or archived", nullable=False),
        column("window_used", pa.int64(), "offsets from it to the highest one logged; a lower bound"),
        column("window_limit", pa.int64(), "share.partition.max.record.locks of the group; null = not told"),
        column("window_limit_source", pa.string(), "where the limit is from; null = not told"),
        column("throttled_offsets_inferred", pa.int64(), "suspects, handed out slowly; null = no limit told"),
        column("end_offset", pa.int64(), "end offset of the user partition at the cut; null = ended, or unknown"),
        column("end_offset_source", pa.string(), "high_watermark, log_end, log_append_time or create_time (a guess)"),
        column("last_state_write_ms", pa.int64(), "log time of the last write before its end, cold snapshots aside"),
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
        column("first_incomplete_offset", pa.int64(), "first offset that is not done; null = no start offset"),
        column("since_log_offset", pa.int64(), "first record after which that was so; null = no start offset"),
        column("since_ms", pa.int64(), "log time of that record"),
        column("highest_earlier_offset", pa.int64(), "largest first incomplete offset before; null = none"),
        column("earlier_write_ms", pa.int64(), "log time of the last write before that record; null = none"),
        column("read_from_log_offset", pa.int64(), "record from which the next run reads on; null = the first"),
        column("log_offset", pa.int64(), "last record that is measured", nullable=False),
        column("log_time_ms", pa.int64(), "log time of that record", nullable=False),
        *COMPLETENESS,
    ]
)

MEASURE_BASE = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("events_from_log_offset", pa.int64(), "life events of records below it stay", nullable=False),
        column("stalls_from_log_offset", pa.int64(), "stalls whose last record lies below it stay", nullable=False),
        column("hours_from_ms", pa.int64(), "latency and attempts of hours before it stay", nullable=False),
        column(
            "whole_from_offset",
            pa.int64(),
            "record offset: what is told of those below it in the lives up to lives_to_log_offset stays",
            nullable=False,
        ),
        column("lives_to_log_offset", pa.int64(), "last record that was measured at the cut", nullable=False),
    ]
)

POISON_RECORD = pa.schema(
    [
        *SHARE_PARTITION,
        column("state_partition", pa.int32(), "partition of __share_group_state", nullable=False),
        column("life_log_offset", pa.int64(), "the life it belongs to: log offset of the creating or resetting record"),
        column("offset", pa.int64(), "the record's offset; the first of a run of equal ones", nullable=False),
        column("last_offset", pa.int64(), "the last offset of that run (inclusive)", nullable=False),
        column("delivery_state", pa.int8(), "4 ARCHIVED, 3 ARCHIVING (its dead letter is due), 0 AVAILABLE"),
        column("delivery_state_name", pa.string(), "name of the delivery state"),
        column("delivery_count", pa.int16(), "delivery count", nullable=False),
        column("cause", pa.string(), "rejected, delivery_limit, gap or unknown; null for a record near the limit"),
        column("cause_source", pa.string(), "dead_letter (state ARCHIVING), configuration, headers or inferred"),
        column("delivery_count_limit", pa.int64(), "share.delivery.count.limit of the group; null = not told"),
        column("delivery_count_limit_source", pa.string(), "where the limit is from; null = not told"),
        column("first_outcome_ms", pa.int64(), "log time of the first outcome logged for it in this life"),
        column("last_outcome_ms", pa.int64(), "log time of the record that brought it into this state"),
        column("archiving_ms", pa.int64(), "log time from which its dead letter was due (ARCHIVING); null = none was"),
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
            "how often it became ACKNOWLEDGED: in this life, or (replayed_...) in all lives up to this one",
            nullable=False,
        ),
        column(
            "max_delivery_count",
            pa.int16(),
            "largest delivery count: in this life, or (replayed_...) in all lives up to this one",
            nullable=False,
        ),
        column("life", pa.int64(), "life of the later delivery: the log offset at which it began", nullable=False),
        column("earlier_life", pa.int64(), "replayed_...: the life of the earlier delivery; else null"),
        column("first_log_offset", pa.int64(), "proof: record with an outcome of the earlier delivery", nullable=False),
        column(
            "cause_log_offset",
            pa.int64(),
            "proof: record that made it deliverable again (reset, re-creation, start offset moved back); else null",
        ),
        column(
            "last_log_offset", pa.int64(), "proof: record with the newest outcome of the later delivery", nullable=False
        ),
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
            "of open: aborted, control (never delivered so far), start_undetermined; else a remark or null",
        ),
        column("delivery_count", pa.int16(), "delivery count of the outcome that decides; null = none"),
        column("life_log_offset", pa.int64(), "the life that decides; null = none had it in reach"),
        column("log_offset", pa.int64(), "record that made the outcome that decides; null = none"),
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
        column("life_log_offset", pa.int64(), "the life after the record; of deleted: the life that ended"),
        column("skipped_first_offset", pa.int64(), "first offset that the new life left out; null = none"),
        column("skipped_last_offset", pa.int64(), "last offset that the new life left out; null = none"),
        column("replayed_first_offset", pa.int64(), "first offset that the new life begins again with; null = none"),
        column("replayed_last_offset", pa.int64(), "last offset below the earlier start offset; null = none"),
        column(
            "settled_skipped",
            pa.int64(),
            "offsets among the skipped that had been acknowledged or archived before; null = nothing skipped",
        ),
        column(
            "settled_dropped",
            pa.int64(),
            "acknowledged or archived offsets above both start offsets, whose outcome is forgotten; null = no reset",
        ),
        *COMPLETENESS,
    ]
)

DELETED_BY = column(
    "deleted_by_inferred",
    pa.string(),
    "of deleted: topic, group or group_offsets (of the topic), by __consumer_offsets; null = not told",
)

COST = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("records", pa.int64(), "records held of the share partition", nullable=False),
        column("snapshots", pa.int64(), "snapshots among them", nullable=False),
        column(
            "cold_snapshots",
            pa.int64(),
            "snapshots that only repeat (write and create timestamps differ)",
            nullable=False,
        ),
        column("updates", pa.int64(), "updates among them", nullable=False),
        column("tombstones", pa.int64(), "tombstones among them", nullable=False),
        column("bytes", pa.int64(), "bytes of their keys and values", nullable=False),
        column("snapshot_bytes", pa.int64(), "bytes of the snapshots", nullable=False),
        column("cold_snapshot_bytes", pa.int64(), "bytes of the cold snapshots", nullable=False),
        column(
            "acknowledged_offsets", pa.int64(), "offsets that became ACKNOWLEDGED, each time counted", nullable=False
        ),
        column("updates_per_acknowledged", pa.float64(), "updates to one acknowledged offset; null when there is none"),
        column(
            "snapshots_per_acknowledged", pa.float64(), "snapshots to one acknowledged offset; null when there is none"
        ),
        column("bytes_per_acknowledged", pa.float64(), "bytes to one acknowledged offset; null when there is none"),
        column(
            "span_updates_mean", pa.float64(), "updates behind a snapshot up to the next, mean; null without snapshot"
        ),
        column("span_updates_max", pa.int64(), "the same, most; null without snapshot"),
        column("last_snapshot_log_offset", pa.int64(), "newest snapshot or tombstone; null = none held"),
    ]
)

PRUNING = pa.schema(
    [
        *LOG_POSITION[:2],
        column("records", pa.int64(), "records held", nullable=False),
        column("bytes", pa.int64(), "bytes of their keys and values", nullable=False),
        column("prune_log_offset", pa.int64(), "log offset up to which pruning could go; null = no live snapshot held"),
        column("freeable_records", pa.int64(), "records at or above the log start that it would free", nullable=False),
        column("freeable_bytes", pa.int64(), "bytes of these", nullable=False),
        column("held_up_by_group_id", pa.string(), "group of the share partition whose snapshot is the oldest"),
        column("held_up_by_topic_id", pa.string(), "its topic"),
        column("held_up_by_partition", pa.int32(), "its partition"),
        column("held_up_ms", pa.int64(), "log time from that snapshot to the end of the state partition"),
        column("pruning_stalls", pa.bool_(), "held up for over 10 minutes, two rounds of the cold snapshot job"),
    ]
)

GROUPS = pa.schema(
    [
        column("group_id", pa.string(), "share group", nullable=False),
        column("state", pa.string(), "STABLE, EMPTY or DEAD", nullable=False),
        column("group_epoch", pa.int32(), "group epoch; null = no record held, or DEAD"),
        column("assignment_epoch", pa.int32(), "epoch of the target assignment; null = no record held, or DEAD"),
        column("member_count", pa.int32(), "members", nullable=False),
        column("members", MEMBERS, "members by id, with what they said when they joined", nullable=False),
        column(
            "initialized_partitions", pa.int32(), "share partitions that the group has initialized; null = not told"
        ),
        column("initializing_partitions", pa.int32(), "share partitions on the way there; null = not told"),
        column("deleting_topics", pa.int32(), "topics whose share state is being deleted; null = not told"),
        column("last_change_ms", pa.int64(), "timestamp of the group's newest record", nullable=False),
        column("partition", pa.int32(), "partition of __consumer_offsets", nullable=False),
        column("log_offset", pa.int64(), "offset of that record", nullable=False),
        *COMPLETENESS,
    ]
)
