"""Checks of membership, of waiting and of places that streams and consumer groups share."""

from typing import Final

from state_model.audit.group_steps import GroupDifference
from state_model.audit.model_groups.bounds import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import AnyHistory, differs
from state_model.audit.rule import Difference, Field
from state_model.java import partition_for_group

TIMER_MS: Final = 5_000
"""How late a timer of a coordinator may be."""
LONGEST_WAIT_MS: Final = 48_000
"""Without the configuration: the largest assignment interval and two of the largest heartbeat intervals that brokers
allow unless configured (15 s each), and the default of the initial rebalance delay of streams groups (3 s)."""
WAITS: Final = (ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL)


def of_no_member(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A target or current assignment of nobody."""
    life, kind = history.life, history.kind
    if not life.is_whole or record.record_type not in (kind.member_target, kind.assignment):
        return None
    return None if (record.name or "") in life.members else differs(Field.MEMBERS, 1, 0)


def slow_revocation(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A member that must give up something for longer than its rebalance timeout."""
    life, unrevoked = history.life, history.kind.unrevoked
    for member_id, assignment in life.assignments.items():
        member = life.members.get(member_id)
        is_revoking = assignment.record.number("state") == unrevoked and assignment.epoch > 0
        if member is None or not is_revoking or not life.must_revoke_in_time(member):
            continue
        timeout_ms, lasts = member.number("rebalanceTimeoutMs"), record.timestamp_ms - assignment.record.timestamp_ms
        if lasts > timeout_ms + TIMER_MS:
            return differs(Field.DURATION_MS, timeout_ms, lasts, assignment.record)
    return None


def overdue_target(history: AnyHistory, record: ModelRecord, waits: tuple[str, ...] = WAITS) -> GroupDifference | None:
    """A group epoch without a target assignment for long, while the group has members.

    `waits`: the settings whose sum is the longest time; without the configuration Kafka's bounds count.
    """
    from_ms, to_ms = history.life.overdue_from_ms, record.timestamp_ms
    if from_ms is None:
        return None
    settings = [history.setting(name, from_ms, to_ms) for name in waits]
    known_waits_ms = [numbers[1] for numbers in settings if numbers is not None]
    max_wait_ms = TIMER_MS + sum(known_waits_ms) if len(known_waits_ms) == len(waits) else LONGEST_WAIT_MS
    lasts = to_ms - from_ms
    return None if lasts <= max_wait_ms else differs(Field.DURATION_MS, max_wait_ms, lasts, history.life.metadata)


def misplaced(group_id: str, log_partition: int, count: int) -> Difference | None:
    """A record in another partition than the group's id hashes to; `count`: number of partitions."""
    expected = partition_for_group(group_id, count)
    return Difference(Field.GROUP_PARTITION, expected, log_partition) if expected != log_partition else None
