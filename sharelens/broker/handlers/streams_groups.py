"""Streams groups: heartbeat and describe (KIP-1071, streams-group §1 and §8)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.handlers.share_groups import with_operations
from sharelens.broker.protocol.messages import milliseconds
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.group_records import camel_case
from state_model.streams.heartbeat import Answer as HeartbeatAnswer
from state_model.streams.heartbeat import Heartbeat, HeartbeatError
from state_model.streams.soft_state import SoftState
from state_model.streams.values import (
    NO_TASKS_BY_TYPE,
    CopartitionGroup,
    Endpoint,
    MemberMetadata,
    Pairs,
    StreamsGroup,
    StreamsMember,
    Subtopology,
    TaskId,
    Tasks,
    TasksByType,
    TopicInfo,
    Topology,
)

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

PROTOCOL = "streams"
NOT_REQUESTED = -(2**31)
"""The authorized operations in an answer to a request without them."""
_UNSUPPORTED = {
    "error_code": ErrorCode.unsupported_version,
    "error_message": "streams.version is 0, or group.coordinator.rebalance.protocols lacks streams.",
}
_NO_METADATA = MemberMetadata(None, None, "", "", -1, 0, "")


@handles(ApiKey.STREAMS_GROUP_HEARTBEAT, (0, 0), elements_max=ELEMENTS_MAX_AT_ONCE)
def heartbeat(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """A member joins, stays or leaves; a refused one gets defaults beside the error."""
    if not _is_on(broker):
        return {**_UNSUPPORTED, **_NO_TASK_LISTS}
    try:
        answer = broker.streams_groups.heartbeat(_heartbeat(request, context), context.rights.may_create_topic)
    except HeartbeatError as error:
        return {"error_code": ErrorCode(error.code), "error_message": error.text, **_NO_TASK_LISTS}
    except GroupError as error:
        return {"error_code": error.code, "error_message": str(error), **_NO_TASK_LISTS}
    return _answer(answer)


@handles(ApiKey.STREAMS_GROUP_DESCRIBE, (0, 0))
def describe(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Groups with topology and members; a missing group, or one of another kind, has an error of its own."""

    def described(group_id: str) -> Answer:
        answer = _described(broker, group_id)
        return with_operations(context, answer) if request.include_authorized_operations else answer

    return {"groups": LazyArray(described, request.group_ids)}


def described_json(broker: "Broker", group_id: str) -> dict[str, Any]:
    """The description of a group under the names of Kafka's JSON."""
    described = {"error_code": 0, "error_message": None, "authorized_operations": NOT_REQUESTED}
    return {camel_case(name): _json(value) for name, value in (described | _described(broker, group_id)).items()}


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {camel_case(name): _json(each) for name, each in value.items()}
    return [_json(each) for each in value] if isinstance(value, list | tuple) else value


def _is_on(broker: "Broker") -> bool:
    return bool(broker.streams_version) and PROTOCOL in broker.config.names("group.coordinator.rebalance.protocols")


# The request


def _heartbeat(request: Any, context: RequestContext) -> Heartbeat:
    endpoint = request.user_endpoint
    return Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        client_id=context.client_id,
        client_host=context.client_host,
        endpoint_information_epoch=request.endpoint_information_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=milliseconds(request.rebalance_timeout),
        topology=None if request.topology is None else _topology(request.topology),
        active_tasks=_tasks(request.active_tasks),
        standby_tasks=_tasks(request.standby_tasks),
        warmup_tasks=_tasks(request.warmup_tasks),
        process_id=request.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=None if request.client_tags is None else _pairs(request.client_tags),
        has_task_offsets=request.task_offsets is not None,
        has_task_end_offsets=request.task_end_offsets is not None,
        shutdown_application=request.shutdown_application,
    )


def _topology(sent: Any) -> Topology:
    return Topology(
        sent.epoch,
        tuple(
            Subtopology(
                each.subtopology_id,
                tuple(each.source_topics),
                tuple(each.source_topic_regex),
                _topic_infos(each.state_changelog_topics),
                tuple(each.repartition_sink_topics),
                _topic_infos(each.repartition_source_topics),
                tuple(
                    CopartitionGroup(
                        tuple(group.source_topics),
                        tuple(group.source_topic_regex),
                        tuple(group.repartition_source_topics),
                    )
                    for group in each.copartition_groups
                ),
            )
            for each in sent.subtopologies
        ),
    )


def _topic_infos(topics: Iterable[Any]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(topic.name, topic.partitions, topic.replication_factor, _pairs(topic.topic_configs))
        for topic in topics
    )


def _pairs(pairs: Iterable[Any]) -> Pairs:
    return tuple((pair.key, pair.value) for pair in pairs)


def _tasks(sent: Iterable[Any] | None) -> Tasks | None:
    if sent is None:
        return None
    return frozenset(TaskId(each.subtopology_id, partition) for each in sent for partition in each.partitions)


# The answers

