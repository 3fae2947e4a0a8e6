"""Records and answers of a group coordinator for a consumer group: pure functions (KIP-848).

A heartbeat is `(group, soft state, request, topics, settings, now) -> Outcome`. The caller appends the records of an
outcome as one operation; then group and soft state of the outcome are in force, and its timers are due. The rules are
those of GroupMetadataManager of Kafka 4.3.1, without members of the classic protocol.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from state_model.consumer import records
from state_model.consumer.draft import Draft
from state_model.consumer.group_values import (
    LEFT_STATIC_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    MemberMetadata,
    ResolvedExpression,
    is_settled,
    member_assignment,
    member_metadata,
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
from state_model.consumer.reconciliation import (
    MemberAssignment,
    MemberState,
    Partitions,
    Subscription,
    partition_epochs,
    reconcile,
)
from state_model.consumer.soft_state import METADATA_REFRESH_INTERVAL_MS, Settings, SoftState
from state_model.consumer.targets import compute_targets
from state_model.group_heartbeat import JOINING, LEAVING, LEAVING_STATIC
from state_model.group_reconciliation import FencedError
from state_model.group_records import GroupRecord
from state_model.group_targets import TargetMetadata, may_compute_target
from state_model.group_topics import Topics
from state_model.uuids import uuid_text


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
    """

    records: tuple[GroupRecord, ...]
    group: ConsumerGroup
    soft: SoftState
    answer: Answer
    revocation: tuple[int, int] | None = None
    ends_revocation: bool = False


class Resolution(NamedTuple):
    """The result of `resolve`: records to append as one operation, group and soft state after them."""

    records: tuple[GroupRecord, ...]
    group: ConsumerGroup
    soft: SoftState


class _Change(NamedTuple):
    """What a heartbeat changed: the subscription of its member; and whether the group epoch must grow for that."""

    is_changed: bool
    raises_epoch: bool


