"""Records and answers of a group coordinator for a consumer group: pure functions (KIP-848).

A heartbeat is `(group, soft state, request, topics, settings, now) -> Outcome`. The caller appends the records of an
outcome as one operation; then group and soft state of the outcome are in force, and its timers are due. The rules are
those of GroupMetadataManager of Kafka 4.3.1. Members of the classic protocol: `classic_members`, `migration`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from state_model.consumer import records
from state_model.consumer.classic_group import Downgrade
from state_model.consumer.draft import Draft
from state_model.consumer.group_values import (
    LEFT_STATIC_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    ResolvedExpression,
    member_assignment,
    member_metadata,
    uses_classic_protocol,
)
from state_model.consumer.heartbeat import Answer, ErrorCode, Heartbeat, HeartbeatError
from state_model.consumer.membership import (
    check_size,
    group_of,
    static_member,
    subscribe_member,
    unknown_member,
    updated_metadata,
)
from state_model.consumer.reconciliation import MemberAssignment, MemberState
from state_model.consumer.soft_state import Settings, SoftState, refreshed
from state_model.consumer.steps import reconcile_member, refresh_metadata, target_of, update_member
from state_model.group_heartbeat import JOINING, LEAVING, LEAVING_STATIC
from state_model.group_records import GroupRecord
from state_model.group_topics import Topics


class Outcome(NamedTuple):
    """The result of an operation on a consumer group: its records and its answer.

    A heartbeat starts the session timer of its member again; the removal of a member ends its timers. A static member
    that leaves for a while changes no timer: its session goes on.

    Attributes:
        records: to append, in this order, as one operation.
        group, soft: after them.
        answer: for the member.
        revocation: member epoch and time in which the member must revoke partitions, from now on; None: as before.
        ends_revocation: the member has revoked its partitions; stop that timer.
        downgrade: the classic group that takes the place of the group, which is gone; None: the group stays.
    """

    records: tuple[GroupRecord, ...]
    group: ConsumerGroup
    soft: SoftState
    answer: Answer
    revocation: tuple[int, int] | None = None
    ends_revocation: bool = False
    downgrade: Downgrade | None = None


class Resolution(NamedTuple):
    """The result of `resolve`: records to append as one operation, group and soft state after them."""

    records: tuple[GroupRecord, ...]
    group: ConsumerGroup
    soft: SoftState


def heartbeat(
    group: ConsumerGroup | None, soft: SoftState, request: Heartbeat, topics: Topics, settings: Settings, now_ms: int
) -> Outcome:
    """A member joins or stays; `group` is None when there is none. Raises HeartbeatError."""
    before = group_of(group, request)
    check_size(before, request.member_id, settings)
    draft = Draft(request.group_id, before)
    member = subscribe_member(draft, request)
    change = update_member(
        draft, member, request.member_id, updated_metadata(member_metadata(member), request), settings
    )
    is_refreshed = refresh_metadata(draft, soft, topics, now_ms, raises_epoch=change.raises_epoch)
    # The answer that creates a group sets no deadline: Kafka makes the group again from its records.
    if is_refreshed and group is not None:
        soft = refreshed(now_ms)
    target = target_of(draft, before, request, topics, settings, now_ms, is_refreshed=is_refreshed)
    assigned_before = member_assignment(member)
    assigned = reconcile_member(draft, target, request, topics, is_changed=change.is_changed)
    is_sent = request.member_epoch == JOINING or request.is_full or assigned.assigned != assigned_before.assigned
    answer = Answer(
        request.member_id,
        assigned.member_epoch,
        settings.heartbeat_interval_ms,
        frozenset(assigned.assigned) if is_sent else None,
    )
    return outcome_of(draft, soft, answer, assigned_before)


def outcome_of(draft: Draft, soft: SoftState, answer: Answer, assigned_before: MemberAssignment) -> Outcome:
    """The outcome of a request of a member that stays. Classic members have other timers than that of revocations."""
    member = draft.group.members[answer.member_id]
    assigned = member_assignment(member)
    is_written = assigned != assigned_before and not uses_classic_protocol(member)
    must_revoke = assigned.state == MemberState.UNREVOKED_PARTITIONS
    return Outcome(
        tuple(draft.records),
        draft.group,
        soft,
        answer,
        revocation=(assigned.member_epoch, member_metadata(member).rebalance_timeout_ms)
        if is_written and must_revoke
        else None,
        ends_revocation=is_written and not must_revoke,
    )


def leave(group: ConsumerGroup | None, soft: SoftState, request: Heartbeat, topics: Topics) -> Outcome:
    """The outcome when a member leaves, for good or (static members, epoch -2) for a while. Raises HeartbeatError."""
    if group is None:
        raise HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    if request.instance_id is not None:
        member = static_member(group, request)
        if request.member_epoch == LEAVING_STATIC:
            return _leave_for_a_while(group, soft, request, member)
    elif request.member_id not in group.members:
        raise unknown_member(request.group_id, request.member_id)
    return fence(request.group_id, group, soft, request.member_id, topics)


def _leave_for_a_while(group: ConsumerGroup, soft: SoftState, request: Heartbeat, member: ConsumerMember) -> Outcome:
    """The static member keeps its place and its partitions, with assignment epoch 0; the group epoch stays."""
    assignment = member_assignment(member)
    draft = Draft(request.group_id, group)
    is_state = assignment.state in MemberState.__members__.values()
    after = assignment._replace(
        state=assignment.state if is_state else MemberState.UNKNOWN,
        member_epoch=LEFT_STATIC_EPOCH,
        assigned=dict.fromkeys(assignment.assigned, 0),
        pending={},
    )
    draft.add(records.ASSIGNMENT, after, request.member_id)
    return Outcome(tuple(draft.records), draft.group, soft, Answer(request.member_id, LEAVING_STATIC))


def fence(group_id: str, group: ConsumerGroup, soft: SoftState, member_id: str, topics: Topics) -> Outcome:
    """The outcome of removing a member: it left, or its session or its time to revoke partitions expired."""
    return fence_all(group_id, group, soft, (member_id,), topics)


def fence_all(
    group_id: str, group: ConsumerGroup, soft: SoftState, member_ids: Sequence[str], topics: Topics
) -> Outcome:
    """The outcome of removing members at once, at least one: the group epoch grows once.

    The answer is that of the last one.
    """
    draft = Draft(group_id, group)
    expressions = [member_metadata(group.members[member_id]).subscribed_topic_regex for member_id in member_ids]
    for member_id in member_ids:
        draft.end_member(member_id)
    for regex in dict.fromkeys(filter(None, expressions)):
        if not draft.group.regex_subscribers[regex]:
            draft.end(records.REGULAR_EXPRESSION, regex)
    draft.update_metadata(topics, raises_epoch=True)
    return Outcome(tuple(draft.records), draft.group, soft, Answer(member_ids[-1], LEAVING), ends_revocation=True)


def expire_session(
    group_id: str, group: ConsumerGroup | None, soft: SoftState, member_id: str, topics: Topics
) -> Outcome | None:
    """The outcome when a member's session expired; None: there is no such member."""
    if group is None or member_id not in group.members:
        return None
    return fence(group_id, group, soft, member_id, topics)


