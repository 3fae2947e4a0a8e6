"""Schemas of the records of `__consumer_offsets` (consumer-offsets-records §2-4).

All 22 shipped record types are named with their keys, so that every record can be counted under its group. Values are
given for consumer groups (3 to 8, 16), share groups (10 to 15) and streams groups (17, 19 to 23), which have version 0
only. Types 9 and 18 of KIP-932 and KIP-1071 were never shipped.

Where a message definition of Kafka has the default null without quotes, the class made of it has the empty array or
struct as its default: absent stands for the empty value, and null is written explicitly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from state_model.schema import (
    CLASSIC_STRING,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    CompactArray,
    CompactBytes,
    Field,
    NullableStruct,
    Struct,
)


class GroupKind(Enum):
    """The kind of group that writes a record type."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecordType:
    """One record type: its key behind the int16 type, and the value versions that are decoded."""

    number: int
    name: str
    group_kind: GroupKind
    key: Struct
    values: Mapping[int, Struct] = field(default_factory=dict)


_GROUP = Field(name="group_id", kind=CLASSIC_STRING)
GROUP_KEY = Struct(_GROUP, flexible=False)
MEMBER_KEY = Struct(_GROUP, Field(name="member_id", kind=CLASSIC_STRING), flexible=False)
# The oldest three types call their group by another name.
CLASSIC_GROUP = Field(name="group", kind=CLASSIC_STRING)
CLASSIC_GROUP_KEY = Struct(CLASSIC_GROUP, flexible=False)
OFFSET_KEY = Struct(
    CLASSIC_GROUP, Field(name="topic", kind=CLASSIC_STRING), Field(name="partition", kind=INT32), flexible=False
)
REGEX_KEY = Struct(_GROUP, Field(name="regular_expression", kind=CLASSIC_STRING), flexible=False)

STRINGS = CompactArray(item=STRING)
INT32S = CompactArray(item=INT32)
INT16S = CompactArray(item=INT16)
TOPIC_PARTITIONS = CompactArray(item=Struct(Field(name="topic_id", kind=UUID), Field(name="partitions", kind=INT32S)))
NAMED_TOPIC_PARTITIONS = CompactArray(
    item=Struct(
        Field(name="topic_id", kind=UUID),
        Field(name="topic_name", kind=STRING),
        Field(name="partitions", kind=INT32S),
    )
)
NAMED_TOPICS = CompactArray(item=Struct(Field(name="topic_id", kind=UUID), Field(name="topic_name", kind=STRING)))
KEY_VALUE = Struct(Field(name="key", kind=STRING), Field(name="value", kind=STRING))
ASSIGNMENT_METADATA = Struct(
    Field(name="assignment_epoch", kind=INT32),
    Field(name="assignment_timestamp", kind=INT64, tag=0, default=0),
)

TARGET_MEMBER = Struct(Field(name="topic_partitions", kind=TOPIC_PARTITIONS))

CONSUMER_METADATA = Struct(
    Field(name="epoch", kind=INT32),
    Field(name="metadata_hash", kind=INT64, tag=0, default=0),
)
# Since 4.1 Kafka writes only tombstones of type 4.
TOPIC_METADATA = Struct(
    Field(name="topic_id", kind=UUID),
    Field(name="topic_name", kind=STRING),
    Field(name="num_partitions", kind=INT32),
    Field(
        name="partition_metadata",
        kind=CompactArray(item=Struct(Field(name="partition", kind=INT32), Field(name="racks", kind=STRINGS))),
    ),
)
CONSUMER_PARTITION_METADATA = Struct(Field(name="topics", kind=CompactArray(item=TOPIC_METADATA)))
CLASSIC_PROTOCOL = Struct(Field(name="name", kind=STRING), Field(name="metadata", kind=CompactBytes()))
# Members of the consumer protocol have null; an absent field is the empty struct.
CLASSIC_MEMBER_METADATA = Field(
    name="classic_member_metadata",
    kind=NullableStruct(
        Field(name="session_timeout_ms", kind=INT32),
        Field(name="supported_protocols", kind=CompactArray(item=CLASSIC_PROTOCOL)),
        is_tagged=True,
    ),
    tag=0,
    default={"session_timeout_ms": 0, "supported_protocols": ()},
)
CONSUMER_MEMBER_METADATA = Struct(
    Field(name="instance_id", kind=NULLABLE_STRING),
    Field(name="rack_id", kind=NULLABLE_STRING),
    Field(name="client_id", kind=STRING),
    Field(name="client_host", kind=STRING),
    Field(name="subscribed_topic_names", kind=STRINGS),
    Field(name="subscribed_topic_regex", kind=NULLABLE_STRING),
    Field(name="rebalance_timeout_ms", kind=INT32),
    Field(name="server_assignor", kind=NULLABLE_STRING),
    CLASSIC_MEMBER_METADATA,
)
TOPIC_PARTITIONS_WITH_EPOCHS = CompactArray(
    item=Struct(
        Field(name="topic_id", kind=UUID),
        Field(name="partitions", kind=INT32S),
        Field(name="assignment_epochs", kind=CompactArray(item=INT32, nullable=True), tag=0, default=()),
    )
)
CONSUMER_CURRENT_MEMBER = Struct(
    Field(name="member_epoch", kind=INT32),
    Field(name="previous_member_epoch", kind=INT32),
    Field(name="state", kind=INT8),
    Field(name="assigned_partitions", kind=TOPIC_PARTITIONS_WITH_EPOCHS),
    Field(name="partitions_pending_revocation", kind=TOPIC_PARTITIONS_WITH_EPOCHS),
)
CONSUMER_REGULAR_EXPRESSION = Struct(
    Field(name="topics", kind=STRINGS),
    Field(name="version", kind=INT64),
    Field(name="timestamp", kind=INT64),
)

