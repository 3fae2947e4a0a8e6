"""Rules ST-25, ST-28 to ST-31, ST-34 to ST-36: the order of records, how long things last, and where records lie."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups import order
from state_model.audit.model_groups.bounds import INITIAL_DELAY
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs, other_type
from state_model.audit.rule import Field
from state_model.audit.severities import WARNING
from state_model.audit.streams.history import History
from state_model.audit.streams.shape import Check, streams_rule
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, TARGET, TOPOLOGY

MEMBER_ENDS: Final = (ASSIGNMENT, MEMBER_TARGET, MEMBER)
"""Tombstones of a member, in order; the group epoch follows."""
GROUP_ENDS: Final = (TARGET, METADATA, TOPOLOGY)
"""Tombstones of a group, in order."""
WAITS: Final = (*order.WAITS, INITIAL_DELAY)
"""The settings on which the longest wait for a target assignment depends."""


def topology_elsewhere(history: History, record: ModelRecord) -> GroupDifference | None:
    """A topology that is not the second record of a group, behind its first member."""
    life = history.life
    if not life.is_whole or record.ends(TOPOLOGY):
        return None
    if record.is_a(TOPOLOGY):
        if life.topology is not None:
            return differs(Field.TOPOLOGIES, 1, 2, life.topology)
        return None if life.records == 1 and _is_a(history.last, MEMBER) else differs(Field.TOPOLOGIES, 0, 1)
    return differs(Field.TOPOLOGIES, 1, 0, history.last) if life.records == 1 else None


def _is_a(record: ModelRecord | None, record_type: int) -> bool:
    return record is not None and record.is_a(record_type)


def member_without_epoch(history: History, record: ModelRecord) -> GroupDifference | None:
    """A member that is followed by no group epoch, with the topology of a new group between them."""
    last, before = history.last, history.last_but_one
    if last is None or record.is_a(METADATA):
        return None
    follows_member = last.is_a(MEMBER) and not record.is_a(TOPOLOGY)
    follows_topology = last.is_a(TOPOLOGY) and _is_a(before, MEMBER)
    return other_type(METADATA, record, last) if follows_member or follows_topology else None


def member_ends_apart(history: History, record: ModelRecord) -> GroupDifference | None:
    """A member's end that is not its tombstones of types 22, 21 and 19, and a group epoch."""
    last = history.last
    if last is None:
        return None
    for before, after in pairwise(MEMBER_ENDS):
        if last.ends(before) and not (record.ends(after) and last.name == record.name):
            return other_type(after, record, last)
        if record.ends(after) and not last.ends(before):
            return other_type(before, last, last)
    return other_type(METADATA, record, last) if last.ends(MEMBER) and not record.is_a(METADATA) else None


def group_ends_apart(history: History, record: ModelRecord) -> GroupDifference | None:
    """A group's end with members, or that is not its tombstones of types 20, 17 and 23."""
    last, members = history.last, history.life.members
    if record.ends(METADATA) and members:
        return differs(Field.MEMBERS, 0, len(members), next(iter(members.values())))
    if last is None:
        return None
    for before, after in pairwise(GROUP_ENDS):
        if last.ends(before) and not record.ends(after):
            return other_type(after, record, last)
        if record.ends(after) and not last.ends(before):
            return other_type(before, last, last)
    return None


def outside_membership(history: History, record: ModelRecord) -> GroupDifference | None:
    """An assignment of nobody, or the end of the target assignment while there are members."""
    life = history.life
    if record.ends(TARGET) and life.members:
        return differs(Field.MEMBERS, 0, len(life.members), next(iter(life.members.values())))
    return order.of_no_member(history, record)


def overdue_target(history: History, record: ModelRecord) -> GroupDifference | None:
    """A group epoch without a target assignment for long, while the group has members."""
    return order.overdue_target(history, record, WAITS)


RULES: Final = (
    streams_rule(
        25,
        "streams_topology_elsewhere",
        "A group has one topology, behind its first member",
        f"The first member brings it, and it can't be updated. {NEEDS_WHOLE_GROUP}",
        is_of_whole_logs=True,
    ),
    streams_rule(
        28,
        "streams_member_without_epoch",
        "A member that joins or changes raises the group epoch",
        "Both records are of one operation.",
        is_of_whole_logs=True,
    ),
    streams_rule(
        29,
        "streams_member_end",
        "A member ends with tombstones of its assignment, its target and itself, and a group epoch",
        "The coordinator writes these four records in one operation, whether the others were there or not.",
        impact=Impact.STUCK,
        is_of_whole_logs=True,
    ),
    streams_rule(
        30,
        "streams_outside_membership",
        "Only members have assignments, and the target assignment ends without members",
        f"A broker fails to load another order. Assignments: {NEEDS_WHOLE_GROUP.lower()}",
        impact=Impact.STUCK,
        is_of_whole_logs=True,
    ),
    streams_rule(
        31,
        "streams_group_end",
        "A group without members ends with tombstones of its target assignment, itself and its topology",
        "The coordinator writes these three records in one operation.",
        impact=Impact.STUCK,
        is_of_whole_logs=True,
    ),
    streams_rule(
        34,
        "streams_slow_revocation",
        "A member revokes tasks within its rebalance timeout",
        f"The coordinator fences it then; its timer may be {order.TIMER_MS // 1000} s late.",
        severity=WARNING,
        relation="<=",
        impact=Impact.STUCK,
        remedy="Look for a coordinator that was stopped or moved; its timers begin again.",
    ),
    streams_rule(
        35,
        "streams_overdue_target",
        "A group with members has a target assignment soon after its epoch rose",
        "The next heartbeat computes it once the assignment interval is over: within this interval, two heartbeat "
        f"intervals and the initial rebalance delay, and {order.TIMER_MS // 1000} s more. Without the configuration "
        f"the longest times that Kafka allows unless configured count: {order.LONGEST_WAIT_MS // 1000} s.",
        severity=WARNING,
        relation="<=",
        impact=Impact.STUCK,
        remedy="Look for members that send no heartbeats, and for a coordinator that was stopped.",
    ),
    streams_rule(
        36,
        "streams_misplaced_group",
        "The records of a streams group lie in the partition to which its id hashes",
        "Brokers look for a group there alone.",
        impact=Impact.STUCK,
        remedy="Check that all copies are of one cluster.",
    ),
    streams_rule(
        36,
        "streams_transactional_record",
        "The records of a streams group are of no transaction",
        "The coordinator writes them on its own; offsets of transactions alone belong to a producer.",
        part=1,
        is_of_whole_logs=True,
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    1250: topology_elsewhere,
    1280: member_without_epoch,
    1290: member_ends_apart,
    1300: outside_membership,
    1310: group_ends_apart,
    1340: order.slow_revocation,
    1350: overdue_target,
}
