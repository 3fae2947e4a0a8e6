"""The answer to a heartbeat of a streams group, with its statuses (streams-group §1.13, §1.15)."""

from collections.abc import Iterable

from state_model.group_topics import Topics
from state_model.streams.endpoints import topics_of_endpoints
from state_model.streams.heartbeat import Answer, Heartbeat
from state_model.streams.soft_state import Settings, SoftState
from state_model.streams.topology import Status, StatusCode
from state_model.streams.values import MemberAssignment, MemberMetadata, StreamsGroup, TasksByType


def answer_of(
    group: StreamsGroup,
    soft: SoftState,
    request: Heartbeat,
    topics: Topics,
    assigned: MemberAssignment,
    tasks: TasksByType | None,
    delay: str | None,
    settings: Settings,
) -> Answer:
    """The answer to a heartbeat that was accepted.

    Args:
        tasks: the assigned tasks if the answer has them.
        delay: why no new target was computed.
    """
    member_metadata = group.members[request.member_id].metadata
    assert member_metadata is not None
    assert soft.configured is not None
    endpoints = None
    if request.endpoint_information_epoch != soft.endpoint_epoch:
        endpoints = topics_of_endpoints(group, soft.configured, topics, request.member_id)
    return Answer(
        request.member_id,
        assigned.member_epoch,
        settings.heartbeat_interval_ms,
        tuple(_statuses(group, soft, member_metadata, delay)),
        tasks,
        soft.endpoint_epoch,
        endpoints,
    )


def _statuses(
    group: StreamsGroup, soft: SoftState, member_metadata: MemberMetadata, delay: str | None
) -> Iterable[Status]:
    """In the order of Kafka's answers (§1.15)."""
    if group.topology is not None and member_metadata.topology_epoch < group.topology.epoch:
        yield Status(
            StatusCode.STALE_TOPOLOGY,
            f"The member's topology epoch {member_metadata.topology_epoch} is behind the group's topology epoch "
            f"{group.topology.epoch}.",
        )
    if delay is not None:
        yield Status(StatusCode.ASSIGNMENT_DELAYED, f"Assignment delayed due to the configured {delay}.")
    if soft.configured is not None and soft.configured.problem is not None:
        yield soft.configured.problem
    if soft.shutdown_member_id is not None:
        yield Status(
            StatusCode.SHUTDOWN_APPLICATION,
            f"Streams group member {soft.shutdown_member_id} encountered a fatal error and requested a shutdown for "
            "the entire application.",
        )
