"""Whether a streams group accepts a member, and its metadata after a heartbeat (streams-group §1.3, §1.8, §1.9)."""

from typing import Final

from state_model.group_heartbeat import JOINING, UNCHANGED_TIMEOUT, changed, epoch_problem
from state_model.streams.heartbeat import ErrorCode, Heartbeat, HeartbeatError
from state_model.streams.soft_state import Settings
from state_model.streams.values import MemberAssignment, MemberMetadata, MemberState, StreamsGroup, StreamsMember

NEW_ASSIGNMENT: Final = MemberAssignment(MemberState.STABLE, 0, 0)
"""The assignment of a member before its first record of type 22."""
_NO_METADATA: Final = MemberMetadata(None, None, "", "", -1, 0, "")


def group_of(group: StreamsGroup | None, request: Heartbeat) -> StreamsGroup:
    """The group before the request, a new one for the first member. Raises HeartbeatError."""
    if group is not None:
        return group
    if request.member_epoch != JOINING:
        raise HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {request.group_id} not found.")
    return StreamsGroup()


def member_of(group: StreamsGroup, request: Heartbeat, settings: Settings) -> StreamsMember | None:
    """The member before the request; None for a new one (§1.8, §1.9). Raises HeartbeatError."""
    member = group.members.get(request.member_id)
    if request.member_epoch == JOINING:
        if len(group.members) >= settings.max_size:
            raise HeartbeatError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {settings.max_size} members.",
            )
        return member
    if member is None:
        raise unknown_member(request)
    _check_epoch(member.assignment or NEW_ASSIGNMENT, request)
    return member


def _check_epoch(assignment: MemberAssignment, request: Heartbeat) -> None:
    """Checks the member epoch; an older one is accepted when the answer with the newer one was lost (§1.9)."""
    owned = request.owned
    is_subset = owned is not None and all(
        owned_tasks <= assigned for owned_tasks, assigned in zip(owned, assignment.assigned, strict=True)
    )
    epochs = request.member_epoch, assignment.member_epoch, assignment.previous_member_epoch
    problem = epoch_problem("streams", *epochs, is_subset=is_subset)
    if problem is not None:
        raise HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, problem)


def updated_metadata(old: MemberMetadata | None, request: Heartbeat) -> MemberMetadata:
    """The member's metadata after a heartbeat; null fields of the request stay as they were."""
    timeout_ms = None if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT else request.rebalance_timeout_ms
    topology_epoch = None if request.topology is None else request.topology.epoch
    old = old or _NO_METADATA
    return MemberMetadata(
        instance_id=old.instance_id,
        rack_id=changed(request.rack_id, old.rack_id),
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=changed(timeout_ms, old.rebalance_timeout_ms),
        topology_epoch=changed(topology_epoch, old.topology_epoch),
        process_id=changed(request.process_id, old.process_id),
        user_endpoint=changed(request.user_endpoint, old.user_endpoint),
        client_tags=changed(request.client_tags, old.client_tags),
    )


def unknown_member(request: Heartbeat) -> HeartbeatError:
    """The error for a member that the group lacks."""
    text = f"Member {request.member_id} is not a member of group {request.group_id}."
    return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, text)
