"""Membership of share groups: the records of a heartbeat, a leave or an expired session (rpcs.md §3).

Pure functions from a group to records and an answer
(GroupMetadataManager.shareGroupHeartbeat and shareGroupLeave).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators import share_group_records as records
from sharelens.broker.coordinators import share_state_partitions
from sharelens.broker.coordinators.assignor import assign
from sharelens.broker.coordinators.share_group import (
    Assignment,
    Draft,
    GroupError,
    ShareGroup,
    ShareMember,
    StatePartitions,
)
from sharelens.broker.coordinators.topic_metadata import topic_metadata
from sharelens.broker.ports import GroupSettings, Topics
from state_model.group_heartbeat import JOINING, changed, epoch_problem
from state_model.group_records import GroupRecord
from state_model.group_targets import may_compute_target
from state_model.group_topics import metadata_hash
from state_model.rule_sets import RuleSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A ShareGroupHeartbeat of a member that joins or stays. `subscribed_topic_names` is None for "unchanged"."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The result of a heartbeat.

    Attributes:
        records: to append, in this order, as one batch.
        member: the member after them.
        assignment: for the answer; None when it has not changed.
        group_epoch: of the group after them.
        initializing: partitions to initialize next; the records name them.
    """

    records: list[GroupRecord]
    member: ShareMember
    assignment: Assignment | None
    group_epoch: int
    initializing: StatePartitions


