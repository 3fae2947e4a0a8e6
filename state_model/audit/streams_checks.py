"""The checks of the rules ST-1 to ST-37 on single records of streams groups (streams-group §11)."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, cast

from state_model.audit.streams_steps import StreamsDifference, StreamsPast, StreamsRecord, owned
from state_model.java import partition_for_group
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, TARGET, TOPOLOGY
from state_model.streams.values import (
    GroupMetadata,
    MemberAssignment,
    MemberMetadata,
    MemberState,
    TargetMetadata,
    TasksByType,
    Topology,
)

Found = StreamsDifference | None
FIRST_GROUP_EPOCH: Final = 2
STANDBY_REPLICAS: Final = "num.standby.replicas"
MAX_STANDBY_REPLICAS: Final = 2
LASTING_MS: Final = 60_000
"""A group begins without its internal topics: what lasts no longer is no finding."""
TASK_LISTS: Final = ("active_tasks", "standby_tasks", "warmup_tasks")


def _unless(holds: bool, expected: object, observed: object) -> Found:
    return None if holds else StreamsDifference(str(expected), str(observed))


def first_group_epoch(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-1."""
    metadata = record.value_as(GroupMetadata)
    if metadata is None or past.metadata is not None:
        return None
    return _unless(metadata.epoch == FIRST_GROUP_EPOCH, FIRST_GROUP_EPOCH, metadata.epoch)


