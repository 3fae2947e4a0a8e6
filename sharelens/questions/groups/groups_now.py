"""Groups of the log in the values that a coordinator describes them with."""

from sharelens.groups.consumer_values import owned_partitions
from sharelens.groups.replay import ShareGroup
from sharelens.groups.streams_values import of_types
from sharelens.kafka_live.group_now import GroupNow, MemberNow
from state_model.consumer.group_values import ConsumerGroup, member_assignment
from state_model.streams.values import StreamsGroup, StreamsMember


def share_now(group: ShareGroup) -> GroupNow:
    """A share group."""
    members = {
        member_id: MemberNow(
            member.member_epoch,
            frozenset((topic_id, number) for topic_id, numbers in member.assigned for number in numbers),
        )
        for member_id, member in group.members.items()
    }
    return GroupNow(group.state.capitalize(), group.group_epoch, group.assignment_epoch, members)


def consumer_now(group: ConsumerGroup) -> GroupNow:
    """A consumer group."""
    members = {
        member_id: MemberNow(
            member.assignment and member.assignment.member_epoch, owned_partitions(member_assignment(member))
        )
        for member_id, member in group.members.items()
    }
    return GroupNow(group.state.value, group.group_epoch, group.target_assignment_epoch, members)


def streams_now(group: StreamsGroup) -> GroupNow:
    """A streams group."""
    members = {member_id: _streams_member(member) for member_id, member in group.members.items()}
    return GroupNow(group.state.value, group.group_epoch, group.target_assignment_epoch, members)


def _streams_member(member: StreamsMember) -> MemberNow:
    if member.assignment is None:
        return MemberNow(None, frozenset())
    tasks = (
        (kind.lower(), *task) for kind, tasks_of_kind in of_types(member.assignment.assigned) for task in tasks_of_kind
    )
    return MemberNow(member.assignment.member_epoch, frozenset(tasks))
