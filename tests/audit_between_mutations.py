"""Damages between the logs of a cluster, planted into legal ones, and what the audit finds of them.

The logs are those of simulated and of recorded brokers, stretched in time: a mismatch counts when it outlasts 60 s. An
operator changes bytes, records, places or the ends of logs, and knows no rule. Near ones change as much and leave logs
that healthy brokers write.
"""

import functools
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from broker.simulator.settings import profile
from broker.simulator.simulation import simulate
from evidence.reading import read_whole
from kafka_log import reader
from kafka_log.layout import scan_log_directory
from kafka_log.union import LogPartition, unite
from sharelens.filters import KeyFilter
from sharelens.questions.audit import AuditChoice, audit
from sharelens.questions.evidence import Span
from sharelens.questions.log_evidence import open_log_evidence
from sharelens.request import Source
from state_model import group_records
from state_model.group_records import GroupRecord
from state_model.java import partition_for, partition_for_group
from state_model.share_records import (
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    Tombstone,
    decode_record,
    encode_record,
)
from state_model.topics import INTERNAL_TOPICS, OFFSETS_TOPIC, STATE_TOPIC
from tests.datasets import dataset
from tests.once import made_once
from tools.log_writer.writer import encode_log, record_columns, write_partition

STRETCH = 200
"""A broker's second becomes minutes, so that its own delays stay below 60 s and lives last longer."""
LATER_MS = 120_000
SIMULATED = (("steady", 1), ("admin", 2), ("admin", 3), ("admin", 4))
SIZES = {"records": 600, "state_partitions": 3, "partitions": 2, "groups": 6, "checkpoints": 1}
RECORDED = ("v44",)
EPOCH, TARGET, MEMBER_TARGET, ASSIGNMENT, LISTS = 11, 12, 13, 14, 15
SHARE_TYPES = range(10, 16)


class Entry(NamedTuple):
    """A record; its offset is its place in the log."""

    time_ms: int
    key: bytes
    value: bytes | None


class Topic(NamedTuple):
    """A partition of a user topic: how many records it has, the time and the leader epoch of the newest."""

    name: str
    topic_id: str
    count: int
    newest_ms: int
    leader_epoch: int


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


STATE_ID, GROUPS_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAADQ"
Damage = Callable[[Cluster, random.Random], Cluster]


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A damage. `rules`: codes of which one is expected; without any the logs stay legal."""

    name: str
    damage: Damage
    rules: frozenset[str] = frozenset()


@dataclass(kw_only=True)
class Detection:
    """What became of the damaged logs; `mistakes`: lines about misses and false alarms."""

    logs: int = 0
    detected: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)


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


def changed(record_type: int, change: Callable[[dict[str, Any]], dict[str, Any]], *, is_later: bool = False) -> Damage:
    """The damage that changes a value; `is_later`: not of the first record of its key."""

    def damage(cluster: Cluster, chance: random.Random) -> Cluster:
        seen: set[bytes] = set()
        later = set()
        for entries in cluster.groups.values():
            for entry in entries:
                (later if entry.key in seen else seen).add(entry.key)

        def suits(record: GroupRecord) -> bool:
            key = group_records.encode_record(record)[0]
            return record.record_type == record_type and record.value is not None and (not is_later or key in later)

        number, row, record = chosen_group_entry(cluster, chance, suits)
        entries = list(cluster.groups[number])
        if is_later:
            row = max(other for other, entry in enumerate(entries) if entry.key == entries[row].key)
            record = grouped(entries[row]) or record
            if record.value is None:
                raise IndexError
        key, value = group_records.encode_record(replace(record, value=change(dict(record.value or {}))))
        entries[row] = entries[row]._replace(key=key, value=value)
        return with_groups(cluster, number, entries)

    return damage


def plus(name: str, by: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The change of a number."""
    return lambda value: {**value, name: value[name] + by}


def repeated_epoch(cluster: Cluster, chance: random.Random) -> Cluster:
    """A record of a group epoch appended twice."""
    number, row, _ = chosen_group_entry(
        cluster, chance, lambda record: record.record_type == EPOCH and record.value is not None
    )
    entries = cluster.groups[number]
    return with_groups(cluster, number, [*entries[: row + 1], *entries[row:]])


