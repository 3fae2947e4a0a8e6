"""The server-side assignors of consumer groups (KIP-848), with the results of Kafka 4.3.1's.

`uniform` is UniformAssignor, `range` is RangeAssignor (org.apache.kafka.coordinator.group.assignor). Kafka's results
depend on the iteration order of hash tables; here that order is computed (hash_order), so that a result is equal to
Kafka's and doesn't depend on the order of the input.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from state_model.consumer.group_spec import Assignment, GroupSpec, MemberSpec, Targets, by_topic
from state_model.consumer.hash_order import members_in_hash_order, partitions_in_hash_order, topics_in_hash_order
from state_model.consumer.heterogeneous import assign_heterogeneous

TopicPartition = tuple[str, int]
"""A partition of a topic, by the topic's id."""


def assign_uniform(spec: GroupSpec) -> Targets:
    """Targets with equal numbers of partitions; partitions stay with their members as far as balance allows.

    Raises:
        PartitionAssignorError: a subscribed topic has no number of partitions.
    """
    return _assign_homogeneous(spec) if spec.is_homogeneous else assign_heterogeneous(spec)


def assign_range(spec: GroupSpec) -> Targets:
    """Targets with a range of each topic for each of its subscribers; the assignment before doesn't count.

    The first subscribers get one partition more where the numbers don't divide. Topics with the same subscribers and
    the same number of partitions are cut at the same places, so that their partitions of one number go together.

    Raises:
        PartitionAssignorError: a subscribed topic has no number of partitions.
    """
    ordered = _static_members_first(spec.members)
    ranges: dict[str, Assignment] = {member_id: {} for member_id in ordered}
    subscriptions = {member_id: spec.members[member_id].subscribed_topic_ids for member_id in ordered}
    if ordered and spec.is_homogeneous:
        # Kafka reads the first member's topics alone; others may differ, as an expression without a result counts not.
        subscriptions = dict.fromkeys(ordered, subscriptions[ordered[0]])
    for topic_id in sorted(frozenset[str]().union(*subscriptions.values())):
        subscribers = [member_id for member_id in ordered if topic_id in subscriptions[member_id]]
        quota, extra = divmod(spec.partition_count(topic_id), len(subscribers))
        for index, member_id in enumerate(subscribers):
            start = index * quota + min(index, extra)
            if partitions := tuple(range(start, start + quota + (index < extra))):
                ranges[member_id][topic_id] = partitions
    return {member_id: ranges[member_id] for member_id in sorted(ranges)}


ASSIGNORS: Final[Mapping[str, Callable[[GroupSpec], Targets]]] = MappingProxyType(
    {"uniform": assign_uniform, "range": assign_range}
)
"""The assignors by the names that clients and `group.consumer.assignors` use; a broker's default is the first."""


def _static_members_first(members: Mapping[str, MemberSpec]) -> list[str]:
    """Static members by instance id, then the rest by member id, in the order of Java's String.compareTo."""

    def place(member_id: str) -> tuple[bool, bytes]:
        instance_id = members[member_id].instance_id
        # Java compares UTF-16 code units, which is the order of these bytes.
        text = member_id if instance_id is None else instance_id
        return instance_id is None, text.encode("utf-16-be", "surrogatepass")

    return sorted(members_in_hash_order(members), key=place)


def _assign_homogeneous(spec: GroupSpec) -> Targets:
    """Targets of members that all subscribe to the same topics (UniformHomogeneousAssignmentBuilder).

    Free partitions are those without a member, by topic, then those that members above their quota give up. Members
    below their quota fill up from the front, one member after the other.
    """
    ordered = members_in_hash_order(spec.members)
    if not ordered:
        return {}
    topic_ids = topics_in_hash_order(spec.members[ordered[0]].subscribed_topic_ids)
    subscribed = {(topic_id, number) for topic_id in topic_ids for number in range(spec.partition_count(topic_id))}
    previous = {member_id: _previous_partitions(spec.members[member_id], topic_ids) for member_id in ordered}
    without_member = subscribed.difference(*previous.values())
    free = [
        (topic_id, number)
        for topic_id in topic_ids
        for number in range(spec.partition_count(topic_id))
        if (topic_id, number) in without_member
    ]
    quotas = _quotas({member_id: len(partitions) for member_id, partitions in previous.items()}, len(subscribed))
    for member_id in ordered:
        free += previous[member_id][quotas[member_id] :]
    targets: dict[str, list[TopicPartition]] = {}
    start = 0
    for member_id in ordered:
        staying = previous[member_id][: quotas[member_id]]
        end_exclusive = start + quotas[member_id] - len(staying)
        targets[member_id] = staying + free[start:end_exclusive]
        start = end_exclusive
    return {member_id: by_topic(targets[member_id]) for member_id in sorted(targets)}


def _previous_partitions(member: MemberSpec, topic_ids: list[str]) -> list[TopicPartition]:
    """The member's previous partitions of the topics: a quota takes them from the front."""
    assigned = topics_in_hash_order(member.assignment)
    return [
        (topic_id, number)
        for topic_id in assigned
        if topic_id in topic_ids
        for number in partitions_in_hash_order(member.assignment[topic_id])
    ]


def _quotas(previous_counts: Mapping[str, int], partitions: int) -> dict[str, int]:
    """The number of partitions of each member, in the order of the members; they differ by at most 1.

    A member that has more partitions than the smaller number gets the larger one, as long as there are such quotas;
    those that remain go to the last members, whatever these have.
    """
    quota, extra = divmod(partitions, len(previous_counts))
    quotas = {}
    for index, (member_id, count) in enumerate(previous_counts.items()):
        takes_extra = extra > 0 and (count > quota or len(previous_counts) - index <= extra)
        quotas[member_id] = quota + takes_extra
        extra -= takes_extra
    return quotas
