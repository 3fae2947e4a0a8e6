"""Share groups: heartbeat, describe, and admin operations on their offsets (rpcs §1, §3, §4; KIP-932)."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.share_group import Assignment, GroupError, ShareGroup, ShareMember
from sharelens.broker.coordinators.share_groups import ShareGroups
from sharelens.broker.coordinators.share_membership import Heartbeat
from sharelens.broker.coordinators.share_offsets import ShareOffsets, TopicErrors, TopicOffsets
from sharelens.broker.ports import Topics
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.security.authorization.entries import ResourceType
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.group_heartbeat import JOINING, LEAVING

MEMBER_ID_MAX_LENGTH = 36
ASSIGNOR_NAME = "simple"


class ShareGroupServer(Protocol):
    """The parts of the broker that these handlers use."""

    @property
    def share_groups(self) -> ShareGroups:
        """The share groups."""

    @property
    def share_offsets(self) -> ShareOffsets:
        """Their offsets."""

    @property
    def share_version(self) -> int:
        """The finalized level of share.version; 0 when share groups are off."""

    @property
    def catalog(self) -> Topics:
        """The topics."""


@handles(ApiKey.SHARE_GROUP_HEARTBEAT, (1, 1), elements_max=ELEMENTS_MAX_AT_ONCE)
def heartbeat(broker: ShareGroupServer, request: Any, context: RequestContext) -> Answer:
    """A member joins, stays or leaves."""
    if not broker.share_version:
        return _UNSUPPORTED
    fault = _fault_of(request)
    if fault is not None:
        return _error(ErrorCode.invalid_request, fault)
    try:
        if request.member_epoch == LEAVING:
            broker.share_groups.leave(request.group_id, request.member_id)
            return {"member_id": request.member_id, "member_epoch": LEAVING}
        answer = broker.share_groups.heartbeat(
            Heartbeat(
                group_id=request.group_id,
                member_id=request.member_id,
                member_epoch=request.member_epoch,
                rack_id=request.rack_id,
                subscribed_topic_names=request.subscribed_topic_names,
                client_id=context.client_id,
                client_host=context.client_host,
            )
        )
    except GroupError as error:
        return _error(error.code, str(error))
    assignment = answer.beat.assignment
    return {
        "member_id": request.member_id,
        "member_epoch": answer.beat.member.epoch,
        "heartbeat_interval": answer.heartbeat_interval_ms,
        "assignment": None if assignment is None else {"topic_partitions": _topic_partitions(assignment)},
    }


@handles(ApiKey.SHARE_GROUP_DESCRIBE, (1, 1))
def describe(broker: ShareGroupServer, request: Any, context: RequestContext) -> Answer:
    """Groups with their members; a missing group, or one of another kind, has an error of its own."""

    def described(group_id: str) -> Answer:
        answer = _described(broker, group_id)
        return with_operations(context, answer) if request.include_authorized_operations else answer

    return {"groups": LazyArray(described, request.group_ids)}


@handles(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (0, 1), elements_max=ELEMENTS_MAX_AT_ONCE)
def describe_offsets(broker: ShareGroupServer, request: Any, context: RequestContext) -> Answer:
    """Start offsets, and from version 1 on lags; a null list of topics means all."""
    return {"groups": LazyArray(lambda group: _offsets_of_group(broker, group), request.groups)}


@handles(ApiKey.ALTER_SHARE_GROUP_OFFSETS, (0, 0), elements_max=ELEMENTS_MAX_AT_ONCE)
def alter_offsets(broker: ShareGroupServer, request: Any, context: RequestContext) -> Answer:
    """Set start offsets of an empty group, which is created when it is missing."""
    offsets = {
        topic.topic_name: {partition.partition_index: partition.start_offset for partition in topic.partitions}
        for topic in request.topics
    }

    def alter() -> Answer:
        _require_group_id(request.group_id)
        return {"responses": [_altered(topic) for topic in broker.share_offsets.alter(request.group_id, offsets)]}

    return _attempt(broker, alter)


@handles(ApiKey.DELETE_SHARE_GROUP_OFFSETS, (0, 0), elements_max=ELEMENTS_MAX_AT_ONCE)
def delete_offsets(broker: ShareGroupServer, request: Any, context: RequestContext) -> Answer:
    """Delete the offsets of an empty group in whole topics."""

    def delete() -> Answer:
        _require_group_id(request.group_id)
        names = [topic.topic_name for topic in request.topics]
        return {
            "responses": [
                _named(topic) | _error(topic.errors[None], "There is no offset information to delete.")
                for topic in broker.share_offsets.delete_offsets(request.group_id, names)
            ]
        }

    return _attempt(broker, delete)


def with_operations(context: RequestContext, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The description of a group of any kind with what the client may do with it; an error as it is."""
    if answer.get("error_code", ErrorCode.none) is not ErrorCode.none:
        return answer
    return {**answer, "authorized_operations": context.rights.bits(ResourceType.GROUP, answer["group_id"])}


