"""The write side of a share coordinator: the records that each request appends (share-group-state-log §5-7).

Each function is pure: it takes the state of a state partition and returns the answer and the records to append. The
caller appends them as one atomic batch and then applies them with `machine.apply`. Rule set and snapshot limit are
those of the state. The clock is an argument. As in ShareCoordinatorShard, a request is one operation for each share
partition that it names.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from state_model import answers
from state_model.answers import ErrorCode, ReadAnswer, is_fenced, place_error
from state_model.batches import Batches, combine
from state_model.machine import NO_EPOCH, PartitionState, SharePartitionState
from state_model.rule_sets import RuleSet
from state_model.share_records import (
    NOT_DETERMINED,
    UNKNOWN_COUNT,
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    Tombstone,
)
from state_model.tuples import maker

COLD_SNAPSHOT_INTERVAL_MS = 300_000
"""Default of share.coordinator.cold.partition.snapshot.interval.ms."""

Records = tuple[ShareRecord, ...]
# Looked up once, as every write of a log goes through here.
_NONE = ErrorCode.NONE
_record, _update = maker(ShareRecord), maker(ShareUpdate)


class Outcome(NamedTuple):
    """Answer to Initialize, Write or Delete for one share partition, and the records to append."""

    error_code: ErrorCode = ErrorCode.NONE
    records: Records = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOutcome:
    """Answer to Read from the state before it, and the records to append; sent after they have replicated."""

    answer: ReadAnswer
    records: Records = ()


_outcome = maker(Outcome)


class WriteRequest(NamedTuple):
    """WriteShareGroupState for one share partition; version 0 of the request has no delivery complete count."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    state_batches: Batches
    delivery_complete_count: int = UNKNOWN_COUNT


def initialize(
    state: PartitionState,
    key: SharePartitionKey,
    *,
    state_epoch: int,
    start_offset: int,
    now_ms: int,
    topic_partition_exists: bool = True,
) -> Outcome:
    """A snapshot without batches, with leader epoch 0. An equal state epoch passes, a smaller one is fenced."""
    current = state.share_partitions.get(key)
    if key.partition < 0 or (state.rules.refuses_negative_epochs and state_epoch < 0):
        return Outcome(error_code=ErrorCode.INVALID_REQUEST)
    if current is not None and is_fenced(current.state_epoch_max, state_epoch):
        return Outcome(error_code=ErrorCode.FENCED_STATE_EPOCH)
    error = place_error(key, topic_partition_exists)
    if error is not ErrorCode.NONE:
        return Outcome(error_code=error)
    snapshot = ShareSnapshot(
        snapshot_epoch=0 if current is None else _next(current.snapshot_epoch),
        state_epoch=state_epoch,
        leader_epoch=0,
        start_offset=start_offset,
        create_timestamp_ms=now_ms,
        write_timestamp_ms=now_ms,
        state_batches=(),
        delivery_complete_count=UNKNOWN_COUNT if start_offset == NOT_DETERMINED else 0,
    )
    return Outcome(records=(ShareRecord(key=key, value=snapshot),))


def read(
    state: PartitionState,
    key: SharePartitionKey,
    *,
    leader_epoch: int,
    now_ms: int,
    topic_partition_exists: bool = True,
) -> ReadOutcome:
    """The state; a leader epoch above all previous ones is recorded: it is the first sign of a new partition leader.

    With the maximum itself nothing is recorded, even if an Initialize has since set the state's own leader epoch to 0.
    """
    answer = answers.read(state, key, leader_epoch=leader_epoch, topic_partition_exists=topic_partition_exists)
    current = state.share_partitions.get(key)
    if (
        answer.error_code is not ErrorCode.NONE
        or current is None
        or leader_epoch in (NO_EPOCH, current.leader_epoch_max)
    ):
        return ReadOutcome(answer=answer)
    value = _update_or_snapshot(
        state,
        current,
        leader_epoch=leader_epoch,
        start_offset=current.start_offset,
        delivery_complete_count=current.delivery_complete_count,
        state_batches=(),
        now_ms=now_ms,
    )
    return ReadOutcome(answer=answer, records=(ShareRecord(key=key, value=value),))


def write(
    state: PartitionState,
    key: SharePartitionKey,
    request: WriteRequest,
    *,
    now_ms: int,
    topic_partition_exists: bool = True,
) -> Outcome:
    """The outcome of a Write: an update or the snapshot that is due. The request's epochs only fence."""
    current = state.share_partitions.get(key)
    error = _write_error(state, key, current, request)
    if error is _NONE:
        error = place_error(key, topic_partition_exists)
    if error is not _NONE or current is None:
        return Outcome(error_code=error)
    value = _update_or_snapshot(
        state,
        current,
        leader_epoch=current.leader_epoch,
        start_offset=request.start_offset,
        delivery_complete_count=request.delivery_complete_count,
        state_batches=request.state_batches,
        now_ms=now_ms,
    )
    return _outcome((_NONE, (_record((key, value, 0)),)))