class Membership:
    """The rules of membership, on topics and settings."""

    def __init__(
        self,
        topics: Topics,
        group_settings: GroupSettings,
        *,
        max_size: int,
        initialize_retry_interval_ms: int,
        rules: RuleSet,
        rack: str = "",
    ) -> None:
        self._rules = rules
        self._topics = topics
        self._racks = (rack,) if rack else ()
        self._group_settings = group_settings
        self._max_size = max_size
        self._initialize_retry_interval_ms = initialize_retry_interval_ms

    def beat(self, group: ShareGroup, request: Heartbeat, *, now_ms: int, is_metadata_stale: bool) -> Beat:
        """The result of a heartbeat of a member that joins or stays.

        Args:
            group: as it is; a new one when the request creates it.
            is_metadata_stale: topics may have changed since the group's hash of them was computed.

        Raises:
            GroupError: the group is full, the member unknown or its epoch neither its own nor the one before.
        """
        draft = Draft(group, now_ms)
        before = self._member(group, request)
        has_new_topics = _update_member(draft, before, request)
        self._bump_epoch(draft, must=has_new_topics or self._awaits_initialized(group), may=is_metadata_stale)
        self._assign(draft, now_ms)
        self._reconcile(draft, request.member_id, has_new_topics=has_new_topics)
        initializing = share_state_partitions.missing(
            draft.group, self._topics, now_ms=now_ms, retry_interval_ms=self._initialize_retry_interval_ms
        )
        if initializing:
            draft.add(share_state_partitions.begin_initializing(draft.group, initializing))
        member = draft.group.members[request.member_id]
        is_full = request.member_epoch == JOINING or request.subscribed_topic_names is not None
        return Beat(
            records=draft.records,
            member=member,
            assignment=member.assigned if is_full or member.assigned != before.assigned else None,
            group_epoch=draft.group.epoch,
            initializing=initializing,
        )

    def end_member(self, group: ShareGroup, member_id: str) -> list[GroupRecord]:
        """The records of a member that leaves or whose session expired; no partition is reassigned."""
        remaining_topics = {
            name
            for member in group.members.values()
            if member.member_id != member_id
            for name in member.subscribed_topic_names
        }
        epoch = group.epoch + 1
        ended = [
            *records.member_tombstones(group.group_id, member_id),
            records.group_epoch(group.group_id, epoch, self._hash(remaining_topics)),
        ]
        if self._rules.writes_empty_assignment and not group.members.keys() - {member_id}:
            ended.append(records.target_epoch(group.group_id, epoch, timestamp_ms=0))
        return ended

    def _member(self, group: ShareGroup, request: Heartbeat) -> ShareMember:
        member = group.members.get(request.member_id)
        if member is None:
            if len(group.members) >= self._max_size:
                raise GroupError(
                    ErrorCode.group_max_size_reached,
                    f"The share group has reached its maximum capacity of {self._max_size} members.",
                )
            if request.member_epoch != JOINING:
                raise unknown_member(group.group_id, request.member_id)
            return ShareMember(member_id=request.member_id)
        problem = epoch_problem("share", request.member_epoch, member.epoch, member.previous_epoch)
        if request.member_epoch != JOINING and problem is not None:
            raise GroupError(ErrorCode.fenced_member_epoch, problem)
        return member

    def _awaits_initialized(self, group: ShareGroup) -> bool:
        """Whether subscribed topics have initialized partitions that the last assignment does not reflect."""
        if group.assignment_epoch < group.epoch:
            return False
        subscribed = group.subscribed_topic_names
        for topic_id, named in group.initialized.items():
            topic = self._topics.by_id(topic_id)
            if topic is None or topic.name not in subscribed:
                continue
            assigned = {number for target in group.targets.values() for number in target.get(topic_id, ())}
            if named.partitions != assigned:
                return True
        return False

    def _bump_epoch(self, draft: Draft, *, must: bool, may: bool) -> None:
        if not must and not may:
            return
        group = draft.group
        hashed = self._hash(group.subscribed_topic_names)
        if must or hashed != group.metadata_hash:
            draft.add(records.group_epoch(group.group_id, group.epoch + 1, hashed))

    def _hash(self, names: Iterable[str]) -> int:
        """The metadata hash of the topics of these names that exist."""
        existing = (topic_metadata(self._topics, name, self._racks) for name in names)
        return metadata_hash(topic for topic in existing if topic is not None)

    def _assign(self, draft: Draft, now_ms: int) -> None:
        """Compute new targets for a changed group, at most once in an assignment interval (KIP-1263)."""
        group = draft.group
        interval_ms = self._group_settings(group.group_id).assignment_interval_ms
        is_due = group.assignment_epoch < group.epoch
        if not is_due or not may_compute_target(group.assignment_timestamp_ms, interval_ms, now_ms):
            return
        for member_id, target in self._targets(group).items():
            if group.targets.get(member_id) != target:
                draft.add(records.target_of_member(group.group_id, member_id, target))
        draft.add(records.target_epoch(group.group_id, group.epoch, now_ms))

    def _targets(self, group: ShareGroup) -> dict[str, Assignment]:
        topics = {name: self._topics.by_name(name) for name in group.subscribed_topic_names}
        ids = {name: topic.topic_id for name, topic in topics.items() if topic is not None}
        subscriptions = {
            member_id: [ids[name] for name in member.subscribed_topic_names if name in ids]
            for member_id, member in group.members.items()
        }
        partitions = {
            topic_id: group.initialized[topic_id].partitions
            for topic_id in ids.values()
            if topic_id in group.initialized
        }
        current = {
            member_id: [(topic_id, number) for topic_id, numbers in target.items() for number in numbers]
            for member_id, target in group.targets.items()
        }
        return {
            member_id: _by_topic(assigned) for member_id, assigned in assign(subscriptions, partitions, current).items()
        }

    def _reconcile(self, draft: Draft, member_id: str, *, has_new_topics: bool) -> None:
        """Assign the target to the member at once: share groups need no revocation."""
        group = draft.group
        member = group.members[member_id]
        is_behind = member.epoch != group.assignment_epoch
        if not is_behind and not has_new_topics:
            return
        assigned = {
            topic_id: partitions
            for topic_id, partitions in group.targets.get(member_id, {}).items()
            if self._is_subscribed(member, topic_id)
        }
        after = replace(member, assigned=assigned)
        if is_behind:
            after = replace(after, epoch=group.assignment_epoch, previous_epoch=member.epoch)
        if after != member:
            draft.add(records.current_assignment(group.group_id, after))

    def _is_subscribed(self, member: ShareMember, topic_id: str) -> bool:
        topic = self._topics.by_id(topic_id)
        return topic is not None and topic.name in member.subscribed_topic_names


def unknown_member(group_id: str, member_id: str) -> GroupError:
    """The error for an unknown member of a group."""
    return GroupError(ErrorCode.unknown_member_id, f"Member {member_id} is not a member of group {group_id}.")


def _update_member(draft: Draft, before: ShareMember, request: Heartbeat) -> bool:
    """Record a changed subscription of the member; whether its set of topics changed."""
    names = request.subscribed_topic_names
    after = replace(
        before,
        rack_id=changed(request.rack_id, before.rack_id),
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_topic_names=before.subscribed_topic_names if names is None else tuple(sorted(set(names))),
    )
    is_new = request.member_id not in draft.group.members
    if is_new or after != before:
        draft.add(records.member_subscription(draft.group.group_id, after))
    return after.subscribed_topic_names != before.subscribed_topic_names


def _by_topic(partitions: Iterable[tuple[str, int]]) -> Assignment:
    by_topic: dict[str, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(partition)
    return {topic_id: tuple(numbers) for topic_id, numbers in by_topic.items()}
