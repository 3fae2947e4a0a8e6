"""Damages that leave offsets without an outcome below later start offsets."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from state_model.share_records import ShareUpdate, encode_record
from tests.audit.cluster import Cluster, Damage, Entry, decoded, with_state

AVAILABLE, ACKNOWLEDGED = 0, 2


class _Write(NamedTuple):
    """An update with the only outcome of its first offset, which the next write of its share partition passes."""

    state_partition: int
    row: int
    update: ShareUpdate


def without_outcome(*, is_released: bool) -> Damage:
    """The damage that loses the outcomes of one update: it was never appended, or its offsets were released instead."""

    def damage(cluster: Cluster, chance: random.Random) -> Cluster:
        write = chance.choice(_writes(cluster))
        entries = list(cluster.state[write.state_partition])
        if is_released:
            record = decoded(entries[write.row])
            batches = tuple(batch._replace(delivery_state=AVAILABLE) for batch in write.update.state_batches)
            value = write.update._replace(state_batches=batches, delivery_complete_count=0)
            entries[write.row] = Entry(entries[write.row].time_ms, *encode_record(record._replace(value=value)))
        else:
            del entries[write.row]
        return with_state(cluster, write.state_partition, entries)

    return damage


def behind_log_start(damage: Damage) -> Damage:
    """The same where the log start offset of every user partition has passed all that states name."""

    def changed(cluster: Cluster, chance: random.Random) -> Cluster:
        topics = {place: topic._replace(log_start=max(0, topic.count - 1)) for place, topic in cluster.topics.items()}
        return replace(damage(cluster, chance), topics=topics)

    return changed


def copied_earlier(damage: Damage) -> Damage:
    """The same where the user topics were copied before the first record."""

    def changed(cluster: Cluster, chance: random.Random) -> Cluster:
        topics = {place: topic._replace(newest_ms=1_000) for place, topic in cluster.topics.items()}
        return replace(damage(cluster, chance), topics=topics)

    return changed


def _writes(cluster: Cluster) -> Sequence[_Write]:
    writes = []
    for number, entries in cluster.state.items():
        rows_by_key: dict[bytes, list[int]] = {}
        for row, entry in enumerate(entries):
            rows_by_key.setdefault(entry.key[2:], []).append(row)
        for rows in rows_by_key.values():
            values = [decoded(entries[row]).value for row in rows]
            for at, (row, value) in enumerate(zip(rows[:-1], values[:-1], strict=True)):
                if isinstance(value, ShareUpdate) and _is_needed(value, values[:at], values[at + 1]):
                    writes.append(_Write(number, row, value))
    return writes


def _is_needed(update: ShareUpdate, before: Sequence[object], behind: object) -> bool:
    """Whether the update acknowledges offsets that no record before it names, and the next write passes them.

    The start offset before it is determined: an undetermined one may become any.
    """
    start_before = getattr(before[-1], "start_offset", -1) if before else -1
    if not isinstance(behind, ShareUpdate) or not update.state_batches or start_before < 0:
        return False
    first = update.state_batches[0]
    named_before = any(
        batch.last_offset >= first.first_offset for value in before for batch in getattr(value, "state_batches", ())
    )
    return (
        first.delivery_state == ACKNOWLEDGED
        and first.first_offset >= update.start_offset
        and behind.start_offset > first.last_offset
        and not named_before
    )
