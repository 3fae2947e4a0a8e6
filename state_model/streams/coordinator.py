"""Records and answers of a group coordinator for a streams group: pure functions (streams-group §1 to §3).

A heartbeat is `(group, soft state, request, topics, settings, now) -> Outcome`. The caller appends the records of an
outcome as one operation; then group and soft state of the outcome are in force, and its timers are due.
"""

from typing import Final, NamedTuple, TypeAlias

from state_model.group_heartbeat import JOINING, LEAVING
from state_model.group_reconciliation import FencedError
from state_model.group_records import GroupRecord
from state_model.group_replay import Draft
from state_model.group_targets import TargetMetadata, may_compute_target
from state_model.group_topics import Topics, metadata_hash
from state_model.streams import records
from state_model.streams.answers import answer_of
from state_model.streams.assignor import AssignedMember, assign
from state_model.streams.group import REPLAY
from state_model.streams.heartbeat import Answer, ErrorCode, Heartbeat, HeartbeatError
from state_model.streams.membership import NEW_ASSIGNMENT, group_of, member_of, unknown_member, updated_metadata
from state_model.streams.reconciliation import reconcile, task_owners
from state_model.streams.soft_state import Settings, SoftState
from state_model.streams.topology import (
    ConfiguredTopology,
    CopartitionIndexError,
    InvalidTopologyError,
    configure,
    required_topics,
)
from state_model.streams.values import (
    NO_TASKS_BY_TYPE,
    GroupMetadata,
    MemberAssignment,
    MemberState,
    Pairs,
    StreamsGroup,
    TasksByType,
    Topology,
)

STANDBY_REPLICAS: Final = "num.standby.replicas"
_GroupDraft: TypeAlias = Draft[StreamsGroup, records.RecordValue]


class Outcome(NamedTuple):
    """The result of an operation on a streams group: its records and its answer.

    Attributes:
        records: to append, in this order, as one operation.
        group, soft: after them.
        answer: for the member.
        starts_delay: start the timer of the initial rebalance delay.
        revocation: member epoch and time in which the member must revoke tasks, from now on; None: as before.
        ends_revocation: the member has revoked its tasks; stop that timer.
    """

    records: tuple[GroupRecord, ...]
    group: StreamsGroup
    soft: SoftState
    answer: Answer
    starts_delay: bool = False
    revocation: tuple[int, int] | None = None
    ends_revocation: bool = False


def heartbeat(
    group: StreamsGroup | None, soft: SoftState, request: Heartbeat, topics: Topics, settings: Settings, now_ms: int
) -> Outcome:
    """A member joins or stays; `group` is None when there is none. Raises HeartbeatError."""
    before = group_of(group, request)
    member = member_of(before, request, settings)
    starts_delay = not before.members and settings.initial_rebalance_delay_ms > 0 and not soft.is_delayed
    soft = soft._replace(is_delayed=soft.is_delayed or starts_delay)
    draft = Draft(REPLAY, request.group_id, before)
    member_metadata = updated_metadata(None if member is None else member.metadata, request)
    is_changed = member is None or member_metadata != member.metadata
    if is_changed:
        draft.add(records.MEMBER, member_metadata, request.member_id)
    topology = _update_topology(draft, request)
    hashed, configured = _configure(before, soft, topology, topics)
    if configured.is_ready:
        _check_owned(configured, request)
    _update_group(draft, topology, hashed, configured, settings, is_changed=is_changed)
    target, target_epoch, delay = _target_of(draft, soft, configured, settings, request.member_id, now_ms)
    assigned_before = NEW_ASSIGNMENT if member is None or member.assignment is None else member.assignment
    assigned = _reconcile(draft, assigned_before, target, target_epoch, request)
    tasks = None
    if request.member_epoch == JOINING or assigned.assigned != assigned_before.assigned:
        tasks = assigned.assigned
    soft = soft._replace(
        configured=configured,
        is_stale=False,
        shutdown_member_id=soft.shutdown_member_id or (request.member_id if request.shutdown_application else None),
        # The answer that creates a group does not count.
        endpoint_epoch=soft.endpoint_epoch
        + (tasks is not None and member_metadata.user_endpoint is not None and group is not None),
    )
    is_written = assigned != assigned_before
    must_revoke = assigned.state == MemberState.UNREVOKED_TASKS
    return Outcome(
        tuple(draft.records),
        draft.group,
        soft,
        answer_of(draft.group, soft, request, topics, assigned, tasks, delay, settings),
        starts_delay=starts_delay,
        revocation=(assigned.member_epoch, member_metadata.rebalance_timeout_ms)
        if is_written and must_revoke
        else None,
        ends_revocation=is_written and not must_revoke,
    )


