"""The Arrow schemas of the histories of share groups, with a comment for each column."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from state_model.columnar.schemas import column

STABLE, EMPTY, DEAD = "STABLE", "EMPTY", "DEAD"
INITIALIZING, INITIALIZED, DELETING = "INITIALIZING", "INITIALIZED", "DELETING"
CHANGED, REMOVED = "changed", "removed"
COMPACTED, QUARANTINED, UNCOMMITTED = "compacted", "quarantined", "uncommitted"

TOPIC_PARTITIONS: Final = pa.list_(
    pa.struct([pa.field("topic_id", pa.string()), pa.field("partitions", pa.list_(pa.int32()))])
)
"""Partitions by topic id, both ascending."""
MEMBERS: Final = pa.list_(pa.struct([pa.field("member_id", pa.string()), pa.field("client_id", pa.string())]))
"""Members by id; the client id is null without a record of the member's subscription."""
MOVES: Final = pa.list_(
    pa.struct(
        [
            pa.field("topic_id", pa.string()),
            pa.field("partition", pa.int32()),
            pa.field("from_members", MEMBERS),
            pa.field("to_members", MEMBERS),
        ]
    )
)
"""Partitions whose members changed: those that lost it, and those that gained it."""

MARKS = [
    column("completeness", pa.string(), "complete, incomplete or uncommitted", nullable=False),
    column("completeness_reason", pa.string(), "compacted, quarantined or uncommitted; null when complete"),
]


def _validity(subject: str) -> Sequence[pa.Field]:
    return [
        column("log_partition", pa.int32(), "partition of __consumer_offsets", nullable=False),
        column("valid_from_log_offset", pa.int64(), f"offset of the record that began the {subject}", nullable=False),
        column("valid_from_ms", pa.int64(), "log time of that record", nullable=False),
        column("valid_to_log_offset", pa.int64(), f"offset of the record that ended the {subject}; null = open"),
        column("valid_to_ms", pa.int64(), "log time of that record; null = open"),
        column("end_reason", pa.string(), "changed or removed; null = open"),
        *MARKS,
    ]


GROUP_VALUES = [
    column("state", pa.string(), "STABLE (has members), EMPTY or DEAD (deleted)", nullable=False),
    column("group_epoch", pa.int32(), "group epoch; null = no record, or DEAD"),
    column("metadata_hash", pa.int64(), "hash of the subscribed topics' metadata; null = no record, or DEAD"),
    column("assignment_epoch", pa.int32(), "epoch of the target assignment; null = no record, or DEAD"),
    column("assignment_timestamp_ms", pa.int64(), "time of the target assignment (since 4.3); null = unknown"),
    column("member_count", pa.int32(), "number of members", nullable=False),
]
GROUP_HISTORY: Final = pa.schema(
    [column("group_id", pa.string(), "share group", nullable=False), *GROUP_VALUES, *_validity("values")]
)
"""One row for each change of a group's state, epochs or number of members."""

MEMBER_VALUES = [
    column("client_id", pa.string(), "client id; null = no record of the subscription"),
    column("client_host", pa.string(), "host as the broker saw it"),
    column("rack_id", pa.string(), "rack; null = none"),
    column("subscribed_topics", pa.list_(pa.string()), "names of the subscribed topics; null = no record"),
    column("member_epoch", pa.int32(), "member epoch; null = no record of the current assignment"),
    column("previous_member_epoch", pa.int32(), "member epoch before; null = no record of the current assignment"),
    column("assigned_partitions", TOPIC_PARTITIONS, "current assignment", nullable=False),
    column("target_partitions", TOPIC_PARTITIONS, "target assignment", nullable=False),
]
MEMBER_HISTORY: Final = pa.schema(
    [
        column("group_id", pa.string(), "share group", nullable=False),
        column("member_id", pa.string(), "member", nullable=False),
        *MEMBER_VALUES,
        *_validity("values"),
    ]
)
"""One row for each change of a member's subscription, epoch, current or target assignment."""

SHARE_INITIALIZATION_HISTORY: Final = pa.schema(
    [
        column("group_id", pa.string(), "share group", nullable=False),
        column("topic_id", pa.string(), "topic id", nullable=False),
        column("partition", pa.int32(), "partition of the topic; null = the whole topic (DELETING)"),
        column("status", pa.string(), "INITIALIZING, INITIALIZED or DELETING; several at a time", nullable=False),
        column("topic", pa.string(), "name in the record; null = the topic was gone"),
        *_validity("status"),
    ]
)
"""One row for each time that a share partition is in a status (ShareGroupStatePartitionMetadata)."""

REBALANCE: Final = pa.schema(
    [
        column("group_id", pa.string(), "share group", nullable=False),
        column("at_ms", pa.int64(), "log time of the record with the group epoch", nullable=False),
        column("group_epoch", pa.int32(), "group epoch; null = the group was deleted"),
        column("assignment_epoch", pa.int32(), "epoch of the newest target assignment of this rebalance; null = none"),
        column("state", pa.string(), "STABLE, EMPTY or DEAD", nullable=False),
        column("member_count", pa.int32(), "number of members", nullable=False),
        column("joined", MEMBERS, "new members", nullable=False),
        column("removed", MEMBERS, "members that left or were fenced: the records are the same", nullable=False),
        column("resubscribed", MEMBERS, "members with other subscribed topics", nullable=False),
        column("moved", MOVES, "partitions whose target members changed", nullable=False),
        column("log_partition", pa.int32(), "partition of __consumer_offsets", nullable=False),
        column("log_offset", pa.int64(), "offset of the record with the group epoch", nullable=False),
        *MARKS,
    ]
)
"""One row for each group epoch, and one for the deletion of a group."""
