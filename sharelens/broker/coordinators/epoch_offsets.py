"""Offsets of groups whose members have epochs: who may commit and fetch them (streams-group §8.3 to §8.5, KIP-848).

The rules are those of ConsumerGroup and StreamsGroup of Kafka 4.3.1. One refused partition refuses the whole commit.
"""

from collections.abc import Iterable

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_groups import MemberCall
from sharelens.broker.coordinators.epoch_groups import AnyEpochGroups, EpochGroup, Member
from sharelens.broker.ports import TopicPartition

EPOCHS_VERSION = 9
"""The first version of OffsetCommit whose generation is a member epoch."""


def commit_error(
    groups: AnyEpochGroups, call: MemberCall, places: Iterable[TopicPartition], *, version: int
) -> ErrorCode:
    """The error of an OffsetCommit to a group of `groups`; epoch -1 commits for a group without members."""
    group: EpochGroup = groups.require(call.group_id)
    if call.generation_id < 0 and not group.members:
        return ErrorCode.none
    if call.member_id not in group.members:
        return ErrorCode.unknown_member_id
    if version < EPOCHS_VERSION and not groups.has_generation(group, call.member_id):
        return ErrorCode.unsupported_version
    return ErrorCode.none if _may_commit(groups, group, call, places) else _stale(groups, group, call.member_id)


def transactional_error(groups: AnyEpochGroups, call: MemberCall, places: Iterable[TopicPartition]) -> ErrorCode:
    """The error of a TxnOffsetCommit to a group of `groups`; without a member it is not checked."""
    group: EpochGroup = groups.require(call.group_id)
    is_nobody = call.generation_id == -1 and not call.member_id and call.group_instance_id is None
    if is_nobody or (call.generation_id < 0 and not group.members):
        return ErrorCode.none
    if call.member_id not in group.members:
        return ErrorCode.unknown_member_id
    return ErrorCode.none if _may_commit(groups, group, call, places) else ErrorCode.illegal_generation


def fetch_error(groups: AnyEpochGroups, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
    """The error of an OffsetFetch of a group of `groups`; one without a member is allowed.

    An epoch without a member is an error that Kafka does not expect.
    """
    if member_id is None:
        return ErrorCode.none if member_epoch < 0 else ErrorCode.unknown_server_error
    group: EpochGroup = groups.require(group_id)
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.unknown_member_id
    return ErrorCode.none if member_epoch == _epoch(member) else _stale(groups, group, member_id)


def _may_commit(groups: AnyEpochGroups, group: EpochGroup, call: MemberCall, places: Iterable[TopicPartition]) -> bool:
    """Whether a member may commit in an epoch: an older one for what it has had since then."""
    epoch = call.generation_id
    member_epoch = _epoch(group.members[call.member_id])
    if epoch >= member_epoch:
        return epoch == member_epoch
    since = (groups.assignment_epoch(group, call.member_id, at) for at in places)
    return all(first is not None and first <= epoch for first in since)


def _stale(groups: AnyEpochGroups, group: EpochGroup, member_id: str) -> ErrorCode:
    """The error of another epoch than the member's."""
    has_generation = groups.has_generation(group, member_id)
    return ErrorCode.illegal_generation if has_generation else ErrorCode.stale_member_epoch


def _epoch(member: Member) -> int:
    """The member's epoch: 0 before its first assignment."""
    return 0 if member.assignment is None else member.assignment.member_epoch
