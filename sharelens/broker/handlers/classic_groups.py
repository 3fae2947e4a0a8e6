"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_group import ClassicGroup, GroupState, JoinAnswer, SyncAnswer
from sharelens.broker.coordinators.classic_groups import JoinRequest, MemberCall
from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.handlers.share_groups import with_operations
from sharelens.broker.protocol.messages import milliseconds
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

Waited = TypeVar("Waited")
_NULLABLE_PROTOCOL_NAME_VERSION = 7
_KNOWN_MEMBER_VERSION = 4
_SKIP_ASSIGNMENT_VERSION = 9
_MEMBERS_VERSION = 3
_NOT_FOUND_VERSION = 6


@handles(ApiKey.JOIN_GROUP, (0, 9), elements_max=ELEMENTS_MAX_AT_ONCE)
def join_group(broker: "Broker", request: Any, context: RequestContext) -> Answer | Awaitable[Answer]:
    """Answered when the generation that the member joins is complete."""
    version = context.api_version
    session_timeout_ms = milliseconds(request.session_timeout)
    rebalance_timeout = getattr(request, "rebalance_timeout", None)
    call = JoinRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=getattr(request, "group_instance_id", None),
        client_id=context.client_id,
        client_host=context.client_host,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=session_timeout_ms if rebalance_timeout is None else milliseconds(rebalance_timeout),
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        requires_known_member=version >= _KNOWN_MEMBER_VERSION,
        can_skip_assignment=version >= _SKIP_ASSIGNMENT_VERSION,
    )

    def answered(answer: JoinAnswer) -> Answer:
        no_name = None if version >= _NULLABLE_PROTOCOL_NAME_VERSION else ""
        return {
            "error_code": answer.error_code,
            "generation_id": answer.generation_id,
            "protocol_type": answer.protocol_type,
            "protocol_name": no_name if answer.protocol_name is None else answer.protocol_name,
            "leader": answer.leader,
            "skip_assignment": answer.skip_assignment,
            "member_id": answer.member_id,
            "members": [
                {
                    "member_id": member.member_id,
                    "group_instance_id": member.group_instance_id,
                    "metadata": member.metadata,
                }
                for member in answer.members
            ],
        }

    return _waited(lambda done: broker.classic_groups.join(call, done), answered)


@handles(ApiKey.SYNC_GROUP, (0, 5), elements_max=ELEMENTS_MAX_AT_ONCE)
def sync_group(broker: "Broker", request: Any, context: RequestContext) -> Answer | Awaitable[Answer]:
    """Answered when the leader has sent the assignments."""
    assignments = {member.member_id: bytes(member.assignment) for member in request.assignments}

    def answered(answer: SyncAnswer) -> Answer:
        return {
            "error_code": answer.error_code,
            "protocol_type": answer.protocol_type,
            "protocol_name": answer.protocol_name,
            "assignment": answer.assignment,
        }

    protocol_type, protocol_name = getattr(request, "protocol_type", None), getattr(request, "protocol_name", None)
    sender = member_call(request, request.generation_id)
    if broker.consumer_groups.get(request.group_id) is not None:
        return answered(broker.consumer_groups.sync(sender, protocol_type=protocol_type, protocol_name=protocol_name))

    def call(done: Callable[[SyncAnswer], None]) -> None:
        broker.classic_groups.sync(sender, assignments, done, protocol_type=protocol_type, protocol_name=protocol_name)

    return _waited(call, answered)


@handles(ApiKey.HEARTBEAT, (0, 4))
def heartbeat(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Answered at once."""
    sender = member_call(request, request.generation_id)
    if broker.consumer_groups.get(request.group_id) is not None:
        return {"error_code": broker.consumer_groups.classic_heartbeat(sender)}
    return {"error_code": broker.classic_groups.heartbeat(sender)}


@handles(ApiKey.LEAVE_GROUP, (0, 5), elements_max=ELEMENTS_MAX_AT_ONCE)
def leave_group(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """One member up to version 2, then several, each with its code."""
    if not request.group_id:
        return {"error_code": ErrorCode.invalid_group_id, "members": []}
    is_single = context.api_version < _MEMBERS_VERSION
    leaving = [(request.member_id, None)] if is_single else [_identity(member) for member in request.members]
    try:
        codes = _leave(broker, request.group_id, leaving)
    except GroupError as error:
        return {"error_code": error.code, "members": []}
    if is_single:
        return {"error_code": codes[0]}
    members = [
        {"member_id": member_id, "group_instance_id": instance_id, "error_code": code}
        for (member_id, instance_id), code in zip(leaving, codes, strict=True)
    ]
    return {"error_code": ErrorCode.none, "members": members}


def _identity(member: Any) -> tuple[str, str | None]:
    return member.member_id, member.group_instance_id


def _leave(broker: "Broker", group_id: str, leaving: Sequence[tuple[str, str | None]]) -> list[ErrorCode]:
    """The code of each member (member id, instance id). Raises GroupError: none has left."""
    if broker.consumer_groups.get(group_id) is not None:
        return broker.consumer_groups.remove(group_id, leaving)
    return [broker.classic_groups.leave(group_id, *member) for member in leaving]


@handles(ApiKey.DESCRIBE_GROUPS, (0, 6))
def describe_groups(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """A missing group is Dead, and from version 6 on an error."""
    has_operations = getattr(request, "include_authorized_operations", False)

    def described(group_id: str) -> Mapping[str, Any]:
        answer = _described(broker, group_id, context.api_version)
        return with_operations(context, answer) if has_operations else answer

    return {"groups": LazyArray(described, request.groups)}


def _described(broker: "Broker", group_id: str, version: int) -> Mapping[str, Any]:
    group: ClassicGroup | None = broker.classic_groups.get(group_id)
    if group is None:
        is_error = version >= _NOT_FOUND_VERSION
        problem = "not found." if broker.group_log.ids.kind(group_id) is None else "is not a classic group."
        return {
            "error_code": ErrorCode.group_id_not_found if is_error else ErrorCode.none,
            "error_message": f"Group {group_id} {problem}" if is_error else None,
            "group_id": group_id,
            "group_state": GroupState.DEAD.value,
        }
    protocol_name = group.protocol_name if group.state is GroupState.STABLE else None
    return {
        "error_code": ErrorCode.none,
        "group_id": group_id,
        "group_state": group.state.value,
        "protocol_type": group.protocol_type,
        "protocol_data": protocol_name or "",
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata(protocol_name),
                "member_assignment": b"" if protocol_name is None else member.assignment,
            }
            for member in group.members.values()
        ],
    }


def member_call(request: Any, generation_id: int) -> MemberCall:
    """The sender of a request that names a group, a member and a generation."""
    return MemberCall(
        group_id=request.group_id,
        member_id=getattr(request, "member_id", ""),
        generation_id=generation_id,
        group_instance_id=getattr(request, "group_instance_id", None),
    )


def _waited(
    call: Callable[[Callable[[Waited], None]], None], answered: Callable[[Waited], Answer]
) -> Answer | Awaitable[Answer]:
    """The answer that `call` passes to its callback, at once or later; dropped when the connection is closed."""
    outcome: asyncio.Future[Waited] = asyncio.get_running_loop().create_future()

    def done(answer: Waited) -> None:
        if not outcome.done():
            outcome.set_result(answer)

    async def later() -> Answer:
        return answered(await outcome)

    call(done)
    return answered(outcome.result()) if outcome.done() else later()
