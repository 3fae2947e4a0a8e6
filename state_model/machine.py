"""The coordinator machine: the state of a share coordinator after each record of one state partition.

`apply(state, log_offset, timestamp_ms, record) -> state` is total and deterministic, reads no clock and never changes
its input (share-group-state-log §4, §7 and §8; ShareCoordinatorShard.replay, ShareCoordinatorOffsetsManager). It
follows the log without judging it: epochs and start offsets may go back, counts are overwritten. The audit judges.
"""

from collections.abc import Iterable
from typing import NamedTuple

from state_model.batches import Batches, InOrder, combine, has_unknown_state
from state_model.key_map import KeyMap
from state_model.rule_sets import KAFKA_4_4, RuleSet
from state_model.share_records import (
    NOT_DETERMINED,
    UNKNOWN_COUNT,
    AnyRecord,
    SharePartitionKey,
    ShareSnapshot,
    ShareUpdate,
    Tombstone,
    UnknownTypeRecord,
    UnknownVersionValue,
    share_partition_of,
)
from state_model.tuples import maker

NO_EPOCH = -1
SNAPSHOT_UPDATE_LIMIT = 500
"""Default of share.coordinator.snapshot.update.records.per.snapshot; its range is 0 to 500."""


class SharePartitionState(NamedTuple):
    """The soft state of one share partition.

    The first eight fields are the coordinator's state; epoch maxima and update count stand beside it, for fencing and
    counting. Maxima may exceed the epochs of the state: an Initialize stores leader epoch 0 and
    leaves the maximum. Where the log was pruned, a running coordinator may have larger maxima than its log shows.

    Attributes:
        state_epoch_max: None while no snapshot has been seen.
        snapshot_log_offset: offset of the last snapshot; None for a provisional state (updates without a snapshot).
        life_log_offset: offset of the record that began this life: first seen, re-created or reset.
        log_offset: the last record applied, at `timestamp_ms`.
        skipped_log_offset: the last record since the snapshot that could not be applied (an unknown value version).
        unknown_state_log_offset: the first record since the snapshot, itself included, with a delivery state or of a
            type of a later Kafka. How such a state is merged is unknown; here it follows the maximum rule.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp_ms: int
    write_timestamp_ms: int
    state_batches: Batches
    leader_epoch_max: int
    state_epoch_max: int | None
    update_count: int
    snapshot_log_offset: int | None
    life_log_offset: int
    log_offset: int
    timestamp_ms: int
    skipped_log_offset: int | None = None
    unknown_state_log_offset: int | None = None

    @property
    def is_provisional(self) -> bool:
        """Whether it comes from updates alone, because their snapshot was not replayed."""
        return self.snapshot_log_offset is None


class PartitionState(NamedTuple):
    """All share partitions of one state partition.

    Attributes:
        share_partitions: the live ones; maps of equal content are equal, in any order of insertion.
        update_limit: updates after which a write becomes a snapshot; only from there on a snapshot resets the counter.
        rules: how batches are combined; the lists differ, the state of each offset does not.
        log_offset: the last record applied, of any kind; None before the first.
        last_tombstone: offset of the last snapshot-type record if it was a tombstone, else None.
        skipped_types: records of unknown type so far.
    """

    share_partitions: KeyMap[SharePartitionKey, SharePartitionState] = KeyMap()
    update_limit: int = SNAPSHOT_UPDATE_LIMIT
    rules: RuleSet = KAFKA_4_4
    log_offset: int | None = None
    last_tombstone: int | None = None
    skipped_types: int = 0

    @property
    def redundant_offset(self) -> int | None:
        """The prune point: no share partition needs a record below it; None when no record is redundant.

        The minimum over the last snapshot-type record of each share partition. A tombstone counts once: until the next
        record of that type. One that never had a snapshot in this log does not count.
        """
        needed = [
            state.snapshot_log_offset
            for state in self.share_partitions.values()
            if state.snapshot_log_offset is not None
        ]
        if self.last_tombstone is not None:
            needed.append(self.last_tombstone)
        redundant = min(needed, default=0)
        return redundant if redundant > 0 else None


_share_partition, _partition = maker(SharePartitionState), maker(PartitionState)


def apply(state: PartitionState, log_offset: int, timestamp_ms: int, record: AnyRecord) -> PartitionState:
    """The state after one more record of the state partition; records come in the order of their offsets.

    A record that the broker cannot use changes no share partition. The broker skips an unknown record type with a
    warning, and fails to load the state partition at an unknown value version; here its offset is recorded instead.
    A later Kafka may change a state by an unknown record type: that of the share partition in its key, or any state.
    """
    if isinstance(record, UnknownTypeRecord):
        return _after_unknown_type(state, log_offset, timestamp_ms, record)
    current = state.share_partitions.get(record.key)
    match record.value:
        case ShareUpdate() as update:
            if current is None:
                after = after_orphan(update, log_offset, timestamp_ms)
            else:
                after = after_update(current, update, log_offset, timestamp_ms, state.rules)
            return _with(state, record.key, after, log_offset, state.last_tombstone)
        case ShareSnapshot() as snapshot:
            after = after_snapshot(current, snapshot, log_offset, timestamp_ms, state.update_limit)
            return _with(state, record.key, after, log_offset, None)
        case Tombstone():
            share_partitions = state.share_partitions.remove(record.key)
            return state._replace(share_partitions=share_partitions, log_offset=log_offset, last_tombstone=log_offset)
        case UnknownVersionValue():
            if current is None:
                return state._replace(log_offset=log_offset)
            after = current._replace(skipped_log_offset=log_offset)
            return _with(state, record.key, after, log_offset, state.last_tombstone)


def replay(state: PartitionState, records: Iterable[tuple[int, int, AnyRecord]]) -> PartitionState:
    """The state after all (log offset, timestamp in ms, record), in order."""
    for log_offset, timestamp_ms, record in records:
        state = apply(state, log_offset, timestamp_ms, record)
    return state


def after_snapshot(
    current: SharePartitionState | None, snapshot: ShareSnapshot, log_offset: int, timestamp_ms: int, update_limit: int
) -> SharePartitionState:
    """The state of the snapshot, batches unchanged; epoch maxima never fall; a counter below the limit is kept."""
    leader_epoch_max, state_epoch_max = snapshot.leader_epoch, snapshot.state_epoch
    update_count, life_log_offset = 0, log_offset
    if current is not None:
        leader_epoch_max = max(leader_epoch_max, current.leader_epoch_max)
        if current.state_epoch_max is not None:
            state_epoch_max = max(state_epoch_max, current.state_epoch_max)
        if current.update_count < update_limit:
            update_count = current.update_count
        if not begins_new_life(current, snapshot):
            life_log_offset = current.life_log_offset
    return SharePartitionState(
        snapshot_epoch=snapshot.snapshot_epoch,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        delivery_complete_count=snapshot.delivery_complete_count,
        create_timestamp_ms=snapshot.create_timestamp_ms,
        write_timestamp_ms=snapshot.write_timestamp_ms,
        state_batches=_without_tags(snapshot.state_batches),
        leader_epoch_max=leader_epoch_max,
        state_epoch_max=state_epoch_max,
        update_count=update_count,
        snapshot_log_offset=log_offset,
        life_log_offset=life_log_offset,
        log_offset=log_offset,
        timestamp_ms=timestamp_ms,
        unknown_state_log_offset=log_offset if has_unknown_state(snapshot.state_batches) else None,
    )


def after_update(
    current: SharePartitionState, update: ShareUpdate, log_offset: int, timestamp_ms: int, rules: RuleSet
) -> SharePartitionState:
    """The state after an update: start offset and leader epoch unless -1, delivery complete count, combined batches.

    The update's snapshot epoch is not compared with the state's.
    """
    start_offset = current.start_offset if update.start_offset == NOT_DETERMINED else update.start_offset
    leader_epoch = update.leader_epoch
    unknown_at = current.unknown_state_log_offset
    if unknown_at is None and has_unknown_state(update.state_batches):
        unknown_at = log_offset
    # As the fields are listed: a quarter of the time of names, once for every record of a log.
    return _share_partition(
        (
            current.snapshot_epoch,
            current.state_epoch,
            current.leader_epoch if leader_epoch == NO_EPOCH else leader_epoch,
            start_offset,
            update.delivery_complete_count,
            current.create_timestamp_ms,
            current.write_timestamp_ms,
            combine(current.state_batches, _without_tags(update.state_batches), start_offset, rules=rules),
            current.leader_epoch_max if current.leader_epoch_max > leader_epoch else leader_epoch,
            current.state_epoch_max,
            current.update_count + 1,
            current.snapshot_log_offset,
            current.life_log_offset,
            log_offset,
            timestamp_ms,
            current.skipped_log_offset,
            unknown_at,
        )
    )


def after_orphan(update: ShareUpdate, log_offset: int, timestamp_ms: int) -> SharePartitionState:
    """A provisional state from an update alone: its batches unchanged, state epoch and timestamps 0."""
    return SharePartitionState(
        snapshot_epoch=update.snapshot_epoch,
        state_epoch=0,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        create_timestamp_ms=0,
        write_timestamp_ms=0,
        state_batches=_without_tags(update.state_batches),
        leader_epoch_max=update.leader_epoch,
        state_epoch_max=None,
        update_count=1,
        snapshot_log_offset=None,
        life_log_offset=log_offset,
        log_offset=log_offset,
        timestamp_ms=timestamp_ms,
        unknown_state_log_offset=log_offset if has_unknown_state(update.state_batches) else None,
    )


def begins_new_life(current: SharePartitionState, snapshot: ShareSnapshot) -> bool:
    """Whether a snapshot over a live state can only be an Initialize: a re-creation or a reset (audit-invariants P3).

    No field records that. Certain are: snapshot epoch 0, another state epoch, a smaller leader epoch, a start offset
    that is undetermined again; and the shape that Initialize writes when its start offset goes back. A reset that
    repeats the state epoch and moves forward over an empty state looks like a write.
    """
    if snapshot.snapshot_epoch == 0:
        return True
    if current.is_provisional:
        return False
    if snapshot.state_epoch != current.state_epoch or snapshot.leader_epoch < current.leader_epoch:
        return True
    undetermined = snapshot.start_offset == NOT_DETERMINED
    if undetermined and current.start_offset >= 0:
        return True
    shaped_like_initialize = (
        not snapshot.state_batches
        and snapshot.leader_epoch == 0
        and snapshot.delivery_complete_count == (UNKNOWN_COUNT if undetermined else 0)
    )
    return shaped_like_initialize and snapshot.start_offset < current.start_offset


def _after_unknown_type(
    state: PartitionState, log_offset: int, timestamp_ms: int, record: UnknownTypeRecord
) -> PartitionState:
    key = share_partition_of(record)
    share_partitions = state.share_partitions
    for touched in [key] if key is not None else list(share_partitions):
        current = share_partitions.get(touched)
        if current is None:
            continue
        if current.unknown_state_log_offset is None:
            current = current._replace(unknown_state_log_offset=log_offset)
        if key is not None:
            current = current._replace(log_offset=log_offset, timestamp_ms=timestamp_ms)
        share_partitions = share_partitions.set(touched, current)
    return state._replace(
        share_partitions=share_partitions, log_offset=log_offset, skipped_types=state.skipped_types + 1
    )


def _without_tags(batches: Batches) -> Batches:
    """The batches without their tagged fields, which the coordinator's state drops."""
    if isinstance(batches, InOrder):
        return batches
    if not any([batch.unknown_tags for batch in batches]):  # noqa: C419 - a list is faster here
        return batches
    return tuple(batch._replace(unknown_tags=()) for batch in batches)


def _with(
    state: PartitionState, key: SharePartitionKey, after: SharePartitionState, log_offset: int, tombstone: int | None
) -> PartitionState:
    share_partitions = state.share_partitions.set(key, after)
    return _partition((share_partitions, state.update_limit, state.rules, log_offset, tombstone, state.skipped_types))
