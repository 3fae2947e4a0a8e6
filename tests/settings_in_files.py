"""Observations of settings for tests: what files of settings would say."""

from sharelens.measures.settings.observations import (
    DEAD_LETTER_TOPICS,
    END_OFFSETS,
    GROUP_CONFIGS,
    Entry,
    Observation,
)
from sharelens.measures.settings.over_time import BROKER_CONFIG, DELIVERY_COUNT_LIMIT


def group_configs(from_ms: int = 0, name: str = DELIVERY_COUNT_LIMIT, **values: int | str) -> Observation:
    """A setting (by default the delivery count limit) of some groups."""
    entries = tuple(Entry(group, name, str(value), "dynamic_group_config") for group, value in sorted(values.items()))
    return Observation(kind=GROUP_CONFIGS, from_ms=from_ms, entries=entries)


def broker_config(limit: int | None = None, from_ms: int = 0) -> Observation:
    """The brokers' delivery count limit; None: the file names none."""
    entries = () if limit is None else (Entry("", f"group.{DELIVERY_COUNT_LIMIT}", str(limit)),)
    return Observation(kind=BROKER_CONFIG, from_ms=from_ms, entries=entries)


def end_offsets(from_ms: int = 0, **ends: int) -> Observation:
    """The ends of partition 0 of some topics."""
    entries = tuple(Entry(topic, "0", str(offset)) for topic, offset in sorted(ends.items()))
    return Observation(kind=END_OFFSETS, from_ms=from_ms, entries=entries)


def dead_letter_topics(*topics: str, from_ms: int = 0) -> Observation:
    """Names of dead-letter topics."""
    return Observation(
        kind=DEAD_LETTER_TOPICS, from_ms=from_ms, entries=tuple(Entry(topic, "") for topic in sorted(topics))
    )
