"""Observations of settings: the content of a file and the time from which it holds; the settings from all of them.

    group_configs         10:00 orders: limit 3          12:00 orders: limit 5
    broker_config                        11:00 limit 4
    in force    ... orders: limit 3, others 4 ... | 12:00 orders: limit 5, others 4 ...

An observation holds until the next one of its kind; the first one of a kind counts for all time before, too. It is the
whole content of a file, so that a group which a later file lacks has no settings of its own from then on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sharelens.measures.settings.over_time import (
    BROKER_CONFIG,
    DEAD_LETTER_TOPIC,
    NO_SETTINGS,
    GroupSettings,
    Setting,
    over_time,
)
from sharelens.measures.topics.kept_samples import NO_KEPT_SAMPLES, KeptSamples

GROUP_CONFIGS, DEAD_LETTER_TOPICS = "group_configs", "dead_letter_topics"
END_OFFSETS, LOG_STARTS = "end_offsets", "log_starts"
METADATA_CONFIGS = "metadata_configs"
"""The settings of groups by the metadata log; they count where no observation of GROUP_CONFIGS does."""
SAMPLED_BATCHES = "sampled_batches"
"""What single batches of a running cluster say of records that wait (sharelens.measures.topics.kept_samples)."""
KINDS = (GROUP_CONFIGS, METADATA_CONFIGS, BROKER_CONFIG, DEAD_LETTER_TOPICS, END_OFFSETS, LOG_STARTS, SAMPLED_BATCHES)
OF_NOW = (END_OFFSETS, LOG_STARTS, SAMPLED_BATCHES)
"""The kinds of which the newest observation alone counts."""
INTERNAL = "__"


class Entry(NamedTuple):
    """One line of an observation: a setting of a group or the brokers (entity ""), end or start of a topic partition.

    Of an end or log start offset the entity is the topic, the name the partition; of a dead-letter topic the name is
    "". Of sampled batches as in sharelens.measures.topics.kept_samples.Line.
    """

    entity: str
    name: str
    value: str | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The content of a file of one of KINDS, and the time from which it holds; entries are sorted."""

    kind: str
    from_ms: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of groups, the topics of their dead letters, end and start offsets by (topic name, partition)."""

    groups: GroupSettings = NO_SETTINGS
    dead_letter_topics: frozenset[str] = frozenset()
    end_offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    log_starts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    samples: KeptSamples = NO_KEPT_SAMPLES
    by_metadata: bool = False
    """Whether the settings of groups are those of the metadata log."""


UNSET = Settings()


def settings_of(observations: Iterable[Observation]) -> Settings:
    """The settings from all observations; of those of one kind and time the last one counts."""
    by_kind: dict[str, dict[int, tuple[Entry, ...]]] = {kind: {} for kind in KINDS}
    for observation in observations:
        by_kind[observation.kind][observation.from_ms] = observation.entries
    groups = over_time(
        {moment: _groups(entries) for moment, entries in (by_kind[GROUP_CONFIGS] or by_kind[METADATA_CONFIGS]).items()},
        {moment: _broker(entries) for moment, entries in by_kind[BROKER_CONFIG].items()},
    )
    topics = {entry.entity for entries in by_kind[DEAD_LETTER_TOPICS].values() for entry in entries}
    topics |= {
        group_settings[DEAD_LETTER_TOPIC].value or ""
        for period in groups.periods()
        for group_settings in (period.groups or {}).values()
        if DEAD_LETTER_TOPIC in group_settings
    }
    ends, starts, samples = by_kind[END_OFFSETS], by_kind[LOG_STARTS], by_kind[SAMPLED_BATCHES]
    return Settings(
        by_metadata=bool(by_kind[METADATA_CONFIGS]) and not by_kind[GROUP_CONFIGS],
        groups=groups,
        dead_letter_topics=frozenset(topic for topic in topics if topic and not topic.startswith(INTERNAL)),
        end_offsets=_ends(ends[max(ends)]) if ends else {},
        log_starts=_ends(starts[max(starts)]) if starts else {},
        samples=KeptSamples.of_lines(samples[max(samples)]) if samples else NO_KEPT_SAMPLES,
    )


def overlaid(stored: Iterable[Observation], chosen: Iterable[Observation]) -> list[Observation]:
    """The chosen observations, and the stored ones of other kinds."""
    chosen = list(chosen)
    kinds = {observation.kind for observation in chosen}
    return [*(observation for observation in stored if observation.kind not in kinds), *chosen]


def news(stored: Iterable[Observation], observed: Iterable[Observation]) -> list[Observation]:
    """Observations that differ from the stored ones of their time; of OF_NOW the newest counts."""
    by_kind: dict[str, dict[int, tuple[Entry, ...]]] = {kind: {} for kind in KINDS}
    for observation in stored:
        by_kind[observation.kind][observation.from_ms] = observation.entries
    result = []
    for observation in sorted(observed, key=lambda observation: observation.from_ms):
        entries_by_moment = by_kind[observation.kind]
        earlier = [moment for moment in entries_by_moment if moment <= observation.from_ms]
        is_old = observation.kind in OF_NOW and len(earlier) < len(entries_by_moment)
        moment = max(earlier) if earlier else min(entries_by_moment, default=None)
        if not is_old and (moment is None or entries_by_moment[moment] != observation.entries):
            result.append(observation)
            entries_by_moment[observation.from_ms] = observation.entries
    return result


def group_entries(groups: Mapping[str, Mapping[str, Setting]]) -> tuple[Entry, ...]:
    """The entries of settings of groups."""
    entries = [
        Entry(group_id, name, setting.value, setting.origin)
        for group_id, group_settings in groups.items()
        for name, setting in group_settings.items()
    ]
    return tuple(sorted(entries))


def _groups(entries: Iterable[Entry]) -> dict[str, dict[str, Setting]]:
    groups: dict[str, dict[str, Setting]] = {}
    for entry in entries:
        groups.setdefault(entry.entity, {})[entry.name] = Setting(value=entry.value, origin=entry.origin)
    return groups


def _broker(entries: Iterable[Entry]) -> dict[str, str]:
    return {entry.name: entry.value for entry in entries if entry.value is not None}


def _ends(entries: Iterable[Entry]) -> dict[tuple[str, int], int]:
    return {(entry.entity, int(entry.name)): int(entry.value or 0) for entry in entries}