def leave(group: StreamsGroup, soft: SoftState, request: Heartbeat) -> Outcome:
    """The outcome when a member leaves. Raises HeartbeatError: no such member."""
    if request.member_id not in group.members:
        raise unknown_member(request)
    if request.shutdown_application and soft.shutdown_member_id is None:
        soft = soft._replace(shutdown_member_id=request.member_id)
    return fence(request.group_id, group, soft, request.member_id)


def fence(group_id: str, group: StreamsGroup, soft: SoftState, member_id: str) -> Outcome:
    """The outcome of removing a member: it left, or its session or its time to revoke tasks expired (§3.6)."""
    draft = Draft(REPLAY, group_id, group)
    draft.end_member(member_id)
    draft.add(records.METADATA, group.metadata._replace(epoch=group.group_epoch + 1))
    if not draft.group.members:
        soft = soft._replace(shutdown_member_id=None)
    return Outcome(tuple(draft.records), draft.group, soft, Answer(member_id, LEAVING), ends_revocation=True)


def delayed_target(
    group_id: str, group: StreamsGroup, soft: SoftState, settings: Settings, now_ms: int
) -> tuple[GroupRecord, ...]:
    """The records when the initial rebalance delay is over: the target of all members, if it is due.

    It is for the assignment configs in the group's metadata; others count with the next heartbeat, as in 4.3.1.
    """
    if not group.members or soft.configured is None or group.group_epoch <= group.target_assignment_epoch:
        return ()
    draft = Draft(REPLAY, group_id, group)
    replicas = dict(group.metadata.last_assignment_configs or ()).get(
        STANDBY_REPLICAS, str(settings.num_standby_replicas)
    )
    _assign(draft, soft.configured, settings._replace(num_standby_replicas=int(replicas)), now_ms)
    return tuple(draft.records)


def group_tombstones(group_id: str) -> tuple[GroupRecord, ...]:
    """The tombstones of a group without members; its offsets have tombstones of their own (§3.8)."""
    return tuple(
        records.record_of(record_type, group_id, None)
        for record_type in (records.TARGET, records.METADATA, records.TOPOLOGY)
    )


def _update_topology(draft: _GroupDraft, request: Heartbeat) -> Topology:
    """The group's topology, recorded when it is the first one (§1.11)."""
    group_topology, sent = draft.group.topology, request.topology
    if sent is not None and (sent.epoch < 0 or len(_by_id(sent)) < len(sent.subtopologies)):
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if group_topology is not None:
        is_other = sent is not None and (sent.epoch, _by_id(sent)) != (group_topology.epoch, _by_id(group_topology))
        if sent is not None and is_other and sent.epoch >= group_topology.epoch:
            raise HeartbeatError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return group_topology
    if sent is None:
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR)
    draft.add(records.TOPOLOGY, sent)
    return sent


def _by_id(topology: Topology) -> dict[str, object]:
    return {subtopology.subtopology_id: subtopology for subtopology in topology.subtopologies}


def _configure(
    before: StreamsGroup, soft: SoftState, topology: Topology, topics: Topics
) -> tuple[int, ConfiguredTopology]:
    """Metadata hash and configured topology, computed again when they may have changed (§2.4, §4.2)."""
    hashed = before.metadata.metadata_hash
    is_new = before.topology is None
    if is_new or soft.configured is None or soft.is_stale:
        existing = (topics(name) for name in required_topics(topology))
        hashed = metadata_hash(topic for topic in existing if topic is not None)
    if not is_new and soft.configured is not None and hashed == before.metadata.metadata_hash:
        return hashed, soft.configured
    try:
        return hashed, configure(topology, topics)
    except CopartitionIndexError as error:
        raise HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    except InvalidTopologyError as error:
        raise HeartbeatError(ErrorCode.STREAMS_INVALID_TOPOLOGY, str(error)) from error


