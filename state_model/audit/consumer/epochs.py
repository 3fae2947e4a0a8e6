"""Rules CG-1 to CG-9 and CG-30: epochs of a consumer group and of its members."""

from collections.abc import Mapping
from typing import Final

from state_model.audit.consumer.history import History, instance_id, is_classic
from state_model.audit.consumer.shape import Check, consumer_rule
from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups import epochs
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs
from state_model.audit.rule import Field
from state_model.audit.severities import WARNING
from state_model.consumer.group_values import LEFT_STATIC_EPOCH
from state_model.consumer.records import ASSIGNMENT, METADATA, TARGET

FIRST_EPOCH: Final = 2
MANAGER: Final = "GroupMetadataManager"


def first_epoch(history: History, record: ModelRecord) -> GroupDifference | None:
    """The first group epoch above 2, of a group that was not a classic one."""
    life = history.life
    if not record.is_a(METADATA) or life.metadata is not None or not life.is_whole:
        return None
    epoch = record.number("epoch")
    is_converted = any(is_classic(member) for member in life.members.values())
    return None if is_converted or epoch <= FIRST_EPOCH else differs(Field.GROUP_EPOCH, FIRST_EPOCH, epoch)


def assignment_time(history: History, record: ModelRecord) -> GroupDifference | None:
    """A target assignment with a time before that of the last, or sooner than the interval after it."""
    is_timed = record.is_a(TARGET) and record.number("assignmentTimestamp") != 0
    return epochs.assignment_time(history, record) if is_timed else None


def settled_epoch(history: History, record: ModelRecord) -> GroupDifference | None:
    """A member epoch other than the assignment epoch where the member is there and has nothing to give up."""
    return epochs.settled_epoch(history, record) if record.number("memberEpoch") > 0 else None


def previous_epoch(history: History, record: ModelRecord) -> GroupDifference | None:
    """A previous member epoch that is not the epoch before: of the last record, or of the classic group."""
    if not record.is_a(ASSIGNMENT):
        return None
    epoch, previous = record.number("memberEpoch"), record.number("previousMemberEpoch")
    last, member = history.life.assignments.get(record.name or ""), history.life.members.get(record.name or "")
    if epoch == LEFT_STATIC_EPOCH:
        expected = None if last is None else last.record.number("previousMemberEpoch")
        if last is None or expected is None or previous == expected:
            return None
        return differs(Field.PREVIOUS_MEMBER_EPOCH, expected, previous, last.record)
    if last is None and member is not None and is_classic(member) and previous == epoch:
        return None
    return epochs.previous_epoch(history, record)


def epoch_falls(history: History, record: ModelRecord) -> GroupDifference | None:
    """A member epoch below that of the member's record before, of a member that does not leave for a while."""
    return None if record.number("memberEpoch") == LEFT_STATIC_EPOCH else epochs.epoch_falls(history, record)


def static_epoch(history: History, record: ModelRecord) -> GroupDifference | None:
    """The epoch of a member that left for a while or that replaces one, where the member is not static."""
    epoch, member = record.number("memberEpoch"), history.life.members.get(record.name or "")
    if not record.is_a(ASSIGNMENT) or epoch > 0 or history.life.assignment_epoch is None:
        return None
    if epoch not in (0, LEFT_STATIC_EPOCH):
        return differs(Field.MEMBER_EPOCH, LEFT_STATIC_EPOCH, epoch)
    if member is None or instance_id(member) is not None:
        return None
    return differs(Field.MEMBER_EPOCH, history.life.assignment_epoch, epoch, member)


RULES: Final = (
    consumer_rule(
        1,
        "consumer_first_group_epoch",
        "The first group epoch of a consumer group is 2 at most",
        "A new group is at epoch 1 in memory (0 up to Kafka 4.2), and its first member raises it. A group that was a "
        f"classic one has the generation of that. {NEEDS_WHOLE_GROUP}",
        severity=WARNING,
        relation="<=",
        remedy="Find out which writer made the group.",
        is_of_whole_logs=True,
        source=f"ModernGroup, {MANAGER}.convertToConsumerGroup",
    ),
    consumer_rule(
        2,
        "consumer_group_epoch_skips",
        "The group epoch of a consumer group rises by 1",
        "Each change of the group counts once.",
        source=f"{MANAGER}.updateSubscriptionMetadata",
    ),
    consumer_rule(
        3,
        "consumer_assignment_epoch_order",
        "The assignment epoch of a consumer group rises",
        "A target assignment is computed for a newer group epoch alone.",
        relation=">",
        source=f"{MANAGER}.maybeUpdateTargetAssignment",
    ),
    consumer_rule(
        4,
        "consumer_assignment_epoch_stale",
        "A new target assignment has the group epoch",
        "It is computed in the operation that raised the epoch, or for the newest epoch later.",
        source="TargetAssignmentBuilder",
    ),
    consumer_rule(
        5,
        "consumer_assignment_time",
        "The time of a target assignment is not before that of the last one",
        "The coordinator writes its clock since Kafka 4.3, and none for the assignment of a classic group. Where the "
        "assignment interval is known (consumer.assignment.interval.ms, --settings or __cluster_metadata), so much "
        "lies between them at least.",
        severity=WARNING,
        relation=">=",
        remedy="Check the clocks of the brokers, and the time from which on the files of settings count.",
        source=f"{MANAGER}.canComputeNextTargetAssignment",
    ),
    consumer_rule(
        6,
        "consumer_member_epoch_ahead",
        "The member epoch of a consumer group is at most the assignment epoch",
        "Members follow the target assignment.",
        relation="<=",
        source="CurrentAssignmentBuilder",
    ),
    consumer_rule(
        7,
        "consumer_member_epoch_behind",
        "A member without partitions to revoke is at the assignment epoch",
        "Reconciliation takes it there, unless it must revoke partitions first (state 1). A static member that left "
        "for a while is at epoch -2, the one that replaces it begins at 0.",
        impact=Impact.STUCK,
        source="CurrentAssignmentBuilder",
    ),
    consumer_rule(
        8,
        "consumer_previous_member_epoch",
        "The previous member epoch is the member epoch of the record before",
        "It is 0 for a new member, and the generation for one of a classic group; a static member that leaves keeps "
        "it. The coordinator accepts a heartbeat with it when an answer was lost.",
        source=f"CurrentAssignmentBuilder, {MANAGER}.consumerGroupStaticMemberGroupLeave",
    ),
    consumer_rule(
        9,
        "consumer_member_epoch_falls",
        "The epoch of a member of a consumer group does not fall",
        "A member that joins again keeps its epoch; only a static member that leaves for a while goes to -2.",
        relation=">=",
        source="CurrentAssignmentBuilder",
    ),
    consumer_rule(
        30,
        "consumer_static_epoch",
        "Only static members have the epochs -2 and 0",
        "A static member that left for a while has -2, and the one that comes back in its place begins at 0.",
        relation=">=",
        source=f"{MANAGER}.replaceMember",
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    2010: first_epoch,
    2020: epochs.epoch_skips,
    2030: epochs.assignment_epoch_order,
    2040: epochs.assignment_epoch_stale,
    2050: assignment_time,
    2060: epochs.member_epoch_ahead,
    2070: settled_epoch,
    2080: previous_epoch,
    2090: epoch_falls,
    2300: static_epoch,
}
