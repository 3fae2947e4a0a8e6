"""Classic groups with members that become consumer groups, and the way back (GroupMetadataManager of Kafka 4.3.1).

A join of a consumer to a classic group is an `upgrade`, whose records come before those of the join. A group whose last
member of the consumer protocol is removed, or replaced by a classic member, becomes a classic group.
"""

from collections.abc import Iterable

from state_model.consumer import records
from state_model.consumer.classic_group import (
    ClassicGroup,
    ClassicMember,
    Downgrade,
    choose_protocol,
    classic_metadata,
    classic_protocols,
    classic_session_timeout_ms,
)
from state_model.consumer.coordinator import Outcome, group_tombstones, heartbeat
from state_model.consumer.draft import Draft
from state_model.consumer.group_values import (
    ConsumerGroup,
    ConsumerMember,
    GroupMetadata,
    MemberMetadata,
    member_metadata,
    uses_classic_protocol,
)
from state_model.consumer.heartbeat import ErrorCode, Heartbeat, HeartbeatError
from state_model.consumer.membership import other_kind
from state_model.consumer.reconciliation import MemberAssignment, MemberState, Partition, Partitions
from state_model.consumer.soft_state import Settings, SoftState
from state_model.consumer_protocol import (
    PROTOCOL_TYPE,
    NamedPartitions,
    read_assignment,
    read_subscription,
    read_version,
    write_assignment,
)
from state_model.errors import DecodeError
from state_model.group_heartbeat import JOINING
from state_model.group_records import group_record
from state_model.group_targets import TargetMetadata
from state_model.group_topics import TopicNames, Topics
from state_model.uuids import uuid_text

CLASSIC_GROUP = 2
"""The record type of classic groups."""


def join_classic_group(
    group: ClassicGroup, request: Heartbeat, topics: Topics, settings: Settings, now_ms: int
) -> Outcome:
    """A heartbeat to a classic group that is not in state Empty: a consumer that joins makes it a consumer group.

    The sessions of all its members begin, those of the classic ones with their own timeouts. Joins and syncs that wait
    are answered with REBALANCE_IN_PROGRESS, also when the heartbeat is refused. Raises HeartbeatError.
    """
    if request.member_epoch != JOINING:
        raise other_kind(request.group_id)
    upgraded = upgrade(request.group_id, group, topics, settings)
    outcome = heartbeat(upgraded.group, SoftState(), request, topics, settings, now_ms)
    # As with a new group, the deadline of the next look at the topics is lost.
    return outcome._replace(records=(*upgraded.records, *outcome.records), soft=SoftState())


def upgrade(group_id: str, group: ClassicGroup, topics: Topics, settings: Settings) -> Draft:
    """The consumer group of a classic group, with the records that make it; raises HeartbeatError.

    Its epoch is the generation; target and assignment of each member are those of that generation.
    """
    problem = _upgrade_problem(group, settings)
    if problem is not None:
        raise _not_upgraded(group_id, problem)
    draft = Draft(group_id, ConsumerGroup())
    draft.records.append(group_record(CLASSIC_GROUP, group_id, None))
    partitions: dict[str, Partitions] = {}
    for member in sorted(group.members, key=lambda member: member.member_id):
        partitions[member.member_id] = partitions_of(_assigned(group_id, member), topics)
        draft.add(records.MEMBER, _metadata(group_id, group, member), member.member_id)
    draft.add(records.METADATA, GroupMetadata(group.generation, draft.hash_topics(topics)))
    for member_id, target in partitions.items():
        draft.add(records.MEMBER_TARGET, target, member_id)
    draft.add(records.TARGET, TargetMetadata(group.generation))
    for member_id, target in partitions.items():
        epochs = dict.fromkeys(target, group.generation)
        assignment = MemberAssignment(MemberState.STABLE, group.generation, group.generation, epochs)
        draft.add(records.ASSIGNMENT, assignment, member_id)
    return draft


def _upgrade_problem(group: ClassicGroup, settings: Settings) -> str | None:
    """Why the group stays a classic one; None: it need not."""
    if not settings.migration_policy.may_upgrade:
        return "online upgrade is disabled"
    if group.protocol_type != PROTOCOL_TYPE:
        return "the group does not use the consumer embedded protocol"
    if len(group.members) > settings.max_size:
        return "the group size exceeds the consumer group maximum size"
    return None


def _not_upgraded(group_id: str, problem: str) -> HeartbeatError:
    text = f"Cannot upgrade classic group {group_id} to consumer group because {problem}."
    return HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, text)


