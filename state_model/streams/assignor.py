"""The assignor `sticky` of streams groups: tasks stay where they were as far as quotas allow (streams-group §5).

Kafka breaks ties by the order of its hash maps; here members and processes are ordered by their ids.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from state_model.streams.values import TaskId, TasksByType


class AssignedMember(NamedTuple):
    """A member for the assignor: its process, and its target of the assignment before."""

    process_id: str
    previous: TasksByType


def assign(
    members: Mapping[str, AssignedMember],
    task_counts: Mapping[str, int],
    *,
    stateful: Iterable[str],
    standby_replicas: int,
) -> dict[str, TasksByType]:
    """The target assignment of each member by the `sticky` assignor.

    Args:
        task_counts: tasks of each subtopology, numbered from 0.
        stateful: subtopologies whose tasks get standby tasks.
        standby_replicas: standby tasks of each stateful task; fewer when there are too few processes.
    """
    if not members:
        return {}
    tasks = [TaskId(name, number) for name, count in task_counts.items() for number in range(count)]
    with_state = set(stateful)
    replicated = [task for task in tasks if task.subtopology_id in with_state] if standby_replicas else []
    assignment = _Assignment(members, len(tasks), len(replicated) * standby_replicas)
    assignment.assign_active(tasks)
    assignment.assign_standby(replicated, standby_replicas)
    return assignment.targets()


class _Process:
    """An instance of the application: its members with the number of their tasks, and all its tasks."""

    def __init__(self, process_id: str) -> None:
        self.process_id = process_id
        self.counts: dict[str, int] = {}
        self.tasks: set[TaskId] = set()

    @property
    def load(self) -> float:
        """The number of tasks for each member of the process."""
        return len(self.tasks) / len(self.counts)

    def least_loaded_member(self) -> str:
        """The member with the fewest tasks, the first by id among equals."""
        return min(self.counts, key=lambda member_id: (self.counts[member_id], member_id))


class _Quota:
    """The tasks that a member may get by stickiness; computed again when a member has reached it (§5.2)."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.limit = _share(tasks, members)

    def reached(self, count: int) -> None:
        """Computes the limit of the other members again if `count`, the tasks of a member, has reached it."""
        if count == self.limit:
            self._tasks -= count
            self._members -= 1
            self.limit = _share(self._tasks, self._members)


def _share(tasks: int, members: int) -> int:
    return -(-tasks // members) if members > 0 else 0


class _Assignment:
    """An assignment while it is computed."""

    def __init__(self, members: Mapping[str, AssignedMember], active: int, standby: int) -> None:
        self._processes: dict[str, _Process] = {}
        self._process_of: dict[str, _Process] = {}
        self._previous_active: dict[TaskId, str] = {}
        self._previous_standby: dict[TaskId, list[str]] = {}
        self._active: dict[str, list[TaskId]] = {}
        self._standby: dict[str, list[TaskId]] = {}
        self._active_quota = _Quota(active, len(members))
        self._total_quota = _Quota(active + standby, len(members))
        for member_id, member in sorted(members.items()):
            process = self._processes.setdefault(member.process_id, _Process(member.process_id))
            process.counts[member_id] = 0
            self._process_of[member_id] = process
            self._active[member_id], self._standby[member_id] = [], []
            self._previous_active.update(dict.fromkeys(member.previous.active, member_id))
            for task in member.previous.standby:
                self._previous_standby.setdefault(task, []).append(member_id)
        self._ordered = sorted(self._processes.values(), key=lambda process: process.process_id)

    def assign_active(self, tasks: Iterable[TaskId]) -> None:
        """Assigns active tasks to previous owners, then members with a standby task, then the least loaded (§5.3)."""
        ordered = sorted(tasks, key=_by_partition)
        without_owner = [task for task in ordered if not self._give_back(task, self._previous_active.get(task))]
        remaining = [
            task for task in without_owner if not self._give_back(task, self._least_loaded_standby(task, exclude=False))
        ]
        for task in sorted(remaining):
            process = min(self._ordered, key=lambda process: process.load)
            self._add(self._active, process.least_loaded_member(), task)

    def _give_back(self, task: TaskId, member_id: str | None) -> bool:
        if member_id is None or self._count(member_id) >= self._active_quota.limit:
            return False
        self._add(self._active, member_id, task)
        return True

    def assign_standby(self, tasks: Iterable[TaskId], replicas: int) -> None:
        """Assigns standby tasks: to previous owners, then to the least loaded processes without the task (§5.4)."""
        postponed: list[tuple[TaskId, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            for replica in range(replicas):
                member_id = self._sticky_standby(task)
                if member_id is None:
                    postponed.append((task, replicas - replica))
                    break
                self._add(self._standby, member_id, task)
        for task, remaining in sorted(postponed, reverse=True):
            for _ in range(remaining):
                free = [process for process in self._ordered if task not in process.tasks]
                if not free:
                    break
                process = min(free, key=lambda process: process.load)
                self._add(self._standby, process.least_loaded_member(), task)

    def _sticky_standby(self, task: TaskId) -> str | None:
        for member_id in (self._previous_active.get(task), self._least_loaded_standby(task, exclude=True)):
            if member_id is not None and self._may_replicate(member_id, task):
                return member_id
        return None

    def _may_replicate(self, member_id: str, task: TaskId) -> bool:
        return task not in self._process_of[member_id].tasks and self._count(member_id) < self._total_quota.limit

    def _least_loaded_standby(self, task: TaskId, *, exclude: bool) -> str | None:
        """The first previous standby member, unless both load and tasks of another are smaller.

        exclude: no member of a process that has the task; as in Kafka, none at all when the first is of such a process.
        """
        members = self._previous_standby.get(task, ())
        candidate: str | None = None
        for member_id in members:
            is_free = not exclude or task not in self._process_of[member_id].tasks
            if candidate is None or (is_free and self._is_less_loaded(member_id, candidate)):
                candidate = member_id
        if exclude and members and task in self._process_of[members[0]].tasks:
            return None
        return candidate

    def _is_less_loaded(self, member_id: str, other_id: str) -> bool:
        is_less = self._process_of[member_id].load < self._process_of[other_id].load
        return is_less and self._count(member_id) < self._count(other_id)

    def _count(self, member_id: str) -> int:
        return self._process_of[member_id].counts[member_id]

    def _add(self, assigned: dict[str, list[TaskId]], member_id: str, task: TaskId) -> None:
        process = self._process_of[member_id]
        process.counts[member_id] += 1
        process.tasks.add(task)
        assigned[member_id].append(task)
        self._active_quota.reached(process.counts[member_id])
        self._total_quota.reached(process.counts[member_id])

    def targets(self) -> dict[str, TasksByType]:
        """The computed target of each member."""
        return {
            member_id: TasksByType(frozenset(active), frozenset(self._standby[member_id]))
            for member_id, active in self._active.items()
        }


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, task.subtopology_id
