"""The reference form of rules 26, 27, 31 to 34, 37 and 39: start offsets and the offsets of state batches."""

from itertools import pairwise

from state_model.audit.rule import Difference, Field
from state_model.share_records import NOT_DETERMINED, StateBatch
from tests.audit.reference.steps import SnapshotKind, Step


def invalid_start_offset(step: Step) -> Difference | None:
    """A start offset below -1, or undetermined again, that no Initialize wrote."""
    value = step.written
    by_init = step.snapshot_kind in (SnapshotKind.INIT, SnapshotKind.EITHER)
    if value is None or not step.before.is_live or by_init:
        return None
    if value.start_offset < NOT_DETERMINED and step.before.start_offset >= NOT_DETERMINED:
        return Difference(Field.START_OFFSET, NOT_DETERMINED, value.start_offset)
    if step.snapshot is not None and value.start_offset == NOT_DETERMINED and step.before.start_offset >= 0:
        return Difference(Field.START_OFFSET, 0, value.start_offset)
    return None


def start_offset_goes_back(step: Step) -> Difference | None:
    """A write moves the start offset back."""
    value = step.written
    is_write = step.update is not None or step.snapshot_kind is SnapshotKind.WRITE
    if value is None or not step.before.is_live or not is_write:
        return None
    if not 0 <= value.start_offset < step.before.start_offset:
        return None
    return Difference(Field.START_OFFSET, step.before.start_offset, value.start_offset)


def batches_out_of_order(step: Step) -> Difference | None:
    """State batches of a record that overlap or don't ascend."""
    for left_batch, right_batch in pairwise(_batches(step)):
        if right_batch.first_offset <= left_batch.last_offset:
            return Difference(Field.FIRST_OFFSET, left_batch.last_offset, right_batch.first_offset)
    return None


def invalid_batch(step: Step) -> Difference | None:
    """A state batch that begins below 0 or ends before it begins."""
    for batch in _batches(step):
        if batch.first_offset < 0:
            return Difference(Field.FIRST_OFFSET, 0, batch.first_offset)
        if batch.last_offset < batch.first_offset:
            return Difference(Field.LAST_OFFSET, batch.first_offset, batch.last_offset)
    return None


def batch_below_start(step: Step) -> Difference | None:
    """A state batch below the start offset of its record."""
    value = step.written
    if value is None or value.start_offset < 0:
        return None
    for batch in value.state_batches:
        if batch.first_offset < value.start_offset:
            return Difference(Field.FIRST_OFFSET, value.start_offset, batch.first_offset)
    return None


def state_below_start(step: Step) -> Difference | None:
    """A delivery state below the start offset after the record."""
    after = step.after
    if not after.is_live or after.start_offset < 0 or not after.content:
        return None
    first = after.content[0].first
    return Difference(Field.FIRST_OFFSET, after.start_offset, first) if first < after.start_offset else None


def batches_not_joined(step: Step) -> Difference | None:
    """Neighbouring state batches of equal state and count in a record that is no cold snapshot."""
    if step.snapshot_kind is SnapshotKind.COLD:
        return None
    for left_batch, right_batch in pairwise(_batches(step)):
        touches = left_batch.last_offset + 1 == right_batch.first_offset
        if touches and left_batch[2:4] == right_batch[2:4]:
            return Difference(Field.LAST_OFFSET, right_batch.last_offset, left_batch.last_offset)
    return None


def empty_update(step: Step) -> Difference | None:
    """An update without state batches that raises no leader epoch."""
    update = step.live_update
    if update is None or update.state_batches or update.leader_epoch > step.before.leader_epoch:
        return None
    return Difference(Field.STATE_BATCHES, 1, 0)


def _batches(step: Step) -> tuple[StateBatch, ...]:
    return step.written.state_batches if step.written is not None else ()