def _fault_of(request: Any) -> str | None:
    """The error of a heartbeat that is invalid for any group."""
    faults = {
        "MemberId can't be empty.": not request.member_id,
        f"MemberId can't be longer than {MEMBER_ID_MAX_LENGTH} characters.": len(request.member_id)
        > MEMBER_ID_MAX_LENGTH,
        "GroupId can't be empty.": not request.group_id,
        "RackId can't be empty.": request.rack_id == "",
        f"MemberEpoch is {request.member_epoch}, but must be -1 or above.": request.member_epoch < LEAVING,
        "SubscribedTopicNames must be set in first request.": request.member_epoch == JOINING
        and not request.subscribed_topic_names,
    }
    return next((text for text, is_so in faults.items() if is_so), None)


def _attempt(broker: ShareGroupServer, operation: Callable[[], Answer]) -> Answer:
    if not broker.share_version:
        return _UNSUPPORTED
    try:
        return operation()
    except GroupError as error:
        return _error(error.code, str(error))


def _require_group_id(group_id: str) -> None:
    if not group_id:
        raise GroupError(ErrorCode.invalid_group_id, "The group id is empty.")


def _error(code: ErrorCode, text: str) -> dict[str, Any]:
    return {"error_code": code, "error_message": None if code is ErrorCode.none else text}


_UNSUPPORTED = _error(ErrorCode.unsupported_version, "share.version is 0: share groups are off.")


def _topic_partitions(assignment: Assignment) -> list[Mapping[str, Any]]:
    return [{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in assignment.items()]


def _described(broker: ShareGroupServer, group_id: str) -> dict[str, Any]:
    def of_group() -> Answer:
        _require_group_id(group_id)
        group: ShareGroup = broker.share_groups.require(group_id)
        return {
            "group_state": group.state,
            "group_epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignor_name": ASSIGNOR_NAME,
            "members": [_member(broker.catalog, member) for member in group.members.values()],
        }

    return {"group_id": group_id, **_attempt(broker, of_group)}


def _offsets_of_group(broker: ShareGroupServer, requested: Any) -> Mapping[str, Any]:
    def of_group() -> Answer:
        topics = requested.topics
        partitions = None if topics is None else {topic.topic_name: topic.partitions for topic in topics}
        return {"topics": [_offsets(topic) for topic in broker.share_offsets.describe(requested.group_id, partitions)]}

    return {"group_id": requested.group_id, **_attempt(broker, of_group)}


def _member(topics: Topics, member: ShareMember) -> Mapping[str, Any]:
    named = [(topics.by_id(topic_id), partitions) for topic_id, partitions in member.assigned.items()]
    return {
        "member_id": member.member_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.subscribed_topic_names,
        "assignment": {
            "topic_partitions": [
                {"topic_id": topic.topic_id, "topic_name": topic.name, "partitions": partitions}
                for topic, partitions in named
                if topic is not None
            ]
        },
    }


def _named(topic: TopicOffsets | TopicErrors) -> dict[str, Any]:
    return {"topic_name": topic.name, "topic_id": topic.topic_id}


def _offsets(topic: TopicOffsets) -> Mapping[str, Any]:
    partitions = [
        {
            "partition_index": offset.partition,
            "start_offset": offset.start_offset,
            "leader_epoch": offset.leader_epoch,
            "lag": offset.lag,
        }
        for offset in topic.partitions
    ]
    return _named(topic) | {"partitions": partitions}


def _altered(topic: TopicErrors) -> Mapping[str, Any]:
    partitions = [
        {"partition_index": partition, **_error(code, code.name.replace("_", " "))}
        for partition, code in topic.errors.items()
    ]
    return _named(topic) | {"partitions": partitions}
