"""Consumer groups whose members have epochs: heartbeat and describe (KIP-848)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.handlers.share_groups import with_operations
from sharelens.broker.protocol.messages import milliseconds, topic_id_text
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.security.authorization.entries import Operation
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.consumer.group_spec import by_topic
from state_model.consumer.group_values import ConsumerGroup, ConsumerMember, member_assignment, member_metadata
from state_model.consumer.heartbeat import Answer as HeartbeatAnswer
from state_model.consumer.heartbeat import Heartbeat, HeartbeatError
from state_model.consumer.reconciliation import Partition, Partitions

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

PROTOCOL = "consumer"
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""The types of members in a description."""
_UNSUPPORTED = {
    "error_code": ErrorCode.unsupported_version,
    "error_message": "group.version is 0, or group.coordinator.rebalance.protocols lacks consumer.",
}


@handles(ApiKey.CONSUMER_GROUP_HEARTBEAT, (0, 1), elements_max=ELEMENTS_MAX_AT_ONCE)
def heartbeat(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """A member joins, stays or leaves."""
    if not _is_on(broker):
        return _UNSUPPORTED
    rights = context.rights
    try:
        answer = broker.consumer_groups.heartbeat(
            _heartbeat(request, context),
            version=context.api_version,
            may_describe=lambda name: rights.topic(Operation.DESCRIBE, name),
        )
    except HeartbeatError as error:
        return {"error_code": ErrorCode(error.code), "error_message": error.text}
    except GroupError as error:
        return {"error_code": error.code, "error_message": str(error)}
    return _answer(answer)


@handles(ApiKey.CONSUMER_GROUP_DESCRIBE, (0, 1))
def describe(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Groups with their members; a missing group, or one of another kind, has an error of its own."""

    def described(group_id: str) -> Answer:
        answer = {"group_id": group_id, **_described(broker, group_id)}
        return with_operations(context, answer) if request.include_authorized_operations else answer

    return {"groups": LazyArray(described, request.group_ids)}


def _is_on(broker: "Broker") -> bool:
    return bool(broker.group_version) and PROTOCOL in broker.config.names("group.coordinator.rebalance.protocols")


def _heartbeat(request: Any, context: RequestContext) -> Heartbeat:
    names = request.subscribed_topic_names
    return Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        client_id=context.client_id,
        client_host=context.client_host,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=milliseconds(request.rebalance_timeout),
        subscribed_topic_names=None if names is None else frozenset(names),
        subscribed_topic_regex=getattr(request, "subscribed_topic_regex", None),
        server_assignor=request.server_assignor,
        owned=_partitions(request.topic_partitions),
    )


def _partitions(sent: Iterable[Any] | None) -> Partitions | None:
    if sent is None:
        return None
    return frozenset(
        Partition(topic_id_text(topic.topic_id) or "", partition) for topic in sent for partition in topic.partitions
    )


def _answer(answer: HeartbeatAnswer) -> Answer:
    assigned = None if answer.assigned is None else by_topic(answer.assigned)
    return {
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval": answer.heartbeat_interval_ms,
        "assignment": None
        if assigned is None
        else {
            "topic_partitions": [
                {"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in assigned.items()
            ]
        },
    }


def _described(broker: "Broker", group_id: str) -> dict[str, Any]:
    if not _is_on(broker):
        return _UNSUPPORTED
    if not group_id:
        return {"error_code": ErrorCode.invalid_group_id}
    try:
        group = broker.consumer_groups.require(group_id)
    except GroupError as error:
        return {"error_code": error.code, "error_message": str(error)}
    return {
        "group_state": group.state.value,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.target_assignment_epoch,
        "assignor_name": broker.consumer_groups.assignor_of(group_id, group),
        "members": [_described_member(broker, group, member_id, member) for member_id, member in group.members.items()],
    }


def _described_member(
    broker: "Broker", group: ConsumerGroup, member_id: str, member: ConsumerMember
) -> Mapping[str, Any]:
    """A member with all that it is responsible for: what it must revoke too."""
    metadata, assignment = member_metadata(member), member_assignment(member)
    return {
        "member_id": member_id,
        "instance_id": metadata.instance_id,
        "rack_id": metadata.rack_id,
        "member_epoch": assignment.member_epoch,
        "client_id": metadata.client_id,
        "client_host": metadata.client_host,
        "subscribed_topic_names": sorted(metadata.subscribed_topic_names),
        "subscribed_topic_regex": metadata.subscribed_topic_regex,
        "assignment": _described_assignment(broker, {*assignment.assigned, *assignment.pending}),
        "target_assignment": _described_assignment(broker, group.targets.get(member_id, frozenset())),
        "member_type": CONSUMER_MEMBER if metadata.classic_member_metadata is None else CLASSIC_MEMBER,
    }


def _described_assignment(broker: "Broker", partitions: Iterable[Partition]) -> Mapping[str, Any]:
    """Without topics that don't exist."""
    named = [(broker.catalog.by_id(topic_id), numbers) for topic_id, numbers in by_topic(partitions).items()]
    return {
        "topic_partitions": [
            {"topic_id": topic.topic_id, "topic_name": topic.name, "partitions": numbers}
            for topic, numbers in named
            if topic is not None
        ]
    }
