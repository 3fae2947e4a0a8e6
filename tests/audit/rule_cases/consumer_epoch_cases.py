"""Mutations of consumer groups by rule: epochs, states and assignments of members."""

from typing import Final

from tests.audit.consumer_changes import (
    LOG_A,
    ORDERS,
    PAYMENTS,
    at_ms,
    bounced,
    changed,
    eager,
    expressed,
    of_member,
    parts,
    scaled,
    static,
    with_interval,
)
from tests.audit.model_group_log import GroupLog
from tests.audit.rule_cases.cases import Table

EPOCHS: Final[Table[GroupLog]] = {
    "consumer_first_group_epoch": (
        {
            "3": lambda: scaled().cut(4).change(1, epoch=3).change(3, assignment_epoch=3),
            "40": lambda: scaled().cut(2).change(1, epoch=40),
            "of a group made again": lambda: scaled().change(59, epoch=5).change(61, assignment_epoch=5),
        },
        {
            "1, as before Kafka 4.3": lambda: scaled().cut(2).change(1, epoch=1),
            "that of a classic group": lambda: eager().of(
                entry._replace(value={**(entry.value or {}), "epoch": 40}) if entry.record_type == 3 else entry
                for entry in eager().entries[:3]),
            "compacted": lambda: scaled().cut(7).compacted(1),
        },
    ),
    "consumer_group_epoch_skips": (
        {
            "a record lost": lambda: scaled().drop(6),
            "a record twice": lambda: scaled().repeat(26),
            "the epoch before": lambda: scaled().cut(33).change(32, epoch=5),
        },
        {
            "the last record lost": lambda: scaled().drop(66),
            "a group made again": scaled,
            "a record compacted": lambda: scaled().compacted(1, 6),
        },
    ),
    "consumer_assignment_epoch_order": (
        {
            "twice": lambda: scaled().repeat(14),
            "the epoch before": lambda: scaled().cut(30).change(29, assignment_epoch=4),
            "of a static group": lambda: bounced().change(55, assignment_epoch=3),
        },
        {
            "up to it": lambda: scaled().cut(15),
            "a group made again": scaled,
            "rises by 2": lambda: bounced().cut(15),
        },
    ),
    "consumer_assignment_epoch_stale": (
        {
            "one before": lambda: scaled().cut(15).change(14, assignment_epoch=3),
            "one after": lambda: scaled().cut(36).change(35, assignment_epoch=7),
            "before the group epoch": lambda: bounced().change(14, assignment_epoch=5),
        },
        {
            "in the operation": lambda: scaled().cut(5),
            "later": lambda: scaled().cut(15),
            "without a group epoch, which is compacted": lambda: scaled().cut(15).compacted(1, 6, 9),
        },
    ),
    "consumer_assignment_time": (
        {
            "before the last one": lambda: scaled().change(29, assignment_timestamp=at_ms(scaled(), 0)),
            "below zero": lambda: scaled().change(3, assignment_timestamp=-5),
            "sooner than configured": lambda: with_interval(
                scaled().change(14, assignment_timestamp=at_ms(scaled(), 0) + 500), 1000),
        },
        {
            "none, as before Kafka 4.3": lambda: scaled().change(29, assignment_timestamp=0),
            "that of the last one": lambda: scaled().cut(15).change(14, assignment_timestamp=at_ms(scaled(), 0)),
            "the configured interval": lambda: with_interval(scaled(), 1000),
        },
    ),
    "consumer_member_epoch_ahead": (
        {
            "of a stable member": lambda: scaled().cut(31).change(30, member_epoch=6),
            "of one that revokes": lambda: scaled().cut(18).change(17, member_epoch=5),
            "of a new member": lambda: scaled().cut(8).change(7, member_epoch=3),
        },
        {
            "one that revokes in the epoch before": lambda: scaled().cut(18),
            "before the first target": lambda: expressed().cut(2),
            "without a target, which is compacted": lambda: scaled().cut(8).compacted(3),
        },
    ),
    "consumer_member_epoch_behind": (
        {
            "stable": lambda: scaled().cut(31).change(30, member_epoch=4),
            "waiting": lambda: scaled().cut(16).change(15, member_epoch=2),
            "of a new member": lambda: scaled().cut(8).change(7, member_epoch=1),
        },
        {
            "one that revokes": lambda: scaled().cut(18),
            "left for a while": lambda: bounced().cut(22),
            "comes back": lambda: bounced().cut(28),
        },
    ),
    "consumer_previous_member_epoch": (
        {
            "a record lost": lambda: scaled().drop(15),
            "of a new member": lambda: scaled().cut(5).change(4, previous_member_epoch=1),
            "of a member that leaves for a while": lambda: bounced().cut(22).change(21, previous_member_epoch=4),
        },
        {
            "left for a while": lambda: bounced().cut(30),
            "of a classic group": lambda: eager().cut(12),
            "compacted": lambda: scaled().cut(18).compacted(4),
        },
    ),
    "consumer_member_epoch_falls": (
        {
            "one that revokes": lambda: scaled().cut(43).change(42, member_epoch=5),
            "to zero": lambda: bounced().cut(30).change(29, member_epoch=0),
            "to one": lambda: scaled().cut(18).change(17, member_epoch=1),
        },
        {
            "stays": lambda: scaled().cut(18),
            "left for a while": lambda: bounced().cut(30),
            "a group made again": scaled,
        },
    ),
    "consumer_static_epoch": (
        {
            "left for a while": lambda: bounced().cut(22).put(0, changed(bounced(), 0, instance_id=None)),
            "comes back": lambda: scaled().cut(5).change(4, member_epoch=0, previous_member_epoch=0),
            "another one": lambda: bounced().cut(22).change(21, member_epoch=-3),
        },
        {
            "left for a while": lambda: bounced().cut(22),
            "comes back": lambda: bounced().cut(28),
            "of both protocols": static,
        },
    ),
}  # fmt: skip
ASSIGNMENTS: Final[Table[GroupLog]] = {
    "consumer_member_state": (
        {str(state): lambda state=state: scaled().cut(5).change(4, state=state) for state in (3, 127, -1)},
        {
            "stable": lambda: scaled().cut(5),
            "revokes": lambda: scaled().cut(18),
            "waits": lambda: scaled().cut(16),
        },
    ),
    "consumer_partitions_to_revoke": (
        {
            "stable": lambda: scaled().cut(18).change(17, state=0, member_epoch=4),
            "none": lambda: scaled().cut(18).change(17, partitions_pending_revocation=()),
            "waits": lambda: scaled().cut(18).change(17, state=2, member_epoch=4),
        },
        {
            "revokes": lambda: scaled().cut(18),
            "left for a while in that state": lambda: bounced().cut(22).change(21, state=1),
            "has revoked": lambda: scaled().cut(21),
        },
    ),
    "consumer_assigned_and_revoked": (
        {
            "one": lambda: scaled().cut(18).change(
                17, partitions_pending_revocation=parts((ORDERS, [3, 4, 5]), epoch=2)),
            "all": lambda: scaled().cut(18).change(
                17, partitions_pending_revocation=parts((ORDERS, range(4)), epoch=2)),
            "left for a while": lambda: bounced().cut(22).change(
                21, partitions_pending_revocation=parts((LOG_A, [0]), epoch=0)),
        },
        {
            "others": lambda: scaled().cut(18),
            "another partition of the topic": lambda: scaled().cut(18).change(
                17, partitions_pending_revocation=parts((ORDERS, [4]), epoch=2)),
            "the same number of another topic": lambda: scaled().cut(18).change(
                17, partitions_pending_revocation=parts((PAYMENTS, [0]), epoch=2)),
        },
    ),
    "consumer_other_than_target": (
        {
            "one more": lambda: scaled().cut(22).change(21, assigned_partitions=parts((LOG_A, [0]), epoch=4)),
            "while it revokes": lambda: scaled().cut(18).change(
                17, assigned_partitions=parts((ORDERS, range(5)), epoch=2),
                partitions_pending_revocation=parts((PAYMENTS, range(4)), epoch=2)),
            "without a target": lambda: scaled().cut(8).change(7, assigned_partitions=parts((LOG_A, [0]), epoch=2)),
        },
        {
            "less, of topics that it does not subscribe to": lambda: scaled().cut(22).change(
                21, assigned_partitions=parts((PAYMENTS, [1]), epoch=4)),
            "left for a while, with another target": lambda: bounced().cut(22).insert(
                21, of_member(bounced(), 12, 0)._replace(value={"topic_partitions": ()})),
            "without a target, which is compacted": lambda: scaled().cut(5).compacted(2),
        },
    ),
    "consumer_partition_with_two_owners": (
        {
            "to be revoked": lambda: scaled().cut(20).change(18, assigned_partitions=parts((PAYMENTS, [1]), epoch=4)),
            "of a new member": lambda: scaled().cut(8).change(7, assigned_partitions=parts((ORDERS, [5]), epoch=2)),
            "of a static member that left": lambda: bounced().cut(30).change(
                29, assigned_partitions=bounced().entries[28].value["assigned_partitions"]),
        },
        {
            "behind its revocation": lambda: scaled().cut(22),
            "of a static member in its place": lambda: bounced().cut(29),
            "of a classic group": lambda: eager().cut(12),
        },
    ),
    "consumer_partition_epochs": (
        {
            "of a part": lambda: scaled().cut(5).change(4, assigned_partitions=(
                {"topic_id": ORDERS, "partitions": (0, 1), "assignment_epochs": (2,)},)),
            "above the member epoch": lambda: scaled().cut(5).change(
                4, assigned_partitions=parts((ORDERS, [0]), epoch=3)),
            "another one": lambda: scaled().cut(21).change(
                20, assigned_partitions=parts((ORDERS, range(4)), epoch=4)),
            "of a static member that left": lambda: bounced().cut(22).change(
                21, assigned_partitions=parts((ORDERS, [0, 1, 2]), epoch=2)),
        },
        {
            "none, as before Kafka 4.3": lambda: scaled().cut(5).change(
                4, assigned_partitions=parts((ORDERS, range(6)), (PAYMENTS, range(4)))),
            "begin at zero": lambda: bounced().cut(29),
            "come back before they are revoked": lambda: come_back(),
            "older ones": lambda: scaled().cut(32),
        },
    ),
    "consumer_partition_twice": (
        {
            "a partition": lambda: scaled().cut(5).change(4, assigned_partitions=parts((ORDERS, [0, 0]), epoch=2)),
            "a topic": lambda: scaled().cut(3).change(2, topic_partitions=parts_of_target()),
            "to be revoked": lambda: scaled().cut(18).change(
                17, partitions_pending_revocation=parts((ORDERS, [4, 4]), epoch=2)),
        },
        {
            "in another order": lambda: scaled().cut(5).change(
                4, assigned_partitions=parts((PAYMENTS, [3, 0, 1, 2]), (ORDERS, [5, 4, 0, 1, 2, 3]), epoch=2)),
            "of two topics": lambda: scaled().cut(18),
            "none": lambda: scaled().cut(8),
        },
    ),
}  # fmt: skip


def come_back() -> GroupLog:
    """A member that must give up its partitions gets them again by the next target."""
    partitions = (ORDERS, range(6)), (PAYMENTS, range(4))
    return (
        scaled()
        .cut(5)
        .insert(
            5,
            changed(scaled(), 1, epoch=3),
            changed(scaled(), 2, topic_partitions=()),
            changed(scaled(), 3, assignment_epoch=3),
            changed(
                scaled(),
                4,
                previous_member_epoch=2,
                state=1,
                assigned_partitions=(),
                partitions_pending_revocation=parts(*partitions, epoch=2),
            ),
            changed(scaled(), 1, epoch=4),
            scaled().entries[2],
            changed(scaled(), 3, assignment_epoch=4),
            changed(
                scaled(), 4, member_epoch=4, previous_member_epoch=2, assigned_partitions=parts(*partitions, epoch=4)
            ),
        )
    )


def parts_of_target() -> tuple[dict[str, object], ...]:
    """A target with a topic twice."""
    return tuple({"topic_id": ORDERS, "partitions": (partition,)} for partition in (0, 1))
