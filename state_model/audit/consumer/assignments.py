"""Rules CG-10 to CG-15 and CG-20: what members of a consumer group have."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from state_model.audit.consumer.history import Assigned, History, partition_lists, partition_names
from state_model.audit.consumer.shape import Check, consumer_rule
from state_model.audit.group_steps import GroupDifference, TopicPartition
from state_model.audit.impact import Impact
from state_model.audit.model_groups.assignments import state_of_revocation, unknown_state
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs
from state_model.audit.rule import Field
from state_model.consumer.group_values import LEFT_STATIC_EPOCH
from state_model.consumer.reconciliation import MemberState
from state_model.consumer.records import ASSIGNMENT


def _written(history: History, record: ModelRecord) -> Assigned | None:
    """The record as an assignment; None: it is none."""
    return history.life.read_assignment(record) if record.is_a(ASSIGNMENT) else None


def partitions_to_revoke(history: History, record: ModelRecord) -> GroupDifference | None:
    """Partitions to be revoked in another state than 1, or that state without any.

    A static member that leaves for a while has nothing to revoke any more, but keeps its state, and so does the one
    that comes back.
    """
    return state_of_revocation(history, record) if record.number("memberEpoch") > 0 else None


def assigned_and_revoked(history: History, record: ModelRecord) -> GroupDifference | None:
    """Partitions that a member has and must revoke, or any to revoke of a member that left for a while."""
    assignment = _written(history, record)
    if assignment is None:
        return None
    conflicting = assignment.assigned & assignment.pending if assignment.epoch > 0 else assignment.pending
    return differs(Field.PARTITIONS, 0, len(conflicting), names=partition_names(conflicting)) if conflicting else None


def other_than_target(history: History, record: ModelRecord) -> GroupDifference | None:
    """Partitions that the target lacks; a member that still revokes, or left, may have those of an older target."""
    assignment, last = _written(history, record), history.life.assignments.get(record.name or "")
    if assignment is None or assignment.epoch <= 0:
        return None
    unrevoked = MemberState.UNREVOKED_PARTITIONS
    if record.number("state") == unrevoked and last is not None and last.record.number("state") == unrevoked:
        return None
    target = history.life.targets.get(record.name or "")
    if target is None and not history.life.is_whole:
        return None
    surplus = assignment.assigned - (frozenset() if target is None else target.tasks)
    if not surplus:
        return None
    earlier = None if target is None else target.record
    return differs(Field.PARTITIONS, 0, len(surplus), earlier, partition_names(surplus))


def two_owners(history: History, record: ModelRecord) -> GroupDifference | None:
    """A partition that another member has, too, or must still revoke."""
    assignment = _written(history, record)
    if assignment is None:
        return None
    partitions = assignment.assigned | assignment.pending
    for member_id, other in history.life.assignments.items():
        common = partitions & (other.assigned | other.pending)
        if member_id != record.name and common:
            return differs(Field.OWNERS, 1, 2, other.record, partition_names(common))
    return None


def partition_epochs(history: History, record: ModelRecord) -> GroupDifference | None:
    """Assignment epochs of a part of the partitions, above the member epoch, or other ones than before.

    A partition that was to be revoked and is assigned again has a new one.
    """
    if not record.is_a(ASSIGNMENT):
        return None
    for entry in (entry for entries in partition_lists(record) for entry in entries):
        count = len(entry.get("assignmentEpochs") or ())
        if count not in (0, len(entry["partitions"])):
            return differs(Field.PARTITIONS_WITH_EPOCH, len(entry["partitions"]), count)
    assigned, pending = map(_epochs, partition_lists(record)) if record.value is not None else ({}, {})
    member_epoch = record.number("memberEpoch")
    is_reset = member_epoch == LEFT_STATIC_EPOCH
    last = history.life.assignments.get(record.name or "")
    last_assigned, last_pending = ({}, {}) if last is None else map(_epochs, partition_lists(last.record))
    last_epochs = last_assigned | last_pending
    epochs_before = {at: last_assigned.get(at) for at in assigned} | {at: last_epochs.get(at) for at in pending}
    for partition, epoch in (assigned | pending).items():
        names = partition_names(frozenset({partition}))
        highest = 0 if is_reset else member_epoch
        if member_epoch and epoch > highest:
            return differs(Field.ASSIGNMENT_EPOCH, highest, epoch, names=names)
        known_epoch = epochs_before[partition]
        if not is_reset and known_epoch is not None and epoch != known_epoch:
            return differs(Field.ASSIGNMENT_EPOCH, known_epoch, epoch, None if last is None else last.record, names)
    return None


def _epochs(entries: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, int]:
    """The assignment epoch of each partition that has one."""
    return {
        (entry["topicId"], partition): epoch
        for entry in entries
        for partition, epoch in zip(entry["partitions"], entry.get("assignmentEpochs") or (), strict=False)
    }


def partition_twice(history: History, record: ModelRecord) -> GroupDifference | None:
    """A list with a partition or a topic twice."""
    for entries in partition_lists(record):
        partitions = [(entry["topicId"], partition) for entry in entries for partition in entry["partitions"]]
        topics = {entry["topicId"] for entry in entries}
        if len(set(partitions)) < len(partitions) or len(topics) < len(entries):
            return differs(Field.PARTITIONS, len(set(partitions)), len(partitions) + len(entries) - len(topics))
    return None


RULES: Final = (
    consumer_rule(
        10,
        "consumer_member_state",
        "A member of a consumer group is in state 0, 1 or 2",
        "Kafka has STABLE, UNREVOKED_PARTITIONS and UNRELEASED_PARTITIONS.",
        relation="0 to",
        remedy="Find out which broker wrote it; a broker that does not know the state asks the member to join again.",
        source="MemberState",
    ),
    consumer_rule(
        11,
        "consumer_partitions_to_revoke",
        "A member has partitions to revoke in state 1, and only then",
        "The state says that the coordinator waits for their revocation.",
        impact=Impact.STUCK,
        source="CurrentAssignmentBuilder",
    ),
    consumer_rule(
        12,
        "consumer_assigned_and_revoked",
        "No partition of a member is assigned and to be revoked, and a static member that left revokes none",
        "Reconciliation parts a member's partitions into those that it keeps and those that it must revoke.",
        impact=Impact.STUCK,
        source="CurrentAssignmentBuilder",
    ),
    consumer_rule(
        13,
        "consumer_other_than_target",
        "A member has no partition that its target lacks",
        "Reconciliation takes what is not in the target first. A member that still revokes partitions of an older "
        f"target is left out. A member without a record of a target: {NEEDS_WHOLE_GROUP.lower()}",
        impact=Impact.STUCK,
        source="CurrentAssignmentBuilder",
    ),
    consumer_rule(
        14,
        "consumer_partition_with_two_owners",
        "A partition has one member at most",
        "A member gets a partition once no other has it, be it to revoke it. A broker fails to load two owners.",
        impact=Impact.TWICE,
        remedy="Look for records that both members processed; report it to the Kafka project.",
        source="ConsumerGroup.addPartitionEpochs",
    ),
    consumer_rule(
        15,
        "consumer_partition_epochs",
        "Assignment epochs are those of all partitions of a topic, not above the member epoch, and stay",
        "The coordinator accepts offsets of a partition from this epoch on. A static member that leaves has 0. "
        "Releases before 4.3 write none.",
        impact=Impact.DELIVERED_AGAIN,
        source="ConsumerGroupMember, CurrentAssignmentBuilder",
    ),
    consumer_rule(
        20,
        "consumer_partition_twice",
        "An assignment has each topic and each partition once",
        "The coordinator writes them from a map of sets.",
        remedy="Find out which writer made the record; brokers read it all the same.",
        source="GroupCoordinatorRecordHelpers",
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    2100: unknown_state,
    2110: partitions_to_revoke,
    2120: assigned_and_revoked,
    2130: other_than_target,
    2140: two_owners,
    2150: partition_epochs,
    2200: partition_twice,
}
