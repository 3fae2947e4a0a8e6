"""Answers of a share coordinator from its state: ReadShareGroupState and its summary, with error codes.

These functions append no record: for a Read that raises the leader epoch, coordinator.py does. Order of checks and
codes are those of share-group-state-log §5. The caller passes whether the topic-partition exists in the cluster's
metadata, because the state partition does not have it.
"""

from dataclasses import dataclass
from enum import IntEnum

from state_model.batches import Batches
from state_model.machine import NO_EPOCH, PartitionState, SharePartitionState
from state_model.share_records import NOT_DETERMINED, UNKNOWN_COUNT, SharePartitionKey


class ErrorCode(IntEnum):
    """Kafka's error codes (org.apache.kafka.common.protocol.Errors), as far as the share coordinator answers them."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_REQUEST = 42
    FENCED_LEADER_EPOCH = 74
    FENCED_STATE_EPOCH = 124


_NONE = ErrorCode.NONE  # looked up once: a member of an enumeration costs more than a name of a module


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """Answer to ReadShareGroupState for one share partition; after an error the other fields are defaults."""

    error_code: ErrorCode = ErrorCode.NONE
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: Batches = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer:
    """Answer to ReadShareGroupStateSummary for one share partition."""

    error_code: ErrorCode = ErrorCode.NONE
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = UNKNOWN_COUNT


def read(
    state: PartitionState, key: SharePartitionKey, *, leader_epoch: int, topic_partition_exists: bool = True
) -> ReadAnswer:
    """The answer to a Read: the whole state; INVALID_REQUEST for a share partition that was never initialised."""
    current = state.share_partitions.get(key)
    error = read_error(state, key, current, leader_epoch, topic_partition_exists)
    if error is not ErrorCode.NONE or current is None:
        return ReadAnswer(error_code=error)
    return ReadAnswer(
        state_epoch=current.state_epoch, start_offset=current.start_offset, state_batches=current.state_batches
    )


def read_summary(
    state: PartitionState, key: SharePartitionKey, *, topic_partition_exists: bool = True
) -> SummaryAnswer:
    """The answer to a ReadSummary, without a check of epochs; start offset -1, no error without a state."""
    error = place_error(key, topic_partition_exists)
    if error is not ErrorCode.NONE:
        return SummaryAnswer(error_code=error)
    current = state.share_partitions.get(key)
    if current is None:
        return SummaryAnswer(start_offset=NOT_DETERMINED)
    return SummaryAnswer(
        state_epoch=current.state_epoch,
        leader_epoch=current.leader_epoch,
        start_offset=current.start_offset,
        delivery_complete_count=current.delivery_complete_count,
    )


def read_error(
    state: PartitionState,
    key: SharePartitionKey,
    current: SharePartitionState | None,
    leader_epoch: int,
    topic_partition_exists: bool,
) -> ErrorCode:
    """The error code of a Read, or NONE."""
    if key.partition < 0 or (state.rules.refuses_negative_epochs and leader_epoch < 0) or current is None:
        return ErrorCode.INVALID_REQUEST
    if is_fenced(current.leader_epoch_max, leader_epoch):
        return ErrorCode.FENCED_LEADER_EPOCH
    return place_error(key, topic_partition_exists)


def place_error(key: SharePartitionKey, topic_partition_exists: bool) -> ErrorCode:
    """The error code of the checks that all operations share: partition number, topic-partition in the metadata."""
    if key.partition < 0:
        return ErrorCode.INVALID_REQUEST
    return _NONE if topic_partition_exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_fenced(epoch_max: int | None, epoch: int) -> bool:
    """Whether a request's epoch is older than one seen before; -1 skips the check where the rules let it through."""
    return epoch != NO_EPOCH and epoch_max is not None and epoch_max > epoch