def heartbeat(
    group: ConsumerGroup | None, soft: SoftState, request: Heartbeat, topics: Topics, settings: Settings, now_ms: int
) -> Outcome:
    """A member joins or stays; `group` is None when there is none. Raises HeartbeatError."""
    before = group_of(group, request)
    check_size(before, request, settings)
    draft = Draft(request.group_id, before)
    member = subscribe_member(draft, request)
    change = _update_member(draft, member, request, settings)
    is_refreshed = change.raises_epoch or now_ms >= soft.refresh_deadline_ms
    if is_refreshed:
        draft.update_metadata(topics, raises_epoch=change.raises_epoch)
        if draft.group.has_partition_metadata:
            draft.end(records.PARTITION_METADATA)
        # The answer that creates a group sets no deadline: Kafka makes the group again from its records.
        if group is not None:
            soft = SoftState(refresh_deadline_ms=now_ms + METADATA_REFRESH_INTERVAL_MS)
    target = _target_of(draft, before, request, topics, settings, now_ms, is_refreshed=is_refreshed)
    assigned_before = member_assignment(member)
    assigned = _reconcile(draft, target, request, topics, is_changed=change.is_changed)
    is_sent = request.member_epoch == JOINING or request.is_full or assigned.assigned != assigned_before.assigned
    is_written = assigned != assigned_before
    must_revoke = assigned.state == MemberState.UNREVOKED_PARTITIONS
    timeout_ms = member_metadata(draft.group.members[request.member_id]).rebalance_timeout_ms
    return Outcome(
        tuple(draft.records),
        draft.group,
        soft,
        Answer(
            request.member_id,
            assigned.member_epoch,
            settings.heartbeat_interval_ms,
            frozenset(assigned.assigned) if is_sent else None,
        ),
        revocation=(assigned.member_epoch, timeout_ms) if is_written and must_revoke else None,
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
        soft = SoftState(refresh_deadline_ms=now_ms + METADATA_REFRESH_INTERVAL_MS)
    return Resolution(tuple(draft.records), draft.group, soft)


def group_tombstones(group_id: str, group: ConsumerGroup) -> tuple[GroupRecord, ...]:
    """The tombstones of a group without members; its offsets have tombstones of their own."""
    return (
        records.record_of(records.TARGET, group_id, None),
        *(records.record_of(records.REGULAR_EXPRESSION, group_id, None, regex) for regex in sorted(group.resolved)),
        records.record_of(records.PARTITION_METADATA, group_id, None),
        records.record_of(records.METADATA, group_id, None),
    )


def _update_member(draft: Draft, member: ConsumerMember, request: Heartbeat, settings: Settings) -> _Change:
    """Record the member's metadata when they changed, and drop a regular expression without subscribers."""
    old = member_metadata(member)
    new = updated_metadata(old, request)
    if new != old:
        draft.add(records.MEMBER, new, request.member_id)
    names_changed = new.subscribed_topic_names != old.subscribed_topic_names
    regex_changed = new.subscribed_topic_regex != old.subscribed_topic_regex
    raises_epoch = regex_changed and _change_regex(draft, old, new, settings)
    return _Change(names_changed or regex_changed, names_changed or raises_epoch)


def _change_regex(draft: Draft, old: MemberMetadata, new: MemberMetadata, settings: Settings) -> bool:
    """Whether the group epoch must grow for another regular expression: not while that isn't resolved.

    An expression is checked when its first member subscribes to it. Raises HeartbeatError.
    """
    subscribers = draft.group.regex_subscribers
    old_regex, new_regex = old.subscribed_topic_regex, new.subscribed_topic_regex
    if old_regex and not subscribers[old_regex]:
        draft.end(records.REGULAR_EXPRESSION, old_regex)
    if not new_regex:
        return bool(old_regex)
    if subscribers[new_regex] > 1:
        return new_regex in draft.group.resolved
    problem = settings.regex_error(new_regex)
    if problem is not None:
        raise HeartbeatError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{new_regex}` is not a valid regular expression: {problem}.",
        )
    return False


def _target_of(
    draft: Draft,
    before: ConsumerGroup,
    request: Heartbeat,
    topics: Topics,
    settings: Settings,
    now_ms: int,
    *,
    is_refreshed: bool,
) -> Partitions:
    """The member's target, after that of all members is computed and recorded, if it is due."""
    group = draft.group
    is_due = group.group_epoch > group.target_assignment_epoch
    if not is_due or not may_compute_target(
        group.target.assignment_timestamp_ms, settings.assignment_interval_ms, now_ms
    ):
        return _last_target(before, request.member_id, member_metadata(group.members[request.member_id]).instance_id)
    # Without a refresh, Kafka takes the kind of subscriptions before this heartbeat.
    is_homogeneous = (group if is_refreshed else before).is_homogeneous
    targets = compute_targets(group, settings.assignors, topics, is_homogeneous=is_homogeneous)
    for member_id, target in targets.items():
        # A static member that came back has no target before: its target is recorded twice.
        if before.targets.get(member_id) != target:
            draft.add(records.MEMBER_TARGET, target, member_id)
    draft.add(records.TARGET, TargetMetadata(group.group_epoch, now_ms))
    return targets[request.member_id]


def _last_target(before: ConsumerGroup, member_id: str, instance_id: str | None) -> Partitions:
    """The target that is in force: of a static member that of its instance id (ConsumerGroup.targetAssignment)."""
    name = member_id if instance_id is None else before.static_members.get(instance_id)
    return frozenset() if name is None else before.targets.get(name, frozenset())


def _reconcile(
    draft: Draft, target: Partitions, request: Heartbeat, topics: Topics, *, is_changed: bool
) -> MemberAssignment:
    """The member's assignment after the heartbeat, recorded when it changed."""
    group = draft.group
    member = group.members[request.member_id]
    assigned = member_assignment(member)
    if not is_changed and is_settled(member, group.target_assignment_epoch):
        return assigned
    topic_names = group.topics_of(member)
    existing = (topics(name) for name in topic_names)
    names_by_id = {uuid_text(topic.topic_id): topic.name for topic in existing if topic is not None}
    after = _next_assignment(draft, assigned, target, request, Subscription(topic_names, names_by_id, is_changed))
    if after != assigned:
        draft.add(records.ASSIGNMENT, after, request.member_id)
    return after


def _next_assignment(
    draft: Draft, assigned: MemberAssignment, target: Partitions, request: Heartbeat, subscription: Subscription
) -> MemberAssignment:
    group = draft.group
    epochs = partition_epochs(each.assignment for each in group.members.values() if each.assignment is not None)
    try:
        return reconcile(assigned, target, group.target_assignment_epoch, request.owned, subscription, epochs)
    except FencedError as error:
        text = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
        raise HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, text) from error
