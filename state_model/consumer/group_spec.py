"""What an assignor of a consumer group gets and returns; the names are those of Kafka's GroupSpec and its parts."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from state_model.errors import PartitionAssignorError

Assignment: TypeAlias = dict[str, tuple[int, ...]]
"""Partitions of a member: topic id -> partitions, ascending and at least one; topic ids ascend."""
Targets: TypeAlias = dict[str, Assignment]
"""The target assignment of each member of the group, by member id; empty for a member without partitions."""


def by_topic(partitions: Iterable[tuple[str, int]]) -> Assignment:
    """Partitions (topic id, number) as an assignment."""
    numbers: dict[str, list[int]] = {}
    for topic_id, number in sorted(partitions):
        numbers.setdefault(topic_id, []).append(number)
    return {topic_id: tuple(of_topic) for topic_id, of_topic in numbers.items()}


class SubscriptionType(enum.Enum):
    """Whether all members of a group subscribe to the same topics."""

    HOMOGENEOUS = "homogeneous"
    HETEROGENEOUS = "heterogeneous"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSpec:
    """A member of the group: its subscription, and its target of the assignment before.

    rack_id: no assignor of Kafka 4.3.1 reads it.
    """

    subscribed_topic_ids: frozenset[str] = frozenset()
    assignment: Mapping[str, Sequence[int]] = field(default_factory=dict)
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group for an assignor. No partition is in the assignments of two members, and each is one of its topic.

    members: by member id.
    partition_counts: topic id (22 characters) -> number of partitions, for at least the subscribed topics.
    subscription_type: None: by the subscribed topic ids. Kafka takes it from the subscribed names, so that a name
        without a topic can make a group heterogeneous.
    """

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[str, int]
    subscription_type: SubscriptionType | None = None

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        if self.subscription_type is not None:
            return self.subscription_type is SubscriptionType.HOMOGENEOUS
        return len({member.subscribed_topic_ids for member in self.members.values()}) <= 1

    def partition_count(self, topic_id: str) -> int:
        """The number of partitions of a subscribed topic.

        Raises:
            PartitionAssignorError: the topic has no number of partitions.
        """
        count = self.partition_counts.get(topic_id)
        if count is None:
            raise PartitionAssignorError(
                f"members subscribe to topic {topic_id}, whose number of partitions is not in the group's "
                "specification: leave out topics that do not exist"
            )
        return count