def without_member_tombstone(cluster: Cluster, chance: random.Random) -> Cluster:
    """A member's tombstone of its assignment never appended."""
    number, row, _ = chosen_group_entry(
        cluster, chance, lambda record: record.record_type == ASSIGNMENT and record.is_tombstone
    )
    entries = cluster.groups[number]
    return with_groups(cluster, number, [*entries[:row], *entries[row + 1 :]])


def moved_group(cluster: Cluster, chance: random.Random) -> Cluster:
    """All records of a group in the next partition."""
    if len({record.group_id for record in _share_records(cluster)}) < 4:
        raise IndexError
    number, _, chosen = chosen_group_entry(cluster, chance, lambda record: True)
    mine = [entry for entry in cluster.groups[number] if _group_of(entry) == chosen.group_id]
    rest = [entry for entry in cluster.groups[number] if _group_of(entry) != chosen.group_id]
    target = (number + 1) % len(cluster.groups)
    moved = with_groups(cluster, number, rest)
    return with_groups(moved, target, [*moved.groups[target], *mine])


def _share_records(cluster: Cluster) -> Iterator[GroupRecord]:
    for entries in cluster.groups.values():
        yield from (record for record in map(grouped, entries) if record is not None)


def _group_of(entry: Entry) -> str | None:
    record = grouped(entry)
    return None if record is None else record.group_id


def of_type(record_type: int) -> Damage:
    """A record of another type appended."""

    def damage(cluster: Cluster, chance: random.Random) -> Cluster:
        number, row, _ = chosen_group_entry(cluster, chance, lambda record: record.record_type == EPOCH)
        entries = cluster.groups[number]
        other = entries[row]._replace(key=record_type.to_bytes(2, "big") + entries[row].key[2:])
        return with_groups(cluster, number, [*entries, other])

    return damage


def cut_value(cluster: Cluster, chance: random.Random) -> Cluster:
    """A value of a group's record cut short."""
    number, row, _ = chosen_group_entry(cluster, chance, lambda record: record.value is not None)
    entries = list(cluster.groups[number])
    entries[row] = entries[row]._replace(value=(entries[row].value or b"")[:3])
    return with_groups(cluster, number, entries)


def chosen_share_partition(cluster: Cluster, chance: random.Random, kind: type = ShareSnapshot) -> tuple[int, bytes]:
    """State partition and key (without type) of a live share partition that its group lists, with values of a kind."""
    lists: dict[str, GroupRecord | None] = {}
    for record in _share_records(cluster):
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


def with_state(cluster: Cluster, number: int, entries: Sequence[Entry]) -> Cluster:
    """The cluster with another log of the share coordinator."""
    return replace(cluster, state={**cluster.state, number: tuple(entries)})


def forgotten_state(cluster: Cluster, chance: random.Random) -> Cluster:
    """No record of a share partition in the state log."""
    number, key = chosen_share_partition(cluster, chance)
    return with_state(cluster, number, [entry for entry in cluster.state[number] if entry.key[2:] != key])


