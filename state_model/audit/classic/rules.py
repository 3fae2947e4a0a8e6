"""Rules CL-1 to CL-3 on classic groups, as far as their records tell: generations, leaders, owners of partitions."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from state_model.audit.classic.group import ClassicGroup
from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups.shape import differs, group_rule
from state_model.audit.rule import CLASSIC, Field
from state_model.audit.severities import WARNING

Check: TypeAlias = Callable[[ClassicGroup | None, ClassicGroup], GroupDifference | None]
"""A rule: the group in its record before (None: there is none, or the group ended), and now."""


def generation_falls(before: ClassicGroup | None, group: ClassicGroup) -> GroupDifference | None:
    """A generation below that of the record before."""
    if before is None or group.generation >= before.generation:
        return None
    return differs(Field.GENERATION, before.generation, group.generation)


def leader_without_membership(before: ClassicGroup | None, group: ClassicGroup) -> GroupDifference | None:
    """A leader that is no member, or members without a leader."""
    is_led = group.leader in group.members if group.members else not group.leader
    return None if is_led else differs(Field.LEADERS, min(1, len(group.members)), int(bool(group.leader)))


def two_owners(before: ClassicGroup | None, group: ClassicGroup) -> GroupDifference | None:
    """A partition that is assigned to several members."""
    counts = Counter(partition for partitions in group.assignments.values() for partition in partitions)
    twice = [f"{topic}-{partition}" for (topic, partition), count in counts.items() if count > 1]
    return differs(Field.OWNERS, 1, max(counts.values()), names=twice) if twice else None


RULES: Final = (
    group_rule(
        CLASSIC + 1,
        "classic_generation_falls",
        "The generation of a classic group does not fall",
        "Each rebalance raises it. A group that was a consumer group has the epoch of that.",
        relation=">=",
        is_of_whole_logs=True,
        source="ClassicGroup.initNextGeneration",
    ),
    group_rule(
        CLASSIC + 2,
        "classic_leader_without_membership",
        "The leader of a classic group is one of its members",
        "The leader computes the assignment; when it leaves, another member takes its place.",
        impact=Impact.STUCK,
        is_of_whole_logs=True,
        source="ClassicGroup.remove, replaceStaticMember",
    ),
    group_rule(
        CLASSIC + 3,
        "classic_partition_with_two_owners",
        "A partition is assigned to one member of a classic group at most",
        "The leader's assignor gives each partition to one consumer.",
        severity=WARNING,
        relation="<=",
        impact=Impact.TWICE,
        remedy="Nothing to do with an assignor that does so (partition.assignment.strategy); else look at the leader.",
        is_of_whole_logs=True,
        source="ConsumerPartitionAssignor",
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    3010: generation_falls,
    3020: leader_without_membership,
    3030: two_owners,
}
