"""Damages of user topics: their ends and leader epochs."""

import random
from collections.abc import Callable
from dataclasses import replace

from state_model.share_records import Tombstone
from tests.audit.cluster import Cluster, Damage, Topic, decoded


def on_topic(change: Callable[[Topic, int], Topic]) -> Damage:
    """The damage of a user topic's partition, by the last offset that states of a share partition name."""

    def damage(cluster: Cluster, chance: random.Random) -> Cluster:
        places = sorted(place for place, topic in cluster.topics.items() if last_offset(cluster, place) > 10)
        place = chance.choice(places)
        topic = change(cluster.topics[place], last_offset(cluster, place))
        return replace(cluster, topics={**cluster.topics, place: topic})

    return damage


def last_offset(cluster: Cluster, place: tuple[str, int]) -> int:
    last = -1
    for record in (decoded(entry) for entries in cluster.state.values() for entry in entries):
        if (record.key.topic_id, record.key.partition) == place and not isinstance(record.value, Tombstone):
            last = max([last, *(batch.last_offset for batch in getattr(record.value, "state_batches", ()))])
    return last
