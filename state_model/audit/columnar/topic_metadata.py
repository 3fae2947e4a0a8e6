"""User topics and internal topics over time by the metadata log, for rules 24 and 69."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from state_model.audit.columnar.lives import Life
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.group_steps import TopicPartition
from state_model.audit.periods import BEGINNING, END, TOLERANCE_MS, Period
from state_model.audit.rule import Difference, Field
from state_model.metadata.changes import PARTITION, TOPIC
from state_model.metadata.history import Validity
from state_model.share_records import SharePartitionKey
from state_model.topics import METADATA_TOPIC, STATE_TOPIC

UNKNOWN_TOPIC_PARTITION, OTHER_CLUSTER = 690, 691


class LogTimes(NamedTuple):
    """The times of the first and of the newest record of a log."""

    first_ms: int
    newest_ms: int


@dataclass(slots=True)
class TopicMetadata:
    """Topics and partitions over time, from `from_ms` (BEGINNING: the log's first record) to `until_ms`.

    `deletions`: the records that delete topics. `epochs`: leader epochs with the times at which they began, ascending.
    `unsure`: partitions of which records are missing.
    """

    from_ms: int
    until_ms: int
    topics: dict[str, Period] = field(default_factory=dict)
    topic_ids: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    deletions: dict[str, LogRecord] = field(default_factory=dict)
    epochs: dict[TopicPartition, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    unsure: set[TopicPartition] = field(default_factory=set)

    def end_of(self, topic_id: str, until_ms: int) -> list[LogRecord]:
        """The record that deletes a topic up to a time, and the one that creates another of its name; none of these."""
        deletion = self.deletions.get(topic_id)
        if deletion is None or self.topics[topic_id].to_ms > until_ms:
            return []
        ids = next(ids for ids in self.topic_ids.values() if topic_id in ids)
        creations = sorted(offset for offset in ids.values() if offset > deletion.offset)
        return [deletion, *(LogRecord(METADATA_TOPIC, 0, offset) for offset in creations[:1])]

    def partition_count(self, topic_id: str) -> int | None:
        """The number of partitions of a topic; None: the log knows none."""
        return sum(1 for of_topic, _ in self.epochs if of_topic == topic_id) or None

    def lacks(self, topic_partition: TopicPartition, time_ms: int, since_ms: int = BEGINNING) -> bool:
        """Whether a partition never was in the metadata, up to 60 s behind a time.

        Of topics that the log knows; of others, where what names the partition began at `since_ms`, behind the log's
        beginning.
        """
        topic_id, latest_ms = topic_partition[0], time_ms + TOLERANCE_MS
        is_covered = topic_id in self.topics or since_ms >= self.from_ms + TOLERANCE_MS
        begins = [begin_ms for begin_ms, _ in self.epochs.get(topic_partition, ())]
        return is_covered and latest_ms <= self.until_ms and min(begins, default=END) > latest_ms

    def epoch_at(self, topic_partition: TopicPartition, time_ms: int) -> int | None:
        """The largest leader epoch up to a time; None where the log does not show it."""
        epochs = self.epochs.get(topic_partition)
        if epochs is None or topic_partition in self.unsure or self.until_ms < time_ms:
            return None
        return max((epoch for begin_ms, epoch in epochs if begin_ms <= time_ms), default=None)


def topic_metadata(
    validities: Iterable[Validity], from_ms: int | None, read_until_ms: int | None = None
) -> TopicMetadata:
    """The topics of a metadata log whose beginning is known, up to its newest change or to when it was read."""
    metadata = TopicMetadata(BEGINNING if from_ms is None else from_ms, read_until_ms or BEGINNING)
    for row in validities:
        metadata.until_ms = max(metadata.until_ms, (row.begin if row.end is None else row.end).timestamp_ms)
        begin_ms = BEGINNING if row.began_earlier else row.begin.timestamp_ms
        if row.key[0] == TOPIC:
            end_ms = END if row.end is None else row.end.timestamp_ms
            metadata.topics[str(row.key[1])] = Period(begin_ms, end_ms, row.begin.offset)
            if row.end is not None:
                metadata.deletions[str(row.key[1])] = LogRecord(METADATA_TOPIC, 0, row.end.offset)
            metadata.topic_ids[str(row.content["name"])][str(row.key[1])] = row.begin.offset
        elif row.key[0] == PARTITION and isinstance(epoch := row.content["leader_epoch"], int):
            topic_partition = (str(row.key[1]), int(row.key[2]))
            metadata.epochs[topic_partition].append((begin_ms, epoch))
            if not row.is_certain:
                metadata.unsure.add(topic_partition)
    return metadata


def unknown_topic_partitions(
    lives: Mapping[SharePartitionKey, Sequence[Life]], metadata: TopicMetadata, proofs: Proofs
) -> None:
    """Tests rule 69: partitions that never were in the metadata, up to 60 s behind the creation of their state."""
    for key, partition_lives in lives.items():
        topic_partition = (key.topic_id, key.partition)
        for life in partition_lives:
            if not metadata.lacks(topic_partition, life.first_ms, life.period.from_ms):
                continue
            record = LogRecord(STATE_TOPIC, life.state_partition, life.period.log_offset)
            difference = Difference(Field.KNOWN, 1, 0)
            proofs.add(UNKNOWN_TOPIC_PARTITION, Place(*key, life.state_partition), difference, record, life.first_ms)
            break


def belongs_to(metadata: TopicMetadata, log: LogRecord, topic_id: str, times: LogTimes, proofs: Proofs) -> bool:
    """Tests that the metadata knows an internal topic by the id of its log; `log`: the log's first record.

    Metadata that ends before the log begins can't know it: the topic may have been created again since.
    """
    topic_ids = metadata.topic_ids.get(log.topic)
    if not topic_ids or topic_id in topic_ids or metadata.until_ms < times.first_ms + TOLERANCE_MS:
        return True
    metadata_records = [LogRecord(METADATA_TOPIC, 0, offset) for offset in topic_ids.values()]
    proofs.add(OTHER_CLUSTER, Place(), Difference(Field.KNOWN, 1, 0), log, times.newest_ms, metadata_records)
    return False
