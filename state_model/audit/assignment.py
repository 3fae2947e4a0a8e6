"""How evenly a group's assignor spread the partitions over its members: the second part of rule 72.

The records of a target assignment (13) end with its epoch (12), so that there all targets are those of one computation.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from state_model.audit.group_steps import (
    GROUP,
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

Subscriptions = dict[str | None, frozenset[str]]


def assigned_unevenly(group: GroupState, record: GroupRecord) -> GroupDifference | None:
    """A partition with more members than the smallest number that lets every member have a partition.

    With M members and P partitions that is ceil(M / P): over all partitions where the members subscribe to the same
    topics, else by topic over its subscribers. Partitions count that are initialized at the end of the assignment.

    None, too, where compaction may hide members: a member joins or leaves with a new group epoch, so all of them are
    there only where the group epoch of the assignment is.
    """
    epoch, listed = group.of(GROUP), group.of(STATE_PARTITIONS)
    if record.record_type != TARGET or epoch is None or listed is None or listed.value is None:
        return None
    subscriptions = _subscriptions(group)
    if record.number("assignmentEpoch") != epoch.number("epoch") or subscriptions is None:
        return None
    members_of = Counter(
        place
        for target in group.of_type(MEMBER_TARGET)
        for place in partitions_of((target.value or {}).get("topicPartitions"))
    )
    uneven = [
        (place, max_members)
        for members, partitions in _problems(subscriptions, listed)
        for max_members in [-(-members // len(partitions))]
        for place in partitions
        if members_of[place] > max_members
    ]
    if not uneven:
        return None
    place, max_members = min(uneven)
    return GroupDifference(Difference(Field.MEMBERS, max_members, members_of[place]), listed.log_offset, place)


def _subscriptions(group: GroupState) -> Subscriptions | None:
    """The topics of each member; None where those of a member with a target are not known."""
    value_by_member = {member.member_id: member.value for member in group.of_type(MEMBER)}
    if any(target.member_id not in value_by_member for target in group.of_type(MEMBER_TARGET)):
        return None
    if any(value is None for value in value_by_member.values()):
        return None
    return {member: frozenset((value or {})["subscribedTopicNames"]) for member, value in value_by_member.items()}


def _problems(subscriptions: Subscriptions, listed: GroupRecord) -> Iterator[tuple[int, Sequence[TopicPartition]]]:
    """(number of members, partitions) of each part that the assignor spreads by itself."""
    partitions_by_name = {
        topic["topicName"]: [(topic["topicId"], partition) for partition in topic["partitions"]]
        for topic in (listed.value or {}).get("initializedTopics") or ()
    }
    names = frozenset[str]().union(*subscriptions.values())
    is_homogeneous = len(set(subscriptions.values())) == 1
    for part in [names] if is_homogeneous else [frozenset([name]) for name in sorted(names)]:
        partitions = [place for name in part for place in partitions_by_name.get(name, ())]
        if partitions:
            yield sum(part <= topics for topics in subscriptions.values()), partitions
