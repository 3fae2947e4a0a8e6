"""Offsets of streams groups: who may commit, fetch and delete them (streams-group §8.3 to §8.5)."""

from collections.abc import Iterable

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_groups import MemberCall
from sharelens.broker.ports import TopicPartition
from state_model.streams.topology import input_topics
from state_model.streams.values import MemberAssignment, StreamsGroup, TaskId

EPOCHS_VERSION = 9
"""The first version of OffsetCommit whose generation is a member epoch."""


def commit_codes(
    group: StreamsGroup, call: MemberCall, places: Iterable[TopicPartition], *, version: int
) -> dict[TopicPartition, ErrorCode]:
    """The code of each partition for an OffsetCommit; epoch -1 commits for a group without members."""
    if call.generation_id < 0 and not group.members:
        return dict.fromkeys(places, ErrorCode.none)
    if call.generation_id < 0 or call.member_id not in group.members:
        return dict.fromkeys(places, ErrorCode.unknown_member_id)
    if version < EPOCHS_VERSION:
        return dict.fromkeys(places, ErrorCode.unsupported_version)
    return _epoch_codes(group, call, places, stale=ErrorCode.stale_member_epoch)


def transactional_codes(
    group: StreamsGroup, call: MemberCall, places: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """The code of each partition for a TxnOffsetCommit; without a member it is not checked."""
    if call.generation_id < 0 and not call.member_id and call.group_instance_id is None:
        return dict.fromkeys(places, ErrorCode.none)
    if call.member_id not in group.members:
        return dict.fromkeys(places, ErrorCode.unknown_member_id)
    return _epoch_codes(group, call, places, stale=ErrorCode.illegal_generation)


def fetch_error(group: StreamsGroup, member_id: str | None, member_epoch: int) -> ErrorCode:
    """The error of an OffsetFetch; one without a member is allowed."""
    if member_id is None and member_epoch < 0:
        return ErrorCode.none
    member = group.members.get(member_id or "")
    if member is None or member.assignment is None:
        return ErrorCode.unknown_member_id
    return ErrorCode.none if member_epoch == member.assignment.member_epoch else ErrorCode.stale_member_epoch


def is_subscribed(group: StreamsGroup, topic: str) -> bool:
    """Whether a group with members reads a topic: its offsets must stay."""
    return bool(group.members) and bool(_readers(group, topic))


def _epoch_codes(
    group: StreamsGroup, call: MemberCall, places: Iterable[TopicPartition], *, stale: ErrorCode
) -> dict[TopicPartition, ErrorCode]:
    """An older epoch may commit for tasks that the member has had since then."""
    assignment = group.members[call.member_id].assignment
    epoch = call.generation_id
    if assignment is None or epoch > assignment.member_epoch:
        return dict.fromkeys(places, stale)
    if epoch == assignment.member_epoch:
        return dict.fromkeys(places, ErrorCode.none)
    return {at: ErrorCode.none if _has_task(group, assignment, at, epoch) else stale for at in places}


def _has_task(group: StreamsGroup, assignment: MemberAssignment, at: TopicPartition, epoch: int) -> bool:
    tasks = assignment.assigned.active | assignment.pending.active
    return any(
        TaskId(name, at.partition) in tasks and assignment.active_assignment_epochs[TaskId(name, at.partition)] <= epoch
        for name in _readers(group, at.topic)
    )


def _readers(group: StreamsGroup, topic: str) -> list[str]:
    """The subtopologies that read a topic."""
    subtopologies = () if group.topology is None else group.topology.subtopologies
    return [each.subtopology_id for each in subtopologies if topic in input_topics(each)]
