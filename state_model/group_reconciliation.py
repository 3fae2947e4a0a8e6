"""How a member of a consumer or streams group gets its target assignment: one step a heartbeat.

A member first gives up what is not in its target. What another member still has becomes its own when it is free.
The rule is that of both classes CurrentAssignmentBuilder of Kafka 4.3.1; `Rules` has what differs between them.
"""

from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from state_model.errors import SharelensError


class AssignmentSet(Protocol):
    """Partitions, or tasks by their type, with the operations of a frozenset."""

    def __and__(self, other: Self, /) -> Self: ...
    def __or__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


T = TypeVar("T", bound=AssignmentSet)


class Rules(NamedTuple, Generic[T]):
    """What differs between kinds of groups.

    Attributes:
        stable: number of the state of a member that has its target; any number but these three is an unknown state.
        unrevoked: number of the state of a member that must give up something before its epoch may advance.
        unreleased: number of the state of a member in the target epoch that waits for other members.
        epochs_of_revocation: by how much the member epoch grows when the member gave up what it had to.
        empty: no partitions or tasks.
    """

    stable: int
    unrevoked: int
    unreleased: int
    epochs_of_revocation: int
    empty: T


class Progress(NamedTuple, Generic[T]):
    """How far a member is: what it has or may take (`assigned`), and what it must give up first (`pending`)."""

    state: int
    member_epoch: int
    assigned: T
    pending: T


class FencedError(SharelensError):
    """Raised when a member in an unknown state has something: it must rejoin (FENCED_MEMBER_EPOCH)."""


def next_progress(
    rules: Rules[T], member: Progress[T], target: T, target_epoch: int, owned: T | None, unreleased: T
) -> Progress[T] | None:
    """The member's progress after a heartbeat; None: the member stays as it is, and so does its previous epoch.

    Args:
        owned: what the member says it has; None when its heartbeat does not say.
        unreleased: what the member can't get yet, because some member has it.

    Raises:
        FencedError: the member is in an unknown state, and owns something or does not say.
    """
    epoch = member.member_epoch
    if member.state == rules.stable:
        if epoch == target_epoch:
            return None
    elif member.state == rules.unrevoked:
        if may_own(rules, owned, member.pending):
            return None
        epoch += rules.epochs_of_revocation
    elif member.state != rules.unreleased:
        if owned != rules.empty:
            raise FencedError
        epoch = target_epoch
    # Revocation comes first: the member gets its target's epoch, and what it lacks, only after it has given up what
    # is not in the target. So what another member got by that target is never in use twice.
    common, revoked = member.assigned & target, member.assigned - target
    if revoked != rules.empty and may_own(rules, owned, revoked):
        return Progress(rules.unrevoked, epoch, common, revoked)
    missing = target - common
    blocked = missing & unreleased
    state = rules.stable if blocked == rules.empty else rules.unreleased
    return Progress(state, target_epoch, common | (missing - blocked), rules.empty)


def may_own(rules: Rules[T], owned: T | None, revoked: T) -> bool:
    """Whether a member still has something that it must give up; it may, when its heartbeat does not say."""
    return owned is None or owned & revoked != rules.empty
