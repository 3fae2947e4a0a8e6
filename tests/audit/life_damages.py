"""Damages of what group coordinator and share coordinator know of each other: creations, deletions, lists, epochs."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from state_model import group_records
from state_model.share_records import encode_record
from tests.audit.cluster import (
    LISTS,
    Cluster,
    Damage,
    Entry,
    chosen_share_partition,
    decoded,
    epoch_record,
    group_of,
    grouped,
    with_groups,
    with_late_records,
    with_state,
)


def forgotten_state(cluster: Cluster, chance: random.Random) -> Cluster:
    """No record of a share partition in the state log."""
    number, key = chosen_share_partition(cluster, chance)
    return with_state(cluster, number, [entry for entry in cluster.state[number] if entry.key[2:] != key])


def early_tombstone(cluster: Cluster, chance: random.Random) -> Cluster:
    """A share partition deleted in the middle of its life, and its records behind that gone."""
    number, key = chosen_share_partition(cluster, chance)
    partition_rows = [row for row, entry in enumerate(cluster.state[number]) if entry.key[2:] == key]
    cut = partition_rows[len(partition_rows) // 2]
    entries = [entry for row, entry in enumerate(cluster.state[number]) if entry.key[2:] != key or row < cut]
    at = sum(1 for row, entry in enumerate(cluster.state[number]) if row < cut)
    tombstone = Entry(cluster.state[number][cut].time_ms, b"\0\0" + key, None)
    return with_late_records(with_state(cluster, number, [*entries[:at], tombstone, *entries[at:]]))


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
            place for place, entries in cluster.groups.items() if any(group_of(entry) == group for entry in entries)
        )
        entry_by_key = {entry.key: entry for entry in cluster.groups[place] if group_of(entry) == group}
        order = sorted(entry_by_key, key=lambda key: (14, 13, 12, 10, 15, 11).index(int.from_bytes(key[:2], "big")))
        last_ms = max(entry.time_ms for entry in entry_by_key.values())
        ended = [Entry(last_ms, key, None) for key in order if entry_by_key[key].value is not None]
        again = [Entry(last_ms, *epoch_record(group))] if is_created_again else []
        return with_late_records(with_groups(cluster, place, [*cluster.groups[place], *ended, *again]))

    return damage