def _check_owned(configured: ConfiguredTopology, request: Heartbeat) -> None:
    """The tasks that the member says it has must exist (§1.10)."""
    subtopologies = configured.subtopologies or {}
    for tasks in request.owned or ():
        for task in sorted(tasks):
            subtopology = subtopologies.get(task.subtopology_id)
            if subtopology is None:
                text = f"Subtopology {task.subtopology_id} does not exist in the topology."
                raise HeartbeatError(ErrorCode.INVALID_REQUEST, text)
            if not 0 <= task.partition < subtopology.task_count:
                raise HeartbeatError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {task.partition} for subtopology {task.subtopology_id} is invalid. "
                    f"Number of tasks for this subtopology: {subtopology.task_count}",
                )


def _update_group(
    draft: _GroupDraft,
    topology: Topology,
    hashed: int,
    configured: ConfiguredTopology,
    settings: Settings,
    *,
    is_changed: bool,
) -> None:
    """Raise the group epoch when the members, topics, topology or configuration of the assignment changed (§2.3)."""
    old = draft.group.metadata
    configs: Pairs = ((STANDBY_REPLICAS, str(settings.num_standby_replicas)),)
    validated = topology.epoch if configured.is_ready else -1
    new = GroupMetadata(old.epoch + 1, hashed, validated, configs)
    is_same = (hashed, validated) == (old.metadata_hash, old.validated_topology_epoch)
    if is_changed or not is_same or dict(old.last_assignment_configs or ()) != dict(configs):
        draft.add(records.METADATA, new)


def _target_of(
    draft: _GroupDraft, soft: SoftState, configured: ConfiguredTopology, settings: Settings, member_id: str, now_ms: int
) -> tuple[TasksByType, int, str | None]:
    """Target and epoch for the member; the reason why no new target was computed (§2.7, §2.8)."""
    delay = None
    group = draft.group
    if group.group_epoch > group.target_assignment_epoch:
        computed_ms, interval_ms = group.target.assignment_timestamp_ms, settings.assignment_interval_ms
        if soft.is_delayed:
            return NO_TASKS_BY_TYPE, max(1, group.target_assignment_epoch), "initial rebalance delay"
        if may_compute_target(computed_ms, interval_ms, now_ms):
            _assign(draft, configured, settings, now_ms)
        else:
            delay = "assignment interval"
    target = draft.group.targets.get(member_id, NO_TASKS_BY_TYPE)
    return target, draft.group.target_assignment_epoch, delay


def _assign(draft: _GroupDraft, configured: ConfiguredTopology, settings: Settings, now_ms: int) -> None:
    """Compute and record the target of all members; without tasks while the topology is not ready."""
    group = draft.group
    members = {
        member_id: AssignedMember(
            "" if member.metadata is None else member.metadata.process_id,
            group.targets.get(member_id, NO_TASKS_BY_TYPE),
        )
        for member_id, member in group.members.items()
    }
    subtopologies = (configured.subtopologies or {}) if configured.is_ready else {}
    targets = assign(
        members,
        {name: subtopology.task_count for name, subtopology in subtopologies.items()},
        stateful=[name for name, subtopology in subtopologies.items() if subtopology.is_stateful],
        standby_replicas=settings.num_standby_replicas,
    )
    for member_id, target in targets.items():
        if group.targets.get(member_id) != target:
            draft.add(records.MEMBER_TARGET, target, member_id)
    draft.add(records.TARGET, TargetMetadata(group.group_epoch, now_ms))


def _reconcile(
    draft: _GroupDraft, assigned: MemberAssignment, target: TasksByType, target_epoch: int, request: Heartbeat
) -> MemberAssignment:
    """The member's assignment after the heartbeat, recorded when it changed."""
    member_metadata = draft.group.members[request.member_id].metadata
    owners = task_owners(draft.group, "" if member_metadata is None else member_metadata.process_id)
    try:
        after = reconcile(assigned, target, target_epoch, request.owned, owners)
    except FencedError as error:
        text = "The member's state is unknown. The member must abandon all its partitions and rejoin."
        raise HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, text) from error
    if after != assigned:
        draft.add(records.ASSIGNMENT, after, request.member_id)
    return after
