"""When a group coordinator computes a target assignment: one rule for consumer and streams groups of Kafka 4.3.1."""


def may_compute_target(assignment_timestamp_ms: int, assignment_interval_ms: int, now_ms: int) -> bool:
    """Whether the next target may be computed now: GroupMetadataManager.canComputeNextTargetAssignment.

    Args:
        assignment_timestamp_ms: when the last target was computed; 0: never, or not recorded.
        assignment_interval_ms: 0: no interval.
    """
    if not assignment_timestamp_ms or not assignment_interval_ms:
        return True
    return now_ms >= assignment_timestamp_ms + assignment_interval_ms
