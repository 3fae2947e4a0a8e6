"""The reference form of rules 51, 52, 54 to 56, 58 and 59: the content of snapshots."""

from state_model.audit.rule import Difference, Field
from tests.audit.reference import step_function
from tests.audit.reference.epochs import not_init_shape
from tests.audit.reference.step_function import offset_state_code
from tests.audit.reference.steps import SnapshotKind, Step, has_write_shape

CLOCK_MS = 1000
"""How far a snapshot's write timestamp may lie from the record's before it is a step of a clock."""
OPERATION_MS = 5
"""Cold snapshots of one operation have write timestamps that close to each other."""


def cold_snapshot_changes_state(step: Step) -> Difference | None:
    """A cold snapshot differs from the state."""
    snapshot, before = step.snapshot, step.before
    if snapshot is None or step.snapshot_kind is not SnapshotKind.COLD or not before.is_live:
        return None
    fields = (
        (Field.START_OFFSET, before.start_offset, snapshot.start_offset),
        (Field.DELIVERY_COMPLETE_COUNT, before.delivery_complete_count, snapshot.delivery_complete_count),
        (Field.LEADER_EPOCH, before.leader_epoch, snapshot.leader_epoch),
        (Field.STATE_EPOCH, before.state_epoch, snapshot.state_epoch),
        (Field.CREATE_TIMESTAMP_MS, before.create_timestamp_ms, snapshot.create_timestamp_ms),
    )
    for field, expected, actual in fields:
        if expected != actual:
            return Difference(field, expected, actual)
    different = step_function.first_difference(before.content, step.content)
    if different is None:
        return None
    return Difference(
        Field.OFFSET_STATE, offset_state_code(different[1]), offset_state_code(different[2]), different[0]
    )


def write_snapshot_loses_state(step: Step) -> Difference | None:
    """A write snapshot has a lower state than before at an offset from its start offset on, or none."""
    snapshot = step.snapshot
    if snapshot is None or step.snapshot_kind is not SnapshotKind.WRITE or not step.before.is_live:
        return None
    content = step.before.content
    if snapshot.start_offset != -1:
        content = step_function.cut_below(content, snapshot.start_offset)
    lower = step_function.first_lower(content, step.content)
    if lower is None:
        return None
    return Difference(Field.OFFSET_STATE, offset_state_code(lower[1]), offset_state_code(lower[2]), lower[0])


def write_snapshot_changes_epochs(step: Step) -> Difference | None:
    """A snapshot that only a write can have written has another state epoch, or a smaller leader epoch."""
    snapshot, before = step.snapshot, step.before
    if snapshot is None or not before.is_live or step.snapshot_kind is SnapshotKind.COLD:
        return None
    if not has_write_shape(snapshot):
        return None
    if snapshot.state_epoch != before.state_epoch:
        return Difference(Field.STATE_EPOCH, before.state_epoch, snapshot.state_epoch)
    if snapshot.leader_epoch < before.leader_epoch:
        return Difference(Field.LEADER_EPOCH, before.leader_epoch, snapshot.leader_epoch)
    return None


def init_with_state(step: Step) -> Difference | None:
    """A snapshot that only Initialize can have written is not empty."""
    if step.snapshot is None or step.snapshot_kind is not SnapshotKind.INIT:
        return None
    return not_init_shape(step.snapshot)


def created_after_written(step: Step) -> Difference | None:
    """The create timestamp is larger than the write timestamp."""
    snapshot = step.snapshot
    if snapshot is None or snapshot.create_timestamp_ms <= snapshot.write_timestamp_ms:
        return None
    return Difference(Field.CREATE_TIMESTAMP_MS, snapshot.write_timestamp_ms, snapshot.create_timestamp_ms)


def written_at_other_time(step: Step) -> Difference | None:
    """The write timestamp of a snapshot lies far from the record's timestamp."""
    snapshot = step.snapshot
    if snapshot is None or abs(snapshot.write_timestamp_ms - step.timestamp_ms) <= CLOCK_MS:
        return None
    return Difference(Field.WRITE_TIMESTAMP_MS, step.timestamp_ms, snapshot.write_timestamp_ms)


def cold_snapshots_apart(step: Step) -> Difference | None:
    """A cold snapshot of the same operation as the one before it does not follow it in the log."""
    snapshot = step.snapshot
    if snapshot is None or step.snapshot_kind is not SnapshotKind.COLD or step.last_cold is None:
        return None
    log_offset, write_ms = step.last_cold
    if abs(snapshot.write_timestamp_ms - write_ms) > OPERATION_MS or step.log_offset == log_offset + 1:
        return None
    return Difference(Field.LOG_OFFSET, log_offset + 1, step.log_offset)
