"""The log of a share partition as steps: the state before a record, the record, the state after it.

Preparation (audit-invariants §0): only committed records; updates without an earlier snapshot are orphans, without a
state to compare with; a snapshot's kind (cold, init, write) is inferred, as no field has it.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from state_model.share_records import (
    NOT_DETERMINED,
    UNKNOWN_COUNT,
    DeliveryState,
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    UnknownVersionValue,
)
from tests.audit.reference import step_function
from tests.audit.reference.step_function import NOWHERE, StepFunction

ARCHIVING = 3


class Standing(IntEnum):
    """Whether the state of a share partition before a record is known, and how it came to that."""

    UNKNOWN = 0
    """Records may be missing, or have a delivery state of a later Kafka; its state is unknown up to a snapshot."""
    NEW = 1
    """The log is there from offset 0, and has no record of it."""
    DELETED = 2
    """Its last record is a tombstone."""
    LIVE = 3
    """All records since a snapshot are there."""
    ORPHAN = 4
    """Only updates are there."""


class SnapshotKind(IntEnum):
    """How a snapshot came about (P3)."""

    NONE = 0
    """The record is no snapshot."""
    COLD = 1
    """The job that writes the snapshots of share partitions at rest again."""
    INIT = 2
    """Initialize: a creation or a reset."""
    WRITE = 3
    """A Write or a Read in place of an update."""
    EITHER = 4
    """INIT or WRITE."""


class KeyState(NamedTuple):
    """The state of a share partition; the fields behind `standing` count only while it is LIVE.

    `updates`: those in a row since the snapshot, or at least so many. `archiving_ms`: the time of the newest record
    that had a batch in state ARCHIVING.
    """

    standing: Standing
    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = UNKNOWN_COUNT
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0
    content: StepFunction = NOWHERE
    updates: int = 0
    snapshot_log_offset: int = -1
    log_offset: int = -1
    archiving_ms: int = -1

    @property
    def is_live(self) -> bool:
        """Whether the state is known."""
        return self.standing is Standing.LIVE


class Step(NamedTuple):
    """A record of a share partition with the states around it.

    `last_cold`: (log offset, write timestamp) of the cold snapshot before it in the state partition, of any share
    partition. `delivery_count_limit`: of the group; None: unknown.
    """

    log_offset: int
    timestamp_ms: int
    record: ShareRecord
    before: KeyState
    after: KeyState
    snapshot_kind: SnapshotKind
    last_cold: tuple[int, int] | None = None
    delivery_count_limit: int | None = None

    @property
    def snapshot(self) -> ShareSnapshot | None:
        """The record as a snapshot; None: it is none."""
        return self.record.value if isinstance(self.record.value, ShareSnapshot) else None

    @property
    def update(self) -> ShareUpdate | None:
        """The record as an update; None: it is none."""
        return self.record.value if isinstance(self.record.value, ShareUpdate) else None

    @property
    def written(self) -> ShareSnapshot | ShareUpdate | None:
        """The value of a snapshot or an update."""
        value = self.record.value
        return value if isinstance(value, (ShareSnapshot, ShareUpdate)) else None

    @property
    def content(self) -> StepFunction:
        """The step function of the record's own state batches."""
        return step_function.of_batches(self.written.state_batches) if self.written is not None else NOWHERE

    @property
    def live_update(self) -> ShareUpdate | None:
        """The record as an update of a known state."""
        return self.update if self.before.is_live else None


LogEntry = tuple[int, int, ShareRecord]
"""Log offset, record timestamp in ms, record."""
Loss = tuple[int, SharePartitionKey | None]
"""Log offset at which records are missing, of one share partition or (None) of all."""


def steps(
    entries: Iterable[LogEntry],
    *,
    is_from_zero: bool = True,
    losses: Iterable[Loss] = (),
    limits: Mapping[str, int] | None = None,
) -> Iterator[Step]:
    """Every committed record of a state partition with a known value version, in log order, as a step.

    `is_from_zero`: the log is there from offset 0 on. `limits`: delivery count limits by group.
    """
    states: dict[SharePartitionKey, KeyState] = {}
    first = Standing.NEW if is_from_zero else Standing.UNKNOWN
    pending = sorted(losses, key=lambda loss: loss[0])
    last_cold: tuple[int, int] | None = None
    for log_offset, timestamp_ms, record in entries:
        while pending and pending[0][0] < log_offset:
            lost_key = pending.pop(0)[1]
            if lost_key is not None:
                states[lost_key] = KeyState(Standing.UNKNOWN)
            else:
                first, states = Standing.UNKNOWN, {}
        if isinstance(record.value, UnknownVersionValue):
            states[record.key] = KeyState(Standing.UNKNOWN)
            continue
        before = states.get(record.key, KeyState(first))
        kind = snapshot_kind(before, record.value)
        after = _after(before, record.value, log_offset, timestamp_ms)
        limit = (limits or {}).get(record.key.group_id)
        yield Step(log_offset, timestamp_ms, record, before, after, kind, last_cold, limit)
        if kind is SnapshotKind.COLD and isinstance(record.value, ShareSnapshot):
            last_cold = (log_offset, record.value.write_timestamp_ms)
        states[record.key] = after