def group_epoch_skips(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-2."""
    metadata, before = record.value_as(GroupMetadata), past.metadata
    if metadata is None or before is None:
        return None
    return _unless(metadata.epoch == before.epoch + 1, before.epoch + 1, metadata.epoch)


def assignment_epoch_order(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-3."""
    target, before = record.value_as(TargetMetadata), past.of(TARGET, TargetMetadata)
    if target is None or past.metadata is None:
        return None
    least = 2 if before is None else before.assignment_epoch + 1
    holds = least <= target.assignment_epoch <= past.metadata.epoch
    return _unless(holds, f"{least} to {past.metadata.epoch}", target.assignment_epoch)


def assignment_epoch_behind(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-4."""
    target = record.value_as(TargetMetadata)
    if target is None or past.metadata is None:
        return None
    return _unless(target.assignment_epoch == past.metadata.epoch, past.metadata.epoch, target.assignment_epoch)


def assignment_timestamp(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-5, without the interval, which is a setting."""
    target, before = record.value_as(TargetMetadata), past.of(TARGET, TargetMetadata)
    if target is None:
        return None
    least = 1 if before is None else before.assignment_timestamp_ms
    return _unless(target.assignment_timestamp_ms >= least, f"{least} or later", target.assignment_timestamp_ms)


def member_epoch_ahead(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-6."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    return _unless(own.member_epoch <= past.assignment_epoch, f"at most {past.assignment_epoch}", own.member_epoch)


def member_epoch_settled(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-7."""
    own = record.value_as(MemberAssignment)
    if own is None or own.state not in (MemberState.STABLE, MemberState.UNRELEASED_TASKS):
        return None
    return _unless(own.member_epoch == past.assignment_epoch, past.assignment_epoch, own.member_epoch)


def _before(past: StreamsPast, record: StreamsRecord) -> MemberAssignment | None:
    """The member's record of type 22 before this one, in its life."""
    written = past.written.get((ASSIGNMENT, record.member_id))
    return None if written is None else written.value_as(MemberAssignment)


def previous_member_epoch(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-8."""
    own, before = record.value_as(MemberAssignment), _before(past, record)
    if own is None:
        return None
    expected = 0 if before is None else before.member_epoch
    holds = own.previous_member_epoch == expected and own.previous_member_epoch <= own.member_epoch
    return _unless(holds, expected, own.previous_member_epoch)


def member_epoch_order(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-9."""
    own, before = record.value_as(MemberAssignment), _before(past, record)
    if own is None or before is None:
        return None
    return _unless(own.member_epoch >= before.member_epoch, f"at least {before.member_epoch}", own.member_epoch)


def member_state(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-10."""
    own = record.value_as(MemberAssignment)
    return None if own is None else _unless(own.state in (1, 2, 3), "1, 2 or 3", own.state)


def pending_state(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-11."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    unrevoked = own.state == MemberState.UNREVOKED_TASKS
    return _unless(
        own.pending.is_empty != unrevoked,
        "pending tasks" if unrevoked else "no pending tasks",
        f"state {own.state}, {sum(map(len, own.pending))} pending tasks",
    )


def assigned_and_pending(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-12."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    for assigned, pending in zip(own.assigned, own.pending, strict=True):
        if assigned & pending:
            return StreamsDifference("assigned or pending", "both", min(assigned & pending))
    return None


def assigned_of_target(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-13."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    for assigned, target in zip(own.assigned, past.target(record.member_id), strict=True):
        wrong = assigned - target if own.state != MemberState.STABLE else assigned ^ target
        if wrong:
            return StreamsDifference("the tasks of the target", f"state {own.state}", min(wrong))
    return None


def active_owners(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-14."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    active = set(owned(own)[0])
    for name, other in past.by_member(ASSIGNMENT, MemberAssignment):
        both = active.intersection(owned(other)[0])
        if name != record.member_id and both:
            return StreamsDifference("one member", f"{name} and {record.member_id}", min(both))
    return None


def tasks_of_process(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-15."""
    own = record.value_as(MemberAssignment)
    processes = past.processes()
    process = processes.get(record.member_id or "")
    if own is None or process is None:
        return None
    counts = Counter(task for tasks in owned(own) for task in tasks)
    for name, other in past.by_member(ASSIGNMENT, MemberAssignment):
        if name != record.member_id and processes.get(name) == process:
            counts.update(task for tasks in owned(other) for task in tasks)
    mine = [task for tasks in owned(own) for task in tasks if counts[task] > 1]
    return StreamsDifference("once in a process", f"{counts[mine[0]]} times", mine[0]) if mine else None


def targets_of_active(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-16, without completeness, which takes the partition counts of the topics."""
    if record.value_as(TargetMetadata) is None:
        return None
    counts = Counter(task for _, target in past.by_member(MEMBER_TARGET, TasksByType) for task in target.active)
    twice = sorted(task for task, count in counts.items() if count > 1)
    return StreamsDifference("one target", f"{counts[twice[0]]} targets", twice[0]) if twice else None


def standby_targets(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-17."""
    if record.value_as(TargetMetadata) is None or past.metadata is None:
        return None
    text = dict(past.metadata.last_assignment_configs or ()).get(STANDBY_REPLICAS, "")
    stateful = {
        of.subtopology_id for of in (past.topology.subtopologies if past.topology else ()) if of.state_changelog_topics
    }
    counts = Counter(task for _, target in past.by_member(MEMBER_TARGET, TasksByType) for task in target.standby)
    for task, count in sorted(counts.items()):
        most = int(text) if text.isdecimal() and task.subtopology_id in stateful else 0
        if count > most:
            return StreamsDifference(f"at most {most} standby tasks", str(count), task)
    return None


def targets_of_process(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-18."""
    if record.value_as(TargetMetadata) is None:
        return None
    targets = dict(past.by_member(MEMBER_TARGET, TasksByType))
    if targets.keys() != past.members():
        return StreamsDifference("a target of each member", f"{len(targets)} of {len(past.members())}")
    processes = past.processes()
    counts = Counter(
        (processes[name], task) for name, target in targets.items() for tasks in target for task in sorted(tasks)
    )
    twice = sorted(task for (_, task), count in counts.items() if count > 1)
    return StreamsDifference("once in a process", "more than once", twice[0]) if twice else None


def warmup_tasks(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-19."""
    value = record.value
    if isinstance(value, TasksByType):
        warmup = value.warmup
    elif isinstance(value, MemberAssignment):
        warmup = value.assigned.warmup | value.pending.warmup
    else:
        return None
    return StreamsDifference("no warm-up task", str(len(warmup)), min(warmup)) if warmup else None


def _lists(record: StreamsRecord) -> Mapping[str, Any]:
    """The task lists of a record of type 21 or 22 as they are written."""
    if record.record_type not in (MEMBER_TARGET, ASSIGNMENT) or record.record.value is None:
        return {}
    return {name: value for name, value in cast(Mapping[str, Any], record.record.value).items() if "_tasks" in name}


def assignment_epochs(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-20."""
    own, before = record.value_as(MemberAssignment), _before(past, record)
    if own is None:
        return None
    for name, entries in _lists(record).items():
        for entry in entries:
            lengths = len(entry["partitions"]), len(entry.get("assignment_epochs") or ())
            if name.startswith("active") and lengths[0] != lengths[1]:
                return StreamsDifference(f"{lengths[0]} assignment epochs", str(lengths[1]))
    for task, epoch in sorted(own.active_assignment_epochs.items()):
        kept = None if before is None else before.active_assignment_epochs.get(task)
        if epoch > own.member_epoch or (kept is not None and epoch != kept):
            return StreamsDifference(str(own.member_epoch if kept is None else kept), str(epoch), task)
    return None


def sorted_lists(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-21."""
    for name, entries in _lists(record).items():
        ids = [entry["subtopology_id"] for entry in entries]
        numbers = [entry["partitions"] for entry in entries]
        if ids != sorted(set(ids)) or any(not own or list(own) != sorted(set(own)) for own in numbers):
            return StreamsDifference("sorted tasks, each once", name)
    return None


def validated_epoch(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-22."""
    metadata = record.value_as(GroupMetadata)
    if metadata is None or past.topology is None:
        return None
    allowed = (-1, past.topology.epoch)
    return _unless(
        metadata.validated_topology_epoch in allowed, f"-1 or {allowed[1]}", metadata.validated_topology_epoch
    )


def targets_while_not_ready(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-23."""
    if record.value_as(TargetMetadata) is None or past.metadata is None or past.metadata.validated_topology_epoch >= 0:
        return None
    tasks = sorted(task for _, target in past.by_member(MEMBER_TARGET, TasksByType) for own in target for task in own)
    return StreamsDifference("no task in a target", str(len(tasks)), tasks[0]) if tasks else None


def known_subtopologies(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-24."""
    if past.topology is None:
        return None
    known = {own.subtopology_id for own in past.topology.subtopologies}
    ids = {entry["subtopology_id"] for entries in _lists(record).values() for entry in entries}
    return _unless(ids <= known, f"subtopologies {sorted(known)}", sorted(ids - known))


def single_topology(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-25."""
    if record.value_as(Topology) is None:
        return None
    is_first = past.topology_records == 0 and past.previous is not None and past.previous.record_type == MEMBER
    return _unless(is_first, "one topology, behind the first member", "another place")


def member_topology_epoch(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-26."""
    member = record.value_as(MemberMetadata)
    if member is None or past.topology is None:
        return None
    return _unless(
        member.topology_epoch <= past.topology.epoch, f"at most {past.topology.epoch}", member.topology_epoch
    )


def member_metadata(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-27."""
    member = record.value_as(MemberMetadata)
    if member is None:
        return None
    holds = bool(member.process_id) and member.rebalance_timeout_ms > 0 and member.instance_id is None
    return _unless(holds, "a process, a rebalance timeout, no instance id", "others")


def epoch_after_member(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-28: seen at the record behind the member's."""
    if past.previous is None or past.previous.is_tombstone or record.is_tombstone:
        return None
    behind_member = past.previous.record_type == MEMBER or past.since_epoch[-2:] == [MEMBER, TOPOLOGY]
    if not behind_member:
        return None
    return _unless(
        record.record_type in (METADATA, TOPOLOGY), "a group epoch", f"a record of type {record.record_type}"
    )


def leave_order(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-29."""
    if past.previous is not None and past.previous.is_tombstone and past.previous.record_type == MEMBER:
        is_epoch = record.record_type == METADATA and not record.is_tombstone
        return _unless(is_epoch, "a group epoch", f"a record of type {record.record_type}")
    if record.record_type != MEMBER or not record.is_tombstone:
        return None
    return _unless(past.since_epoch[-2:] == [ASSIGNMENT, MEMBER_TARGET], "tombstones of types 22 and 21", "others")


def member_life(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-30."""
    if record.record_type in (MEMBER_TARGET, ASSIGNMENT) and not record.is_tombstone:
        return _unless(record.member_id in past.members(), "a member", f"{record.member_id} is none")
    if record.record_type in (METADATA, TARGET) and record.is_tombstone:
        return _unless(not past.members(), "no member", len(past.members()))
    return None


def deletion_order(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-31."""
    if record.record_type != METADATA or not record.is_tombstone:
        return None
    before = past.previous
    holds = before is not None and before.record_type == TARGET and before.is_tombstone and not past.members()
    return _unless(holds, "no member, and the tombstone of type 20 before", "another order")


def assignment_configs(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-32."""
    metadata = record.value_as(GroupMetadata)
    if metadata is None:
        return None
    configs = dict(metadata.last_assignment_configs or ())
    text = configs.get(STANDBY_REPLICAS, "")
    holds = set(configs) == {STANDBY_REPLICAS} and text.isdecimal() and int(text) <= MAX_STANDBY_REPLICAS
    return _unless(holds, f"{STANDBY_REPLICAS} of 0 to {MAX_STANDBY_REPLICAS}", configs)


def revocation_time(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-34: seen at the member's next record of type 22."""
    written = past.written.get((ASSIGNMENT, record.member_id))
    before, member = _before(past, record), past.of(MEMBER, MemberMetadata, record.member_id)
    if record.record_type != ASSIGNMENT or written is None or before is None or member is None:
        return None
    took_ms = record.timestamp_ms - written.timestamp_ms
    if before.state != MemberState.UNREVOKED_TASKS or took_ms <= member.rebalance_timeout_ms:
        return None
    return StreamsDifference(f"at most {member.rebalance_timeout_ms} ms", f"{took_ms} ms")


def not_validated(past: StreamsPast, record: StreamsRecord) -> Found:
    """ST-37: seen at the next group epoch, of periods that outlast the creation of internal topics."""
    before, written = past.metadata, past.written.get((METADATA, None))
    if record.record_type != METADATA or before is None or written is None or before.validated_topology_epoch >= 0:
        return None
    took_ms = record.timestamp_ms - written.timestamp_ms
    if took_ms <= LASTING_MS or not past.members():
        return None
    return StreamsDifference("a topology that the topics fit", f"none for {took_ms} ms")


def misplaced_group(group_id: str, log_partition: int, count: int) -> Found:
    """ST-36; `count`: number of partitions of __consumer_offsets."""
    expected = partition_for_group(group_id, count)
    return _unless(expected == log_partition, f"partition {expected}", f"partition {log_partition}")
