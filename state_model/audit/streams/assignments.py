"""Rules ST-10 to ST-15, ST-19 to ST-21 and ST-24: what members of a streams group have."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups.assignments import state_of_revocation, unknown_state
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs
from state_model.audit.rule import Field
from state_model.audit.severities import WARNING
from state_model.audit.streams.history import (
    PENDING,
    Assigned,
    History,
    Life,
    active_tasks,
    copies,
    task_lists,
    tasks_by_type,
)
from state_model.audit.streams.shape import Check, streams_rule
from state_model.streams.records import ASSIGNMENT, MEMBER_TARGET
from state_model.streams.values import NO_TASKS, MemberState, TaskId, TasksByType


def _written(history: History, record: ModelRecord) -> Assigned | None:
    """The record as an assignment; None: it is none."""
    return history.life.read_assignment(record) if record.is_a(ASSIGNMENT) else None


def assigned_and_revoked(history: History, record: ModelRecord) -> GroupDifference | None:
    """Tasks that a member has and must revoke."""
    assignment = _written(history, record)
    if assignment is None:
        return None
    conflicting_tasks = [
        task for has, loses in zip(assignment.assigned, assignment.pending, strict=True) for task in has & loses
    ]
    return differs(Field.TASKS, 0, len(conflicting_tasks), names=conflicting_tasks) if conflicting_tasks else None


def other_than_target(history: History, record: ModelRecord) -> GroupDifference | None:
    """Tasks that the target lacks, or in state STABLE a target that the member has not reached."""
    assignment = _written(history, record)
    target = history.life.targets.get(record.name or "")
    if assignment is None or (target is None and not history.life.is_whole):
        return None
    tasks = TasksByType() if target is None else target.tasks
    pairs = list(zip(assignment.assigned, tasks, strict=True))
    differing_tasks = [task for has, planned in pairs for task in has - planned]
    if record.number("state") == MemberState.STABLE:
        differing_tasks += [task for has, planned in pairs for task in planned - has]
    if not differing_tasks:
        return None
    expected, actual = sum(map(len, tasks)), sum(map(len, assignment.assigned))
    return differs(Field.TASKS, expected, actual, None if target is None else target.record, differing_tasks)


def two_owners(history: History, record: ModelRecord) -> GroupDifference | None:
    """An active task that another member has, too."""
    assignment = _written(history, record)
    tasks = NO_TASKS if assignment is None else active_tasks(assignment)
    for member_id, other in history.life.assignments.items():
        shared_tasks = tasks & active_tasks(other)
        if member_id != record.name and shared_tasks:
            return differs(Field.OWNERS, 1, 2, other.record, shared_tasks)
    return None


def twice_in_process(history: History, record: ModelRecord) -> GroupDifference | None:
    """A task that a process has twice, by the processes of the members when their tasks were written."""
    assignment = _written(history, record)
    if assignment is None or assignment.process_id is None:
        return None
    copy_counts = Counter(copies(assignment))
    if copy_counts and max(copy_counts.values()) > 1:
        twice = [task for task, count in copy_counts.items() if count > 1]
        return differs(Field.OWNERS, 1, max(copy_counts.values()), names=twice)
    for other in _of_process(history.life, assignment.process_id, record.name or ""):
        shared_tasks = [task for task in copies(other) if task in copy_counts]
        if shared_tasks:
            return differs(Field.OWNERS, 1, 2, other.record, shared_tasks)
    return None


def _of_process(life: Life, process_id: str, without: str) -> Iterator[Assigned]:
    """The other members of a process, now and when their tasks were written."""
    for member_id, other in life.assignments.items():
        if member_id != without and other.process_id == process_id == life.process_of(member_id):
            yield other


def warmup_tasks(history: History, record: ModelRecord) -> GroupDifference | None:
    """Warm-up tasks, which no release assigns."""
    if record.value is None or record.record_type not in (MEMBER_TARGET, ASSIGNMENT):
        return None
    tasks = tasks_by_type(record.value).warmup
    if record.record_type == ASSIGNMENT:
        tasks |= tasks_by_type(record.value, PENDING).warmup
    return differs(Field.TASKS, 0, len(tasks), names=tasks) if tasks else None


def assignment_epochs(history: History, record: ModelRecord) -> GroupDifference | None:
    """Active tasks without an assignment epoch, with one above the member epoch, or with another one than before."""
    if not record.is_a(ASSIGNMENT):
        return None
    lists = [entry for suffix in ("", PENDING) for entry in (record.value or {})[f"activeTasks{suffix}"]]
    for entry in lists:
        epochs = entry.get("assignmentEpochs") or ()
        if len(epochs) != len(entry["partitions"]):
            tasks = [TaskId(entry["subtopologyId"], partition) for partition in entry["partitions"]]
            return differs(Field.TASKS_WITH_EPOCH, len(tasks), len(epochs), names=tasks)
    epoch_by_task, member_epoch = _epochs(lists), record.number("memberEpoch")
    if epoch_by_task and max(epoch_by_task.values()) > member_epoch:
        above = [task for task, epoch in epoch_by_task.items() if epoch > member_epoch]
        return differs(Field.ASSIGNMENT_EPOCH, member_epoch, max(epoch_by_task.values()), names=above)
    last = history.life.assignments.get(record.name or "")
    if last is None or last.record.value is None:
        return None
    for task, epoch in _epochs(last.record.value["activeTasks"]).items():
        if epoch_by_task.get(task, epoch) != epoch:
            return differs(Field.ASSIGNMENT_EPOCH, epoch, epoch_by_task[task], last.record, [task])
    return None


def _epochs(entries: Sequence[Mapping[str, Any]]) -> dict[TaskId, int]:
    return {
        TaskId(entry["subtopologyId"], partition): epoch
        for entry in entries
        for partition, epoch in zip(entry["partitions"], entry.get("assignmentEpochs") or (), strict=False)
    }


def unsorted_tasks(history: History, record: ModelRecord) -> GroupDifference | None:
    """A list of tasks that is not sorted, has a task twice, or a subtopology without tasks."""
    for entries in task_lists(record):
        tasks = [TaskId(entry["subtopologyId"], partition) for entry in entries for partition in entry["partitions"]]
        ids = [entry["subtopologyId"] for entry in entries]
        in_order = sum(1 for before, after in pairwise(tasks) if before < after) + bool(tasks)
        if in_order < len(tasks) or len({task.subtopology_id for task in tasks}) < len(ids):
            return differs(Field.TASKS, len(set(tasks)), in_order)
    return None


def unknown_subtopology(history: History, record: ModelRecord) -> GroupDifference | None:
    """Tasks of a subtopology that the topology lacks."""
    subtopologies = history.life.subtopologies()
    if subtopologies is None:
        return None
    named = {entry["subtopologyId"] for entries in task_lists(record) for entry in entries}
    unknown = len(named - subtopologies.keys())
    return differs(Field.SUBTOPOLOGIES, 0, unknown, history.life.topology) if unknown else None


RULES: Final = (
    streams_rule(
        10,
        "streams_member_state",
        "A member of a streams group is in state 1, 2 or 3",
        "Kafka 4.3 has STABLE, UNREVOKED_TASKS and UNRELEASED_TASKS.",
        relation="1 to",
        remedy="Find out which broker wrote it; a broker that does not know the state asks the member to join again.",
    ),
    streams_rule(
        11,
        "streams_tasks_to_revoke",
        "A member has tasks to revoke in state 2, and only then",
        "The state says that the coordinator waits for their revocation.",
        impact=Impact.STUCK,
    ),
    streams_rule(
        12,
        "streams_assigned_and_revoked",
        "No task of a member is assigned and to be revoked",
        "Reconciliation parts a member's tasks into those that it keeps and those that it must revoke.",
        impact=Impact.STUCK,
    ),
    streams_rule(
        13,
        "streams_other_than_target",
        "A stable member has the tasks of its target, others have no task that the target lacks",
        f"Reconciliation ends when it has them. A member without a record of a target: {NEEDS_WHOLE_GROUP.lower()}",
        impact=Impact.STUCK,
    ),
    streams_rule(
        14,
        "streams_task_with_two_owners",
        "An active task has one member at most",
        "A member gets a task once no other has it, be it to revoke it.",
        impact=Impact.TWICE,
        remedy="Look for output and changelog records that both members wrote; report it to the Kafka project.",
    ),
    streams_rule(
        15,
        "streams_task_twice_in_process",
        "A process has a task once, as active or standby task",
        "A process has one state directory for a task. Members that changed their process since are left out.",
        impact=Impact.STUCK,
    ),
    streams_rule(
        19,
        "streams_warmup_tasks",
        "There are no warm-up tasks",
        "No release assigns them.",
        remedy="Find out which broker wrote them.",
    ),
    streams_rule(
        20,
        "streams_task_epochs",
        "Each active task has an assignment epoch, not above the member epoch, which it keeps",
        "The coordinator accepts offsets of a task from this epoch on.",
        impact=Impact.DELIVERED_AGAIN,
    ),
    streams_rule(
        21,
        "streams_tasks_unsorted",
        "Tasks are sorted by subtopology and partition",
        "The coordinator writes them so, each once, and no subtopology without tasks.",
        severity=WARNING,
        remedy="Find out which writer made the record; brokers read it all the same.",
    ),
    streams_rule(
        24,
        "streams_unknown_subtopology",
        "Tasks are of subtopologies of the topology",
        "Tasks follow from the topology, which never changes.",
        impact=Impact.STUCK,
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    1100: unknown_state,
    1110: state_of_revocation,
    1120: assigned_and_revoked,
    1130: other_than_target,
    1140: two_owners,
    1150: twice_in_process,
    1190: warmup_tasks,
    1200: assignment_epochs,
    1210: unsorted_tasks,
    1240: unknown_subtopology,
}