def early_tombstone(cluster: Cluster, chance: random.Random) -> Cluster:
    """A share partition deleted in the middle of its life, and its records behind that gone."""
    number, key = chosen_share_partition(cluster, chance)
    mine = [row for row, entry in enumerate(cluster.state[number]) if entry.key[2:] == key]
    cut = mine[len(mine) // 2]
    entries = [entry for row, entry in enumerate(cluster.state[number]) if entry.key[2:] != key or row < cut]
    at = sum(1 for row, entry in enumerate(cluster.state[number]) if row < cut)
    tombstone = Entry(cluster.state[number][cut].time_ms, b"\0\0" + key, None)
    return with_late_records(with_state(cluster, number, [*entries[:at], tombstone, *entries[at:]]))


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
    epoch = Entry(at_ms + LATER_MS, *_epoch_record("late"))
    result = with_state(cluster, of_state, [*cluster.state.get(of_state, ()), created])
    return with_groups(result, of_groups, [*result.groups.get(of_groups, ()), epoch])


def on_values(change: Callable[[Any], dict[str, Any]], kind: type) -> Damage:
    """The damage that changes all values of a kind of a share partition."""

    def damage(cluster: Cluster, chance: random.Random) -> Cluster:
        number, key = chosen_share_partition(cluster, chance, kind)
        entries = list(cluster.state[number])
        for row, entry in enumerate(entries):
            record = decoded(entry)
            if entry.key[2:] == key and isinstance(record.value, kind):
                value: Any = record.value
                encoded = encode_record(record._replace(value=value._replace(**change(value))))
                entries[row] = Entry(entry.time_ms, *encoded)
        return with_state(cluster, number, entries)

    return damage


def unlisted(cluster: Cluster, chance: random.Random) -> Cluster:
    """A group's list of partitions empty from its first record on."""
    number, key = chosen_share_partition(cluster, chance)
    group = next(decoded(entry).key.group_id for entry in cluster.state[number] if entry.key[2:] == key)
    result = cluster
    for place, entries in cluster.groups.items():
        rows = list(entries)
        for row, entry in enumerate(rows):
            record = grouped(entry)
            if record is not None and (record.group_id, record.record_type) == (group, LISTS) and record.value:
                empty = dict.fromkeys(record.value, ())
                rows[row] = Entry(entry.time_ms, *group_records.encode_record(replace(record, value=empty)))
        result = with_groups(result, place, rows)
    return result


def deleted_group(*, is_created_again: bool) -> Damage:
    """The tombstones of a group in the middle of the log, its share partitions left; all later records of it gone."""

    def damage(cluster: Cluster, chance: random.Random) -> Cluster:
        number, key = chosen_share_partition(cluster, chance)
        group = next(decoded(entry).key.group_id for entry in cluster.state[number] if entry.key[2:] == key)
        place = next(
            place for place, entries in cluster.groups.items() if any(_group_of(entry) == group for entry in entries)
        )
        mine = {entry.key: entry for entry in cluster.groups[place] if _group_of(entry) == group}
        order = sorted(mine, key=lambda key: (14, 13, 12, 10, 15, 11).index(int.from_bytes(key[:2], "big")))
        last_ms = max(entry.time_ms for entry in mine.values())
        ended = [Entry(last_ms, key, None) for key in order if mine[key].value is not None]
        again = [Entry(last_ms, *_epoch_record(group))] if is_created_again else []
        return with_late_records(with_groups(cluster, place, [*cluster.groups[place], *ended, *again]))

    return damage


def _epoch_record(group: str) -> tuple[bytes, bytes | None]:
    key = EPOCH.to_bytes(2, "big") + len(group).to_bytes(2, "big") + group.encode()
    return key, bytes.fromhex("0000000000010000000000000001") + b"\0"


def on_topic(change: Callable[[Topic, int], Topic]) -> Damage:
    """The damage of a user topic's partition, by the last offset that states of a share partition name."""

    def damage(cluster: Cluster, chance: random.Random) -> Cluster:
        places = sorted(place for place, topic in cluster.topics.items() if _last_offset(cluster, place) > 10)
        place = chance.choice(places)
        topic = change(cluster.topics[place], _last_offset(cluster, place))
        return replace(cluster, topics={**cluster.topics, place: topic})

    return damage


def _last_offset(cluster: Cluster, place: tuple[str, int]) -> int:
    last = -1
    for record in (decoded(entry) for entries in cluster.state.values() for entry in entries):
        if (record.key.topic_id, record.key.partition) == place and not isinstance(record.value, Tombstone):
            last = max([last, *(batch.last_offset for batch in getattr(record.value, "state_batches", ()))])
    return last


def other_groups(cluster: Cluster, chance: random.Random) -> Cluster:
    """The group coordinator's log of a cluster with other groups."""
    if len({record.group_id for record in _share_records(cluster)}) < 4:
        raise IndexError
    logs: dict[int, list[Entry]] = {number: [] for number in range(cluster.group_count)}
    for entries in cluster.groups.values():
        for entry in entries:
            record = grouped(entry)
            if record is not None:
                name = f"other {record.group_id}"
                key = {field: name if value == record.group_id else value for field, value in record.key.items()}
                other = Entry(entry.time_ms, *group_records.encode_record(replace(record, key=key)))
                logs[partition_for_group(name, cluster.group_count)].append(other)
    return replace(cluster, groups={number: tuple(log) for number, log in logs.items()})


def cleaned(cluster: Cluster, chance: random.Random) -> Cluster:
    """A round of the log cleaner over the group coordinator's log."""
    result = cluster
    for number, entries in cluster.groups.items():
        end = chance.randrange(len(entries) + 1)
        newest = {entry.key: row for row, entry in enumerate(entries[:end])}
        kept = [entry for row, entry in enumerate(entries) if row >= end or newest[entry.key] == row]
        result = with_groups(result, number, kept)
    return result


def shortened(entries: Sequence[Entry], until_ms: int) -> list[Entry]:
    """The records up to a time."""
    return [entry for entry in entries if entry.time_ms <= until_ms]


def _middle_ms(cluster: Cluster) -> int:
    times = sorted(entry.time_ms for entries in cluster.state.values() for entry in entries)
    return times[len(times) // 2]


def groups_copied_earlier(cluster: Cluster, chance: random.Random) -> Cluster:
    """The group coordinator's log of an earlier copy."""
    middle = _middle_ms(cluster)
    return replace(cluster, groups={number: tuple(shortened(log, middle)) for number, log in cluster.groups.items()})


def state_copied_earlier(cluster: Cluster, chance: random.Random) -> Cluster:
    """The state log of an earlier copy."""
    middle = _middle_ms(cluster)
    return replace(cluster, state={number: tuple(shortened(log, middle)) for number, log in cluster.state.items()})


def without_groups(cluster: Cluster, chance: random.Random) -> Cluster:
    """No record of the group coordinator."""
    return replace(cluster, groups={})


FAR = 1_000_000
OPERATORS = (
    Operator(name="group epoch appended twice", damage=repeated_epoch, rules=frozenset({"group_epoch_skips"})),
    Operator(name="group epoch + 3", damage=changed(EPOCH, plus("epoch", 3), is_later=True),
        rules=frozenset({"group_epoch_skips"})),
    Operator(name="group epoch - 3", damage=changed(EPOCH, plus("epoch", -3), is_later=True),
        rules=frozenset({"group_epoch_skips", "epochs_out_of_order"})),
    Operator(name="assignment epoch + 9", damage=changed(TARGET, plus("assignment_epoch", 9)),
        rules=frozenset({"epochs_out_of_order"})),
    Operator(name="member epoch + 9", damage=changed(ASSIGNMENT, plus("member_epoch", 9)),
        rules=frozenset({"epochs_out_of_order"})),
    Operator(name="state of a member + 1", damage=changed(ASSIGNMENT, plus("state", 1)),
        rules=frozenset({"member_state"})),
    Operator(name="tombstone of an assignment never appended", damage=without_member_tombstone,
        rules=frozenset({"member_tombstones_out_of_order"})),
    Operator(name="records of a group in another partition", damage=moved_group, rules=frozenset({"misplaced_group"})),
    Operator(name="record of type 9", damage=of_type(9), rules=frozenset({"preview_record_type"})),
    Operator(name="record of type 18", damage=of_type(18), rules=frozenset({"preview_record_type"})),
    Operator(name="value of a group record cut short", damage=cut_value, rules=frozenset({"undecodable_group_record"})),
    Operator(name="share partition never created", damage=forgotten_state,
        rules=frozenset({"initialized_without_state"})),
    Operator(name="share partition deleted, its group lists it", damage=early_tombstone,
        rules=frozenset({"initialized_without_state"})),
    Operator(name="list of partitions empty", damage=unlisted, rules=frozenset({"state_without_group"})),
    Operator(name="group deleted, its state left", damage=deleted_group(is_created_again=False),
        rules=frozenset({"state_after_group_deletion"})),
    Operator(name="group created again, old state left", damage=deleted_group(is_created_again=True),
        rules=frozenset({"left_state_fences_group", "state_without_group"})),
    Operator(name="state epoch of snapshots + 50", damage=on_values(
        lambda value: {"state_epoch": value.state_epoch + 50}, ShareSnapshot),
        rules=frozenset({"state_epoch_beyond_group"})),
    Operator(name="group records of another cluster", damage=other_groups, rules=frozenset({"no_common_group"})),
    Operator(name="user topic ends before its states", damage=on_topic(
        lambda topic, last: topic._replace(count=last - 5)),
        rules=frozenset({"batch_beyond_end", "batch_beyond_cut_end"})),
    Operator(name="tail of the user topic cut off by an election", damage=on_topic(
        lambda topic, last: topic._replace(count=last - 5, leader_epoch=topic.leader_epoch + 1)),
        rules=frozenset({"batch_beyond_cut_end"})),
    Operator(name="start offset of writes beyond the topic", damage=on_values(
        lambda value: {"start_offset": FAR, "state_batches": ()}, ShareUpdate),
        rules=frozenset({"start_offset_beyond_end"})),
    Operator(name="delivery complete count beyond the topic", damage=on_values(
        lambda value: {"delivery_complete_count": FAR}, ShareUpdate),
        rules=frozenset({"complete_count_beyond_end", "negative_lag"})),
)  # fmt: skip
NEAR = (
    Operator(name="logs as they are", damage=lambda cluster, chance: cluster),
    Operator(name="a round of the log cleaner", damage=cleaned),
    Operator(name="group coordinator's log copied earlier", damage=groups_copied_earlier),
    Operator(name="state log copied earlier", damage=state_copied_earlier),
    Operator(name="group coordinator's log not copied", damage=without_groups),
    Operator(name="user topic with more records", damage=on_topic(
        lambda topic, last: topic._replace(count=topic.count + 500))),
    Operator(name="user topic up to its last state", damage=on_topic(
        lambda topic, last: topic._replace(count=max(topic.count, last + 1), leader_epoch=topic.leader_epoch + 1))),
    Operator(name="user topic copied earlier", damage=on_topic(
        lambda topic, last: topic._replace(count=last - 5, newest_ms=1_000))),
)  # fmt: skip


@functools.cache
def clusters() -> tuple[Cluster, ...]:
    """Legal logs of simulated and of recorded brokers."""
    simulated = [
        made_once(
            f"audited-clusters/{name}-{seed}",
            lambda folder, name=name, seed=seed: simulate(profile(name, kafka_version="4.4", **SIZES), seed, folder),
        )
        for name, seed in SIMULATED
    ]
    recorded = [read_cluster(dataset(name) / "logs", count=4) for name in RECORDED]
    return (*(read_cluster(folder, count=3) for folder in simulated), *recorded)


def audited(cluster: Cluster) -> list[dict[str, Any]]:
    """The findings (errors and warnings) of the logs."""
    with tempfile.TemporaryDirectory(prefix="sharelens-audit-") as folder:
        cluster.write(Path(folder))
        with open_log_evidence(Source(log_dirs=(folder,))) as evidence:
            report = audit(evidence, KeyFilter(), Span(), AuditChoice(version="4.4"))
            rows: list[dict[str, Any]] = report.parts["findings"].table.to_pylist()
    return rows


@functools.cache
def detection(operator: Operator) -> Detection:
    """Plants the damage into each cluster."""
    result = Detection()
    for seed, cluster in enumerate(clusters()):
        try:
            damaged = operator.damage(cluster, random.Random(seed))
        except IndexError:
            continue
        rules = {row["rule"] for row in audited(damaged)}
        result.logs += 1
        result.rules.update(rules)
        if operator.rules & rules:
            result.detected += 1
        elif operator.rules:
            result.mistakes.append(f"cluster {seed}: missed, the audit says {sorted(rules)}")
        elif rules:
            result.mistakes.append(f"cluster {seed}: false alarm {sorted(rules)}")
    return result


HEAD = """## Between logs

The same for logs of whole clusters, simulated and recorded ones, stretched in time: state log, `__consumer_offsets` and
user topics. *Detected*: the audit names an expected rule.

| damage | damaged logs | detected | rules |
|---|---|---|---|"""
NEAR_HEAD = """
Changes that leave logs of healthy brokers have no error and no warning:

| change | logs | findings |
|---|---|---|"""


def section() -> str:
    """The part of the page of detection about damages between logs."""
    lines = [HEAD]
    for operator in OPERATORS:
        result = detection(operator)
        rules = ", ".join(
            f"`{rule}`" for rule in sorted(result.rules, key=lambda rule: (-result.rules[rule], rule))[:4]
        )
        lines.append(f"| {operator.name} | {result.logs} | {result.detected} | {rules or '-'} |")
    lines.append(NEAR_HEAD)
    for operator in NEAR:
        result = detection(operator)
        lines.append(f"| {operator.name} | {result.logs} | {result.rules.total()} |")
    return "\n".join([*lines, ""])
