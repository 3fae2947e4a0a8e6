"""Values of consumer groups: members, targets, resolved regular expressions and the group itself (KIP-848).

All are immutable and compare by content. Topic names and partitions are sets, as the group coordinator holds them.
"""

from collections import Counter
from enum import Enum
from typing import Final, NamedTuple

from state_model.consumer.reconciliation import (
    NO_EPOCH,
    MemberAssignment,
    MemberState,
    Partitions,
    subscribed_topic_names,
)
from state_model.group_targets import NEW_TARGET, TargetMetadata
from state_model.key_map import KeyMap
from state_model.schema import Tree

LEFT_STATIC_EPOCH: Final = -2
"""The epoch of a static member that left for a while."""


class GroupState(Enum):
    """The states of a consumer group; the value is the name that Kafka prints (ConsumerGroup.ConsumerGroupState)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberMetadata(NamedTuple):
    """The value of record type 5: what a member said of itself in its heartbeats.

    Attributes:
        subscribed_topic_regex: empty or None: no regular expression.
        server_assignor: None: the member prefers none.
        classic_member_metadata: of a member of the classic protocol; None of all other members.
    """

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: frozenset[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: Tree | None = None


class ConsumerMember(NamedTuple):
    """A member. `metadata` is None before its record of type 5, `assignment` before that of type 8."""

    metadata: MemberMetadata | None = None
    assignment: MemberAssignment | None = None


class GroupMetadata(NamedTuple):
    """The value of record type 3."""

    epoch: int
    metadata_hash: int = 0


class PartitionMetadata(NamedTuple):
    """The value of record type 4, which Kafka wrote until 4.0: topics as in the record."""

    topics: tuple[Tree, ...] = ()


class ResolvedExpression(NamedTuple):
    """The value of record type 16: the topics that a regular expression matches, at a version of the metadata."""

    topics: frozenset[str]
    version: int = 0
    timestamp_ms: int = 0


NEW_METADATA: Final = GroupMetadata(epoch=1)
NEW_ASSIGNMENT: Final = MemberAssignment(MemberState.STABLE, 0, NO_EPOCH)
"""The assignment of a member before its first record of type 8."""
NO_MEMBER_METADATA: Final = MemberMetadata(None, None, "", "", frozenset(), "", -1, None)
"""The metadata of a member before its first record of type 5."""


class ConsumerGroup(NamedTuple):
    """A consumer group. The defaults are those of a new group, which no record says (ModernGroup).

    Attributes:
        targets: the target assignment by member id; a member without one has no entry.
        resolved: topics by regular expression.
        static_members: the member id by instance id: the member of that instance id with the newest record.
        has_partition_metadata: whether there is a record of type 4, for which the next refresh writes a tombstone.
    """

    metadata: GroupMetadata = NEW_METADATA
    target: TargetMetadata = NEW_TARGET
    targets: KeyMap[str, Partitions] = KeyMap()
    members: KeyMap[str, ConsumerMember] = KeyMap()
    resolved: KeyMap[str, ResolvedExpression] = KeyMap()
    static_members: KeyMap[str, str] = KeyMap()
    has_partition_metadata: bool = False

    @property
    def group_epoch(self) -> int:
        """The epoch of record type 3."""
        return self.metadata.epoch

    @property
    def target_assignment_epoch(self) -> int:
        """The epoch of record type 6."""
        return self.target.assignment_epoch

    @property
    def resolved_topics(self) -> dict[str, frozenset[str]]:
        """The topics of each resolved regular expression."""
        return {regex: expression.topics for regex, expression in self.resolved.items()}

    @property
    def topic_names(self) -> frozenset[str]:
        """The names that members subscribe to, and the topics of all resolved regular expressions."""
        named = (member_metadata(member).subscribed_topic_names for member in self.members.values())
        return frozenset[str]().union(*named, *self.resolved_topics.values())

    @property
    def state(self) -> GroupState:
        """Kafka's state of the group (ConsumerGroup.maybeUpdateGroupState). O(members)."""
        epoch = self.target_assignment_epoch
        return self.state_with(sum(is_settled(member, epoch) for member in self.members.values()))

    def state_with(self, settled_count: int) -> GroupState:
        """The state of a group of which so many members are settled in the epoch of its target assignment."""
        if not self.members:
            return GroupState.EMPTY
        if self.group_epoch > self.target_assignment_epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if settled_count == len(self.members) else GroupState.RECONCILING

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics, by names alone or by a regular expression alone.

        A name without a topic counts as any other (ConsumerGroup.subscriptionType).
        """
        subscriptions = [member_metadata(member) for member in self.members.values()]
        names = Counter(name for each in subscriptions for name in each.subscribed_topic_names)
        matches = Counter(name for topics in self.resolved_topics.values() for name in topics)
        subscribers = self.regex_subscribers
        if not subscribers:
            return all(names[name] == len(self.members) for name in names | matches)
        is_shared = len(self.members) in subscribers.values()
        return is_shared and not names and all(count == 1 for count in matches.values())

    @property
    def regex_subscribers(self) -> Counter[str]:
        """The number of members by their regular expression."""
        expressions = (member_metadata(member).subscribed_topic_regex for member in self.members.values())
        return Counter(filter(None, expressions))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics that a member names, and those that its regular expression matches."""
        subscription = member_metadata(member)
        return subscribed_topic_names(
            subscription.subscribed_topic_names, subscription.subscribed_topic_regex, self.resolved_topics
        )


def member_metadata(member: ConsumerMember) -> MemberMetadata:
    """The member's metadata; that of a new member before its record of type 5."""
    return member.metadata or NO_MEMBER_METADATA


def uses_classic_protocol(member: ConsumerMember) -> bool:
    """Whether the member joined by JoinGroup."""
    return member_metadata(member).classic_member_metadata is not None


def member_assignment(member: ConsumerMember) -> MemberAssignment:
    """The member's current assignment; that of a new member before its record of type 8."""
    return member.assignment or NEW_ASSIGNMENT


def is_settled(member: ConsumerMember, target_assignment_epoch: int) -> bool:
    """Whether a member has its target assignment: state STABLE in the epoch of the target."""
    return settled_epoch(member) == target_assignment_epoch


def settled_epoch(member: ConsumerMember) -> int | None:
    """The epoch of a member in state STABLE; None: it has another state."""
    assignment = member_assignment(member)
    return assignment.member_epoch if assignment.state == MemberState.STABLE else None
