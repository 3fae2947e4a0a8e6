"""Sequencing of snapshots, updates and tombstones: rules 8 to 17."""

from state_model.audit.impact import Impact
from state_model.audit.rule import REPORT_BUG, Difference, Field, Need, Rule
from state_model.audit.severities import ERROR, INFO, WARNING


def more_updates_than_configured(updates: int, max_updates: int) -> Difference | None:
    """More updates in a row than the largest configured number."""
    return Difference(Field.UPDATES, max_updates, updates) if updates > max_updates else None


def update_over_limit(counter: int, limit: int) -> Difference | None:
    """An update although the coordinator's counter has reached the limit."""
    return Difference(Field.UPDATES, limit, counter) if counter >= limit else None


def early_write_snapshot(updates: int, least: int) -> Difference | None:
    """A write became a snapshot after fewer updates than the smallest configured number."""
    return Difference(Field.UPDATES, least, updates) if updates < least else None


RULES = (
    Rule(
        number=8,
        code="life_begins_oddly",
        title="A share partition begins with a snapshot of epoch 0, without batches, with leader epoch 0",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="Only Initialize creates state, and it writes such a snapshot. Tested where the log begins at offset 0.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard.initialize",
        compares_state=False,
    ),
    Rule(
        number=9,
        code="life_after_deletion",
        title="After a tombstone a share partition begins again with a snapshot of epoch 0",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="A deletion drops the state, so the next Initialize counts from 0.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard.delete, ShareCoordinatorShard.initialize",
    ),
    Rule(
        number=10,
        code="snapshot_epoch_skips",
        title="Each snapshot's epoch is that of the one before it plus 1",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="The coordinator counts the snapshots of a share partition. A skipped one is a lost or repeated snapshot.",
        remedy="Look for a lost write or an unclean leader election of the state partition around the two snapshots.",
        source="share-group-state-log §3, ShareCoordinatorShard",
    ),
    Rule(
        number=11,
        code="update_of_other_snapshot",
        title="An update has the epoch of the newest snapshot",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="The coordinator writes the current epoch into each update. Another one shows that a snapshot is missing.",
        remedy="Look for a lost write or an unclean leader election of the state partition before the update.",
        source="share-group-state-log §5, ShareCoordinatorShard.generateShareStateRecord",
    ),
    Rule(
        number=12,
        code="too_many_updates",
        title="At most 500 updates stand between two snapshots",
        severity=ERROR,
        relation="<=",
        impact=Impact.DELIVERED_AGAIN,
        why="The configured number of updates after which a snapshot is written is 500 at most.",
        remedy="Look for a missing snapshot among the updates.",
        source="share-group-state-log §6, ShareCoordinatorConfig",
    ),
    Rule(
        number=12,
        part=1,
        code="more_updates_than_configured",
        title="No more updates than configured stand between two snapshots",
        severity=WARNING,
        relation="<=",
        impact=Impact.NONE,
        why="The coordinator writes a snapshot once its counter reaches the limit; the limit may have been larger. "
        "Tested from the time on at which the brokers' file was modified last.",
        remedy="Compare with the history of share.coordinator.snapshot.update.records.per.snapshot.",
        source="share-group-state-log §6",
        needs=(Need.COORDINATOR_CONFIG,),
    ),
    Rule(
        number=13,
        code="update_over_limit",
        title="An update is written only while the coordinator's counter is below the limit",
        severity=ERROR,
        relation="<",
        impact=Impact.NONE,
        why="At the limit a write becomes a snapshot. Tested with the log from offset 0 and one constant limit, for "
        "share partitions that were created since the brokers' file was modified last.",
        remedy="Check that the brokers were started with this file; if so, report it to the Kafka project.",
        source="share-group-state-log §6, ShareCoordinatorShard",
        needs=(Need.COORDINATOR_CONFIG,),
    ),
    Rule(
        number=14,
        code="early_write_snapshot",
        title="A write snapshot may come after fewer updates than the limit",
        severity=INFO,
        relation=">=",
        impact=Impact.NONE,
        why="The counter outlives cold snapshots and resets.",
        remedy="Nothing to do.",
        source="share-group-state-log §6",
        needs=(Need.COORDINATOR_CONFIG,),
    ),
    Rule(
        number=15,
        code="deleted_twice",
        title="No tombstone follows a tombstone",
        severity=ERROR,
        impact=Impact.NONE,
        why="The coordinator writes a tombstone only for state that it has.",
        remedy="Look for a missing snapshot between the two tombstones.",
        source="share-group-state-log §5, ShareCoordinatorShard.delete, ShareCoordinatorShard.maybeCleanupShareState",
    ),
    Rule(
        number=16,
        code="update_after_deletion",
        title="No update follows a tombstone",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="A write to absent state is an invalid request; only Initialize creates state.",
        remedy="Look for a missing snapshot between tombstone and update.",
        source="share-group-state-log §5, ShareCoordinatorShard",
    ),
    Rule(
        number=17,
        code="needed_snapshot_pruned",
        title="The newest snapshot of each live share partition lies at or above the log start offset",
        severity=ERROR,
        relation=">=",
        impact=Impact.STUCK,
        why="The coordinator deletes only records that no share partition needs. A state below the log start is lost "
        "at the next load: it then answers INVALID_REQUEST.",
        remedy="Look for kafka-delete-records runs and for log.retention.bytes on __share_group_state.",
        source="share-group-state-log §7, ShareCoordinatorOffsetsManager",
    ),
)
