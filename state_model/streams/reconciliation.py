"""How a member of a streams group gets its target assignment: the next record of type 22 (streams-group §7)."""

from typing import Final

from state_model.group_reconciliation import Progress, Rules, next_progress
from state_model.streams.values import (
    NO_TASKS_BY_TYPE,
    MemberAssignment,
    MemberState,
    StreamsGroup,
    TaskId,
    TasksByType,
)

RULES: Final = Rules(
    stable=MemberState.STABLE,
    unrevoked=MemberState.UNREVOKED_TASKS,
    unreleased=MemberState.UNRELEASED_TASKS,
    epochs_of_revocation=1,
    empty=NO_TASKS_BY_TYPE,
)


def task_owners(group: StreamsGroup, process_id: str) -> TasksByType:
    """The tasks that a member of `process_id` can't get yet with a type, assigned or pending revocation.

    An active task: active in any member, or another type in its process. Another type: any type in its process.
    The member's own tasks count too.
    """
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
    process = frozenset(process_active | replicas)
    return TasksByType(frozenset(active | replicas), process, process)


def reconcile(
    member: MemberAssignment, target: TasksByType, target_epoch: int, owned: TasksByType | None, owners: TasksByType
) -> MemberAssignment:
    """The member's assignment after a heartbeat; the same when nothing changes.

    Args:
        owned: the tasks that the member says it has; None when its heartbeat does not say.
        owners: the tasks that it can't get yet, from `task_owners`.

    Raises:
        FencedError: the member is in an unknown state, and owns tasks or does not say.
    """
    current = Progress(member.state, member.member_epoch, member.assigned, member.pending)
    after = next_progress(RULES, current, target, target_epoch, owned, owners)
    if after is None:
        return member
    before = member.active_assignment_epochs
    return MemberAssignment(
        state=after.state,
        member_epoch=after.member_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=after.assigned,
        active_assignment_epochs={
            task: before.get(task, member.member_epoch) if task in member.assigned.active else target_epoch
            for task in after.assigned.active | after.pending.active
        },
        pending=after.pending,
    )
