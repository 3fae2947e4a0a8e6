"""A consumer group as its rules see it: members with their subscriptions and partitions, and regular expressions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from state_model.audit.group_steps import TopicPartition, partitions_of
from state_model.audit.model_groups import history
from state_model.audit.model_groups.bounds import Bounds, no_bounds
from state_model.audit.model_groups.history import Kind, ModelRecord, put
from state_model.consumer.reconciliation import MemberState
from state_model.consumer.records import (
    ASSIGNMENT,
    MEMBER,
    MEMBER_TARGET,
    METADATA,
    REGULAR_EXPRESSION,
    TARGET,
)

Partitions: TypeAlias = frozenset[TopicPartition]
LISTS: Final[Mapping[int, tuple[str, ...]]] = {
    MEMBER_TARGET: ("topicPartitions",),
    ASSIGNMENT: ("assignedPartitions", "partitionsPendingRevocation"),
}
"""The lists of partitions by record type."""
KIND: Final = Kind(
    metadata=METADATA,
    member=MEMBER,
    target=TARGET,
    member_target=MEMBER_TARGET,
    assignment=ASSIGNMENT,
    settled=(MemberState.STABLE, MemberState.UNRELEASED_PARTITIONS),
    unrevoked=MemberState.UNREVOKED_PARTITIONS,
    empty=frozenset(),
    settings="consumer",
    new_epoch=None,
)
Assigned: TypeAlias = history.Assigned[Partitions]
Target: TypeAlias = history.Target[Partitions]


class Life(history.Life[Partitions]):
    """A consumer group up to a record. `expressions`: the newest record of each resolved regular expression."""

    KIND: ClassVar[Kind] = KIND

    def __init__(self, *, is_whole: bool) -> None:
        super().__init__(is_whole=is_whole)
        self.expressions: dict[str, ModelRecord] = {}

    @property
    def has_members(self) -> bool:
        """Whether a member of the consumer protocol is there that has not left for a while."""
        return any(
            not is_classic(member) and (name not in self.assignments or self.assignments[name].epoch >= 0)
            for name, member in self.members.items()
        )

    @property
    def is_converted(self) -> bool:
        """Whether it was a classic group: the target assignment is that of the classic one, which has no time."""
        return self.target is not None and self.target.number("assignmentTimestamp") == 0

    def read_target(self, value: Mapping[str, Any]) -> Partitions:
        """The partitions of a target assignment."""
        return partitions_of(value["topicPartitions"])

    def read_assignment(self, record: ModelRecord) -> Assigned:
        """The current assignment in a record of type 8."""
        value = record.value or {}
        return Assigned(
            record, partitions_of(value["assignedPartitions"]), partitions_of(value["partitionsPendingRevocation"])
        )

    def apply_other(self, record: ModelRecord) -> None:
        """Applies a regular expression; what Kafka wrote of topics up to 4.0 (type 4) says nothing of members."""
        if record.record_type == REGULAR_EXPRESSION:
            put(self.expressions, record.name or "", None if record.is_tombstone else record)

    def must_revoke_in_time(self, member: ModelRecord) -> bool:
        """The rebalance timeout is that of members of the consumer protocol."""
        return not is_classic(member)

    def subscription(self, member: ModelRecord) -> frozenset[str] | None:
        """The topics that a member names, and those that its regular expression matches; None: unknown."""
        value = member.value or {}
        expression = value["subscribedTopicRegex"]
        resolved = self.expressions.get(expression or "")
        if expression and resolved is None and not self.is_whole:
            return None
        matching_topics = () if resolved is None else (resolved.value or {})["topics"]
        return frozenset((*value["subscribedTopicNames"], *matching_topics))


class History(history.History[Life]):
    """A consumer group over its lives, and the ends of members that are not complete.

    Attributes:
        open_ends: by member the tombstone of its assignment, while that of the member itself is to come.
        ended: the tombstone of a member behind which a group epoch, or another member of its instance id, is to come.
        ended_instance_id: the instance id of that member.
    """

    def __init__(self, complete_from: int = 0, bounds: Bounds = no_bounds) -> None:
        """`complete_from`: the log offset from which on no record of the log is missing; 0: all are there."""
        super().__init__(Life, complete_from, bounds)
        self.open_ends: dict[str, ModelRecord] = {}
        self.ended: ModelRecord | None = None
        self.ended_instance_id: str | None = None

    def apply(self, record: ModelRecord) -> None:
        """Applies the next record of the log."""
        member = self.life.members.get(record.name or "")
        super().apply(record)
        name = record.name or ""
        if not record.is_tombstone or record.ends(METADATA):
            self.open_ends.clear()
            self.ended = None
        elif record.log_offset < self.complete_from:
            return
        elif record.ends(ASSIGNMENT):
            self.open_ends[name] = record
        elif record.ends(MEMBER):
            self.open_ends.pop(name, None)
            self.ended, self.ended_instance_id = record, None if member is None else instance_id(member)


def is_classic(member: ModelRecord) -> bool:
    """Whether a member speaks the classic protocol; a record without the field has an empty structure."""
    return member.value is not None and member.value.get("classicMemberMetadata", {}) is not None


def instance_id(member: ModelRecord) -> str | None:
    """The instance id of a static member."""
    return None if member.value is None else member.value["instanceId"]


def partition_lists(record: ModelRecord) -> Iterator[Sequence[Mapping[str, Any]]]:
    """The lists of partitions of a record of type 7 or 8, as they are written."""
    for name in LISTS.get(record.record_type, ()):
        if record.value is not None:
            yield record.value[name]


def partition_names(partitions: Partitions) -> list[str]:
    """Topic id and partition of each: `ATTtdZNEQyOguHN_umxpJg-0`."""
    return [f"{topic_id}-{partition}" for topic_id, partition in partitions]
