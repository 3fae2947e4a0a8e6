"""Rules CG-21 to CG-29: the order of records, how long things last, regular expressions, and where records lie."""

from collections.abc import Mapping
from typing import Final

from state_model.audit.consumer.history import History, instance_id
from state_model.audit.consumer.shape import Check, consumer_rule
from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups import order
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs, other_type
from state_model.audit.rule import Field
from state_model.audit.severities import WARNING
from state_model.consumer.records import (
    ASSIGNMENT,
    MEMBER,
    MEMBER_TARGET,
    METADATA,
    PARTITION_METADATA,
    REGULAR_EXPRESSION,
    TARGET,
)

REFRESH_MS: Final = 10_000
"""The shortest time between two evaluations of a regular expression."""


def tombstones_out_of_order(history: History, record: ModelRecord) -> GroupDifference | None:
    """A tombstone of a member while its assignment or its target is there, or one of a group while it has any."""
    life, name = history.life, record.name or ""
    if record.ends(MEMBER):
        remaining_records = [life.assignments[name].record] if name in life.assignments else []
        remaining_records += [life.targets[name].record] if name in life.targets else []
    elif record.ends(TARGET):
        remaining_records = [target.record for target in life.targets.values()]
    elif record.ends(METADATA):
        remaining_records = [*life.members.values(), *life.expressions.values()]
        remaining_records += [target.record for target in life.targets.values()]
        remaining_records += [assignment.record for assignment in life.assignments.values()]
        remaining_records += [] if life.target is None else [life.target]
    else:
        return None
    if not remaining_records:
        return None
    first = min(remaining_records, key=lambda other: other.log_offset)
    return differs(Field.GROUP_RECORD_TYPE, first.record_type, record.record_type, first)


def member_ends_apart(history: History, record: ModelRecord) -> GroupDifference | None:
    """A record with a value between the tombstones of a member, or behind them before the group epoch.

    A static member ends for another one of its instance id without an epoch.
    """
    if record.is_tombstone:
        return None
    for member_id, earlier in history.open_ends.items():
        expected = MEMBER_TARGET if member_id in history.life.targets else MEMBER
        return other_type(expected, record, earlier)
    if history.ended is None or record.is_a(METADATA):
        return None
    replaces = record.is_a(MEMBER) and instance_id(record) is not None
    if replaces and instance_id(record) == history.ended_instance_id:
        return None
    return other_type(METADATA, record, history.ended)


def without_subscriber(history: History, record: ModelRecord) -> GroupDifference | None:
    """A resolved regular expression to which no member subscribes."""
    life = history.life
    is_behind = record.record_type in (METADATA, MEMBER_TARGET, TARGET, ASSIGNMENT, REGULAR_EXPRESSION)
    if record.is_tombstone or not is_behind or not life.is_whole:
        return None
    expressions = life.expressions.keys() | ({record.name} if record.is_a(REGULAR_EXPRESSION) else set())
    subscribed = {(member.value or {})["subscribedTopicRegex"] for member in life.members.values()}
    unused = sorted(str(expression) for expression in expressions - subscribed)
    if not unused:
        return None
    earlier = life.expressions.get(unused[0])
    return differs(Field.EXPRESSIONS, 0, len(unused), earlier, unused)


def refreshed_early(history: History, record: ModelRecord) -> GroupDifference | None:
    """A regular expression that was evaluated less than 10 s after the last time."""
    last = history.life.expressions.get(record.name or "")
    if not record.is_a(REGULAR_EXPRESSION) or last is None:
        return None
    least, timestamp_ms = last.number("timestamp") + REFRESH_MS, record.number("timestamp")
    return None if timestamp_ms >= least else differs(Field.EXPRESSION_TIMESTAMP_MS, least, timestamp_ms, last)


def partition_metadata(history: History, record: ModelRecord) -> GroupDifference | None:
    """Metadata of topics in a group that has their hash."""
    metadata = history.life.metadata
    if not record.is_a(PARTITION_METADATA) or metadata is None:
        return None
    has_hash = (metadata.value or {}).get("metadataHash", 0) != 0
    return other_type(METADATA, record, metadata) if has_hash else None


