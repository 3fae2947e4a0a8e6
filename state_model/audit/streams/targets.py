"""Rules ST-16 to ST-18, ST-23 and ST-37: the target assignment of a streams group when it is complete (type 20)."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups.assignments import members_without_target
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs
from state_model.audit.rule import Field
from state_model.audit.severities import WARNING
from state_model.audit.streams.configurations import standby_replicas
from state_model.audit.streams.history import History, Target
from state_model.audit.streams.shape import Check, streams_rule
from state_model.streams.records import TARGET
from state_model.streams.values import TaskId

NOT_READY: Final = -1
"""The validated topology epoch while the topics do not fit the topology."""


def two_targets(history: History, record: ModelRecord) -> GroupDifference | None:
    """An active task in the targets of several members."""
    if not record.is_a(TARGET):
        return None
    targets = history.life.targets.values()
    copies = Counter(task for target in targets for task in target.tasks.active)
    return _largest(copies, [target for target in targets if target.tasks.active], 1)


def _largest(copies: Counter[TaskId], targets: list[Target], max_copies: int) -> GroupDifference | None:
    if not copies or max(copies.values()) <= max_copies:
        return None
    task = max(copies, key=lambda task: copies[task])
    newest = max(
        (target.record for target in targets if any(task in tasks for tasks in target.tasks)),
        key=lambda record: record.log_offset,
    )
    return differs(
        Field.OWNERS, max_copies, copies[task], newest, [task for task in copies if copies[task] > max_copies]
    )


def too_many_standbys(history: History, record: ModelRecord) -> GroupDifference | None:
    """More standby tasks of a task than the group has replicas, or any of a task without a changelog."""
    life = history.life
    if not record.is_a(TARGET):
        return None
    standbys = Counter(task for target in life.targets.values() for task in target.tasks.standby)
    subtopologies = life.subtopologies() or {}
    stateless = {name for name, subtopology in subtopologies.items() if not subtopology["stateChangelogTopics"]}
    without_changelog = [task for task in standbys if task.subtopology_id in stateless]
    if without_changelog:
        count = sum(standbys[task] for task in without_changelog)
        return differs(Field.STANDBY_REPLICAS, 0, count, life.topology, without_changelog)
    max_standbys = None if life.metadata is None else standby_replicas(life.metadata)
    if max_standbys is None or not standbys or max(standbys.values()) <= max_standbys:
        return None
    beyond = [task for task, count in standbys.items() if count > max_standbys]
    return differs(Field.STANDBY_REPLICAS, max_standbys, max(standbys.values()), life.metadata, beyond)


def target_twice_in_process(history: History, record: ModelRecord) -> GroupDifference | None:
    """A task that the targets give to a process twice."""
    if not record.is_a(TARGET):
        return None
    by_process: dict[str, list[Target]] = {}
    for member_id, target in history.life.targets.items():
        process_id = history.life.process_of(member_id)
        if process_id is not None:
            by_process.setdefault(process_id, []).append(target)
    for targets in by_process.values():
        copies = Counter(task for target in targets for tasks in target.tasks for task in tasks)
        difference = _largest(copies, targets, 1)
        if difference is not None:
            return difference
    return None


def target_while_not_ready(history: History, record: ModelRecord) -> GroupDifference | None:
    """A target with tasks while the topics do not fit the topology."""
    life = history.life
    if not _is_not_ready(history, record):
        return None
    with_tasks = [target for target in life.targets.values() if not target.tasks.is_empty]
    if not with_tasks:
        return None
    tasks = [task for target in with_tasks for task_set in target.tasks for task in task_set]
    return differs(Field.TASKS, 0, len(tasks), with_tasks[-1].record, tasks)


def not_ready(history: History, record: ModelRecord) -> GroupDifference | None:
    """A target assignment while the topics do not fit the topology: its members have no tasks."""
    life = history.life
    if not _is_not_ready(history, record) or not life.members:
        return None
    return differs(Field.TOPOLOGY_EPOCH, _topology_epoch(history), NOT_READY, life.metadata)


def _is_not_ready(history: History, record: ModelRecord) -> bool:
    metadata = history.life.metadata
    return record.is_a(TARGET) and metadata is not None and metadata.number("validatedTopologyEpoch") == NOT_READY


def _topology_epoch(history: History) -> int:
    topology = history.life.topology
    return 0 if topology is None else topology.number("epoch")


RULES: Final = (
    streams_rule(
        16,
        "streams_task_with_two_targets",
        "An active task is in the target of one member at most",
        "The assignor gives each task to one member. Tested when the target assignment is complete (record type 20).",
        impact=Impact.STUCK,
    ),
    streams_rule(
        17,
        "streams_too_many_standby_tasks",
        "A task has at most as many standby tasks as the group has replicas, none without a changelog",
        "The assignor counts num.standby.replicas of the group's record, for subtopologies with state.",
        relation="<=",
    ),
    streams_rule(
        18,
        "streams_target_twice_in_process",
        "A process has a task once in the target assignment",
        "Two copies of a task in a process would share a state directory.",
        impact=Impact.STUCK,
    ),
    streams_rule(
        18,
        "streams_member_without_target",
        "A complete target assignment is that of the members",
        f"The assignor sees all members, and one without tasks has an empty target. {NEEDS_WHOLE_GROUP}",
        part=1,
        impact=Impact.STUCK,
        is_of_whole_logs=True,
    ),
    streams_rule(
        23,
        "streams_target_while_not_ready",
        "Without a valid topology the target assignment is empty",
        "Where topics are missing or have other numbers of partitions, no task is assigned.",
    ),
    streams_rule(
        37,
        "streams_topology_not_ready",
        "The topics of a group with members fit its topology",
        "Topics are missing or have other numbers of partitions (validated topology epoch -1), so that members have no "
        "tasks. Tested when a target assignment is computed: internal topics are created before the first one.",
        severity=WARNING,
        impact=Impact.STUCK,
        remedy="Compare the topics with the topology: `sharelens describe --group`. The application's log names them.",
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    1160: two_targets,
    1170: too_many_standbys,
    1180: target_twice_in_process,
    1181: members_without_target,
    1230: target_while_not_ready,
    1370: not_ready,
}
