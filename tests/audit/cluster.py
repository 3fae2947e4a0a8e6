"""The logs of a cluster, stretched in time, to plant damages between logs into; and records chosen in them."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from sharelens.evidence.reading import read_whole
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import LogPartition, unite
from state_model import group_records
from state_model.group_records import GroupRecord
from state_model.java import partition_for, partition_for_group
from state_model.share_records import (
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    decode_record,
    encode_record,
)
from state_model.topics import INTERNAL_TOPICS, OFFSETS_TOPIC, STATE_TOPIC
from tools.log_writer.writer import encode_log, record_columns, write_checkpoints, write_partition

STRETCH = 200
"""A broker's second becomes minutes, so that its own delays stay below 60 s and lives last longer."""
LATER_MS = 120_000
EPOCH, TARGET, MEMBER_TARGET, ASSIGNMENT, LISTS = 11, 12, 13, 14, 15
SHARE_TYPES = range(10, 16)
STATE_ID, GROUPS_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAADQ"


class Entry(NamedTuple):
    """A record; its offset is its place in the log."""

    time_ms: int
    key: bytes
    value: bytes | None


class Topic(NamedTuple):
    """A partition of a user topic: how many records it has, the time and the leader epoch of the newest.

    `log_start`: its log start offset; the records below it are still there.
    """

    name: str
    topic_id: str
    count: int
    newest_ms: int
    leader_epoch: int
    log_start: int = 0


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The logs of a cluster: state partitions and partitions of __consumer_offsets by number, user partitions."""

    state: Mapping[int, tuple[Entry, ...]]
    groups: Mapping[int, tuple[Entry, ...]]
    topics: Mapping[tuple[str, int], Topic]
    group_count: int
    state_count: int

    def write(self, folder: Path) -> None:
        """Writes a log directory."""
        for name, topic_id, logs in ((STATE_TOPIC, STATE_ID, self.state), (OFFSETS_TOPIC, GROUPS_ID, self.groups)):
            for number, entries in logs.items():
                if entries:
                    times, keys, values = zip(*entries, strict=True)
                    log = encode_log(record_columns(keys, values, times), records_per_batch=1)
                    write_partition(folder, name, number, log, topic_id=topic_id)
        for (topic_id, number), topic in self.topics.items():
            if topic.count:
                times = [topic.newest_ms] * topic.count
                columns = record_columns([None] * topic.count, [b"v"] * topic.count, times)
                log = encode_log(columns, records_per_batch=100, leader_epoch=topic.leader_epoch)
                write_partition(folder, topic.name, number, log, topic_id=topic_id)
        log_starts = {(topic.name, number): topic.log_start for (_, number), topic in self.topics.items()}
        write_checkpoints(folder, log_starts=log_starts)


Damage = Callable[[Cluster, random.Random], Cluster]


def read_cluster(folder: Path, count: int) -> Cluster:
    """The logs of a directory, stretched in time; `count`: partitions of each internal topic."""
    partitions = unite([scan_log_directory(str(folder))])
    logs = {name: _entries(partitions, name) for name in (STATE_TOPIC, OFFSETS_TOPIC)}
    end_ms = max(entry.time_ms for entries in logs[STATE_TOPIC].values() for entry in entries)
    epochs: Counter[tuple[str, int]] = Counter()
    for record in (decoded(entry) for entries in logs[STATE_TOPIC].values() for entry in entries):
        if isinstance(record.value, ShareSnapshot | ShareUpdate):
            place = (record.key.topic_id, record.key.partition)
            epochs[place] = max(epochs[place], record.value.leader_epoch)
    topics = {
        (part.topic_id, part.partition): Topic(
            part.topic, part.topic_id, reader.log_end(part).end_offset, end_ms + LATER_MS,
            epochs[part.topic_id, part.partition],
        )
        for part in partitions
        if part.topic not in INTERNAL_TOPICS
    }  # fmt: skip
    return Cluster(
        state=logs[STATE_TOPIC], groups=logs[OFFSETS_TOPIC], topics=topics, group_count=count, state_count=count
    )


def _entries(partitions: Sequence[LogPartition], topic: str) -> dict[int, tuple[Entry, ...]]:
    logs = {
        part.partition: [
            Entry(row["timestamp_ms"], row["key"], row["value"])
            for chunk in read_whole(part, include_uncommitted=False)
            for row in chunk.records.select(["timestamp_ms", "key", "value", "is_control"]).to_pylist()
            if not row["is_control"]
        ]
        for part in partitions
        if part.topic == topic
    }
    first_ms = 1_790_000_000_000
    return {
        number: tuple(entry._replace(time_ms=first_ms + STRETCH * (entry.time_ms - first_ms)) for entry in entries)
        for number, entries in logs.items()
    }


def decoded(entry: Entry) -> ShareRecord:
    """The share record of an entry."""
    record = decode_record(entry.key, entry.value)
    assert isinstance(record, ShareRecord)
    return record


def grouped(entry: Entry) -> GroupRecord | None:
    """The record of a share group; None for others."""
    record = group_records.decode_record(entry.key, entry.value)
    return record if isinstance(record, GroupRecord) and record.record_type in SHARE_TYPES else None


def with_groups(cluster: Cluster, number: int, entries: Sequence[Entry]) -> Cluster:
    """The cluster with another log of the group coordinator."""
    return replace(cluster, groups={**cluster.groups, number: tuple(entries)})


def with_state(cluster: Cluster, number: int, entries: Sequence[Entry]) -> Cluster:
    """The cluster with another log of the share coordinator."""
    return replace(cluster, state={**cluster.state, number: tuple(entries)})


def share_records(cluster: Cluster) -> Iterator[GroupRecord]:
    for entries in cluster.groups.values():
        yield from (record for record in map(grouped, entries) if record is not None)


def group_of(entry: Entry) -> str | None:
    record = grouped(entry)
    return None if record is None else record.group_id


def epoch_record(group: str) -> tuple[bytes, bytes | None]:
    key = EPOCH.to_bytes(2, "big") + len(group).to_bytes(2, "big") + group.encode()
    return key, bytes.fromhex("0000000000010000000000000001") + b"\0"


def chosen_group_entry(
    cluster: Cluster, chance: random.Random, suits: Callable[[GroupRecord], bool]
) -> tuple[int, int, GroupRecord]:
    """Partition, row and content of a record of a share group; IndexError without any."""
    places = [
        (number, row, record)
        for number, entries in cluster.groups.items()
        for row, entry in enumerate(entries)
        if (record := grouped(entry)) is not None and suits(record)
    ]
    return chance.choice(places)


def chosen_share_partition(cluster: Cluster, chance: random.Random, kind: type = ShareSnapshot) -> tuple[int, bytes]:
    """State partition and key (without type) of a live share partition that its group lists, with values of a kind."""
    lists: dict[str, GroupRecord | None] = {}
    for record in share_records(cluster):
        if record.record_type == LISTS:
            lists[record.group_id] = None if record.value is None else record
        if record.record_type == EPOCH and record.is_tombstone:
            lists[record.group_id] = None
    places = []
    for number, entries in cluster.state.items():
        newest = {entry.key[2:]: entry for entry in entries}
        of_kind = {entry.key[2:] for entry in entries if isinstance(decoded(entry).value, kind)}
        for key, entry in ((key, entry) for key, entry in newest.items() if key in of_kind):
            record = decoded(entry)
            listing = lists.get(record.key.group_id)
            place = (record.key.topic_id, record.key.partition)
            if entry.value is not None and listing is not None and place in _initialized(listing):
                places.append((number, key))
    return chance.choice(sorted(places))


def _initialized(record: GroupRecord) -> set[tuple[str, int]]:
    topics: Any = (record.value or {})["initialized_topics"]
    return {(topic["topic_id"], partition) for topic in topics for partition in topic["partitions"]}


def with_late_records(cluster: Cluster) -> Cluster:
    """The cluster with a new group, a share partition of which is created behind all other records."""
    at_ms = max(entry.time_ms for logs in (cluster.state, cluster.groups) for log in logs.values() for entry in log)
    topic_id = min(topic_id for topic_id, _ in cluster.topics)
    key = SharePartitionKey("late", topic_id, 0)
    snapshot = ShareSnapshot(
        snapshot_epoch=0, state_epoch=1, leader_epoch=0, start_offset=-1, create_timestamp_ms=at_ms + LATER_MS,
        write_timestamp_ms=at_ms + LATER_MS, state_batches=(), delivery_complete_count=-1,
    )  # fmt: skip
    of_state, of_groups = partition_for(*key, cluster.state_count), partition_for_group("late", cluster.group_count)
    created = Entry(at_ms + LATER_MS, *encode_record(ShareRecord(key=key, value=snapshot)))
    epoch = Entry(at_ms + LATER_MS, *epoch_record("late"))
    result = with_state(cluster, of_state, [*cluster.state.get(of_state, ()), created])
    return with_groups(result, of_groups, [*result.groups.get(of_groups, ()), epoch])