SHARE_MEMBER_METADATA = Struct(
    Field(name="rack_id", kind=NULLABLE_STRING),
    Field(name="client_id", kind=STRING),
    Field(name="client_host", kind=STRING),
    Field(name="subscribed_topic_names", kind=STRINGS),
)
SHARE_METADATA = Struct(Field(name="epoch", kind=INT32), Field(name="metadata_hash", kind=INT64))
SHARE_CURRENT_MEMBER = Struct(
    Field(name="member_epoch", kind=INT32),
    Field(name="previous_member_epoch", kind=INT32),
    Field(name="state", kind=INT8),
    Field(name="assigned_partitions", kind=TOPIC_PARTITIONS),
)
SHARE_STATE_PARTITION_METADATA = Struct(
    Field(name="initializing_topics", kind=NAMED_TOPIC_PARTITIONS),
    Field(name="initialized_topics", kind=NAMED_TOPIC_PARTITIONS),
    Field(name="deleting_topics", kind=NAMED_TOPICS),
)

# Tags 2 and 3 since 4.4. Absent configs are empty ones; null is written explicitly.
STREAMS_METADATA = Struct(
    Field(name="epoch", kind=INT32),
    Field(name="metadata_hash", kind=INT64),
    Field(name="validated_topology_epoch", kind=INT32, tag=0, default=-1),
    Field(name="last_assignment_configs", kind=CompactArray(item=KEY_VALUE, nullable=True), tag=1, default=()),
    Field(name="stored_description_topology_epoch", kind=INT32, tag=2, default=-1),
    Field(name="failed_description_topology_epoch", kind=INT32, tag=3, default=-1),
)
STREAMS_MEMBER_METADATA = Struct(
    Field(name="instance_id", kind=NULLABLE_STRING),
    Field(name="rack_id", kind=NULLABLE_STRING),
    Field(name="client_id", kind=STRING),
    Field(name="client_host", kind=STRING),
    Field(name="rebalance_timeout_ms", kind=INT32),
    Field(name="topology_epoch", kind=INT32),
    Field(name="process_id", kind=STRING),
    Field(
        name="user_endpoint",
        kind=NullableStruct(Field(name="host", kind=STRING), Field(name="port", kind=UINT16)),
    ),
    Field(name="client_tags", kind=CompactArray(item=KEY_VALUE)),
)
TASK_IDS = CompactArray(item=Struct(Field(name="subtopology_id", kind=STRING), Field(name="partitions", kind=INT32S)))
# Absent assignment epochs are an empty array too; they stand for the member epoch, once a partition.
TASKS_WITH_EPOCHS = CompactArray(
    item=Struct(
        Field(name="subtopology_id", kind=STRING),
        Field(name="partitions", kind=INT32S),
        Field(name="assignment_epochs", kind=CompactArray(item=INT32, nullable=True), tag=0, default=()),
    )
)
STREAMS_TARGET_MEMBER = Struct(
    Field(name="active_tasks", kind=TASK_IDS),
    Field(name="standby_tasks", kind=TASK_IDS),
    Field(name="warmup_tasks", kind=TASK_IDS),
)
STREAMS_CURRENT_MEMBER = Struct(
    Field(name="member_epoch", kind=INT32),
    Field(name="previous_member_epoch", kind=INT32),
    Field(name="state", kind=INT8),
    Field(name="active_tasks", kind=TASKS_WITH_EPOCHS),
    Field(name="standby_tasks", kind=TASKS_WITH_EPOCHS),
    Field(name="warmup_tasks", kind=TASKS_WITH_EPOCHS),
    Field(name="active_tasks_pending_revocation", kind=TASKS_WITH_EPOCHS),
    Field(name="standby_tasks_pending_revocation", kind=TASKS_WITH_EPOCHS),
    Field(name="warmup_tasks_pending_revocation", kind=TASKS_WITH_EPOCHS),
)
TOPIC_INFOS = CompactArray(
    item=Struct(
        Field(name="name", kind=STRING),
        Field(name="partitions", kind=INT32),
        Field(name="replication_factor", kind=INT16),
        Field(name="topic_configs", kind=CompactArray(item=KEY_VALUE)),
    )
)
COPARTITION_GROUPS = CompactArray(
    item=Struct(
        Field(name="source_topics", kind=INT16S),
        Field(name="source_topic_regex", kind=INT16S),
        Field(name="repartition_source_topics", kind=INT16S),
    )
)
STREAMS_TOPOLOGY = Struct(
    Field(name="epoch", kind=INT32),
    Field(
        name="subtopologies",
        kind=CompactArray(
            item=Struct(
                Field(name="subtopology_id", kind=STRING),
                Field(name="source_topics", kind=STRINGS),
                Field(name="source_topic_regex", kind=STRINGS),
                Field(name="state_changelog_topics", kind=TOPIC_INFOS),
                Field(name="repartition_sink_topics", kind=STRINGS),
                Field(name="repartition_source_topics", kind=TOPIC_INFOS),
                Field(name="copartition_groups", kind=COPARTITION_GROUPS),
            )
        ),
    ),
)

