"""A member's current assignment against its target, and the user partitions that records name: rules 72.2 to 72.4.

ShareGroupAssignmentBuilder gives a member its whole target (13) at the epoch of the target assignment (12), without
the topics that it doesn't subscribe to (10) and those that are gone. So the current assignment (14) is at most the
target, and less than it by such topics alone.
"""

from collections.abc import Mapping
from typing import Final

from state_model.audit.group_steps import (
    ASSIGNMENT,
    MEMBER,
    MEMBER_TARGET,
    STATE_PARTITIONS,
    TARGET,
    GroupDifference,
    GroupRecord,
    GroupState,
    TopicPartition,
    partitions_of,
)
from state_model.audit.rule import Difference, Field

NAMED: Final[Mapping[int, str]] = {
    MEMBER_TARGET: "topicPartitions",
    ASSIGNMENT: "assignedPartitions",
    STATE_PARTITIONS: "initializedTopics",
}
"""By record type the list of user partitions that exist; initializing ones are those of any request."""


def assigned_beyond_target(group: GroupState, record: GroupRecord) -> GroupDifference | None:
    """A current assignment of a partition that is not in the member's target."""
    target = _target(group, record)
    if target is None:
        return None
    surplus = named_partitions(record) - named_partitions(target)
    return GroupDifference(Difference(Field.ASSIGNED, 0, 1), target.log_offset, min(surplus)) if surplus else None


def target_not_assigned(group: GroupState, record: GroupRecord) -> GroupDifference | None:
    """A partition of the member's target that its current assignment lacks.

    Partitions count whose topic the group lists and the member subscribes to; a deleted topic leaves the lists.
    """
    target, member, listed = _target(group, record), group.of(MEMBER, record.member_id), group.of(STATE_PARTITIONS)
    if target is None or member is None or member.value is None or listed is None or listed.value is None:
        return None
    subscribed = {
        topic["topicId"]
        for name in ("initializedTopics", "initializingTopics")
        for topic in listed.value.get(name) or ()
        if topic["topicName"] in member.value["subscribedTopicNames"]
    }
    missing = {place for place in named_partitions(target) - named_partitions(record) if place[0] in subscribed}
    return GroupDifference(Difference(Field.ASSIGNED, 1, 0), target.log_offset, min(missing)) if missing else None


def named_partitions(record: GroupRecord) -> frozenset[TopicPartition]:
    """The user partitions that a record says the group has or assigns."""
    name = NAMED.get(record.record_type)
    return partitions_of(record.value.get(name)) if name is not None and record.value is not None else frozenset()


def _target(group: GroupState, record: GroupRecord) -> GroupRecord | None:
    """The target of a current assignment at the epoch of the target assignment; None where compaction took either."""
    target, assignment = group.of(MEMBER_TARGET, record.member_id), group.of(TARGET)
    if record.record_type != ASSIGNMENT or record.value is None or target is None or target.value is None:
        return None
    is_current = assignment is not None and record.number("memberEpoch") == assignment.number("assignmentEpoch")
    return target if is_current else None
