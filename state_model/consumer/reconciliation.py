"""How a member of a consumer group gets its target assignment: the next record of type 8 (KIP-848).

The rules are those of CurrentAssignmentBuilder in `org.apache.kafka.coordinator.group.modern.consumer` of Kafka 4.3.1,
over members as the group coordinator reads them from its records.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from state_model.group_reconciliation import Progress, Rules, may_own, next_progress

NO_EPOCH: Final = -1
"""The epoch of a partition that no member has."""


class MemberState(IntEnum):
    """The states of a member in a record of type 8; they begin at 0. Any other number is an unknown state."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class Partition(NamedTuple):
    """A partition by its topic's id, in Kafka's text of it."""

    topic_id: str
    partition: int


Partitions: TypeAlias = frozenset[Partition]
RULES: Final[Rules[Partitions]] = Rules(
    stable=MemberState.STABLE,
    unrevoked=MemberState.UNREVOKED_PARTITIONS,
    unreleased=MemberState.UNRELEASED_PARTITIONS,
    epochs_of_revocation=0,
    empty=frozenset(),
)


class MemberAssignment(NamedTuple):
    """The value of record type 8: the current assignment of a member.

    Attributes:
        state: a MemberState; other numbers are kept as they are.
        assigned: the partitions that the member has or may take, each with its assignment epoch: that of the target
            by which the member got it.
        pending: the partitions that the member must give up first, with their assignment epochs.
    """

    state: int
    member_epoch: int
    previous_member_epoch: int
    assigned: Mapping[Partition, int] = {}
    pending: Mapping[Partition, int] = {}


class Subscription(NamedTuple):
    """What a member subscribes to.

    Attributes:
        topic_names: from `subscribed_topic_names`; topics that don't exist too.
        topics: the names of existing topics by topic id.
        is_changed: whether this heartbeat changed the member's topic names or regular expression.
    """

    topic_names: frozenset[str]
    topics: Mapping[str, str]
    is_changed: bool = False

    def includes(self, partition: Partition) -> bool:
        """Whether the partition's topic exists and is subscribed to."""
        return self.topics.get(partition.topic_id) in self.topic_names


def subscribed_topic_names(
    names: Iterable[str], regex: str | None, resolved: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """The topics that a member names, and those that its regular expression matches: none while it isn't resolved.

    Args:
        resolved: matching topics by regular expression, from records of type 16.
    """
    return frozenset(names) | (resolved.get(regex, frozenset()) if regex else frozenset())


def partition_epochs(members: Iterable[MemberAssignment]) -> dict[Partition, int]:
    """The member epoch of each partition's owner, which has it assigned or pending revocation.

    `ConsumerGroup.currentPartitionEpoch`. The epoch of a static member that left for a while is -2: it still owns.
    """
    return {
        partition: member.member_epoch
        for member in members
        for partitions in (member.assigned, member.pending)
        for partition in partitions
    }


def reconcile(
    member: MemberAssignment,
    target: Partitions,
    target_epoch: int,
    owned: Partitions | None,
    subscription: Subscription,
    epochs: Mapping[Partition, int],
) -> MemberAssignment:
    """The member's assignment after a heartbeat; the same when nothing changes.

    Args:
        target: partitions of topics that the member does not subscribe to count as if they were not in it.
        owned: the partitions that the member says it has; None when its heartbeat does not say.
        epochs: `partition_epochs` of the group; what this member must give up blocks no partition for itself.

    Raises:
        FencedError: the member is in an unknown state, and owns partitions or does not say.
    """
    pending = frozenset(member.pending)
    subscribed = frozenset(filter(subscription.includes, target))
    unreleased = frozenset(part for part in subscribed if epochs.get(part, NO_EPOCH) != NO_EPOCH) - pending
    current = Progress(member.state, member.member_epoch, frozenset(member.assigned), pending)
    after = next_progress(RULES, current, subscribed, target_epoch, owned, unreleased)
    if after is None:
        return _without_unsubscribed(member, owned, subscription) if subscription.is_changed else member
    return MemberAssignment(
        state=after.state,
        member_epoch=after.member_epoch,
        previous_member_epoch=member.member_epoch,
        assigned={partition: member.assigned.get(partition, target_epoch) for partition in after.assigned},
        pending={partition: member.assigned[partition] for partition in after.pending},
    )


def _without_unsubscribed(
    member: MemberAssignment, owned: Partitions | None, subscription: Subscription
) -> MemberAssignment:
    """The member, that has its target or still must give up partitions, without topics that it unsubscribed from.

    The member epoch stays, and becomes the previous one also of a member without partitions, if it has no subscription.
    """
    unsubscribed = {part: epoch for part, epoch in member.assigned.items() if not subscription.includes(part)}
    if not unsubscribed and (member.pending or subscription.topic_names):
        return member
    after = member._replace(
        previous_member_epoch=member.member_epoch,
        assigned={part: epoch for part, epoch in member.assigned.items() if part not in unsubscribed},
    )
    pending = {**member.pending, **unsubscribed}
    if pending and may_own(RULES, owned, frozenset(pending)):
        return after._replace(state=MemberState.UNREVOKED_PARTITIONS, pending=pending)
    return after
