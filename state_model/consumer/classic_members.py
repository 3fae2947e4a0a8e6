"""Members of the classic protocol inside a consumer group: JoinGroup, SyncGroup and Heartbeat (GroupMetadataManager).

A classic member has the metadata and the assignment of any other member; its generation is its member epoch. It learns
from its heartbeats that it must join again. LeaveGroup removes members of both protocols (`coordinator.fence_all`).

Two timers are those of classic members alone: that of the next join, and that of the sync after a join. When one of
them or the session expires, the member is fenced (`coordinator.expire_session`).
"""

from typing import NamedTuple

from state_model.consumer.classic_group import Downgrade, Protocols, classic_metadata, classic_protocols
from state_model.consumer.coordinator import Outcome, group_tombstones, outcome_of
from state_model.consumer.draft import Draft
from state_model.consumer.group_values import (
    ConsumerGroup,
    ConsumerMember,
    MemberMetadata,
    member_assignment,
    member_metadata,
    uses_classic_protocol,
)
from state_model.consumer.heartbeat import Answer, ErrorCode, Heartbeat, HeartbeatError
from state_model.consumer.membership import (
    check_size,
    replace_static,
    static_member,
    unknown_member,
    updated_metadata,
)
from state_model.consumer.migration import assignment_bytes, classic_group, may_downgrade, partitions_of
from state_model.consumer.reconciliation import NO_EPOCH, MemberState, partition_epochs
from state_model.consumer.soft_state import MigrationPolicy, Settings, SoftState, refreshed
from state_model.consumer.steps import (
    Change,
    last_target,
    reconcile_member,
    refresh_metadata,
    target_of,
    update_member,
)
from state_model.consumer_protocol import PROTOCOL_TYPE, read_subscription
from state_model.errors import DecodeError
from state_model.group_heartbeat import JOINING, LEAVING
from state_model.group_topics import TopicNames, Topics


class Join(NamedTuple):
    """A JoinGroup.

    Attributes:
        member_id: of the request, or, if that has none, the one that the broker makes.
        is_new_id: whether the broker made the id.
        needs_known_id: whether a new dynamic member must join again with the broker's id (version 4 on).
        protocols: in the order of the member's preference.
    """

    group_id: str
    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    is_new_id: bool = False
    needs_known_id: bool = True


class ClassicCall(NamedTuple):
    """The sender of a SyncGroup or a Heartbeat; None: the request does not say."""

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None


def join(
    group: ConsumerGroup,
    soft: SoftState,
    request: Join,
    topics: Topics,
    topic_names: TopicNames,
    settings: Settings,
    now_ms: int,
) -> Outcome:
    """A classic member joins a consumer group that has members, or joins again.

    The answer has the generation (`member_epoch`) and the first protocol of the request, and no members. The join timer
    ends; session and sync timer begin, the latter with the request's rebalance timeout. A member that replaces the last
    one of the consumer protocol makes the group a classic one; then the classic group's timers begin instead.

    Raises:
        HeartbeatError: MEMBER_ID_REQUIRED asks the client to join again with the broker's id.
    """
    _check_join(group, request, settings)
    draft = Draft(request.group_id, group)
    replaced = group.members.get(group.static_members.get(request.instance_id or "", ""))
    member = _joining_member(draft, request)
    old_assignment = member_assignment(member)
    as_heartbeat, metadata = _updated(member, request, topics)
    changed = update_member(draft, member, request.member_id, metadata, settings).is_changed
    change = Change(changed, raises_epoch=changed)
    is_refreshed = refresh_metadata(draft, soft, topics, now_ms, raises_epoch=change.raises_epoch)
    downgrades = replaced is not None and not uses_classic_protocol(replaced) and may_downgrade(draft.group, settings)
    if downgrades:
        is_stale = draft.group.group_epoch > group.target_assignment_epoch
        if not is_stale:
            target = last_target(group, request.member_id, metadata.instance_id)
            reconcile_member(draft, target, as_heartbeat, topics, is_changed=change.is_changed)
    else:
        target = target_of(draft, group, as_heartbeat, topics, settings, now_ms, is_refreshed=is_refreshed)
        reconcile_member(draft, target, as_heartbeat, topics, is_changed=change.is_changed)
    epoch = member_assignment(draft.group.members[request.member_id]).member_epoch
    outcome = outcome_of(
        draft, refreshed(now_ms) if is_refreshed else soft, Answer(request.member_id, epoch), old_assignment
    )
    if not downgrades:
        return outcome
    classic = classic_group(request.group_id, group.group_epoch, outcome.group, topic_names, now_ms)
    tombstones = group_tombstones(request.group_id, outcome.group._replace(resolved=group.resolved))
    return Outcome(
        (*outcome.records, *tombstones),
        ConsumerGroup(),
        SoftState(),
        outcome.answer,
        downgrade=Downgrade(classic, rebalances=is_stale),
    )


def _check_join(group: ConsumerGroup, request: Join, settings: Settings) -> None:
    """Raise HeartbeatError for a member that may not join, in Kafka's order."""
    if settings.migration_policy is MigrationPolicy.DISABLED:
        raise _inconsistent(
            f"Cannot join the consumer group {request.group_id} with the classic protocol because the group migration "
            "is disabled."
        )
    check_size(group, request.member_id, settings)
    if request.protocol_type != PROTOCOL_TYPE or not _is_supported(group, request.protocols):
        raise _inconsistent(f"Member {request.member_id}'s protocols are not supported.")
    if request.is_new_id and request.needs_known_id and request.instance_id is None:
        raise HeartbeatError(ErrorCode.MEMBER_ID_REQUIRED, "The member must join again with its new member id.")


