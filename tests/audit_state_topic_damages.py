"""Damages of whole internal topics, which many share partitions or groups show: more partitions, a lost stretch."""

import random
from dataclasses import replace

from state_model.java import partition_for
from tests.audit_cluster import Cluster, Entry, decoded, with_groups, with_late_records

MORE = 2


def middle_ms(cluster: Cluster) -> int:
    """The time of the record in the middle of the state log."""
    times = sorted(entry.time_ms for entries in cluster.state.values() for entry in entries)
    return times[len(times) // 2]


def count_changed(cluster: Cluster, chance: random.Random) -> Cluster:
    """The state topic gets more partitions: later records lie where their keys hash to then."""
    until_ms, count = middle_ms(cluster), cluster.state_count + MORE
    places: dict[int, list[Entry]] = {number: [] for number in range(count)}
    for number, entries in cluster.state.items():
        for entry in entries:
            is_later = entry.time_ms > until_ms
            places[partition_for(*decoded(entry).key, count) if is_later else number].append(entry)
    logs = {number: tuple(sorted(log, key=lambda entry: entry.time_ms)) for number, log in places.items()}
    return with_late_records(replace(cluster, state=logs))


def groups_lost(cluster: Cluster, chance: random.Random) -> Cluster:
    """A partition of __consumer_offsets lacks a stretch of records and goes on behind it."""
    number = max(cluster.groups, key=lambda place: len(cluster.groups[place]))
    return with_groups(cluster, number, without_stretch(cluster.groups[number], chance))


def without_stretch(entries: tuple[Entry, ...], chance: random.Random) -> tuple[Entry, ...]:
    """The log after an unclean leader election: a third of it lost, and more behind."""
    begin = chance.randrange(len(entries) // 4, len(entries) // 2)
    return (*entries[:begin], *entries[begin + len(entries) // 3 :])