RULES: Final = (
    consumer_rule(
        21,
        "consumer_tombstones_out_of_order",
        "Tombstones of a member and of a group come in order",
        "A member ends behind its assignment and its target (8, 7, 5), a group behind all that it has (6, 16, 3). A "
        "broker fails to load another order.",
        relation="no",
        impact=Impact.STUCK,
        source="GroupMetadataManager.replay, ConsumerGroup.createGroupTombstoneRecords",
    ),
    consumer_rule(
        22,
        "consumer_member_end",
        "A member ends with tombstones of its assignment, its target and itself, and a group epoch",
        "The coordinator writes them in one operation when a member leaves or is fenced. A static member is replaced "
        "without a new epoch; a group ends instead when it becomes a classic one.",
        impact=Impact.STUCK,
        is_of_whole_logs=True,
        source="GroupMetadataManager.consumerGroupFenceMembers, replaceMember",
    ),
    consumer_rule(
        23,
        "consumer_outside_membership",
        "Only members have assignments",
        f"A fenced member has none until it joins again. {NEEDS_WHOLE_GROUP}",
        impact=Impact.STUCK,
        is_of_whole_logs=True,
        source="GroupMetadataManager.replay",
    ),
    consumer_rule(
        24,
        "consumer_slow_revocation",
        "A member revokes partitions within its rebalance timeout",
        f"The coordinator fences it then; its timer may be {order.TIMER_MS // 1000} s late. Members of the classic "
        "protocol and static members that left are left out.",
        severity=WARNING,
        relation="<=",
        impact=Impact.STUCK,
        remedy="Look for a coordinator that was stopped or moved; its timers begin again.",
        source="GroupMetadataManager.scheduleConsumerGroupRebalanceTimeout",
    ),
    consumer_rule(
        25,
        "consumer_overdue_target",
        "A group with members has a target assignment soon after its epoch rose",
        "The next heartbeat computes it once the assignment interval is over: within this interval, two heartbeat "
        f"intervals and {order.TIMER_MS // 1000} s more. Without the configuration the longest times that Kafka allows "
        f"unless configured count: {order.LONGEST_WAIT_MS // 1000} s. Groups whose members are all classic ones, or "
        "left for a while, are left out.",
        severity=WARNING,
        relation="<=",
        impact=Impact.STUCK,
        remedy="Look for members that send no heartbeats, and for a coordinator that was stopped.",
        source="GroupMetadataManager.maybeUpdateTargetAssignment",
    ),
    consumer_rule(
        26,
        "consumer_expression_without_subscriber",
        "A regular expression is resolved while a member subscribes to it",
        "The coordinator ends the record in the operation in which the last of them leaves or subscribes to another "
        f"one. {NEEDS_WHOLE_GROUP}",
        severity=WARNING,
        remedy="Nothing to do: its topics count for the metadata hash of the group alone.",
        is_of_whole_logs=True,
        source="GroupMetadataManager.maybeDeleteResolvedRegularExpressions",
    ),
    consumer_rule(
        27,
        "consumer_expression_refresh",
        f"A regular expression is evaluated again after {REFRESH_MS // 1000} s at the earliest",
        "Kafka spares the metadata of the cluster.",
        severity=WARNING,
        relation=">=",
        remedy="Check the clocks of the brokers.",
        source="GroupMetadataManager.REGEX_BATCH_REFRESH_MIN_INTERVAL_MS",
    ),
    consumer_rule(
        28,
        "consumer_partition_metadata",
        "A group with a metadata hash has no record of type 4",
        "Releases from 4.1 on write its tombstone alone, and the hash in its place.",
        severity=WARNING,
        remedy="Nothing to do where a broker went back to Kafka 4.0 at that time; else find out which one wrote it.",
        source="GroupMetadataManager.updateSubscriptionMetadata",
    ),
    consumer_rule(
        29,
        "consumer_misplaced_group",
        "The records of a consumer group lie in the partition to which its id hashes",
        "Brokers look for a group there alone.",
        impact=Impact.STUCK,
        remedy="Check that all copies are of one cluster.",
        source="GroupCoordinatorService.partitionFor",
    ),
    consumer_rule(
        29,
        "consumer_transactional_record",
        "The records of a consumer group are of no transaction",
        "The coordinator writes them on its own; offsets of transactions alone belong to a producer.",
        part=1,
        is_of_whole_logs=True,
        source="CoordinatorRuntime",
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    2210: tombstones_out_of_order,
    2220: member_ends_apart,
    2230: order.of_no_member,
    2240: order.slow_revocation,
    2250: order.overdue_target,
    2260: without_subscriber,
    2270: refreshed_early,
    2280: partition_metadata,
}
