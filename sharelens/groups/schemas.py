"""The Arrow schemas of consumer, share and streams groups and of their histories, with a comment for each column.

The columns that only one type of group has are null in the rows of the others; lists that are never null are empty.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from state_model.columnar.schemas import COMPLETENESS, column

STABLE, EMPTY, DEAD = "STABLE", "EMPTY", "DEAD"
INITIALIZING, INITIALIZED, DELETING = "INITIALIZING", "INITIALIZED", "DELETING"
NOT_READY, ASSIGNING, RECONCILING = "NOT_READY", "ASSIGNING", "RECONCILING"
UNSETTLED = (ASSIGNING, RECONCILING)
"""States of a consumer or streams group that rebalances; NOT_READY is one of streams groups alone."""
CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"
"""Types of groups."""
CLASSIC = "classic"
"""The protocol of some members of consumer groups."""
ACTIVE, STANDBY, WARMUP = "ACTIVE", "STANDBY", "WARMUP"
OWNED, PENDING_REVOCATION = "OWNED", "PENDING_REVOCATION"
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

TASKS: Final = pa.list_(
    pa.struct(
        [
            pa.field("task_type", pa.string()),
            pa.field("subtopology_id", pa.string()),
            pa.field("partitions", pa.list_(pa.int32())),
        ]
    )
)
"""Tasks by type (ACTIVE, STANDBY, WARMUP) and subtopology, partitions ascending."""
TAGS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())]))
TASK_MOVES: Final = pa.list_(
    pa.struct(
        [
            pa.field("task_type", pa.string()),
            pa.field("subtopology_id", pa.string()),
            pa.field("partition", pa.int32()),
            pa.field("from_members", MEMBERS),
            pa.field("to_members", MEMBERS),
        ]
    )
)
"""Tasks whose members changed: those that lost it, and those that gained it."""

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
    column("group_type", pa.string(), "consumer, share or streams", nullable=False),
    column(
        "state",
        pa.string(),
        "EMPTY, STABLE or DEAD (deleted; a consumer group may have become a classic one); of consumer and streams "
        "groups also ASSIGNING and RECONCILING, of streams groups NOT_READY",
        nullable=False,
    ),
    column("group_epoch", pa.int32(), "group epoch; null = no record, or DEAD"),
    column("metadata_hash", pa.int64(), "hash of the metadata of the group's topics; null = no record, or DEAD"),
    column("assignment_epoch", pa.int32(), "epoch of the target assignment; null = no record, or DEAD"),
    column("assignment_timestamp_ms", pa.int64(), "time of the target assignment (since 4.3); null = unknown"),
    column("member_count", pa.int32(), "number of members", nullable=False),
    column("topology_epoch", pa.int32(), "epoch of the topology of a streams group; null = no topology"),
    column(
        "validated_topology_epoch",
        pa.int32(),
        "topology epoch that the topics fit, -1 = they do not fit it; null = no streams group, or DEAD",
    ),
    column("num_standby_replicas", pa.int32(), "standby replicas of the target assignment; null = not in a record"),
]
GROUP_HISTORY: Final = pa.schema(
    [column("group_id", pa.string(), "group", nullable=False), *GROUP_VALUES, *_validity("values")]
)
"""One row for each change of a group's state, epochs or number of members."""

CONSUMER_MEMBER_VALUES: Final = (
    column("member_type", pa.string(), "protocol of a member of a consumer group: consumer or classic; null = unknown"),
    column("instance_id", pa.string(), "static member of a consumer group; null = none, or no record"),
    column("subscribed_topic_regex", pa.string(), "regular expression of a member of a consumer group; null = none"),
    column("server_assignor", pa.string(), "assignor that a member of a consumer group prefers; null = none"),
    column("pending_partitions", TOPIC_PARTITIONS, "partitions that a member of a consumer group must give up"),
)
"""Columns of members of consumer groups alone."""
MEMBER_VALUES = [
    column("client_id", pa.string(), "client id; null = no record of the member's metadata"),
    column("client_host", pa.string(), "host as the broker saw it"),
    column("rack_id", pa.string(), "rack; null = none"),
    column(
        "subscribed_topics",
        pa.list_(pa.string()),
        "names of the subscribed topics; null = no record, or a streams group",
    ),
    column("member_epoch", pa.int32(), "member epoch; null = no record of the current assignment"),
    column("previous_member_epoch", pa.int32(), "member epoch before; null = no record of the current assignment"),
    column("assigned_partitions", TOPIC_PARTITIONS, "current assignment; empty in a streams group", nullable=False),
    column("target_partitions", TOPIC_PARTITIONS, "target assignment; empty in a streams group", nullable=False),
    column(
        "member_state",
        pa.string(),
        "STABLE, UNREVOKED_TASKS or UNRELEASED_TASKS in a streams group, UNREVOKED_PARTITIONS or "
        "UNRELEASED_PARTITIONS in a consumer group; null = no record of the current assignment",
    ),
    column("process_id", pa.string(), "process of a member of a streams group; null = no record"),
    column("topology_epoch", pa.int32(), "topology epoch of a member of a streams group; null = no record"),
    column("rebalance_timeout_ms", pa.int32(), "time that a member of a consumer or streams group has to revoke"),
    column("user_endpoint", pa.string(), "host:port of `application.server`; null = none"),
    column("client_tags", TAGS, "client tags of a member of a streams group"),
    column("assigned_tasks", TASKS, "current assignment of a member of a streams group"),
    column("pending_tasks", TASKS, "tasks that the member must give up"),
    column("target_tasks", TASKS, "target assignment of a member of a streams group"),
    *CONSUMER_MEMBER_VALUES,
]
MEMBER_HISTORY: Final = pa.schema(
    [
        column("group_id", pa.string(), "group", nullable=False),
        column("member_id", pa.string(), "member", nullable=False),
        *MEMBER_VALUES,
        *_validity("values"),
    ]
)
"""One row for each change of a member's metadata, epoch, current or target assignment."""