def expire_revocation(
    group_id: str, group: ConsumerGroup | None, soft: SoftState, member_id: str, member_epoch: int, topics: Topics
) -> Outcome | None:
    """The outcome when the time to revoke partitions is over; None: the member has left that epoch or the group."""
    if group is None or member_id not in group.members:
        return None
    if member_assignment(group.members[member_id]).member_epoch != member_epoch:
        return None
    return fence(group_id, group, soft, member_id, topics)


def resolve(
    group_id: str,
    group: ConsumerGroup,
    soft: SoftState,
    expressions: Mapping[str, ResolvedExpression],
    topics: Topics,
    now_ms: int,
) -> Resolution:
    """Record what regular expressions match; those without a subscriber are skipped.

    The group epoch grows when matching topics or their metadata hash changed
    (GroupMetadataManager.handleRegularExpressionsResult).
    """
    draft = Draft(group_id, group)
    subscribers = group.regex_subscribers
    matches_before = group.resolved_topics
    subscribed = {regex: expression for regex, expression in expressions.items() if subscribers[regex]}
    for regex, expression in subscribed.items():
        draft.add(records.REGULAR_EXPRESSION, expression, regex)
    is_changed = any(
        expression.topics != matches_before.get(regex, frozenset()) for regex, expression in subscribed.items()
    )
    if draft.update_metadata(topics, raises_epoch=is_changed):
        soft = refreshed(now_ms)
    return Resolution(tuple(draft.records), draft.group, soft)


def group_tombstones(group_id: str, group: ConsumerGroup) -> tuple[GroupRecord, ...]:
    """The tombstones of a group and of its members; its offsets have tombstones of their own."""
    assignments, targets, metadata = (
        [records.record_of(record_type, group_id, None, member_id) for member_id in sorted(group.members)]
        for record_type in (records.ASSIGNMENT, records.MEMBER_TARGET, records.MEMBER)
    )
    return (
        *assignments,
        *targets,
        records.record_of(records.TARGET, group_id, None),
        *metadata,
        *(records.record_of(records.REGULAR_EXPRESSION, group_id, None, regex) for regex in sorted(group.resolved)),
        records.record_of(records.PARTITION_METADATA, group_id, None),
        records.record_of(records.METADATA, group_id, None),
    )
