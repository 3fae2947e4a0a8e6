"""Partitions by instance of an application, for interactive queries (streams-group §4.11, §4.12)."""

from state_model.group_topics import Topics
from state_model.streams.heartbeat import EndpointTopics, ErrorCode, HeartbeatError
from state_model.streams.topology import ConfiguredTopology, input_topics
from state_model.streams.values import StreamsGroup, Tasks

Partitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by topic."""


def topics_of_endpoints(
    group: StreamsGroup, configured: ConfiguredTopology, topics: Topics, caller_id: str
) -> tuple[EndpointTopics, ...]:
    """The partitions of the assigned tasks of each member with an endpoint; the calling member is the last.

    Raises:
        HeartbeatError: there are endpoints, but no tasks are known; Kafka fails too.
    """
    with_endpoint = sorted(group.members, key=lambda member_id: (member_id == caller_id, member_id))
    result = []
    for member_id in with_endpoint:
        member = group.members[member_id]
        if member.metadata is None or member.metadata.user_endpoint is None:
            continue
        if configured.subtopologies is None:
            raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR)
        active = standby = Tasks()
        if member.assignment is not None:
            active, standby = member.assignment.assigned.active, member.assignment.assigned.standby
        result.append(
            EndpointTopics(
                member.metadata.user_endpoint,
                _partitions(active, configured, topics),
                _partitions(standby, configured, topics),
            )
        )
    return tuple(result)


def _partitions(tasks: Tasks, configured: ConfiguredTopology, topics: Topics) -> Partitions:
    """Partitions by topic of tasks, as in Kafka: a topic with fewer partitions than tasks gets the first numbers."""
    numbers: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        numbers.setdefault(subtopology_id, []).append(partition)
    result = []
    for subtopology_id, partitions in numbers.items():
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        for name in () if subtopology is None else input_topics(subtopology.subtopology):
            topic = topics(name)
            if topic is not None:
                result.append((name, tuple(partitions[: topic.partitions])))
    return tuple(result)
