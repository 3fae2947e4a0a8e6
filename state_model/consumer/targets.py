"""The target assignment of a consumer group: what an assignor gets and returns (TargetAssignmentBuilder)."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

from state_model.consumer.group_spec import Assignment, GroupSpec, MemberSpec, SubscriptionType, Targets, by_topic
from state_model.consumer.group_values import ConsumerGroup, ConsumerMember, member_metadata
from state_model.consumer.heartbeat import ErrorCode, HeartbeatError
from state_model.consumer.reconciliation import Partition, Partitions
from state_model.errors import SharelensError
from state_model.group_topics import Topics
from state_model.uuids import uuid_text

Assignor: TypeAlias = Callable[[GroupSpec], Targets]
"""A server-side assignor (`assignors.ASSIGNORS`); a member that it leaves out gets nothing. Raises SharelensError where
there is no target; the heartbeat is refused then."""


def compute_targets(
    group: ConsumerGroup, assignors: Mapping[str, Assignor], topics: Topics, *, is_homogeneous: bool
) -> dict[str, Partitions]:
    """The target of each member of the group, in the order of member ids. Raises HeartbeatError."""
    topic_names = {member_id: group.topics_of(member) for member_id, member in group.members.items()}
    existing = [topics(name) for name in sorted(frozenset[str]().union(*topic_names.values()))]
    ids = {topic.name: uuid_text(topic.topic_id) for topic in existing if topic is not None}
    counts = {ids[topic.name]: topic.partitions for topic in existing if topic is not None}
    members = {
        member_id: _member_spec(
            member,
            frozenset(ids[name] for name in topic_names[member_id] if name in ids),
            group.targets.get(member_id, frozenset()),
        )
        for member_id, member in group.members.items()
    }
    kind = SubscriptionType.HOMOGENEOUS if is_homogeneous else SubscriptionType.HETEROGENEOUS
    name = preferred_assignor(group, assignors)
    text = f"Failed to compute a new target assignment for epoch {group.group_epoch}"
    if name not in assignors:
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{text}: there is no assignor {name}")
    try:
        targets = assignors[name](GroupSpec(members=members, partition_counts=counts, subscription_type=kind))
    except SharelensError as error:
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{text}: {error}") from error
    return {member_id: _partitions(targets.get(member_id, {})) for member_id in sorted(members)}


def _member_spec(member: ConsumerMember, topic_ids: frozenset[str], target: Partitions) -> MemberSpec:
    metadata = member_metadata(member)
    return MemberSpec(
        subscribed_topic_ids=topic_ids,
        assignment=by_topic(target),
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
    )


def _partitions(assignment: Assignment) -> Partitions:
    return frozenset(Partition(topic_id, number) for topic_id, numbers in assignment.items() for number in numbers)


def preferred_assignor(group: ConsumerGroup, assignors: Mapping[str, Assignor]) -> str:
    """The assignor that the most members prefer; the broker's first when none has a preference.

    Equal numbers: the first of the broker's. Kafka takes the first of a hash table, which depends on the order in which
    members last wrote their metadata; no record has it.
    """
    preferences = (member_metadata(member).server_assignor for member in group.members.values())
    votes = Counter(filter(None, preferences))
    if not votes:
        return next(iter(assignors))
    order = [name for name in assignors if name in votes] + sorted(votes.keys() - assignors.keys())
    return max(order, key=votes.__getitem__)
