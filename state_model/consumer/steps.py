"""The steps by which a request changes its member: metadata, group epoch, target and current assignment.

The rules are those of GroupMetadataManager of Kafka 4.3.1, for heartbeats and for joins of the classic protocol.
"""

from typing import NamedTuple

from state_model.consumer import records
from state_model.consumer.draft import Draft
from state_model.consumer.group_values import (
    ConsumerGroup,
    ConsumerMember,
    MemberMetadata,
    is_settled,
    member_assignment,
    member_metadata,
)
from state_model.consumer.heartbeat import ErrorCode, Heartbeat, HeartbeatError
from state_model.consumer.reconciliation import (
    MemberAssignment,
    Partitions,
    Subscription,
    partition_epochs,
    reconcile,
)
from state_model.consumer.soft_state import Settings, SoftState
from state_model.consumer.targets import compute_targets
from state_model.group_reconciliation import FencedError
from state_model.group_targets import TargetMetadata, may_compute_target
from state_model.group_topics import Topics
from state_model.uuids import uuid_text


class Change(NamedTuple):
    """What a request changed: the subscription of its member; and whether the group epoch must grow for that."""

    is_changed: bool
    raises_epoch: bool


def update_member(
    draft: Draft, member: ConsumerMember, member_id: str, new: MemberMetadata, settings: Settings
) -> Change:
    """Record the member's new metadata when they changed, and drop a regular expression without subscribers.

    Raises HeartbeatError.
    """
    old = member_metadata(member)
    if new != old:
        draft.add(records.MEMBER, new, member_id)
    names_changed = new.subscribed_topic_names != old.subscribed_topic_names
    regex_changed = new.subscribed_topic_regex != old.subscribed_topic_regex
    raises_epoch = regex_changed and _change_regex(draft, old, new, settings)
    return Change(names_changed or regex_changed, names_changed or raises_epoch)


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


def refresh_metadata(draft: Draft, soft: SoftState, topics: Topics, now_ms: int, *, raises_epoch: bool) -> bool:
    """Raise the group epoch for that or for other topics, if the time has come to look at them; whether it has."""
    if not raises_epoch and now_ms < soft.refresh_deadline_ms:
        return False
    draft.update_metadata(topics, raises_epoch=raises_epoch)
    if draft.group.has_partition_metadata:
        draft.end(records.PARTITION_METADATA)
    return True


def target_of(
    draft: Draft,
    before: ConsumerGroup,
    request: Heartbeat,
    topics: Topics,
    settings: Settings,
    now_ms: int,
    *,
    is_refreshed: bool,
) -> Partitions:
    """The member's target, after that of all members is computed and recorded, if it is due. Raises HeartbeatError."""
    group = draft.group
    is_due = group.group_epoch > group.target_assignment_epoch
    if not is_due or not may_compute_target(
        group.target.assignment_timestamp_ms, settings.assignment_interval_ms, now_ms
    ):
        return last_target(before, request.member_id, member_metadata(group.members[request.member_id]).instance_id)
    # Without a refresh, Kafka takes the kind of subscriptions before this heartbeat.
    is_homogeneous = (group if is_refreshed else before).is_homogeneous
    targets = compute_targets(group, settings.assignors, topics, is_homogeneous=is_homogeneous)
    for member_id, target in targets.items():
        # A static member that came back has no target before: its target is recorded twice.
        if before.targets.get(member_id) != target:
            draft.add(records.MEMBER_TARGET, target, member_id)
    draft.add(records.TARGET, TargetMetadata(group.group_epoch, now_ms))
    return targets[request.member_id]


def last_target(before: ConsumerGroup, member_id: str, instance_id: str | None) -> Partitions:
    """The target that is in force: of a static member that of its instance id (ConsumerGroup.targetAssignment)."""
    name = member_id if instance_id is None else before.static_members.get(instance_id)
    return frozenset() if name is None else before.targets.get(name, frozenset())


def reconcile_member(
    draft: Draft, target: Partitions, request: Heartbeat, topics: Topics, *, is_changed: bool
) -> MemberAssignment:
    """The member's assignment after the request, recorded when it changed. Raises HeartbeatError."""
    group = draft.group
    member = group.members[request.member_id]
    assigned = member_assignment(member)
    # A new member has nothing to give up. A group of epoch 0, that of such a member, was a classic one without members.
    if (not is_changed or member.assignment is None) and is_settled(member, group.target_assignment_epoch):
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
    # Owners count for what the member lacks: where it lacks nothing, the other members need not be read.
    owners = group.members.values() if target - assigned.assigned.keys() else ()
    epochs = partition_epochs(each.assignment for each in owners if each.assignment is not None)
    try:
        return reconcile(assigned, target, group.target_assignment_epoch, request.owned, subscription, epochs)
    except FencedError as error:
        text = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
        raise HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, text) from error
