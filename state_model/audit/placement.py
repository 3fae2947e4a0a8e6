"""Decoding and placement: rules 1 to 7. The bytes of a record, its batch, its state partition, its log offset."""

from state_model.audit.impact import Impact
from state_model.audit.rule import CHECK_COPY, REPORT_BUG, Difference, Field, Rule
from state_model.audit.severities import ERROR, INFO, WARNING
from state_model.audit.steps import Step
from state_model.java import partition_for
from state_model.share_records import SharePartitionKey

NOT_PLAIN = 0b11_0000
"""Attributes of a batch that is transactional (16) or of a transaction marker (32)."""


def trailing_bytes(step: Step) -> Difference | None:
    """Bytes behind the value."""
    count = step.record.trailing_bytes
    return Difference(Field.TRAILING_BYTES, 0, count) if count else None


def unknown_tags(step: Step) -> Difference | None:
    """Tagged fields that this version does not know, in the value or in a state batch."""
    value = step.written
    if value is None:
        return None
    count = len(value.unknown_tags) + sum(len(batch.unknown_tags) for batch in value.state_batches)
    return Difference(Field.UNKNOWN_TAGS, 0, count) if count else None


def misplaced(key: SharePartitionKey, state_partition: int, count: int) -> Difference | None:
    """The record of a share partition lies where its key does not hash to; `count`: number of state partitions."""
    expected = partition_for(key.group_id, key.topic_id, key.partition, count)
    return Difference(Field.STATE_PARTITION, expected, state_partition) if expected != state_partition else None


def goes_back(previous: int, log_offset: int) -> Difference | None:
    """A log offset that does not lie above the one before it."""
    return Difference(Field.LOG_OFFSET, previous, log_offset) if log_offset <= previous else None


def leaves_hole(previous: int, log_offset: int) -> Difference | None:
    """A log offset that is not the next one."""
    return Difference(Field.LOG_OFFSET, previous + 1, log_offset) if log_offset > previous + 1 else None


def odd_batch(attributes: int, producer_id: int, headers: int) -> Difference | None:
    """A record in a batch that no coordinator writes: of a transaction, of a producer with an id, with headers."""
    if attributes & NOT_PLAIN:
        return Difference(Field.BATCH_ATTRIBUTES, attributes & ~NOT_PLAIN, attributes)
    if producer_id != -1:
        return Difference(Field.PRODUCER_ID, -1, producer_id)
    return Difference(Field.HEADERS, 0, headers) if headers else None


RULES = (
    Rule(
        number=1,
        code="undecodable_record",
        title="Every record can be decoded",
        severity=ERROR,
        impact=Impact.STUCK,
        why="Only coordinators write to this topic, in one format. A key or a value that is cut short is damage.",
        remedy=CHECK_COPY,
        source="share-group-state-log §2-3, generated ShareSnapshot/ShareUpdate classes",
        compares_state=False,
    ),
    Rule(
        number=1,
        part=1,
        code="unknown_format",
        title="Record types are 0 and 1, the value version is 0",
        severity=ERROR,
        if_version_unknown=INFO,
        impact=Impact.STUCK,
        why="Kafka up to 4.4 has no other. A broker skips an unknown type and fails to load an unknown value version.",
        remedy="Find out whether a newer broker wrote the record; if none did, its bytes are damaged.",
        source="share-group-state-log §2, ShareCoordinatorService serde",
        compares_state=False,
    ),
    Rule(
        number=1,
        part=2,
        code="trailing_bytes",
        title="No bytes stand behind the value",
        severity=ERROR,
        impact=Impact.NONE,
        why="Kafka's writer ends a value with its tagged fields.",
        remedy=CHECK_COPY,
        source="share-group-state-log §3",
        check=trailing_bytes,
        compares_state=False,
    ),
    Rule(
        number=1,
        part=3,
        code="unknown_tagged_field",
        title="The only tagged field is the delivery complete count",
        severity=WARNING,
        impact=Impact.NONE,
        why="Kafka up to 4.4 writes tag 0 alone. A newer broker may write others, which older ones keep or drop.",
        remedy="Find out which broker wrote it, and don't go back to a version that does not know the field.",
        source="share-group-state-log §3",
        check=unknown_tags,
        compares_state=False,
    ),
    Rule(
        number=2,
        code="misplaced_share_partition",
        title="A share partition's records lie in the state partition to which its key hashes",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="Brokers look for the state in the state partition of the hash; state elsewhere is never read. "
        "The number of state partitions is inferred from the places of all share partitions.",
        remedy="Check that all copies are of one cluster and that the state topic was never altered.",
        source="share-group-state-log §1, ShareCoordinatorService.partitionFor",
        compares_state=False,
    ),
    Rule(
        number=3,
        code="log_offset_goes_back",
        title="Log offsets ascend",
        severity=ERROR,
        relation=">",
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="A log assigns offsets in ascending order.",
        remedy=CHECK_COPY,
        source="Kafka's log",
        compares_state=False,
    ),
    Rule(
        number=3,
        part=1,
        code="log_offsets_missing",
        title="Log offsets have no holes",
        severity=WARNING,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="The state topic is neither compacted nor transactional, so each offset has a record. "
        "Until the next snapshot of a share partition, rules over its state are not tested behind a hole.",
        remedy="Copy the log directory again; where the broker lacks the offsets as well, it lost a segment.",
        source="share-group-state-log §1",
        compares_state=False,
    ),
    Rule(
        number=4,
        code="odd_record_batch",
        title="Record batches have no producer id, no transaction and no headers",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="CoordinatorRuntime appends plain batches. Others come from a client that writes to the internal topic.",
        remedy="Find the client that writes to __share_group_state and take its permission away.",
        source="share-group-state-log §1, CoordinatorRuntime.append",
        compares_state=False,
    ),
    Rule(
        number=5,
        code="update_without_value",
        title="Only snapshots have tombstones",
        severity=ERROR,
        impact=Impact.STUCK,
        why="A deletion is a null value under the key of a snapshot. A broker fails to replay a null update.",
        remedy=REPORT_BUG,
        source="share-group-state-log §8, ShareCoordinatorShard.newShareStateTombstone",
        compares_state=False,
    ),
    Rule(
        number=6,
        code="log_starts_inside_history",
        title="The record at the log start offset is a snapshot or a tombstone",
        severity=WARNING,
        impact=Impact.STUCK,
        why="The coordinator deletes records below the oldest snapshot that a share partition needs. "
        "DeleteRecords by hand, retention by size or an unclean truncation put the log start elsewhere.",
        remedy="Look for kafka-delete-records runs and for log.retention.bytes on __share_group_state.",
        source="share-group-state-log §7, ShareCoordinatorOffsetsManager",
        compares_state=False,
    ),
    Rule(
        number=7,
        part=1,
        code="state_topic_created_again",
        title="The state topic is created once",
        severity=WARNING,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="With the topic the state of all share groups is gone. The audit reads the newest one; the older one lies "
        "in folders that a broker left.",
        remedy="Find out who deleted __share_group_state; reset the offsets of the groups.",
        source="share-group-state-log §1",
        compares_state=False,
    ),
    Rule(
        number=7,
        code="state_partition_count_changed",
        title="The number of state partitions never changes",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="With another number keys hash elsewhere, and the brokers no longer see the old state.",
        remedy="Set the number of partitions of __share_group_state back, or initialize the groups' offsets again.",
        source="share-group-state-log §1, ShareCoordinatorConfig",
        compares_state=False,
    ),
)
