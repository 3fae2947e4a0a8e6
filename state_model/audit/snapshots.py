"""The content of snapshots: rules 51 to 59."""

from state_model.audit import step_function
from state_model.audit.epochs import not_init_shape
from state_model.audit.impact import Affected, Impact
from state_model.audit.rule import LEGAL, REPORT_BUG, Difference, Field, Need, Rule, offset_state_code
from state_model.audit.severities import ERROR, INFO
from state_model.audit.steps import SnapshotKind, Step, has_write_shape

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


def cold_snapshot_too_early(before_ms: int, write_ms: int, interval_ms: int) -> Difference | None:
    """A cold snapshot sooner after the snapshot before it than the smallest configured interval."""
    earliest = before_ms + interval_ms
    return Difference(Field.WRITE_TIMESTAMP_MS, earliest, write_ms) if write_ms < earliest else None


def cold_snapshots_apart(step: Step) -> Difference | None:
    """A cold snapshot of the same operation as the one before it does not follow it in the log."""
    snapshot = step.snapshot
    if snapshot is None or step.snapshot_kind is not SnapshotKind.COLD or step.last_cold is None:
        return None
    log_offset, write_ms = step.last_cold
    if abs(snapshot.write_timestamp_ms - write_ms) > OPERATION_MS or step.log_offset == log_offset + 1:
        return None
    return Difference(Field.LOG_OFFSET, log_offset + 1, step.log_offset)


RULES = (
    Rule(
        number=51,
        code="cold_snapshot_changes_state",
        title="A cold snapshot repeats the state",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        affected=Affected.FROM,
        why="The job rewrites the state of share partitions at rest with a new snapshot epoch and write timestamp "
        "alone. A difference is an update that is missing from the log, or a coordinator whose memory is wrong.",
        remedy=REPORT_BUG,
        source="share-group-state-log §6, ShareCoordinatorShard.snapshotColdPartitions",
        check=cold_snapshot_changes_state,
    ),
    Rule(
        number=52,
        code="write_snapshot_loses_state",
        title="A write snapshot keeps every delivery state from its start offset on",
        severity=ERROR,
        relation=">=",
        impact=Impact.DELIVERED_AGAIN,
        affected=Affected.FROM,
        why="It has the state merged with the write that triggered it, and a merge never lowers a state.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard",
        check=write_snapshot_loses_state,
    ),
    Rule(
        number=53,
        code="write_snapshot_exceeds_updates",
        title="A write snapshot may have more than the updates before it",
        severity=None,
        exceptions=LEGAL,
        impact=Impact.NONE,
        why="The write that triggers a snapshot has no update of its own.",
        remedy="Nothing to do.",
        source="share-group-state-log §5",
    ),
    Rule(
        number=54,
        code="write_snapshot_changes_epochs",
        title="A write snapshot keeps the state epoch, and its leader epoch does not fall",
        severity=ERROR,
        relation=">=",
        impact=Impact.STUCK,
        why="A write stores the epochs of the state.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard",
        check=write_snapshot_changes_epochs,
    ),
    Rule(
        number=55,
        code="init_with_state",
        title="A snapshot of Initialize is empty",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="Initialize writes no batches, leader epoch 0 and a delivery complete count of 0, or -1 without a start "
        "offset.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard, ShareGroupOffset",
        check=init_with_state,
    ),
    Rule(
        number=56,
        code="created_after_written",
        title="A snapshot's create timestamp is not larger than its write timestamp",
        severity=ERROR,
        relation="<=",
        impact=Impact.NONE,
        why="A snapshot is created when it is written; a cold one keeps the time of its content.",
        remedy="Look for a clock that was set back on the coordinator's broker.",
        source="share-group-state-log §3, ShareCoordinatorShard",
        check=created_after_written,
        compares_state=False,
    ),
    Rule(
        number=57,
        code="cold_snapshot_too_early",
        title="A cold snapshot comes no earlier than the configured interval",
        severity=ERROR,
        relation=">=",
        impact=Impact.NONE,
        why="The job skips share partitions whose newest snapshot is younger. Tested from the time on at which the "
        "brokers' file was modified last; of several values the smallest counts.",
        remedy="Check that the brokers were started with this share.coordinator.cold.partition.snapshot.interval.ms; "
        "if so, report it to the Kafka project.",
        source="share-group-state-log §6, ShareCoordinatorShard",
        needs=(Need.COORDINATOR_CONFIG,),
    ),
    Rule(
        number=58,
        code="written_at_other_time",
        title="A snapshot's write timestamp is that of its record, within a second",
        severity=INFO,
        impact=Impact.NONE,
        why="Both are the broker's clock at the append; a step of the clock parts them.",
        remedy="Look at the broker's clock.",
        source="share-group-state-log §3, CoordinatorRuntime",
        check=written_at_other_time,
        compares_state=False,
    ),
    Rule(
        number=59,
        code="cold_snapshots_apart",
        title="Cold snapshots of one operation follow each other",
        severity=INFO,
        impact=Impact.NONE,
        why="The job appends all of a state partition in one operation.",
        remedy="Nothing to do.",
        source="share-group-state-log §6-7, ShareCoordinatorService",
        check=cold_snapshots_apart,
        compares_state=False,
    ),
)
