"""An independent judge of the logs of a cluster: which rules between them a record or a minute violates.

A second implementation from the specification (audit-invariants §3, §4, §7, §8; consumer-offsets-records §5 and §7),
slow and obvious: it looks at every record, and at every moment at which something changed. It shares no code with the
audit. A mismatch between two logs counts when it outlasts 60 s in both.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from state_model.java import coordinator_key, magnitude, string_hash
from state_model.metadata.schemas import PARTITION, RECORD_TYPES
from tests.audit.judged_logs import (
    ASSIGNMENT,
    ASSIGNMENT_EPOCH,
    EPOCH,
    LISTS,
    MEMBER,
    TARGET,
    TOLERANCE_MS,
    Key,
    Logs,
    Violation,
    partitions_in,
)
from tests.audit.passing_judge import passing
from tests.audit.world import World, ms
from tests.logs.group_files import GroupEntry
from tests.logs.state_logs import ORDERS_ID

MOST_PARTITIONS = 10_000
FEWEST = 3
UNSEEN = -1
"""The state epoch of a life of which the end alone is there."""
HEADER_BYTES = 3
JUDGED = frozenset({
    "assigned_beyond_target", "target_not_assigned", "partition_not_in_topic", "state_epoch_below_group",
    "start_offset_passes_record",
    "state_epoch_beyond_group", "left_state_fences_group", "leader_epoch_beyond_topic", "start_offset_beyond_end",
    "batch_beyond_end", "batch_beyond_cut_end", "complete_count_beyond_end", "negative_lag",
    "initialized_without_state", "no_common_group", "state_without_group", "state_after_group_deletion",
    "unknown_topic_partition", "group_epoch_skips", "epochs_out_of_order", "assigned_without_state",
    "assigned_unevenly", "member_state", "member_tombstones_out_of_order",
})  # fmt: skip
"""The rules between logs that it judges."""
NAMES = ("initialized_topics", "topic_partitions", "assigned_partitions")
"""Lists of partitions that exist."""


def judge(world: World) -> set[Violation]:
    """What the logs violate."""
    logs = Logs(world)
    violations = [*_between(logs), *_of_topics(logs)]
    for group, entries in logs.groups.items():
        violations += _of_group(group, entries)
    first: dict[tuple[str, str | None, int | None], Violation] = {}
    for violation in violations:
        first.setdefault(violation[:3], violation)
    return set(first.values())


def _only_one_partition(texts: Collection[str]) -> bool:
    """Whether 1 is the only number of partitions that puts all of these keys in partition 0.

    A number divides all hashes if it divides their greatest common divisor.
    """
    common = math.gcd(*(magnitude(string_hash(text)) for text in texts))
    fitting = [count for count in range(1, MOST_PARTITIONS + 1) if common % count == 0]
    return fitting == [1] and len(texts) >= FEWEST


def _between(logs: Logs) -> Iterator[Violation]:
    knows_groups = _only_one_partition(logs.groups)
    knows_state = _only_one_partition([coordinator_key(group, ORDERS_ID, number) for group, number in logs.state])
    if knows_groups and _are_strangers(logs):
        yield Violation("no_common_group", None)
        return
    for group in logs.groups:
        places = {place for moment_ms in [*logs.moments, logs.until_ms] for place in logs.lists_at(group, moment_ms)[0]}
        for place in places:
            key = (group, place)
            if not logs.has_turn(key) and (key in logs.state or not knows_state):
                continue
            if logs.outlasting(lambda now, key=key: key[1] in logs.lists_at(key[0], now)[0]
                    and logs.life_at(key, now) is None):  # fmt: skip
                yield Violation("initialized_without_state", *key)
    for key in logs.state:
        if logs.has_turn(key) and (key[0] in logs.groups or knows_groups):
            yield from _of_lives(logs, key)


def _are_strangers(logs: Logs) -> bool:
    """Whether each log has three groups or more for long, and none is in both."""
    live = {
        key[0] for key, log in logs.state.items()
        if logs.life_at(key, 1 << 60) is not None
        and min(time_ms for _, time_ms, row in log if row["record_type"] != "update" and _begins_last(log, row))
        < logs.groups_until_ms - TOLERANCE_MS
    }  # fmt: skip
    listing = {group for group in logs.groups if logs.lists_at(group, 1 << 60)[0]}
    return min(len(live), len(listing)) >= FEWEST and not live & logs.groups.keys()


def _begins_last(log: Sequence[tuple[int, int, Mapping[str, Any]]], row: Mapping[str, Any]) -> bool:
    """Whether a snapshot is the first with the newest state epoch of the newest life."""
    turns = [other for _, _, other in log if other["record_type"] != "update"]
    newest = turns[-1]
    begin = len(turns)
    while begin and turns[begin - 1]["record_type"] == "snapshot" and (
        turns[begin - 1]["state_epoch"] == newest["state_epoch"]):  # fmt: skip
        begin -= 1
    return row is turns[begin]


def _of_lives(logs: Logs, key: Key) -> Iterator[Violation]:
    group, number = key

    def is_unlisted(now: int) -> bool:
        _, listed, is_deleting = logs.lists_at(group, now)
        is_known = now >= logs.lists_from_ms(group) and not logs.is_deleted_at(group, now)
        return is_known and logs.life_at(key, now) is not None and number not in listed and not is_deleting

    def is_older(now: int, life: tuple[int, int]) -> bool:
        least = logs.initialized_with(group, number, now)
        return least is not None and logs.life_at(key, now) == life and UNSEEN < life[1] < least

    if logs.outlasting(lambda now: logs.life_at(key, now) is not None and logs.is_deleted_at(group, now)):
        yield Violation("state_after_group_deletion", *key)
    if logs.outlasting(is_unlisted):
        yield Violation("state_without_group", *key)
    lives = {life: None for now in logs.moments if (life := logs.life_at(key, now)) is not None}
    if any(logs.outlasting(lambda now, life=life: is_older(now, life)) for life in lives):
        yield Violation("state_epoch_below_group", *key)
    for life in lives if group in logs.groups else ():

        def is_beyond(now: int, life: tuple[int, int] = life) -> bool:
            epoch = logs.epoch_at(group, now)
            return logs.life_at(key, now) == life and epoch is not None and life[1] > epoch

        if logs.outlasting(lambda now: is_beyond(now) and number in logs.lists_at(group, now)[0]):
            yield Violation("state_epoch_beyond_group", *key)
            return
        if logs.outlasting(is_beyond):
            yield Violation("left_state_fences_group", *key)
            return


def _of_group(group: str, entries: Sequence[tuple[int, int, GroupEntry]]) -> Iterator[Violation]:
    """The rules on single records: `now` has the value of each key, until its tombstone or that of the group."""
    now: dict[tuple[int, str | None], Mapping[str, Any]] = {}
    for offset, _, entry in entries:
        for rule, partition in (*_of_epochs(now, entry), *_of_assignments(now, entry)):
            yield Violation(rule, group, partition, offset)
        if entry.value is not None:
            now[entry.record_type, entry.member_id] = entry.value
        elif entry.record_type == EPOCH:
            now = {}
        else:
            now.pop((entry.record_type, entry.member_id), None)


def _of_epochs(now: Mapping[tuple[int, str | None], Any], entry: GroupEntry) -> Iterator[tuple[str, int | None]]:
    value = entry.value
    if value is None:
        if _is_early(now, entry):
            yield "member_tombstones_out_of_order", None
        return
    group, assignment = now.get((EPOCH, None)), now.get((ASSIGNMENT_EPOCH, None))
    if entry.record_type == EPOCH and group is not None and value["epoch"] != group["epoch"] + 1:
        yield "group_epoch_skips", None
    if entry.record_type == ASSIGNMENT_EPOCH and group is not None and value["assignment_epoch"] > group["epoch"]:
        yield "epochs_out_of_order", None
    is_member = entry.record_type == ASSIGNMENT and assignment is not None
    if is_member and value["member_epoch"] > assignment["assignment_epoch"]:
        yield "epochs_out_of_order", None


def _of_assignments(now: Mapping[tuple[int, str | None], Any], entry: GroupEntry) -> Iterator[tuple[str, int | None]]:
    value, listing = entry.value, now.get((LISTS, None))
    if value is None:
        return
    if entry.record_type == ASSIGNMENT and value["state"] != 0:
        yield "member_state", None
    target, epochs = now.get((TARGET, entry.member_id)), now.get((ASSIGNMENT_EPOCH, None))
    is_assignment = entry.record_type == ASSIGNMENT and target is not None and epochs is not None
    if is_assignment and value["member_epoch"] == epochs["assignment_epoch"]:
        yield from _of_current(now, entry, target)
    if entry.record_type == TARGET and listing is not None:
        missing = partitions_in(value, "topic_partitions") - partitions_in(listing, "initialized_topics")
        if missing:
            yield "assigned_without_state", min(missing)
    if entry.record_type == ASSIGNMENT_EPOCH and listing is not None:
        uneven = _uneven(now, value["assignment_epoch"], sorted(partitions_in(listing, "initialized_topics")))
        if uneven is not None:
            yield "assigned_unevenly", uneven


def _of_current(
    now: Mapping[tuple[int, str | None], Any], entry: GroupEntry, target: Mapping[str, Any]
) -> Iterator[tuple[str, int]]:
    """What a current assignment has more or less than the target; the world has one topic."""
    member, listing = now.get((MEMBER, entry.member_id)), now.get((LISTS, None))
    current, planned = partitions_in(entry.value, "assigned_partitions"), partitions_in(target, "topic_partitions")
    is_subscribed = member is not None and "orders" in member["subscribed_topic_names"]
    is_listed = partitions_in(listing, "initialized_topics") | partitions_in(listing, "initializing_topics")
    if current - planned:
        yield "assigned_beyond_target", min(current - planned)
    if planned - current and is_subscribed and is_listed:
        yield "target_not_assigned", min(planned - current)


def _is_early(now: Mapping[tuple[int, str | None], Any], entry: GroupEntry) -> bool:
    """Whether a tombstone comes before those that must come before it (consumer-offsets-records §5)."""
    if entry.record_type == MEMBER:
        return (ASSIGNMENT, entry.member_id) in now or (TARGET, entry.member_id) in now
    if entry.record_type == ASSIGNMENT_EPOCH:
        return any(kind == TARGET for kind, _ in now)
    return entry.record_type == EPOCH and any(kind != EPOCH for kind, _ in now)


def _uneven(now: Mapping[tuple[int, str | None], Any], epoch: int, partitions: Sequence[int]) -> int | None:
    """The first partition with more members than ceil(members / partitions); all members subscribe to one topic."""
    members = {member for kind, member in now if kind == MEMBER}
    targets = {
        member: partitions_in(value, "topic_partitions") for (kind, member), value in now.items() if kind == TARGET
    }
    if (EPOCH, None) not in now or now[EPOCH, None]["epoch"] != epoch or not targets.keys() <= members:
        return None
    for partition in partitions:
        having = sum(partition in target for target in targets.values())
        if (having - 1) * len(partitions) >= len(members) > 0:
            return partition
    return None


def _of_topics(logs: Logs) -> Iterator[Violation]:
    """Records against the end of the user topic, its leader epochs and its partitions."""
    topic = logs.world.topic
    count, newest_ms = int(topic["count"]), ms(topic["last_s"])
    for key, log in logs.state.items():
        start = dcc = None
        for offset, time_ms, row in log:
            if row["record_type"] == "tombstone":
                start = None
                continue
            is_snapshot = row["record_type"] == "snapshot"
            if is_snapshot or start is not None:
                start = start if row["start_offset"] == -1 and not is_snapshot else row["start_offset"]
                dcc = row["delivery_complete_count"]
            if key[1] == 0 and newest_ms >= time_ms + TOLERANCE_MS:
                yield from _beyond(key, offset, row, count, row["leader_epoch"] == topic["leader_epoch"])
        is_known = key[1] == 0 and newest_ms >= log[-1][1] + TOLERANCE_MS
        if is_known and start is not None and start >= 0 and count - start - max(dcc or 0, 0) < 0:
            yield Violation("negative_lag", *key, log[-1][0])
        if key[1] == 0:
            yield from passing(key, log, topic)
    if logs.world.metadata is not None:
        yield from _of_metadata(logs, logs.world.metadata)


def _beyond(key: Key, offset: int, row: Mapping[str, Any], count: int, is_uncut: bool) -> Iterator[Violation]:
    start, dcc = row["start_offset"], row["delivery_complete_count"]
    last = max((batch["last_offset"] for batch in row["state_batches"]), default=-1)
    if start > count:
        yield Violation("start_offset_beyond_end", *key, offset)
    if last >= count:
        yield Violation("batch_beyond_end" if is_uncut else "batch_beyond_cut_end", *key, offset)
    if 0 <= start <= count < start + dcc and is_uncut:
        yield Violation("complete_count_beyond_end", *key, offset)


def _of_metadata(logs: Logs, metadata: Sequence[tuple[int, bytes]]) -> Iterator[Violation]:
    """The world's metadata log knows each partition with the leader epochs that `partition_epochs` reads."""
    until_ms = metadata[-1][0]
    for group, entries in logs.groups.items():
        for offset, _, entry in entries:
            latest_ms = entry.time_ms + TOLERANCE_MS
            there = {number for number, begin_ms, _ in partition_epochs(metadata) if begin_ms <= latest_ms}
            named = {number for name in NAMES for number in partitions_in(entry.value, name)} - there
            if named and latest_ms <= until_ms:
                yield Violation("partition_not_in_topic", group, min(named), offset)
    for key, log in logs.state.items():
        epochs = [(time_ms, epoch) for number, time_ms, epoch in partition_epochs(metadata) if number == key[1]]
        turned_ms = [time_ms for _, time_ms, row in log if row["record_type"] != "update"]
        for offset, time_ms, row in log:
            known_epochs = [epoch for begin_ms, epoch in epochs if begin_ms <= time_ms + TOLERANCE_MS]
            if row["record_type"] == "tombstone" or time_ms + TOLERANCE_MS > until_ms:
                continue
            if known_epochs and row["leader_epoch"] > max(known_epochs):
                yield Violation("leader_epoch_beyond_topic", *key, offset)
        for time_ms in turned_ms:
            known_epochs = [epoch for begin_ms, epoch in epochs if begin_ms <= time_ms + TOLERANCE_MS]
            if not known_epochs and time_ms + TOLERANCE_MS <= until_ms:
                yield Violation("unknown_topic_partition", *key)


def partition_epochs(metadata: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, int, int]]:
    """(partition, time, leader epoch) of the partitions of the user topic."""
    for time_ms, value in metadata:
        if value[1] == PARTITION:
            tree, _ = RECORD_TYPES[PARTITION].versions[0].read(value, HEADER_BYTES)
            if tree["topic_id"] == ORDERS_ID:
                yield tree["partition_id"], time_ms, tree["leader_epoch"]
