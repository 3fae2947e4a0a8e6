"""The checks of the rules ST-1 to ST-37 on single records of streams groups (streams-group §11)."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, cast

from state_model.audit.streams_steps import Outcome, StreamsDifference, StreamsPast, StreamsRecord, owned, unless
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, TARGET
from state_model.streams.values import (
    GroupMetadata,
    MemberAssignment,
    MemberMetadata,
    MemberState,
    TargetMetadata,
    TasksByType,
)

FIRST_GROUP_EPOCH: Final = 2
STANDBY_REPLICAS: Final = "num.standby.replicas"
MAX_STANDBY_REPLICAS: Final = 2
LASTING_MS: Final = 60_000
"""A group begins without its internal topics: what lasts no longer is no finding."""
TASK_LISTS: Final = ("active_tasks", "standby_tasks", "warmup_tasks")


def first_group_epoch(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-1."""
    metadata = record.value_as(GroupMetadata)
    if metadata is None or past.metadata is not None:
        return None
    return unless(metadata.epoch == FIRST_GROUP_EPOCH, FIRST_GROUP_EPOCH, metadata.epoch)


def group_epoch_skips(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-2."""
    metadata, before = record.value_as(GroupMetadata), past.metadata
    if metadata is None or before is None:
        return None
    return unless(metadata.epoch == before.epoch + 1, before.epoch + 1, metadata.epoch)


def assignment_epoch_order(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-3."""
    target, before = record.value_as(TargetMetadata), past.of(TARGET, TargetMetadata)
    if target is None or past.metadata is None:
        return None
    least = 2 if before is None else before.assignment_epoch + 1
    holds = least <= target.assignment_epoch <= past.metadata.epoch
    return unless(holds, f"{least} to {past.metadata.epoch}", target.assignment_epoch)


def assignment_epoch_behind(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-4."""
    target = record.value_as(TargetMetadata)
    if target is None or past.metadata is None:
        return None
    return unless(target.assignment_epoch == past.metadata.epoch, past.metadata.epoch, target.assignment_epoch)


def assignment_timestamp(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-5, without the interval, which is a setting."""
    target, before = record.value_as(TargetMetadata), past.of(TARGET, TargetMetadata)
    if target is None:
        return None
    least = 1 if before is None else before.assignment_timestamp_ms
    return unless(target.assignment_timestamp_ms >= least, f"{least} or later", target.assignment_timestamp_ms)


def member_epoch_ahead(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-6."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    return unless(own.member_epoch <= past.assignment_epoch, f"at most {past.assignment_epoch}", own.member_epoch)


def member_epoch_settled(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-7."""
    own = record.value_as(MemberAssignment)
    if own is None or own.state not in (MemberState.STABLE, MemberState.UNRELEASED_TASKS):
        return None
    return unless(own.member_epoch == past.assignment_epoch, past.assignment_epoch, own.member_epoch)


def _before(past: StreamsPast, record: StreamsRecord) -> MemberAssignment | None:
    """The member's record of type 22 before this one, in its life."""
    written = past.written.get((ASSIGNMENT, record.member_id))
    return None if written is None else written.value_as(MemberAssignment)


def previous_member_epoch(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-8."""
    own, before = record.value_as(MemberAssignment), _before(past, record)
    if own is None:
        return None
    expected = 0 if before is None else before.member_epoch
    holds = own.previous_member_epoch == expected and own.previous_member_epoch <= own.member_epoch
    return unless(holds, expected, own.previous_member_epoch)


def member_epoch_order(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-9."""
    own, before = record.value_as(MemberAssignment), _before(past, record)
    if own is None or before is None:
        return None
    return unless(own.member_epoch >= before.member_epoch, f"at least {before.member_epoch}", own.member_epoch)


def member_state(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-10."""
    own = record.value_as(MemberAssignment)
    return None if own is None else unless(own.state in (1, 2, 3), "1, 2 or 3", own.state)


def pending_state(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-11."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    unrevoked = own.state == MemberState.UNREVOKED_TASKS
    return unless(
        own.pending.is_empty != unrevoked,
        "pending tasks" if unrevoked else "no pending tasks",
        f"state {own.state}, {sum(map(len, own.pending))} pending tasks",
    )


def assigned_and_pending(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-12."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    for assigned, pending in zip(own.assigned, own.pending, strict=True):
        if assigned & pending:
            return StreamsDifference("assigned or pending", "both", min(assigned & pending))
    return None


def assigned_of_target(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-13."""
    own = record.value_as(MemberAssignment)
    if own is None:
        return None
    for assigned, target in zip(own.assigned, past.target(record.member_id), strict=True):
        wrong = assigned - target if own.state != MemberState.STABLE else assigned ^ target
        if wrong:
            return StreamsDifference("the tasks of the target", f"state {own.state}", min(wrong))
    return None


def active_owners(past: StreamsPast, record: StreamsRecord) -> Outcome:
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


def tasks_of_process(past: StreamsPast, record: StreamsRecord) -> Outcome:
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


def targets_of_active(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-16, without completeness, which takes the partition counts of the topics."""
    if record.value_as(TargetMetadata) is None:
        return None
    counts = Counter(task for _, target in past.by_member(MEMBER_TARGET, TasksByType) for task in target.active)
    twice = sorted(task for task, count in counts.items() if count > 1)
    return StreamsDifference("one target", f"{counts[twice[0]]} targets", twice[0]) if twice else None


def standby_targets(past: StreamsPast, record: StreamsRecord) -> Outcome:
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


def targets_of_process(past: StreamsPast, record: StreamsRecord) -> Outcome:
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


def warmup_tasks(past: StreamsPast, record: StreamsRecord) -> Outcome:
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


def assignment_epochs(past: StreamsPast, record: StreamsRecord) -> Outcome:
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


def sorted_lists(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-21."""
    for name, entries in _lists(record).items():
        ids = [entry["subtopology_id"] for entry in entries]
        numbers = [entry["partitions"] for entry in entries]
        if ids != sorted(set(ids)) or any(not own or list(own) != sorted(set(own)) for own in numbers):
            return StreamsDifference("sorted tasks, each once", name)
    return None


def validated_epoch(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-22."""
    metadata = record.value_as(GroupMetadata)
    if metadata is None or past.topology is None:
        return None
    allowed = (-1, past.topology.epoch)
    return unless(
        metadata.validated_topology_epoch in allowed, f"-1 or {allowed[1]}", metadata.validated_topology_epoch
    )


def targets_while_not_ready(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-23."""
    if record.value_as(TargetMetadata) is None or past.metadata is None or past.metadata.validated_topology_epoch >= 0:
        return None
    tasks = sorted(task for _, target in past.by_member(MEMBER_TARGET, TasksByType) for own in target for task in own)
    return StreamsDifference("no task in a target", str(len(tasks)), tasks[0]) if tasks else None


def known_subtopologies(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-24."""
    if past.topology is None:
        return None
    known = {own.subtopology_id for own in past.topology.subtopologies}
    ids = {entry["subtopology_id"] for entries in _lists(record).values() for entry in entries}
    return unless(ids <= known, f"subtopologies {sorted(known)}", sorted(ids - known))


def assignment_configs(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-32."""
    metadata = record.value_as(GroupMetadata)
    if metadata is None:
        return None
    configs = dict(metadata.last_assignment_configs or ())
    text = configs.get(STANDBY_REPLICAS, "")
    holds = set(configs) == {STANDBY_REPLICAS} and text.isdecimal() and int(text) <= MAX_STANDBY_REPLICAS
    return unless(holds, f"{STANDBY_REPLICAS} of 0 to {MAX_STANDBY_REPLICAS}", configs)


def revocation_time(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-34: seen at the member's next record of type 22."""
    written = past.written.get((ASSIGNMENT, record.member_id))
    before, member = _before(past, record), past.of(MEMBER, MemberMetadata, record.member_id)
    if record.record_type != ASSIGNMENT or written is None or before is None or member is None:
        return None
    took_ms = record.timestamp_ms - written.timestamp_ms
    if before.state != MemberState.UNREVOKED_TASKS or took_ms <= member.rebalance_timeout_ms:
        return None
    return StreamsDifference(f"at most {member.rebalance_timeout_ms} ms", f"{took_ms} ms")


def not_validated(past: StreamsPast, record: StreamsRecord) -> Outcome:
    """ST-37: seen at the next group epoch, of periods that outlast the creation of internal topics."""
    before, written = past.metadata, past.written.get((METADATA, None))
    if record.record_type != METADATA or before is None or written is None or before.validated_topology_epoch >= 0:
        return None
    took_ms = record.timestamp_ms - written.timestamp_ms
    if took_ms <= LASTING_MS or not past.members():
        return None
    return StreamsDifference("a topology that the topics fit", f"none for {took_ms} ms")
