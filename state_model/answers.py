"""What a share coordinator answers from its state: ReadShareGroupState and its summary, with error codes.

Nothing here appends a record: a Read that raises the leader epoch does so in coordinator.py. Check order and codes
are those of share-group-state-log §5. The caller says whether the topic-partition exists in the cluster's metadata:
the state partition cannot know.
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
    """The whole state. A share partition that was never initialised is an INVALID_REQUEST."""
    held = state.share_partitions.get(key)
    error = read_error(state, key, held, leader_epoch, topic_partition_exists)
    if error is not ErrorCode.NONE or held is None:
        return ReadAnswer(error_code=error)
    return ReadAnswer(state_epoch=held.state_epoch, start_offset=held.start_offset, state_batches=held.state_batches)


def read_summary(
    state: PartitionState, key: SharePartitionKey, *, topic_partition_exists: bool = True
) -> SummaryAnswer:
    """The scalars, without a check of epochs. One that was never initialised has start offset -1 and no error."""
    error = place_error(key, topic_partition_exists)
    if error is not ErrorCode.NONE:
        return SummaryAnswer(error_code=error)
    held = state.share_partitions.get(key)
    if held is None:
        return SummaryAnswer(start_offset=NOT_DETERMINED)
    return SummaryAnswer(
        state_epoch=held.state_epoch,
        leader_epoch=held.leader_epoch,
        start_offset=held.start_offset,
        delivery_complete_count=held.delivery_complete_count,
    )


def read_error(
    state: PartitionState,
    key: SharePartitionKey,
    held: SharePartitionState | None,
    leader_epoch: int,
    topic_partition_exists: bool,
) -> ErrorCode:
    """Why a Read is refused, or NONE."""
    if key.partition < 0 or (state.rules.refuses_negative_epochs and leader_epoch < 0) or held is None:
        return ErrorCode.INVALID_REQUEST
    if is_fenced(held.leader_epoch_max, leader_epoch):
        return ErrorCode.FENCED_LEADER_EPOCH
    return place_error(key, topic_partition_exists)


def place_error(key: SharePartitionKey, topic_partition_exists: bool) -> ErrorCode:
    """The checks that every operation has: a partition number, and a topic-partition that the cluster knows."""
    if key.partition < 0:
        return ErrorCode.INVALID_REQUEST
    return _NONE if topic_partition_exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_fenced(epoch_max: int | None, epoch: int) -> bool:
    """Whether a request's epoch is older than one seen before; -1 skips the check where the rules let it through."""
    return epoch != NO_EPOCH and epoch_max is not None and epoch_max > epoch