def snapshot_kind(before: KeyState, value: object) -> SnapshotKind:
    """The kind of a snapshot by P3; a delivery complete count of -1 decides nothing (P5)."""
    if not isinstance(value, ShareSnapshot):
        return SnapshotKind.NONE
    if value.create_timestamp_ms != value.write_timestamp_ms:
        return SnapshotKind.COLD
    if before.standing in (Standing.NEW, Standing.DELETED):
        return SnapshotKind.INIT
    if before.is_live and _differs_as_init(before, value):
        return SnapshotKind.INIT
    return SnapshotKind.WRITE if has_write_shape(value) else SnapshotKind.EITHER


def _differs_as_init(before: KeyState, value: ShareSnapshot) -> bool:
    return (
        value.state_epoch != before.state_epoch
        or value.leader_epoch < before.leader_epoch
        or (value.start_offset == NOT_DETERMINED and before.start_offset >= 0)
    )


def has_write_shape(value: ShareSnapshot) -> bool:
    """Whether Initialize can't have written it: batches, a leader epoch, or a delivery complete count."""
    return bool(value.state_batches) or value.leader_epoch > 0 or not has_init_count(value)


def has_init_count(value: ShareSnapshot) -> bool:
    """Whether the delivery complete count is that of Initialize: -1 for an undetermined start offset, else 0.

    Brokers up to 4.1 have no such field: -1 is accepted for any start offset.
    """
    count = value.delivery_complete_count
    return count == UNKNOWN_COUNT or (count == 0 and value.start_offset != NOT_DETERMINED)


def _after(before: KeyState, value: object, log_offset: int, timestamp_ms: int) -> KeyState:
    if isinstance(value, ShareSnapshot | ShareUpdate) and any(map(_is_unknown, value.state_batches)):
        return KeyState(Standing.UNKNOWN, log_offset=log_offset)
    match value:
        case ShareSnapshot():
            return _after_snapshot(value, log_offset, timestamp_ms)
        case ShareUpdate():
            return _after_update(before, value, log_offset, timestamp_ms)
        case Tombstone():
            return KeyState(Standing.DELETED, log_offset=log_offset)
    raise TypeError(f"{value!r} is no value of a share partition's record")


def _after_snapshot(value: ShareSnapshot, log_offset: int, timestamp_ms: int) -> KeyState:
    return KeyState(
        Standing.LIVE,
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        create_timestamp_ms=value.create_timestamp_ms,
        write_timestamp_ms=value.write_timestamp_ms,
        content=step_function.of_batches(value.state_batches),
        snapshot_log_offset=log_offset,
        log_offset=log_offset,
        archiving_ms=timestamp_ms if _has_archiving(value) else -1,
    )


def _after_update(before: KeyState, value: ShareUpdate, log_offset: int, timestamp_ms: int) -> KeyState:
    if not before.is_live:
        updates = before.updates + 1 if before.standing is Standing.ORPHAN else 1
        return KeyState(Standing.ORPHAN, updates=updates, log_offset=log_offset)
    start = before.start_offset if value.start_offset == NOT_DETERMINED else value.start_offset
    content = step_function.maximum(before.content, step_function.of_batches(value.state_batches))
    return before._replace(
        leader_epoch=before.leader_epoch if value.leader_epoch == -1 else value.leader_epoch,
        start_offset=start,
        delivery_complete_count=value.delivery_complete_count,
        content=content if start == NOT_DETERMINED else step_function.cut_below(content, start),
        updates=before.updates + 1,
        log_offset=log_offset,
        archiving_ms=timestamp_ms if _has_archiving(value) else before.archiving_ms,
    )


def _is_unknown(batch: StateBatch) -> bool:
    """Whether its delivery state is one of a later Kafka, which may not follow the maximum rule."""
    return not 0 <= batch.delivery_state <= DeliveryState.ARCHIVED


def _has_archiving(value: ShareSnapshot | ShareUpdate) -> bool:
    return any(batch.delivery_state == ARCHIVING for batch in value.state_batches)
