"""Rules CG-16 to CG-19: the target assignment of a consumer group when it is complete (type 6), and its topics."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from state_model.audit.consumer.history import History, Life, Partitions, partition_names
from state_model.audit.consumer.shape import Check, consumer_rule
from state_model.audit.group_steps import GroupDifference, TopicPartition
from state_model.audit.impact import Impact
from state_model.audit.model_groups.assignments import members_without_target
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import NEEDS_WHOLE_GROUP, differs
from state_model.audit.model_groups.topic_lives import TopicLives
from state_model.audit.periods import TOLERANCE_MS
from state_model.audit.rule import Field, Need
from state_model.audit.severities import WARNING
from state_model.consumer.records import ASSIGNMENT, MEMBER_TARGET, TARGET

TopicCheck: TypeAlias = Callable[[History, ModelRecord, TopicLives], GroupDifference | None]
CUSTOM: Final = "Nothing to do with an assignor of your own (group.consumer.assignors); else report it to Kafka."


def _is_computed(record: ModelRecord) -> bool:
    """Whether a record ends a target that an assignor of the broker made: that of a classic group has no time."""
    return record.is_a(TARGET) and record.number("assignmentTimestamp") != 0


def two_targets(history: History, record: ModelRecord) -> GroupDifference | None:
    """A partition in the targets of several members."""
    if not record.is_a(TARGET):
        return None
    counts = Counter(partition for target in history.life.targets.values() for partition in target.tasks)
    twice = frozenset(partition for partition, count in counts.items() if count > 1)
    if not twice:
        return None
    owners = [target.record for target in history.life.targets.values() if target.tasks & twice]
    newest = max(owners, key=lambda owner: owner.log_offset)
    return differs(Field.OWNERS, 1, max(counts.values()), newest, partition_names(twice))


def target_not_subscribed(history: History, record: ModelRecord, topics: TopicLives) -> GroupDifference | None:
    """Partitions in a member's target of topics that it does not subscribe to."""
    if not _is_computed(record):
        return None
    for member_id, target in history.life.targets.items():
        member = history.life.members.get(member_id)
        subscription = None if member is None else history.life.subscription(member)
        if subscription is None:
            continue
        surplus = frozenset(place for place in target.tasks if topics.names.get(place[0]) not in (None, *subscription))
        if surplus:
            return differs(Field.PARTITIONS, 0, len(surplus), target.record, partition_names(surplus))
    return None


def partition_without_target(history: History, record: ModelRecord, topics: TopicLives) -> GroupDifference | None:
    """A target assignment that lacks partitions of topics to which members subscribe."""
    life, now_ms = history.life, record.timestamp_ms
    if not _is_computed(record) or not life.is_whole:
        return None
    from_ms, to_ms = now_ms - TOLERANCE_MS, now_ms + TOLERANCE_MS
    names = _subscribed(life)
    is_known = topics.from_ms <= from_ms and to_ms <= topics.until_ms
    if not is_known or any(topic.changes_in(from_ms, to_ms) for topic in topics.of(names)):
        return None
    expected = {place for name in names for place in topics.existing(name, now_ms)}
    missing = frozenset(expected.difference(*(target.tasks for target in life.targets.values())))
    if not missing:
        return None
    return differs(Field.PARTITIONS, len(expected), len(expected) - len(missing), names=partition_names(missing))


def _subscribed(life: Life) -> frozenset[str]:
    subscriptions = (life.subscription(member) for member in life.members.values())
    return frozenset[str]().union(*(names for names in subscriptions if names is not None))


def not_in_topic(history: History, record: ModelRecord, topics: TopicLives) -> GroupDifference | None:
    """Partitions that their topics don't have; a new one may be known to the coordinator first, as clocks differ."""
    if record.value is None or record.record_type not in (MEMBER_TARGET, ASSIGNMENT):
        return None
    unknown = frozenset(
        place for place in _named(history.life, record) if topics.lacks(*place, record.timestamp_ms + TOLERANCE_MS)
    )
    return differs(Field.PARTITIONS, 0, len(unknown), names=partition_names(unknown)) if unknown else None


def _named(life: Life, record: ModelRecord) -> Partitions:
    if record.record_type == MEMBER_TARGET:
        return life.read_target(record.value or {})
    assignment = life.read_assignment(record)
    named: frozenset[TopicPartition] = assignment.assigned | assignment.pending
    return named


RULES: Final = (
    consumer_rule(
        16,
        "consumer_partition_with_two_targets",
        "A partition is in the target of one member at most",
        "The assignor gives each partition to one member. Tested when the target assignment is complete (type 6).",
        impact=Impact.STUCK,
        remedy=CUSTOM,
        source="UniformAssignor, RangeAssignor",
    ),
    consumer_rule(
        16,
        "consumer_partition_without_target",
        "A target assignment has each partition of the subscribed topics",
        f"Both assignors give away all of them. Tested while the topics did not change for {TOLERANCE_MS // 1000} s. "
        f"{NEEDS_WHOLE_GROUP}",
        part=1,
        severity=WARNING,
        impact=Impact.STUCK,
        remedy=CUSTOM,
        needs=(Need.METADATA,),
        is_of_whole_logs=True,
        source="UniformAssignor, RangeAssignor",
    ),
    consumer_rule(
        17,
        "consumer_member_without_target",
        "A complete target assignment is that of the members",
        f"The assignor sees all members, and one without partitions has an empty target. {NEEDS_WHOLE_GROUP}",
        impact=Impact.STUCK,
        is_of_whole_logs=True,
        source="TargetAssignmentBuilder",
    ),
    consumer_rule(
        18,
        "consumer_target_not_subscribed",
        "The target of a member has partitions of topics that it subscribes to",
        "By name, or by a regular expression that is resolved (type 16). Topics count that the metadata log knows; the "
        "assignment of a classic group is that of a client.",
        impact=Impact.STUCK,
        remedy=CUSTOM,
        needs=(Need.METADATA,),
        source="UniformAssignor, RangeAssignor",
    ),
    consumer_rule(
        19,
        "consumer_partition_not_in_topic",
        "Assignments have only partitions that their topics have",
        "They are made from the metadata. Topics count that the metadata log knows; a partition may be created up to "
        f"{TOLERANCE_MS // 1000} s later, as clocks differ.",
        impact=Impact.STUCK,
        needs=(Need.METADATA,),
        source="TargetAssignmentBuilder",
    ),
)
CHECKS: Final[Mapping[int, Check]] = {2160: two_targets, 2170: members_without_target}
CHECKS_OF_TOPICS: Final[Mapping[int, TopicCheck]] = {
    2161: partition_without_target,
    2180: target_not_subscribed,
    2190: not_in_topic,
}
"""Rules that need topics, by rule id."""