_CLASSIC, _CONSUMER, _SHARE, _STREAMS = GroupKind.CLASSIC, GroupKind.CONSUMER, GroupKind.SHARE, GroupKind.STREAMS
_TYPES: tuple[tuple[int, str, GroupKind, Struct, Struct | None], ...] = (
    (0, "LegacyOffsetCommit", _CLASSIC, OFFSET_KEY, None),
    (1, "OffsetCommit", _CLASSIC, OFFSET_KEY, None),
    (2, "GroupMetadata", _CLASSIC, CLASSIC_GROUP_KEY, None),
    (3, "ConsumerGroupMetadata", _CONSUMER, GROUP_KEY, CONSUMER_METADATA),
    (4, "ConsumerGroupPartitionMetadata", _CONSUMER, GROUP_KEY, CONSUMER_PARTITION_METADATA),
    (5, "ConsumerGroupMemberMetadata", _CONSUMER, MEMBER_KEY, CONSUMER_MEMBER_METADATA),
    (6, "ConsumerGroupTargetAssignmentMetadata", _CONSUMER, GROUP_KEY, ASSIGNMENT_METADATA),
    (7, "ConsumerGroupTargetAssignmentMember", _CONSUMER, MEMBER_KEY, TARGET_MEMBER),
    (8, "ConsumerGroupCurrentMemberAssignment", _CONSUMER, MEMBER_KEY, CONSUMER_CURRENT_MEMBER),
    (10, "ShareGroupMemberMetadata", _SHARE, MEMBER_KEY, SHARE_MEMBER_METADATA),
    (11, "ShareGroupMetadata", _SHARE, GROUP_KEY, SHARE_METADATA),
    (12, "ShareGroupTargetAssignmentMetadata", _SHARE, GROUP_KEY, ASSIGNMENT_METADATA),
    (13, "ShareGroupTargetAssignmentMember", _SHARE, MEMBER_KEY, TARGET_MEMBER),
    (14, "ShareGroupCurrentMemberAssignment", _SHARE, MEMBER_KEY, SHARE_CURRENT_MEMBER),
    (15, "ShareGroupStatePartitionMetadata", _SHARE, GROUP_KEY, SHARE_STATE_PARTITION_METADATA),
    (16, "ConsumerGroupRegularExpression", _CONSUMER, REGEX_KEY, CONSUMER_REGULAR_EXPRESSION),
    (17, "StreamsGroupMetadata", _STREAMS, GROUP_KEY, STREAMS_METADATA),
    (19, "StreamsGroupMemberMetadata", _STREAMS, MEMBER_KEY, STREAMS_MEMBER_METADATA),
    (20, "StreamsGroupTargetAssignmentMetadata", _STREAMS, GROUP_KEY, ASSIGNMENT_METADATA),
    (21, "StreamsGroupTargetAssignmentMember", _STREAMS, MEMBER_KEY, STREAMS_TARGET_MEMBER),
    (22, "StreamsGroupCurrentMemberAssignment", _STREAMS, MEMBER_KEY, STREAMS_CURRENT_MEMBER),
    (23, "StreamsGroupTopology", _STREAMS, GROUP_KEY, STREAMS_TOPOLOGY),
)
RECORD_TYPES: Mapping[int, GroupRecordType] = {
    number: GroupRecordType(
        number=number, name=name, group_kind=kind, key=key, values={} if value is None else {0: value}
    )
    for number, name, kind, key, value in _TYPES
}
TABLE_TYPES = tuple(number for number, record_type in RECORD_TYPES.items() if record_type.group_kind is not _CLASSIC)
"""The types whose records are rows of tables; tables have no records of classic groups."""
PREVIEW_TYPES = (9, 18)
"""Record types that proposals named and no release has."""
