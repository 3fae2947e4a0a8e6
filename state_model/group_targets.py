"""The target assignment of consumer and streams groups: its epoch, and when a coordinator computes it (Kafka 4.3.1)."""

from typing import Final, NamedTuple


class TargetMetadata(NamedTuple):
    """The value of record types 6 and 20; timestamp 0: none."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


NEW_TARGET: Final = TargetMetadata(assignment_epoch=1)
"""That of a new group, which no record says."""
NO_TARGET: Final = TargetMetadata(assignment_epoch=-1)
"""What a tombstone of the record leaves."""


def may_compute_target(assignment_timestamp_ms: int, assignment_interval_ms: int, now_ms: int) -> bool:
    """Whether the next target may be computed now: GroupMetadataManager.canComputeNextTargetAssignment.

    Args:
        assignment_timestamp_ms: when the last target was computed; 0: never, or not recorded.
        assignment_interval_ms: 0: no interval.
    """
    if not assignment_timestamp_ms or not assignment_interval_ms:
        return True
    return now_ms >= assignment_timestamp_ms + assignment_interval_ms
