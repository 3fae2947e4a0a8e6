"""The reference form of rules 1 to 4: the bytes of a record, its batch, its state partition, its log offset."""

from state_model.audit.placement import NOT_PLAIN
from state_model.audit.rule import Difference, Field
from state_model.java import partition_for
from state_model.share_records import SharePartitionKey
from tests.audit.reference.steps import Step


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