_MALFORMED = "the embedded consumer protocol is malformed"


def _assigned(group_id: str, member: ClassicMember) -> NamedPartitions:
    if not member.assignment:
        return frozenset()
    try:
        assignment = read_assignment(member.assignment)
    except DecodeError as error:
        raise _not_upgraded(group_id, _MALFORMED) from error
    if assignment.user_data:
        raise _not_upgraded(
            group_id,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade",
        )
    return assignment.partitions


def _metadata(group_id: str, group: ClassicGroup, member: ClassicMember) -> MemberMetadata:
    """The metadata of a classic member, with the subscription of the group's protocol."""
    metadata = None if group.protocol_name is None else member.metadata(group.protocol_name)
    if metadata is None:
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The group {group_id} has no protocol yet.")
    try:
        subscription = read_subscription(metadata)
    except DecodeError as error:
        raise _not_upgraded(group_id, _MALFORMED) from error
    return MemberMetadata(
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=subscription.topics,
        subscribed_topic_regex="",
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=None,
        classic_member_metadata=classic_metadata(member.session_timeout_ms, member.protocols),
    )


def partitions_of(named: NamedPartitions, topics: Topics) -> Partitions:
    """Partitions by the ids of their topics, without those of topics that don't exist."""
    existing = {name: topics(name) for name, _ in named}
    return frozenset(
        Partition(uuid_text(topic.topic_id), number) for name, number in named if (topic := existing[name]) is not None
    )


def assignment_bytes(metadata: bytes, partitions: Iterable[Partition], topic_names: TopicNames) -> bytes:
    """A classic member's assignment in the version of its metadata, without topics that don't exist.

    Raises DecodeError: the metadata have no version.
    """
    names = {partition.topic_id: topic_names(partition.topic_id) for partition in partitions}
    named = [(name, part.partition) for part in partitions if (name := names[part.topic_id]) is not None]
    return write_assignment(read_version(metadata), named)


def with_downgrade(
    group_id: str, before: ConsumerGroup, outcome: Outcome, topic_names: TopicNames, settings: Settings, now_ms: int
) -> Outcome:
    """The outcome of a removal of members, or instead of it a downgrade, where only classic members stay.

    Timers of the consumer group end with it. Raises HeartbeatError: the metadata of a classic member are malformed.

    Args:
        before: the group before the outcome.
    """
    after = outcome.group
    if not before.members.keys() - after.members.keys() or not may_downgrade(after, settings):
        return outcome
    downgrade = Downgrade(classic_group(group_id, before.group_epoch, after, topic_names, now_ms), rebalances=True)
    return Outcome(
        group_tombstones(group_id, before), ConsumerGroup(), SoftState(), outcome.answer, downgrade=downgrade
    )


def may_downgrade(group: ConsumerGroup, settings: Settings) -> bool:
    """Whether a group becomes a classic one when it has these members."""
    return (
        settings.migration_policy.may_downgrade
        and 0 < len(group.members) <= settings.classic_max_size
        and all(map(uses_classic_protocol, group.members.values()))
    )


def classic_group(
    group_id: str, generation: int, group: ConsumerGroup, topic_names: TopicNames, now_ms: int
) -> ClassicGroup:
    """The classic group of a group with classic members only, each with its target as its assignment.

    The members ascend by id, and the first one leads; Kafka's order is that of a hash table. Raises HeartbeatError.
    """
    members = [_classic_member(member_id, group.members[member_id]) for member_id in sorted(group.members)]
    protocol = choose_protocol([member.protocols for member in members])
    assigned = []
    for member in members:
        target = group.targets.get(member.member_id, frozenset())
        try:
            assignment = assignment_bytes(member.metadata(protocol or "") or b"", target, topic_names)
        except DecodeError as error:
            text = f"Cannot downgrade the classic group {group_id}: {error}."
            raise HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, text) from error
        assigned.append(member._replace(assignment=assignment))
    return ClassicGroup(generation, PROTOCOL_TYPE, protocol, tuple(assigned), now_ms)


def _classic_member(member_id: str, member: ConsumerMember) -> ClassicMember:
    metadata = member_metadata(member)
    return ClassicMember(
        member_id,
        metadata.instance_id,
        metadata.client_id,
        metadata.client_host,
        metadata.rebalance_timeout_ms,
        classic_session_timeout_ms(member) or 0,
        classic_protocols(metadata),
    )
