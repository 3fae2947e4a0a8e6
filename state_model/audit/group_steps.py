"""The records of one share group as the rules on `__consumer_offsets` see them: a record, and what stands before it.

Compaction may have removed any record that a later one of the same key replaces. A round of the log cleaner removes
every replaced record below its end: so where a record is there, the next one of its key is, too, be it a tombstone.
Rules compare with records that are there, and say nothing of those that are not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from state_model.audit.rule import Difference

MEMBER, GROUP, TARGET, MEMBER_TARGET, ASSIGNMENT, STATE_PARTITIONS = range(10, 16)
SHARE_TYPES = range(MEMBER, STATE_PARTITIONS + 1)
"""Record types of share groups (consumer-offsets-records §2)."""
TopicPartition = tuple[str, int]
"""Topic id and partition of a user topic."""


class GroupRecord(NamedTuple):
    """A record of a share group. `value`: as Kafka prints it; None for a tombstone and for an unknown version."""

    record_type: int
    member_id: str | None
    is_tombstone: bool
    value: Mapping[str, Any] | None
    log_offset: int

    @property
    def key(self) -> tuple[int, str | None]:
        """The key of the record within its group."""
        return self.record_type, self.member_id

    def number(self, name: str) -> int | None:
        """A number of the value; None where the record has none."""
        value = None if self.value is None else self.value.get(name)
        return value if isinstance(value, int) else None


class GroupDifference(NamedTuple):
    """A difference; the log offset of an earlier record that proves it (-1: none), the user partition it is about."""

    difference: Difference
    earlier: int = -1
    topic_partition: TopicPartition | None = None


@dataclass(slots=True)
class GroupState:
    """The newest record of each key of a group, those behind its last deletion alone."""

    newest: dict[tuple[int, str | None], GroupRecord] = field(default_factory=dict)

    def of(self, record_type: int, member_id: str | None = None) -> GroupRecord | None:
        """The newest record of a key; None without one, and behind its tombstone."""
        return self.newest.get((record_type, member_id))

    def of_type(self, *record_types: int) -> Iterator[GroupRecord]:
        """The newest records of some types."""
        return (record for (record_type, _), record in self.newest.items() if record_type in record_types)

    def apply(self, record: GroupRecord) -> None:
        """Applies the next record of the log."""
        if not record.is_tombstone:
            self.newest[record.key] = record
        elif record.record_type == GROUP:
            self.newest.clear()
        else:
            self.newest.pop(record.key, None)


GroupCheck = Callable[[GroupState, GroupRecord], GroupDifference | None]
"""A rule on single records: from the group before a record, and the record."""


def partitions_of(topics: Any) -> frozenset[TopicPartition]:
    """The user partitions in a list of topics with their partitions."""
    return frozenset((topic["topicId"], partition) for topic in topics or () for partition in topic["partitions"])
