"""The target assignment of a consumer group: what an assignor gets and returns (TargetAssignmentBuilder)."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from state_model.consumer.group_values import ConsumerGroup, member_metadata
from state_model.consumer.heartbeat import ErrorCode, HeartbeatError
from state_model.consumer.reconciliation import Partitions
from state_model.errors import SharelensError
from state_model.streams.topology import Topics
from state_model.uuids import uuid_text


class AssignedMember(NamedTuple):
    """A member for an assignor: the ids of the existing topics that it subscribes to, and its target before."""

    subscribed_topic_ids: frozenset[str]
    target: Partitions = frozenset()
    instance_id: str | None = None
    rack_id: str | None = None


class Assignor(Protocol):
    """A server-side assignor: the target of each member, by member id; a member that it leaves out gets nothing."""

    def __call__(
        self, members: Mapping[str, AssignedMember], partition_counts: Mapping[str, int], *, is_homogeneous: bool
    ) -> Mapping[str, Partitions]:
        """The targets of members by member id.

        Args:
            members: by member id.
            partition_counts: the number of partitions by topic id, for all subscribed topics that exist.
            is_homogeneous: whether all members subscribe to the same topics, as Kafka counts it.

        Raises:
            SharelensError: there is no target; the heartbeat is refused then.
        """


def compute_targets(
    group: ConsumerGroup, assignors: Mapping[str, Assignor], topics: Topics, *, is_homogeneous: bool
) -> dict[str, Partitions]:
    """The target of each member of the group, in the order of member ids. Raises HeartbeatError."""
    topic_names = {member_id: group.topics_of(member) for member_id, member in group.members.items()}
    existing = [topics(name) for name in sorted(frozenset[str]().union(*topic_names.values()))]
    ids = {topic.name: uuid_text(topic.topic_id) for topic in existing if topic is not None}
    counts = {ids[topic.name]: topic.partitions for topic in existing if topic is not None}
    members = {
        member_id: AssignedMember(
            frozenset(ids[name] for name in topic_names[member_id] if name in ids),
            group.targets.get(member_id, frozenset()),
            member_metadata(member).instance_id,
            member_metadata(member).rack_id,
        )
        for member_id, member in group.members.items()
    }
    name = preferred_assignor(group, assignors)
    text = f"Failed to compute a new target assignment for epoch {group.group_epoch}"
    if name not in assignors:
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{text}: there is no assignor {name}")
    try:
        targets = assignors[name](members, counts, is_homogeneous=is_homogeneous)
    except SharelensError as error:
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{text}: {error}") from error
    return {member_id: targets.get(member_id, frozenset()) for member_id in sorted(members)}


def preferred_assignor(group: ConsumerGroup, assignors: Mapping[str, Assignor]) -> str:
    """The assignor that the most members prefer; the broker's first when none has a preference.

    Equal numbers: the first of the broker's. Kafka takes the first of a hash table, which is `uniform` in a table of
    16 buckets, and otherwise depends on the order in which members joined.
    """
    preferences = (member_metadata(member).server_assignor for member in group.members.values())
    votes = Counter(filter(None, preferences))
    if not votes:
        return next(iter(assignors))
    order = [name for name in assignors if name in votes] + sorted(votes.keys() - assignors.keys())
    return max(order, key=votes.__getitem__)
