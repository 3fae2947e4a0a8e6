"""Which share partitions of a group have state: their life cycle in record 15 (consumer-offsets-records §6).

A partition is initializing, then initialized, and with its whole topic deleting. Each function returns the record of
a change of the group.
"""

from collections.abc import Collection, Mapping

from sharelens.broker.coordinators.share_group import NamedPartitions, ShareGroup, StatePartitions
from sharelens.broker.coordinators.share_group_records import state_partitions
from sharelens.broker.ports import Topics
from state_model.group_records import GroupRecord

UNKNOWN_NAME = "<UNKNOWN>"
"""The name of a deleted topic."""


def missing(group: ShareGroup, topics: Topics, *, now_ms: int, retry_interval_ms: int) -> StatePartitions:
    """Partitions of subscribed topics that are not initialized, nor initializing since less than the interval."""
    is_fresh = now_ms - group.initializing_since_ms < retry_interval_ms
    partitions = {}
    for name in sorted(group.subscribed_topic_names):
        topic = topics.by_name(name)
        if topic is None:
            continue
        covered_partitions = _partitions(group.initialized, topic.topic_id)
        if is_fresh:
            covered_partitions |= _partitions(group.initializing, topic.topic_id)
        lacking = frozenset(range(topic.partitions)) - covered_partitions
        if lacking:
            partitions[topic.topic_id] = NamedPartitions(name=name, partitions=lacking)
    return partitions


def pending(group: ShareGroup) -> StatePartitions:
    """Partitions that are initializing and were never initialized."""
    return _less(group.initializing, group.initialized)


def begin_initializing(group: ShareGroup, partitions: StatePartitions) -> GroupRecord:
    """Partitions become initializing; those that are initialized stay so."""
    initializing = _with(group.initializing, partitions)
    return _changed(group, initializing=initializing)


def end_initializing(group: ShareGroup, partitions: StatePartitions) -> GroupRecord:
    """Partitions become initialized."""
    return _changed(
        group,
        initializing=_less(group.initializing, partitions),
        initialized=_with(group.initialized, partitions),
    )


def give_up_initializing(group: ShareGroup, partitions: StatePartitions) -> GroupRecord | None:
    """Partitions whose initialization failed are removed; None when they are no longer initializing."""
    initializing = _less(group.initializing, partitions)
    return None if initializing == group.initializing else _changed(group, initializing=initializing)


def begin_deleting(group: ShareGroup, topic_ids: Collection[str]) -> GroupRecord:
    """Whole topics become deleting."""
    names = {
        topic_id: named.name
        for listed in (group.initializing, group.initialized)
        for topic_id, named in listed.items()
        if topic_id in topic_ids
    }
    return _changed(
        group,
        initializing=_less_topics(group.initializing, topic_ids),
        initialized=_less_topics(group.initialized, topic_ids),
        deleting={**group.deleting, **names},
    )


def end_deleting(group: ShareGroup, topic_ids: Collection[str]) -> GroupRecord:
    """Topics are removed from the deleting ones."""
    remaining_topics = {topic_id: name for topic_id, name in group.deleting.items() if topic_id not in topic_ids}
    return _changed(group, deleting=remaining_topics)


def forget_topics(group: ShareGroup, topic_ids: Collection[str]) -> GroupRecord | None:
    """Deleted topics are removed from all lists; None when they are in none."""
    if not any(listed.keys() & set(topic_ids) for listed in (group.initializing, group.initialized, group.deleting)):
        return None
    return _changed(
        group,
        initializing=_less_topics(group.initializing, topic_ids),
        initialized=_less_topics(group.initialized, topic_ids),
        deleting={topic_id: name for topic_id, name in group.deleting.items() if topic_id not in topic_ids},
    )


def _changed(
    group: ShareGroup,
    *,
    initializing: StatePartitions | None = None,
    initialized: StatePartitions | None = None,
    deleting: Mapping[str, str] | None = None,
) -> GroupRecord:
    return state_partitions(
        group.group_id,
        initializing=group.initializing if initializing is None else initializing,
        initialized=group.initialized if initialized is None else initialized,
        deleting=group.deleting if deleting is None else deleting,
    )


def _partitions(listed: StatePartitions, topic_id: str) -> frozenset[int]:
    named = listed.get(topic_id)
    return frozenset() if named is None else named.partitions


def _with(listed: StatePartitions, additions: StatePartitions) -> StatePartitions:
    joined = dict(listed)
    for topic_id, named in additions.items():
        partitions = _partitions(listed, topic_id)
        joined[topic_id] = NamedPartitions(name=named.name, partitions=partitions | named.partitions)
    return joined


def _less(listed: StatePartitions, fewer: StatePartitions) -> StatePartitions:
    remaining_by_topic = {}
    for topic_id, named in listed.items():
        remaining_partitions = named.partitions - _partitions(fewer, topic_id)
        if remaining_partitions:
            remaining_by_topic[topic_id] = NamedPartitions(name=named.name, partitions=remaining_partitions)
    return remaining_by_topic


def _less_topics(listed: StatePartitions, topic_ids: Collection[str]) -> StatePartitions:
    return {topic_id: named for topic_id, named in listed.items() if topic_id not in topic_ids}
