"""Values of records of consumer groups as rows have them."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from sharelens.groups.intervals import Row
from sharelens.groups.model_replay import CONSUMER_MODEL, state_of
from sharelens.groups.replay import GroupChange, Partitions, partitions_of
from sharelens.groups.schemas import CLASSIC, CONSUMER
from state_model.consumer.group_spec import by_topic
from state_model.consumer.group_values import NEW_METADATA, ConsumerGroup, ConsumerMember, member_metadata
from state_model.consumer.reconciliation import MemberAssignment, MemberState, Partition
from state_model.group_targets import NEW_TARGET, NO_TARGET

_STATE_NAMES: Final = {int(state): state.name for state in MemberState}


def read_value(change: GroupChange) -> Any:
    """The value of a record: Partitions of a target, of others as in the model."""
    if change.record_type == CONSUMER_MODEL.member_target:
        return partitions_of((change.value or {})["topicPartitions"])
    return CONSUMER_MODEL.value_of(change)


def partition_cell(partitions: Iterable[Partition]) -> Partitions:
    """The partitions as a TOPIC_PARTITIONS value."""
    return tuple(by_topic(partitions).items())


def owned_partitions(assignment: MemberAssignment) -> frozenset[Partition]:
    """The partitions of a member as Kafka describes them: also those that it must give up, until it has.

    The rule is that of ConsumerGroupMember.asConsumerGroupDescribeMember.
    """
    return frozenset((*assignment.assigned, *assignment.pending))


def consumer_group_values(group: ConsumerGroup | None, state: str | None = None) -> Row:
    """The columns GROUP_VALUES that a consumer group has; None: it is deleted. `state`: where it is at hand."""
    has_epoch, has_target = group is not None, group is not None
    if group is not None:
        has_epoch, has_target = group.metadata is not NEW_METADATA, group.target not in (NEW_TARGET, NO_TARGET)
    return {
        "group_type": CONSUMER,
        "state": state_of(group) if state is None else state,
        "group_epoch": group.group_epoch if group is not None and has_epoch else None,
        "metadata_hash": group.metadata.metadata_hash if group is not None and has_epoch else None,
        "assignment_epoch": group.target_assignment_epoch if group is not None and has_target else None,
        "assignment_timestamp_ms": None if group is None else group.target.assignment_timestamp_ms or None,
        "member_count": 0 if group is None else len(group.members),
    }


def consumer_member_values(member_id: str, member: ConsumerMember, target: Partitions) -> Row:
    """The columns member_id and MEMBER_VALUES that a member of a consumer group has; null without a record of them."""
    metadata, assignment = member
    about = member_metadata(member)
    return {
        "member_id": member_id,
        "client_id": metadata and about.client_id,
        "client_host": metadata and about.client_host,
        "rack_id": about.rack_id,
        "subscribed_topics": None if metadata is None else tuple(sorted(about.subscribed_topic_names)),
        "rebalance_timeout_ms": metadata and about.rebalance_timeout_ms,
        "member_type": metadata and (CONSUMER if about.classic_member_metadata is None else CLASSIC),
        "instance_id": about.instance_id,
        "subscribed_topic_regex": about.subscribed_topic_regex or None,
        "server_assignor": about.server_assignor,
        "member_epoch": assignment and assignment.member_epoch,
        "previous_member_epoch": assignment and assignment.previous_member_epoch,
        "member_state": assignment and (_STATE_NAMES.get(assignment.state) or str(assignment.state)),
        "assigned_partitions": () if assignment is None else partition_cell(assignment.assigned),
        "pending_partitions": None if assignment is None else partition_cell(assignment.pending),
        "target_partitions": target,
    }


def preferred_assignor(group: ConsumerGroup) -> str | None:
    """The assignor that the most members prefer; None: none prefers one, or several are preferred equally often.

    Without a preference the broker takes the first of `group.consumer.assignors`, which no record has; among equals
    it takes the first of a hash table (ConsumerGroup.preferredServerAssignor).
    """
    preferences = (member_metadata(member).server_assignor for member in group.members.values())
    votes = Counter(filter(None, preferences)).most_common(2)
    is_tie = len(votes) == 2 and votes[0][1] == votes[1][1]
    return votes[0][0] if votes and not is_tie else None
