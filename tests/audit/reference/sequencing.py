"""The reference form of rules 8 to 12, 15 and 16: the sequence of snapshots, updates and tombstones."""

from state_model.audit.rule import TOMBSTONE_TYPE, Difference, Field
from state_model.share_records import RecordType, ShareSnapshot
from tests.audit.reference.steps import Standing, Step

MOST_UPDATES = 500
"""Largest value of share.coordinator.snapshot.update.records.per.snapshot."""
LARGEST_EPOCH = (1 << 31) - 1
LOWEST_EPOCH = -(1 << 31)
"""What follows the largest epoch, as Java's int wraps."""
SNAPSHOT, UPDATE = int(RecordType.SHARE_SNAPSHOT), int(RecordType.SHARE_UPDATE)


def life_begins_oddly(step: Step) -> Difference | None:
    """The first record of a share partition in a log from offset 0 is not the snapshot of a creation."""
    if step.before.standing is not Standing.NEW:
        return None
    if step.snapshot is None:
        return Difference(Field.RECORD_TYPE, SNAPSHOT, TOMBSTONE_TYPE if step.update is None else UPDATE)
    return _not_creation(step.snapshot)


def life_after_deletion(step: Step) -> Difference | None:
    """A snapshot after a tombstone is not that of a creation."""
    if step.before.standing is not Standing.DELETED or step.snapshot is None:
        return None
    return _not_creation(step.snapshot)


def _not_creation(snapshot: ShareSnapshot) -> Difference | None:
    if snapshot.snapshot_epoch != 0:
        return Difference(Field.SNAPSHOT_EPOCH, 0, snapshot.snapshot_epoch)
    if snapshot.state_batches:
        return Difference(Field.STATE_BATCHES, 0, len(snapshot.state_batches))
    if snapshot.leader_epoch != 0:
        return Difference(Field.LEADER_EPOCH, 0, snapshot.leader_epoch)
    return None


def snapshot_epoch_skips(step: Step) -> Difference | None:
    """A snapshot's epoch does not follow that of the snapshot before it."""
    if step.snapshot is None or not step.before.is_live:
        return None
    last = step.before.snapshot_epoch
    expected = LOWEST_EPOCH if last == LARGEST_EPOCH else last + 1
    actual = step.snapshot.snapshot_epoch
    return Difference(Field.SNAPSHOT_EPOCH, expected, actual) if actual != expected else None


def update_of_other_snapshot(step: Step) -> Difference | None:
    """An update's snapshot epoch is not that of the newest snapshot."""
    update = step.live_update
    if update is None or update.snapshot_epoch == step.before.snapshot_epoch:
        return None
    return Difference(Field.SNAPSHOT_EPOCH, step.before.snapshot_epoch, update.snapshot_epoch)


def too_many_updates(step: Step) -> Difference | None:
    """More updates in a row than any configuration allows."""
    if step.update is None or step.after.updates <= MOST_UPDATES:
        return None
    return Difference(Field.UPDATES, MOST_UPDATES, step.after.updates)


def deleted_twice(step: Step) -> Difference | None:
    """A tombstone after a tombstone."""
    if step.before.standing is not Standing.DELETED or step.written is not None:
        return None
    return Difference(Field.RECORD_TYPE, SNAPSHOT, TOMBSTONE_TYPE)


def update_after_deletion(step: Step) -> Difference | None:
    """An update after a tombstone."""
    if step.before.standing is not Standing.DELETED or step.update is None:
        return None
    return Difference(Field.RECORD_TYPE, SNAPSHOT, UPDATE)
