"""Committed offsets of groups, and pending ones of open transactions (Kafka's OffsetMetadataManager).

An offset of a transaction becomes committed with the commit marker in its partition of `__consumer_offsets`, unless
the group committed a newer one meanwhile; until then a fetch that requires stable offsets gets an error to retry.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from sharelens.broker.coordinators.classic_records import CommittedOffset, offset_key, offset_value, read_offset
from sharelens.broker.coordinators.group_log import GroupLog, KeyValue
from sharelens.broker.ports import ProducerIdentity, TopicPartition
from state_model.group_records import GroupRecord
from state_model.offset_commits import OFFSET_COMMIT

Offsets = Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class _OrderedOffset:
    """An offset with its order of commits within a partition of the log."""

    committed: CommittedOffset
    number: int


class GroupOffsets:
    """All committed offsets, by group."""

    def __init__(self, log: GroupLog) -> None:
        self._log = log
        self._offsets: dict[str, dict[TopicPartition, _OrderedOffset]] = {}
        self._pending: dict[tuple[int, int], dict[str, dict[TopicPartition, _OrderedOffset]]] = {}
        self._count = 0

    def commit(self, group_id: str, offsets: Offsets) -> None:
        """Commit offsets of a group.

        Raises sharelens.broker.errors.StorageError or RecordTooLargeError; none is committed then.
        """
        self._log.append(group_id, _records(group_id, offsets))
        for topic_partition, committed in offsets.items():
            self._keep(group_id, topic_partition, committed)

    def commit_in_transaction(self, group_id: str, offsets: Offsets, producer: ProducerIdentity) -> None:
        """Append pending offsets, which become committed when the producer's transaction commits.

        Raises sharelens.broker.errors.StorageError or RecordTooLargeError; none is pending then.
        """
        self._log.append_transactional(group_id, _records(group_id, offsets), producer)
        partition = self._log.partition_for(group_id)
        for topic_partition, committed in offsets.items():
            self._wait(partition, producer.producer_id, group_id, topic_partition, committed)

    def end_transaction(self, partition: int, producer_id: int, *, is_commit: bool) -> None:
        """Apply a marker in a partition of the log: pending offsets become committed or are dropped."""
        groups = self._pending.pop((partition, producer_id), {})
        if not is_commit:
            return
        for group_id, pending in groups.items():
            committed = self._offsets.setdefault(group_id, {})
            for topic_partition, offset in pending.items():
                current_offset = committed.get(topic_partition)
                if current_offset is None or current_offset.number < offset.number:
                    committed[topic_partition] = offset

    def get(self, group_id: str, topic_partition: TopicPartition) -> CommittedOffset | None:
        """The committed offset of a group for a partition."""
        stored_offset = self._offsets.get(group_id, {}).get(topic_partition)
        return None if stored_offset is None else stored_offset.committed

    def of_group(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """All committed offsets of a group."""
        return {at: stored_offset.committed for at, stored_offset in self._offsets.get(group_id, {}).items()}

    def groups(self) -> set[str]:
        """The groups with committed or pending offsets."""
        return {group_id for group_id, offsets in self._offsets.items() if offsets} | {
            group_id for groups in self._pending.values() for group_id in groups
        }

    def waiting(self, group_id: str) -> set[TopicPartition]:
        """The partitions with pending offsets of a group."""
        partition = self._log.partition_for(group_id) if self._pending else -1
        return {
            at
            for (held_in, _), groups in self._pending.items()
            if held_in == partition
            for at in groups.get(group_id, ())
        }

    def tombstones(self, group_id: str, topic_partitions: set[TopicPartition] | None = None) -> list[KeyValue]:
        """The tombstones of a group's offsets, pending ones included; None: of all partitions."""
        partitions_with_offsets = set(self._offsets.get(group_id, {})) | self.waiting(group_id)
        chosen = sorted(
            partitions_with_offsets if topic_partitions is None else partitions_with_offsets & topic_partitions
        )
        return [(offset_key(group_id, at.topic, at.partition), None) for at in chosen]

    def forget(self, group_id: str, topic_partitions: set[TopicPartition] | None = None) -> None:
        """Remove a group's offsets after their tombstones were appended; None: all of them."""
        for at in list(self._offsets.get(group_id, ())) + list(self.waiting(group_id)):
            if topic_partitions is None or at in topic_partitions:
                self._drop(group_id, at)

    def of_topic(self, topic: str) -> dict[str, set[TopicPartition]]:
        """The partitions of a topic with offsets, by group."""
        by_group: dict[str, set[TopicPartition]] = {}
        for group_id in self.groups():
            partitions_with_offsets = set(self._offsets.get(group_id, {})) | self.waiting(group_id)
            of_topic = {at for at in partitions_with_offsets if at.topic == topic}
            if of_topic:
                by_group[group_id] = of_topic
        return by_group

    def replay(self, record: GroupRecord) -> None:
        """Apply a record of the log."""
        if record.is_tombstone and record.record_type == OFFSET_COMMIT:
            self._drop(record.group_id, _place(record))
            return
        committed = read_offset(record)
        if committed is not None:
            self._keep(record.group_id, _place(record), committed)

    def replay_pending(self, record: GroupRecord, *, partition: int, producer_id: int) -> None:
        """Apply a record of an open transaction."""
        committed = read_offset(record)
        if committed is not None:
            self._wait(partition, producer_id, record.group_id, _place(record), committed)

    def _keep(self, group_id: str, at: TopicPartition, committed: CommittedOffset) -> None:
        self._offsets.setdefault(group_id, {})[at] = self._numbered(committed)

    def _wait(
        self, partition: int, producer_id: int, group_id: str, at: TopicPartition, committed: CommittedOffset
    ) -> None:
        groups = self._pending.setdefault((partition, producer_id), {})
        groups.setdefault(group_id, {})[at] = self._numbered(committed)

    def _numbered(self, committed: CommittedOffset) -> _OrderedOffset:
        self._count += 1
        return _OrderedOffset(committed, self._count)

    def _drop(self, group_id: str, at: TopicPartition) -> None:
        for offsets in self._tables_of(group_id):
            offsets.pop(at, None)
        if not self._offsets.get(group_id, True):
            del self._offsets[group_id]

    def _tables_of(self, group_id: str) -> Iterator[dict[TopicPartition, _OrderedOffset]]:
        if group_id in self._offsets:
            yield self._offsets[group_id]
        for groups in self._pending.values():
            if group_id in groups:
                yield groups[group_id]


def _records(group_id: str, offsets: Offsets) -> list[KeyValue]:
    return [
        (offset_key(group_id, at.topic, at.partition), offset_value(committed)) for at, committed in offsets.items()
    ]


def _place(record: GroupRecord) -> TopicPartition:
    return TopicPartition(str(record.key["topic"]), cast(int, record.key["partition"]))