_NO_TASK_LISTS: Mapping[str, Any] = {
    "status": [],
    "active_tasks": None,
    "standby_tasks": None,
    "warmup_tasks": None,
    "partitions_by_user_endpoint": None,
}


def _answer(answer: HeartbeatAnswer) -> Answer:
    endpoints = answer.endpoints
    return {
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval": answer.heartbeat_interval_ms,
        **_NO_TASK_LISTS,
        "status": [{"status_code": status.code, "status_detail": status.detail} for status in answer.statuses],
        **({} if answer.tasks is None else _task_lists(answer.tasks)),
        "endpoint_information_epoch": answer.endpoint_information_epoch,
        "partitions_by_user_endpoint": None
        if endpoints is None
        else [
            {
                "user_endpoint": each.endpoint._asdict(),
                "active_partitions": [{"topic": topic, "partitions": numbers} for topic, numbers in each.active],
                "standby_partitions": [{"topic": topic, "partitions": numbers} for topic, numbers in each.standby],
            }
            for each in endpoints
        ],
    }


def _task_lists(tasks: TasksByType) -> dict[str, Any]:
    return {
        "active_tasks": _task_ids(tasks.active),
        "standby_tasks": _task_ids(tasks.standby),
        "warmup_tasks": _task_ids(tasks.warmup),
    }


def _task_ids(tasks: Tasks) -> list[Mapping[str, Any]]:
    partitions: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        partitions.setdefault(subtopology_id, []).append(partition)
    return [{"subtopology_id": name, "partitions": numbers} for name, numbers in partitions.items()]


def _described(broker: "Broker", group_id: str) -> dict[str, Any]:
    if not _is_on(broker):
        return {"group_id": group_id, **_UNSUPPORTED}
    if not group_id:
        return {
            "group_id": group_id,
            "error_code": ErrorCode.invalid_group_id,
            "error_message": "The group id is empty.",
        }
    group = broker.streams_groups.get(group_id)
    if group is None:
        kind = broker.group_log.ids.kind(group_id)
        problem = "not found." if kind is None else "is not a streams group."
        return {
            "group_id": group_id,
            "error_code": ErrorCode.group_id_not_found,
            "error_message": f"Group {group_id} {problem}",
        }
    if group.topology is None:
        return {"group_id": group_id, "error_code": ErrorCode.unknown_server_error}
    return {
        "group_id": group_id,
        "group_state": group.state.value,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.target_assignment_epoch,
        "topology": _described_topology(group.topology, broker.streams_groups.soft_state(group_id)),
        "members": [_described_member(group, member_id, member) for member_id, member in group.members.items()],
    }


def _described_topology(topology: Topology, soft: SoftState) -> Mapping[str, Any]:
    """With decided partition counts while the topology is ready, else as the group recorded it."""
    subtopologies = topology.subtopologies
    if soft.configured is not None and soft.configured.is_ready and soft.configured.subtopologies is not None:
        subtopologies = tuple(each.subtopology for each in soft.configured.subtopologies.values())
    return {
        "epoch": topology.epoch,
        "subtopologies": [
            {
                "subtopology_id": each.subtopology_id,
                "source_topics": sorted(each.source_topics),
                "repartition_sink_topics": sorted(each.repartition_sink_topics),
                "state_changelog_topics": _described_topics(each.state_changelog_topics),
                "repartition_source_topics": _described_topics(each.repartition_source_topics),
            }
            for each in sorted(subtopologies)
        ],
    }


def _described_topics(topics: Iterable[TopicInfo]) -> list[Mapping[str, Any]]:
    return [
        {
            "name": topic.name,
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "topic_configs": _described_pairs(sorted(topic.configs)),
        }
        for topic in sorted(topics)
    ]


def _described_pairs(pairs: Iterable[tuple[str, str]]) -> list[Mapping[str, Any]]:
    return [{"key": key, "value": value} for key, value in pairs]


def _described_member(group: StreamsGroup, member_id: str, member: StreamsMember) -> Mapping[str, Any]:
    metadata = member.metadata or _NO_METADATA
    assignment = member.assignment
    return {
        "member_id": member_id,
        "member_epoch": 0 if assignment is None else assignment.member_epoch,
        "instance_id": metadata.instance_id,
        "rack_id": metadata.rack_id,
        "client_id": metadata.client_id,
        "client_host": metadata.client_host,
        "topology_epoch": metadata.topology_epoch,
        "process_id": metadata.process_id,
        "user_endpoint": None if metadata.user_endpoint is None else metadata.user_endpoint._asdict(),
        "client_tags": _described_pairs(metadata.client_tags),
        "task_offsets": [],
        "task_end_offsets": [],
        "assignment": _task_lists(NO_TASKS_BY_TYPE if assignment is None else assignment.assigned),
        "target_assignment": _task_lists(group.targets.get(member_id, NO_TASKS_BY_TYPE)),
        "is_classic": False,
    }
