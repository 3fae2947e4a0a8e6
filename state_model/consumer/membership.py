"""Whether a consumer group accepts a member, and the member before a heartbeat (GroupMetadataManager of 4.3.1)."""

from state_model.consumer import records
from state_model.consumer.draft import Draft
from state_model.consumer.group_values import (
    LEFT_STATIC_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    MemberMetadata,
    member_assignment,
    member_metadata,
    uses_classic_protocol,
)
from state_model.consumer.heartbeat import ErrorCode, Heartbeat, HeartbeatError
from state_model.consumer.soft_state import Settings
from state_model.group_heartbeat import JOINING, UNCHANGED_TIMEOUT, changed, epoch_problem


def group_of(group: ConsumerGroup | None, request: Heartbeat) -> ConsumerGroup:
    """The group before the request, a new one for the first member. Raises HeartbeatError."""
    if group is not None:
        return group
    if request.member_epoch != JOINING:
        raise HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
    return ConsumerGroup()


def other_kind(group_id: str) -> HeartbeatError:
    """The error for a group of another kind, but for classic groups that a join may convert."""
    return HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def check_size(group: ConsumerGroup, member_id: str, settings: Settings) -> None:
    """Raise HeartbeatError for a member that a full group lacks, whether it joins, stays or replaces a static one."""
    if len(group.members) >= settings.max_size and member_id not in group.members:
        raise HeartbeatError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {settings.max_size} members.",
        )


def subscribe_member(draft: Draft, request: Heartbeat) -> ConsumerMember:
    """The member before the request; a new one when it joins. Raises HeartbeatError.

    A static member that comes back under a new member id gets its records under that id.
    """
    member = draft.group.members.get(request.member_id)
    is_joining = request.member_epoch == JOINING
    if request.instance_id is not None and not is_joining:
        member = static_member(draft.group, request)
    elif request.instance_id is not None and request.instance_id in draft.group.static_members:
        return replace_static(draft, request, request.instance_id)
    if is_joining:
        return member or ConsumerMember()
    if member is None:
        raise unknown_member(request.group_id, request.member_id)
    _check_epoch(member, request)
    return member


def static_member(group: ConsumerGroup, request: Heartbeat) -> ConsumerMember:
    """The member of the request's instance id, which must have the request's member id. Raises HeartbeatError."""
    member_id = group.static_members.get(request.instance_id or "")
    if member_id is None:
        raise HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(request.group_id, member_id)
    if member_id != request.member_id:
        raise HeartbeatError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} was fenced by member "
            f"{member_id}.",
        )
    return member


def replace_static(draft: Draft, request: Heartbeat, instance_id: str, *, is_classic: bool = False) -> ConsumerMember:
    """The member that takes the place of a static member, in epoch 0 with its partitions. Raises HeartbeatError.

    The one before must have left for a while, unless one of them is classic.

    Args:
        is_classic: whether the new member is.
    """
    old_id = draft.group.static_members[instance_id]
    member = draft.group.members.get(old_id)
    if member is None:
        raise unknown_member(request.group_id, old_id)
    assignment = member_assignment(member)
    if assignment.member_epoch != LEFT_STATIC_EPOCH and not uses_classic_protocol(member) and not is_classic:
        raise HeartbeatError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {old_id} member.",
        )
    target = draft.group.targets.get(old_id, frozenset())
    draft.end_member(old_id)
    draft.add(records.MEMBER, member_metadata(member), request.member_id)
    draft.add(records.MEMBER_TARGET, target, request.member_id)
    new_assignment = assignment._replace(member_epoch=0, previous_member_epoch=0)
    draft.add(records.ASSIGNMENT, new_assignment, request.member_id)
    return draft.group.members[request.member_id]


def _check_epoch(member: ConsumerMember, request: Heartbeat) -> None:
    """Checks the member epoch; an older one is accepted when the answer with the newer one was lost."""
    assignment = member_assignment(member)
    is_subset = request.owned is not None and request.owned <= assignment.assigned.keys()
    epochs = request.member_epoch, assignment.member_epoch, assignment.previous_member_epoch
    problem = epoch_problem("consumer", *epochs, is_subset=is_subset)
    if problem is not None:
        raise HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, problem)


def updated_metadata(old: MemberMetadata, request: Heartbeat) -> MemberMetadata:
    """The member's metadata after a heartbeat; null fields of the request stay as they were."""
    timeout_ms = None if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT else request.rebalance_timeout_ms
    return MemberMetadata(
        instance_id=changed(request.instance_id, old.instance_id),
        rack_id=changed(request.rack_id, old.rack_id),
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_topic_names=changed(request.subscribed_topic_names, old.subscribed_topic_names),
        subscribed_topic_regex=changed(request.subscribed_topic_regex, old.subscribed_topic_regex),
        rebalance_timeout_ms=changed(timeout_ms, old.rebalance_timeout_ms),
        server_assignor=changed(request.server_assignor, old.server_assignor),
    )


def unknown_member(group_id: str, member_id: str) -> HeartbeatError:
    """The error for a member that the group lacks."""
    return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")
