"""The target assignments of a streams group, as a broker describes them, and what the sticky assignor may make of them.

Ties are free: Kafka's follow the order of its hash maps. So another order of the ids may explain a target.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from state_model.streams.assignor import AssignedMember, assign
from state_model.streams.values import NO_TASKS_BY_TYPE, TaskId, Tasks, TasksByType

ORDERS_MAX = 200
Targets = Mapping[str, TasksByType]


def targets_of(described: Mapping[str, Any]) -> dict[str, TasksByType]:
    """The target assignment of each member in a described group."""
    return {member["member_id"]: tasks_of(member["target_assignment"]) for member in described["members"]}


def tasks_of(lists: Mapping[str, Any]) -> TasksByType:
    """The active and the standby tasks of a request or an answer."""
    return TasksByType(_tasks(lists["active_tasks"]), _tasks(lists["standby_tasks"]))


def _tasks(lists: Any) -> Tasks:
    return frozenset(TaskId(each["subtopology_id"], partition) for each in lists for partition in each["partitions"])


def is_sticky(
    before: Targets, after: Targets, processes: Mapping[str, str], task_counts: Mapping[str, int], **rest: Any
) -> bool:
    """Whether the assignor moves as many tasks of each type and gives the members as many, with some order of ids."""
    expected = _measured(before, after)
    members = {
        member: AssignedMember(process, before.get(member, NO_TASKS_BY_TYPE)) for member, process in processes.items()
    }
    return any(
        _measured(before, {member: targets[names[member]] for member in members}) == expected
        for names, renamed in _orders(members)
        for targets in (assign(renamed, task_counts, **rest),)
    )


def _orders(members: Mapping[str, AssignedMember]) -> Iterator[tuple[dict[str, str], dict[str, AssignedMember]]]:
    dice = random.Random(1)
    for _ in range(ORDERS_MAX):
        names = {name: f"{dice.random()}" for name in (*members, *(each.process_id for each in members.values()))}
        yield (
            names,
            {names[name]: each._replace(process_id=names[each.process_id]) for name, each in members.items()},
        )


def _measured(before: Targets, after: Targets) -> Any:
    """The tasks that stayed, by their type before and after; the active tasks of each member; all standby tasks."""
    pairs = [(before.get(member, NO_TASKS_BY_TYPE), target) for member, target in after.items()]
    stayed = [sum(len(old[i] & new[j]) for old, new in pairs) for i in (0, 1) for j in (0, 1)]
    active = sorted(len(target.active) for target in after.values())
    return stayed, active, sum(len(target.standby) for target in after.values())
