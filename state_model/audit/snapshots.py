"""The content of snapshots: rules 51 to 59."""

from state_model.audit.impact import Affected, Impact
from state_model.audit.rule import LEGAL, REPORT_BUG, Difference, Field, Need, Rule
from state_model.audit.severities import ERROR, INFO


def cold_snapshot_too_early(before_ms: int, write_ms: int, interval_ms: int) -> Difference | None:
    """A cold snapshot sooner after the snapshot before it than the smallest configured interval."""
    earliest = before_ms + interval_ms
    return Difference(Field.WRITE_TIMESTAMP_MS, earliest, write_ms) if write_ms < earliest else None


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
        compares_state=False,
    ),
)