def _is_supported(group: ConsumerGroup, protocols: Protocols) -> bool:
    """Whether all classic members have one of these protocols."""
    names = {name for name, _ in protocols}
    members = [
        {name for name, _ in classic_protocols(member_metadata(member))}
        for member in group.members.values()
        if uses_classic_protocol(member)
    ]
    return bool(names.intersection(*members))


def _joining_member(draft: Draft, request: Join) -> ConsumerMember:
    """The member before the join; a new static member takes the place of the one before. Raises HeartbeatError."""
    heartbeat = _heartbeat(request)
    if request.instance_id is not None and not request.is_new_id:
        return static_member(draft.group, heartbeat)
    if request.instance_id is not None and request.instance_id in draft.group.static_members:
        return replace_static(draft, heartbeat, request.instance_id, is_classic=True)
    return draft.group.members.get(request.member_id) or ConsumerMember()


def _updated(member: ConsumerMember, request: Join, topics: Topics) -> tuple[Heartbeat, MemberMetadata]:
    """The join as a heartbeat, and the member's metadata after it. Raises HeartbeatError.

    All protocols have the same subscription: that of the first one is read.
    """
    try:
        subscription = read_subscription(request.protocols[0][1])
    except DecodeError as error:
        text = "Malformed embedded consumer protocol in subscription deserialization."
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
    heartbeat = _heartbeat(request)._replace(
        client_id=request.client_id,
        client_host=request.client_host,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=subscription.topics,
        subscribed_topic_regex="",
        owned=partitions_of(subscription.owned, topics),
    )
    classic = classic_metadata(request.session_timeout_ms, request.protocols)
    metadata = updated_metadata(member_metadata(member), heartbeat)
    return heartbeat, metadata._replace(classic_member_metadata=classic)


def sync(group: ConsumerGroup, call: ClassicCall, topic_names: TopicNames) -> bytes:
    """The assignment of a classic member, in the version of its metadata.

    The sync timer ends, the session begins again. Raises HeartbeatError; with REBALANCE_IN_PROGRESS the join timer
    begins, unless it runs, with the member's rebalance timeout.
    """
    member = _classic_member(group, call)
    protocol, metadata = classic_protocols(member_metadata(member))[0]
    if call.protocol_type not in (None, PROTOCOL_TYPE) or call.protocol_name not in (None, protocol):
        raise _inconsistent(
            f"The protocol {call.protocol_name} of type {call.protocol_type} from member {call.member_id} request is "
            f"not equal to the protocol {protocol} of type {PROTOCOL_TYPE} returned in the join response."
        )
    assignment = member_assignment(member)
    is_behind = group.target_assignment_epoch > assignment.member_epoch
    if is_behind and assignment.state != MemberState.UNREVOKED_PARTITIONS:
        raise HeartbeatError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"A new rebalance is triggered in group {call.group_id} and member {call.member_id} should rejoin to catch "
            "up.",
        )
    try:
        return assignment_bytes(metadata, assignment.assigned, topic_names)
    except DecodeError as error:
        text = "Malformed embedded consumer protocol in version deserialization."
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error


def must_rejoin(group: ConsumerGroup, call: ClassicCall) -> bool:
    """Whether the answer to a Heartbeat is REBALANCE_IN_PROGRESS. Raises HeartbeatError.

    The session begins again. If the member must join, its join timer begins, unless it runs, with its rebalance
    timeout. It must for another target, to say that it revoked partitions, and when the partitions that it waits for
    are free.
    """
    assignment = member_assignment(_classic_member(group, call))
    if assignment.member_epoch < group.target_assignment_epoch:
        return True
    if assignment.state != MemberState.UNRELEASED_PARTITIONS:
        return assignment.state == MemberState.UNREVOKED_PARTITIONS
    epochs = partition_epochs(each.assignment for each in group.members.values() if each.assignment is not None)
    missing = group.targets.get(call.member_id, frozenset()) - assignment.assigned.keys()
    return all(epochs.get(partition, NO_EPOCH) == NO_EPOCH for partition in missing)


def named_member(group_id: str, group: ConsumerGroup, member_id: str, instance_id: str | None) -> str:
    """The id of the member that a LeaveGroup names, of either protocol. Raises HeartbeatError.

    An instance id without a member id is an administrator's removal.
    """
    if instance_id is not None:
        known_id = member_id or group.static_members.get(instance_id, "")
        static_member(group, Heartbeat(group_id, known_id, LEAVING, instance_id=instance_id))
        return known_id
    if member_id not in group.members:
        raise unknown_member(group_id, member_id)
    return member_id


def _classic_member(group: ConsumerGroup, call: ClassicCall) -> ConsumerMember:
    """The member that calls. Raises HeartbeatError."""
    if call.instance_id is not None:
        member = static_member(group, _heartbeat(call))
    elif call.member_id in group.members:
        member = group.members[call.member_id]
    else:
        raise unknown_member(call.group_id, call.member_id)
    if not uses_classic_protocol(member):
        text = f"Member {call.member_id} does not use the classic protocol."
        raise HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, text)
    epoch = member_assignment(member).member_epoch
    if epoch != call.generation:
        raise HeartbeatError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {call.generation} is not equal to the member epoch {epoch} of member "
            f"{call.member_id}.",
        )
    return member


def _heartbeat(request: Join | ClassicCall) -> Heartbeat:
    """The heartbeat that names the member of a classic request."""
    return Heartbeat(request.group_id, request.member_id, JOINING, instance_id=request.instance_id)


def _inconsistent(text: str) -> HeartbeatError:
    return HeartbeatError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)
