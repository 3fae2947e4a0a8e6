"""The reference form of rules 18, 19, 21, 23 and 25: state epochs and leader epochs."""

from state_model.audit.rule import Difference, Field
from state_model.share_records import NOT_DETERMINED, ShareSnapshot, ShareUpdate
from tests.audit.reference import step_function
from tests.audit.reference.step_function import offset_state_code
from tests.audit.reference.steps import SnapshotKind, Step, has_init_count

NO_EPOCH = -1
"""The leader epoch of an update that leaves it unchanged."""


def state_epoch_goes_back(step: Step) -> Difference | None:
    """A snapshot's state epoch is smaller than the state's."""
    if step.snapshot is None or not step.before.is_live or step.snapshot.state_epoch >= step.before.state_epoch:
        return None
    return Difference(Field.STATE_EPOCH, step.before.state_epoch, step.snapshot.state_epoch)


def state_epoch_moves_without_init(step: Step) -> Difference | None:
    """A snapshot with another state epoch than the state's has not the shape that Initialize writes."""
    snapshot = step.snapshot
    if snapshot is None or not step.before.is_live or snapshot.state_epoch == step.before.state_epoch:
        return None
    if snapshot.create_timestamp_ms != snapshot.write_timestamp_ms:
        return Difference(Field.CREATE_TIMESTAMP_MS, snapshot.write_timestamp_ms, snapshot.create_timestamp_ms)
    return not_init_shape(snapshot)


def not_init_shape(snapshot: ShareSnapshot) -> Difference | None:
    """The first field by which a snapshot is not one of Initialize."""
    if snapshot.state_batches:
        return Difference(Field.STATE_BATCHES, 0, len(snapshot.state_batches))
    if snapshot.leader_epoch != 0:
        return Difference(Field.LEADER_EPOCH, 0, snapshot.leader_epoch)
    if not has_init_count(snapshot):
        expected = -1 if snapshot.start_offset == NOT_DETERMINED else 0
        return Difference(Field.DELIVERY_COMPLETE_COUNT, expected, snapshot.delivery_complete_count)
    return None


def leader_epoch_goes_back(step: Step) -> Difference | None:
    """An update's leader epoch is smaller than the state's."""
    update = step.live_update
    if update is None or update.leader_epoch == NO_EPOCH or update.leader_epoch >= step.before.leader_epoch:
        return None
    return Difference(Field.LEADER_EPOCH, step.before.leader_epoch, update.leader_epoch)


def new_leader_writes_data(step: Step) -> Difference | None:
    """A record that raises the leader epoch changes something else, too."""
    if not step.before.is_live:
        return None
    if step.update is not None:
        return _raising_update(step, step.update)
    if step.snapshot is not None and step.snapshot_kind is SnapshotKind.WRITE:
        return _raising_snapshot(step, step.snapshot)
    return None


def _raising_update(step: Step, update: ShareUpdate) -> Difference | None:
    before = step.before
    if update.leader_epoch <= before.leader_epoch:
        return None
    if update.state_batches:
        return Difference(Field.STATE_BATCHES, 0, len(update.state_batches))
    if update.delivery_complete_count != before.delivery_complete_count:
        return Difference(Field.DELIVERY_COMPLETE_COUNT, before.delivery_complete_count, update.delivery_complete_count)
    if update.start_offset != before.start_offset:
        return Difference(Field.START_OFFSET, before.start_offset, update.start_offset)
    return None


def _raising_snapshot(step: Step, snapshot: ShareSnapshot) -> Difference | None:
    before = step.before
    if snapshot.leader_epoch <= before.leader_epoch:
        return None
    if snapshot.delivery_complete_count != before.delivery_complete_count:
        return Difference(
            Field.DELIVERY_COMPLETE_COUNT, before.delivery_complete_count, snapshot.delivery_complete_count
        )
    if snapshot.start_offset != before.start_offset:
        return Difference(Field.START_OFFSET, before.start_offset, snapshot.start_offset)
    different = step_function.first_difference(before.content, step.content)
    if different is None:
        return None
    at, expected, actual = different
    return Difference(Field.OFFSET_STATE, offset_state_code(expected), offset_state_code(actual), at)


def negative_epoch(step: Step) -> Difference | None:
    """An epoch below 0."""
    value = step.written
    if value is None:
        return None
    if value.snapshot_epoch < 0:
        return Difference(Field.SNAPSHOT_EPOCH, 0, value.snapshot_epoch)
    if value.leader_epoch < 0:
        return Difference(Field.LEADER_EPOCH, 0, value.leader_epoch)
    if step.snapshot is not None and step.snapshot.state_epoch < 0:
        return Difference(Field.STATE_EPOCH, 0, step.snapshot.state_epoch)
    return None
