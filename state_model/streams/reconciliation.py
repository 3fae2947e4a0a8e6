"""How a member of a streams group gets its target assignment: the next record of type 22 (streams-group §7).

A member first gives up the tasks that are not in its target; a task becomes another member's when it is free.
"""

from collections.abc import Callable
from typing import NamedTuple

from state_model.errors import SharelensError
from state_model.streams.values import (
    NO_TASKS_BY_TYPE,
    MemberAssignment,
    MemberState,
    StreamsGroup,
    TaskId,
    Tasks,
    TasksByType,
)


class TaskOwners(NamedTuple):
    """Tasks, assigned or pending revocation, that block others.

    Attributes:
        active: active tasks of all members.
        process: tasks of any type of the member's process.
        process_replicas: standby and warm-up tasks of the member's process.
    """

    active: Tasks
    process: Tasks
    process_replicas: Tasks


class FencedError(SharelensError):
    """Raised when a member in an unknown state has tasks: it must rejoin (FENCED_MEMBER_EPOCH)."""


def task_owners(group: StreamsGroup, process_id: str) -> TaskOwners:
    """The tasks that block a member of `process_id`; its own tasks count too."""
    active: set[TaskId] = set()
    process_active: set[TaskId] = set()
    replicas: set[TaskId] = set()
    for member in group.members.values():
        if member.assignment is None:
            continue
        is_same_process = member.metadata is not None and member.metadata.process_id == process_id
        for tasks in (member.assignment.assigned, member.assignment.pending):
            active |= tasks.active
            if is_same_process:
                process_active |= tasks.active
                replicas |= tasks.standby | tasks.warmup
    return TaskOwners(frozenset(active), frozenset(process_active | replicas), frozenset(replicas))


def reconcile(
    member: MemberAssignment, target: TasksByType, target_epoch: int, owned: TasksByType | None, owners: TaskOwners
) -> MemberAssignment:
    """The member's assignment after a heartbeat; the same when nothing changes.

    Args:
        owned: the tasks that the member says it has; None when its heartbeat does not say.

    Raises:
        FencedError: the member is in an unknown state, and owns tasks or does not say.
    """
    step = _Step(member, target, target_epoch, owned, owners)
    match member.state:
        case MemberState.STABLE:
            return member if member.member_epoch == target_epoch else step.next(member.member_epoch)
        case MemberState.UNREVOKED_TASKS:
            if owned is None or _overlap(owned, member.pending):
                return member
            return step.next(member.member_epoch + 1)
        case MemberState.UNRELEASED_TASKS:
            return step.next(member.member_epoch)
    if owned is None or not owned.is_empty:
        raise FencedError
    return step.next(target_epoch)


class _Step(NamedTuple):
    member: MemberAssignment
    target: TasksByType
    target_epoch: int
    owned: TasksByType | None
    owners: TaskOwners

    def next(self, epoch: int) -> MemberAssignment:
        """The member's next assignment in an epoch: `compute(epoch)` of §7.2 and §7.3."""
        kept_tasks = _each(frozenset.intersection, self.member.assigned, self.target)
        revoked = _each(frozenset.difference, self.member.assigned, self.target)
        if not revoked.is_empty and (self.owned is None or _overlap(self.owned, revoked)):
            return self._result(MemberState.UNREVOKED_TASKS, epoch, kept_tasks, revoked)
        missing = _each(frozenset.difference, self.target, kept_tasks)
        blocked = TasksByType(
            missing.active & (self.owners.active | self.owners.process_replicas),
            missing.standby & self.owners.process,
            missing.warmup & self.owners.process,
        )
        free = _each(frozenset.difference, missing, blocked)
        state = MemberState.STABLE if blocked.is_empty else MemberState.UNRELEASED_TASKS
        return self._result(state, self.target_epoch, _each(frozenset.union, kept_tasks, free), NO_TASKS_BY_TYPE)

    def _result(self, state: MemberState, epoch: int, assigned: TasksByType, pending: TasksByType) -> MemberAssignment:
        member = self.member
        before = member.active_assignment_epochs
        return MemberAssignment(
            state=state,
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
            assigned=assigned,
            active_assignment_epochs={
                task: before.get(task, member.member_epoch) if task in member.assigned.active else self.target_epoch
                for task in assigned.active | pending.active
            },
            pending=pending,
        )


def _overlap(left_tasks: TasksByType, right_tasks: TasksByType) -> bool:
    """Whether a task is in both with the same type."""
    return not _each(frozenset.intersection, left_tasks, right_tasks).is_empty


def _each(operation: Callable[[Tasks, Tasks], Tasks], left_tasks: TasksByType, right_tasks: TasksByType) -> TasksByType:
    """A set operation on two sets of tasks, for each type of task."""
    return TasksByType(
        operation(left_tasks.active, right_tasks.active),
        operation(left_tasks.standby, right_tasks.standby),
        operation(left_tasks.warmup, right_tasks.warmup),
    )
