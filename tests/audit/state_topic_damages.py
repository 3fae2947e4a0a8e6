"""Damages of a whole log, which many share partitions or groups show: more partitions, a lost stretch of records."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from state_model.java import partition_for
from tests.audit.cluster import Cluster, Entry, decoded, with_late_records

ADDED_PARTITIONS = 2
Record = TypeVar("Record")


def middle_ms(cluster: Cluster) -> int:
    """The time of the record in the middle of the state log."""
    times = sorted(entry.time_ms for entries in cluster.state.values() for entry in entries)
    return times[len(times) // 2]


def count_changed(cluster: Cluster, chance: random.Random) -> Cluster:
    """The state topic gets more partitions: later records lie where their keys hash to then."""
    until_ms, count = middle_ms(cluster), cluster.state_count + ADDED_PARTITIONS
    places: dict[int, list[Entry]] = {number: [] for number in range(count)}
    for number, entries in cluster.state.items():
        for entry in entries:
            is_later = entry.time_ms > until_ms
            places[partition_for(*decoded(entry).key, count) if is_later else number].append(entry)
    logs = {number: tuple(sorted(log, key=lambda entry: entry.time_ms)) for number, log in places.items()}
    return with_late_records(replace(cluster, state=logs))


def without_stretch(entries: Sequence[Record], chance: random.Random) -> list[Record]:
    """The log after an unclean leader election: a third of it lost, and more behind."""
    begin = chance.randrange(len(entries) // 4, len(entries) // 2)
    return [*entries[:begin], *entries[begin + len(entries) // 3 :]]
