"""Heartbeats of consumer, share and streams groups: member epochs, and what a request changes."""

from typing import Final, TypeVar

T = TypeVar("T")
JOINING: Final = 0
LEAVING: Final = -1
LEAVING_STATIC: Final = -2
UNCHANGED_TIMEOUT: Final = -1


def changed(sent: T | None, current: T) -> T:
    """The value that a request sets; null leaves it as it is."""
    return current if sent is None else sent


def epoch_problem(
    kind: str, epoch: int, member_epoch: int, previous_epoch: int, *, is_subset: bool = True
) -> str | None:
    """Kafka's words on a member epoch that is refused (FENCED_MEMBER_EPOCH); None: it is accepted.

    Args:
        kind: consumer, share or streams.
        epoch: of the request. The previous one is accepted when the answer with the newer one was lost.
        is_subset: whether the request names what the member has, and all of it is assigned; share groups do not ask.
    """
    if epoch == member_epoch or (epoch < member_epoch and epoch == previous_epoch and is_subset):
        return None
    is_smaller = epoch < member_epoch
    previous = f", and it does not match the previous member epoch ({previous_epoch})"
    return (
        f"The {kind} group member has a {'smaller' if is_smaller else 'greater'} member epoch ({epoch}) than the one "
        f"known by the group coordinator ({member_epoch}){previous if is_smaller and kind == 'share' else ''}. The "
        "member must abandon all its partitions and rejoin."
    )