def delete(state: PartitionState, key: SharePartitionKey, *, topic_partition_exists: bool = True) -> Outcome:
    """A tombstone; deleting a share partition that does not exist succeeds without a record."""
    error = place_error(key, topic_partition_exists)
    if error is not ErrorCode.NONE or key not in state.share_partitions:
        return Outcome(error_code=error)
    return Outcome(records=(ShareRecord(key=key, value=Tombstone()),))


def delete_topics(state: PartitionState, topic_ids: Collection[str]) -> Records:
    """Tombstones for all share partitions of topics that the cluster's metadata lacks, in the order of keys."""
    deleted = sorted(key for key in state.share_partitions if key.topic_id in topic_ids)
    return tuple(ShareRecord(key=key, value=Tombstone()) for key in deleted)


def snapshot_cold(state: PartitionState, *, now_ms: int, interval_ms: int = COLD_SNAPSHOT_INTERVAL_MS) -> Records:
    """New snapshots of the share partitions whose last snapshot is old: the periodic job that lets pruning advance.

    The content is the state's, batches unchanged; createTimestamp is kept, writeTimestamp is now. No record when the
    last snapshot of each share partition is already one of this job. All records are one atomic batch, in the order
    of keys.
    """
    states = state.share_partitions
    if all(current.create_timestamp_ms != current.write_timestamp_ms for current in states.values()):
        return ()
    cold = sorted(key for key, current in states.items() if now_ms - current.write_timestamp_ms >= interval_ms)
    return tuple(ShareRecord(key=key, value=_same_snapshot(states[key], now_ms)) for key in cold)


def prune_point(state: PartitionState, last_pruned: int | None) -> int | None:
    """Offset before which the periodic job deletes records; None when it would delete nothing new."""
    redundant = state.redundant_offset
    return None if redundant == last_pruned else redundant


def _write_error(
    state: PartitionState, key: SharePartitionKey, current: SharePartitionState | None, request: WriteRequest
) -> ErrorCode:
    if key.partition < 0:
        return ErrorCode.INVALID_REQUEST
    if state.rules.refuses_negative_epochs and min(request.leader_epoch, request.state_epoch) < 0:
        return ErrorCode.INVALID_REQUEST
    if current is None:
        return ErrorCode.INVALID_REQUEST
    if is_fenced(current.leader_epoch_max, request.leader_epoch):
        return ErrorCode.FENCED_LEADER_EPOCH
    if is_fenced(current.state_epoch_max, request.state_epoch):
        return ErrorCode.FENCED_STATE_EPOCH
    return _NONE


def _update_or_snapshot(
    state: PartitionState,
    current: SharePartitionState,
    *,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    state_batches: Batches,
    now_ms: int,
) -> ShareUpdate | ShareSnapshot:
    """A snapshot when the update counter has reached the limit; it then holds the write, which has no update record."""
    rules = state.rules
    delivery_complete_count = resolved_count(current, start_offset, delivery_complete_count, rules)
    start_offset = resolved_start(current, start_offset, rules)
    if current.update_count < state.update_limit:
        batches = combine((), state_batches, start_offset, rules=rules)
        # As the fields are listed: once for every record of a log.
        return _update((current.snapshot_epoch, leader_epoch, start_offset, batches, delivery_complete_count, ()))
    if start_offset == NOT_DETERMINED:
        start_offset = current.start_offset
    return ShareSnapshot(
        snapshot_epoch=_next(current.snapshot_epoch),
        state_epoch=current.state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        create_timestamp_ms=now_ms,
        write_timestamp_ms=now_ms,
        state_batches=combine(current.state_batches, state_batches, start_offset, rules=rules),
        delivery_complete_count=delivery_complete_count,
    )


def resolved_start(current: SharePartitionState, start_offset: int, rules: RuleSet) -> int:
    """The start offset that a write's record carries: 4.3 the request's own, 4.4 never one below the state's."""
    return max(start_offset, current.start_offset) if rules.keeps_start_offset else start_offset


def resolved_count(
    current: SharePartitionState, start_offset: int, delivery_complete_count: int, rules: RuleSet
) -> int:
    """The delivery complete count that a write's record carries: 4.3 the request's own.

    4.4: the count belongs to its start offset. The request's if its start offset is ahead, the state's if that is
    ahead, the larger of both if neither is.
    """
    if not rules.keeps_start_offset or start_offset > current.start_offset:
        return delivery_complete_count
    if start_offset < current.start_offset:
        return current.delivery_complete_count
    return max(delivery_complete_count, current.delivery_complete_count)


def _same_snapshot(current: SharePartitionState, now_ms: int) -> ShareSnapshot:
    return ShareSnapshot(
        snapshot_epoch=_next(current.snapshot_epoch),
        state_epoch=current.state_epoch,
        leader_epoch=current.leader_epoch,
        start_offset=current.start_offset,
        create_timestamp_ms=current.create_timestamp_ms,
        write_timestamp_ms=now_ms,
        state_batches=current.state_batches,
        delivery_complete_count=current.delivery_complete_count,
    )


def _next(epoch: int) -> int:
    """The epoch after, wrapping around as Java's int does."""
    return -(1 << 31) if epoch == (1 << 31) - 1 else epoch + 1
