"""Copies of logs: of another cluster, made at other times, incomplete, compacted."""

import random
from collections.abc import Sequence
from dataclasses import replace

from state_model import group_records
from state_model.java import partition_for_group
from tests.audit.cluster import Cluster, Entry, grouped, share_records, with_groups


def other_groups(cluster: Cluster, chance: random.Random) -> Cluster:
    """The group coordinator's log of a cluster with other groups."""
    if len({record.group_id for record in share_records(cluster)}) < 4:
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
        kept_entries = [entry for row, entry in enumerate(entries) if row >= end or newest[entry.key] == row]
        result = with_groups(result, number, kept_entries)
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
