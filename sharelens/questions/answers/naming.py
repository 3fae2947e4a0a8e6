"""Resolves filters to share partitions; errors for unknown names."""

from collections.abc import Iterable

import pyarrow as pa

from sharelens.evidence.conditions import filter_rows
from sharelens.output import name_cell
from sharelens.output.wording import listed
from sharelens.parameters.filters import TOPIC_ID, KeyFilter
from sharelens.questions.answers.missing import HOW_NAMES
from sharelens.tables.known_groups import group_kind
from sharelens.tables.limits import TooMuchError
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records, read_share_partitions, unknown_name
from sharelens.tables.where import Keys
from state_model.group_schemas import GroupKind


def resolve(evidence: Tables, key_filter: KeyFilter) -> Keys:
    """Share partitions as ids: a topic's name stands for every id that bore it, an id for itself.

    Raises:
        SharelensError: a topic is neither a known name nor an id (UsageError, unless the evidence is a cluster); the
            message lists topics that are there.
    """
    if key_filter.keeps_all:
        return Keys()
    topics: dict[str, frozenset[int] | None] | None = None
    if key_filter.topics:
        topics = {}
        for choice in key_filter.topics:
            for topic_id in _ids(evidence, choice.text) or _unknown_topic(evidence, choice.text):
                topics[topic_id] = _union(topics.get(topic_id, frozenset()), choice.partitions)
    return Keys(groups=key_filter.groups or None, topics=topics, partitions=key_filter.partitions or None)


def _union(partitions: frozenset[int] | None, more_partitions: frozenset[int] | None) -> frozenset[int] | None:
    return None if partitions is None or more_partitions is None else partitions | more_partitions


def _ids(evidence: Tables, text: str) -> list[str]:
    if TOPIC_ID.fullmatch(text) and text in evidence.names([]):
        return [text]
    ids = list(evidence.topic_ids(text))
    return [text] if not ids and TOPIC_ID.fullmatch(text) else ids


def _unknown_topic(evidence: Tables, text: str) -> list[str]:
    topic_ids = read_share_partitions(evidence).column("topic_id").unique().to_pylist()
    known_topics = topic_labels(evidence, topic_ids)
    nameless = set(topic_ids) - evidence.names(topic_ids).keys()
    hint = f"; names of those shown by id: {HOW_NAMES}" if nameless else ""
    line = f"no topic {name_cell(text)} in {evidence.place}; topics with share state: {listed(known_topics)}{hint}"
    raise unknown_name(evidence, line, text)


def topic_labels(evidence: Tables, topic_ids: Iterable[str]) -> list[str]:
    """Names where known, else ids."""
    topic_ids = list(topic_ids)
    names = evidence.names(topic_ids)
    return sorted(names.get(topic_id, topic_id) for topic_id in topic_ids)


def ensure_known(
    evidence: Tables, key_filter: KeyFilter, keys: Keys, other_groups: frozenset[str] = frozenset()
) -> None:
    """For an empty answer: whether the names exist at all; `other_groups` exist without share state.

    Raises:
        SharelensError: no share partition ever bore the names (UsageError, unless the evidence is a cluster); the
            message lists what is there.
    """
    if key_filter.keeps_all:
        return
    share_partitions = read_share_partitions(evidence)
    groups = set(share_partitions.column("group_id").to_pylist())
    for group in sorted(key_filter.groups - groups - other_groups):
        there = f"groups there: {listed(sorted(groups))}{_about_consumers(evidence, group)}"
        raise unknown_name(evidence, f"no share group {name_cell(group)} in {evidence.place}; {there}")
    if key_filter.groups and key_filter.groups <= other_groups:
        return
    _ensure_topics(evidence, share_partitions, keys)
    if filter_rows(share_partitions, keys.expression()).num_rows == 0:
        near = filter_rows(share_partitions, Keys(groups=keys.groups).expression())
        raise unknown_name(
            evidence,
            f"no such share partition in {evidence.place}; share partitions there: {listed(labels(evidence, near))}",
        )


def _about_consumers(evidence: Tables, group: str) -> str:
    """What to ask about a consumer group of a name; empty where it is none, or its log is too large to read."""
    try:
        records = read_group_records(evidence, frozenset([group]))
    except TooMuchError:
        return ""
    if group_kind(records) is not GroupKind.CONSUMER:
        return ""
    return "; it is a consumer group: groups, describe, rebalances, timeline and overview are about it"


def _ensure_topics(evidence: Tables, share_partitions: pa.Table, keys: Keys) -> None:
    if keys.topics is None:
        return
    known_topic_ids = set(share_partitions.column("topic_id").to_pylist())
    if not known_topic_ids & set(keys.topics):
        named = listed(topic_labels(evidence, keys.topics))
        raise unknown_name(
            evidence,
            f"no share state for topic {named} in {evidence.place}; "
            f"topics with share state: {listed(topic_labels(evidence, known_topic_ids))}",
        )


def labels(evidence: Tables, share_partitions: pa.Table) -> list[str]:
    """`topic:partition` for each topic partition of the share partitions, sorted."""
    names = evidence.names(share_partitions.column("topic_id").unique().to_pylist())
    pairs = {
        (row["topic_id"], row["partition"]) for row in share_partitions.select(["topic_id", "partition"]).to_pylist()
    }
    return [
        f"{topic}:{number}" for topic, number in sorted((names.get(topic, topic), number) for topic, number in pairs)
    ]