TASK_HISTORY: Final = pa.schema(
    [
        column("group_id", pa.string(), "streams group", nullable=False),
        column("subtopology_id", pa.string(), "subtopology of the task", nullable=False),
        column("partition", pa.int32(), "partition of the task", nullable=False),
        column("task_type", pa.string(), "ACTIVE, STANDBY or WARMUP", nullable=False),
        column("member_id", pa.string(), "member that has the task in its current assignment", nullable=False),
        column("process_id", pa.string(), "process of the member; null = no record"),
        column("client_id", pa.string(), "client id of the member; null = no record"),
        column("status", pa.string(), "OWNED or PENDING_REVOCATION (the member must give it up)", nullable=False),
        column("assignment_epoch", pa.int32(), "epoch in which the member got the active task; null = not ACTIVE"),
        *_validity("assignment"),
    ]
)
"""One row for each time that a member of a streams group has a task."""

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

STREAMS_REBALANCE: Final = pa.schema(
    [
        column("group_id", pa.string(), "streams group", nullable=False),
        column("at_ms", pa.int64(), "log time of the record with the group epoch", nullable=False),
        column("group_epoch", pa.int32(), "group epoch; null = the group was deleted"),
        column("assignment_epoch", pa.int32(), "epoch of the newest target assignment of this rebalance; null = none"),
        column("state", pa.string(), "state of the group after the record", nullable=False),
        column("member_count", pa.int32(), "number of members", nullable=False),
        column("joined", MEMBERS, "new members", nullable=False),
        column("removed", MEMBERS, "members that left or were fenced: the records are the same", nullable=False),
        column("changed", MEMBERS, "members with other metadata", nullable=False),
        column("moved", TASK_MOVES, "tasks whose target members changed", nullable=False),
        column("kept_tasks", pa.int32(), "active tasks in the targets before and after that stay", nullable=False),
        column("lost_tasks", pa.int32(), "active tasks in the targets before and after that move", nullable=False),
        column("fewest_tasks", pa.int32(), "tasks of the member with the fewest in the target; null = no target"),
        column("most_tasks", pa.int32(), "tasks of the member with the most in the target; null = no target"),
        column("stable_after_ms", pa.int64(), "time until the group was STABLE; null = the next rebalance came first"),
        column(
            "tasks_without_owner",
            pa.int32(),
            "active tasks that lost their owner in this rebalance and have an owner again",
            nullable=False,
        ),
        column("longest_without_owner_ms", pa.int64(), "the longest time of these without an owner; null = none"),
        column(
            "tasks_still_without_owner",
            pa.int32(),
            "active tasks that lost their owner in this rebalance and have none at the end",
            nullable=False,
        ),
        column("log_partition", pa.int32(), "partition of __consumer_offsets", nullable=False),
        column("log_offset", pa.int64(), "offset of the record with the group epoch", nullable=False),
        *MARKS,
    ]
)
"""One row for each group epoch of a streams group, and one for the deletion of a group."""


def _of_consumer_group(field: pa.Field) -> pa.Field:
    """A column of STREAMS_REBALANCE with partitions in place of tasks."""
    comment = field.metadata[b"comment"].decode("utf-8")
    for task_word, partition_word in (("streams", "consumer"), ("active tasks", "partitions"), ("tasks", "partitions")):
        comment = comment.replace(task_word, partition_word)
    kind = MOVES if field.name == "moved" else field.type
    return column(field.name.replace("tasks", "partitions"), kind, comment, nullable=field.nullable)


CONSUMER_REBALANCE: Final = pa.schema([_of_consumer_group(field) for field in STREAMS_REBALANCE])
"""One row for each group epoch of a consumer group, and one for the deletion of a group."""

SUBSCRIBED_MEMBERS: Final = pa.list_(
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
"""Members by id, with the newest record of each."""
GROUPS: Final = pa.schema(
    [
        column("group_id", pa.string(), "group", nullable=False),
        column("group_type", pa.string(), "consumer, share or streams", nullable=False),
        column(
            "state",
            pa.string(),
            "STABLE, EMPTY or DEAD; of consumer and streams groups also ASSIGNING and RECONCILING, of streams groups "
            "NOT_READY",
            nullable=False,
        ),
        column("group_epoch", pa.int32(), "group epoch; null = no record, or DEAD"),
        column("assignment_epoch", pa.int32(), "epoch of the target assignment; null = no record, or DEAD"),
        column("member_count", pa.int32(), "number of members", nullable=False),
        column("members", SUBSCRIBED_MEMBERS, "members by id: client id, host and subscription", nullable=False),
        column(
            "initialized_partitions",
            pa.int32(),
            "share partitions that the group has initialized; null = unknown, or no share group",
        ),
        column("initializing_partitions", pa.int32(), "share partitions in initialization; null as before"),
        column("deleting_topics", pa.int32(), "topics whose share state the group deletes now; null as before"),
        column("last_change_ms", pa.int64(), "timestamp of the group's newest record", nullable=False),
        column("partition", pa.int32(), "partition of __consumer_offsets", nullable=False),
        column("log_offset", pa.int64(), "offset of that record", nullable=False),
        *COMPLETENESS,
    ]
)
