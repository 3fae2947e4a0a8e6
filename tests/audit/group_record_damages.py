"""Damages of records of share groups in `__consumer_offsets`."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from state_model import group_records
from state_model.group_records import GroupRecord
from tests.audit.cluster import (
    ASSIGNMENT,
    EPOCH,
    Cluster,
    Damage,
    chosen_group_entry,
    group_of,
    grouped,
    share_records,
    with_groups,
)


def changed(
    record_type: int,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    is_later: bool = False,
    where: Callable[[dict[str, Any]], bool] = bool,
) -> Damage:
    """The damage that changes a value, one of those `where`; `is_later`: not of the first record of its key."""

    def damage(cluster: Cluster, chance: random.Random) -> Cluster:
        seen_keys: set[bytes] = set()
        later = set()
        for entries in cluster.groups.values():
            for entry in entries:
                (later if entry.key in seen_keys else seen_keys).add(entry.key)

        def suits(record: GroupRecord) -> bool:
            key = group_records.encode_record(record)[0]
            is_of_type = record.record_type == record_type and record.value is not None
            return is_of_type and where(dict(record.value or {})) and (not is_later or key in later)

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


def has_assignment(value: dict[str, Any]) -> bool:
    """Whether a current assignment has partitions."""
    return bool(value["assigned_partitions"])


def with_one_more(value: dict[str, Any]) -> dict[str, Any]:
    """The change of a current assignment: one partition more of a topic that it has."""
    first, *rest = value["assigned_partitions"]
    partitions = (*first["partitions"], max(first["partitions"]) + 7)
    return {**value, "assigned_partitions": ({**first, "partitions": partitions}, *rest)}


def without_partitions(value: dict[str, Any]) -> dict[str, Any]:
    """The change of a current assignment: no partition."""
    return {**value, "assigned_partitions": ()}


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
    if len({record.group_id for record in share_records(cluster)}) < 4:
        raise IndexError
    number, _, chosen = chosen_group_entry(cluster, chance, lambda record: True)
    group_entries = [entry for entry in cluster.groups[number] if group_of(entry) == chosen.group_id]
    rest = [entry for entry in cluster.groups[number] if group_of(entry) != chosen.group_id]
    target = (number + 1) % len(cluster.groups)
    moved = with_groups(cluster, number, rest)
    return with_groups(moved, target, [*moved.groups[target], *group_entries])


def parted_group(cluster: Cluster, chance: random.Random) -> Cluster:
    """Some records of a group in the next partition."""
    number, _, chosen = chosen_group_entry(cluster, chance, lambda record: True)
    entries = cluster.groups[number]
    rows = [row for row, entry in enumerate(entries) if group_of(entry) == chosen.group_id]
    moved = set(chance.sample(rows, chance.randint(1, len(rows) - 1))) if len(rows) > 1 else set()
    if not moved:
        raise IndexError
    target = (number + 1) % cluster.group_count
    result = with_groups(cluster, number, [entry for row, entry in enumerate(entries) if row not in moved])
    return with_groups(result, target, [*result.groups.get(target, ()), *(entries[row] for row in sorted(moved))])


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
