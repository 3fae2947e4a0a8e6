"""Observations of group settings by the metadata log: one for each moment at which a setting of a group changed.

Beside a group's own settings the log has those of brokers that can change without a restart; what brokers read from
their files is not in the log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sharelens.measures.settings.observations import METADATA_CONFIGS, Entry, Observation
from sharelens.measures.settings.over_time import ALL_GROUPS, DYNAMIC_BROKER_NAMES, KEPT_NAMES
from state_model.metadata.changes import CONFIG
from state_model.metadata.history import Validity

DYNAMIC_GROUP_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG = "dynamic_group_config", "dynamic_default_broker_config"
"""The origins of a value, as kafka-configs names them."""
CLUSTER_DEFAULT = ""
"""The broker whose settings count for all brokers without their own."""
GROUP, BROKER = "group", "broker"
"""Types of resources."""
BEGINNING_MS = 0
MAX_ENTRIES = 1_000_000
"""About a thousand groups whose settings changed at a thousand moments: some hundred megabytes."""


def group_observations(validities: Iterable[Validity], first_ms: int | None) -> tuple[Observation, ...]:
    """The settings of groups that measures read, from each change on; before the first change no group has any.

    `first_ms`: the time of the snapshot with which the log begins (None: it begins with its first record). The values
    in that snapshot are older, so they count from the beginning. None where there are more than MAX_ENTRIES: each
    observation has the settings of all groups.
    """
    changes: list[tuple[int, int, int, Validity]] = []
    for row in validities:
        if _is_read(row):
            is_first = row.began_earlier and row.begin.timestamp_ms == first_ms
            begin_ms = BEGINNING_MS if is_first else row.begin.timestamp_ms
            changes.append((begin_ms, row.begin.offset, 1, row))
            if row.end is not None:
                changes.append((max(row.end.timestamp_ms, begin_ms), row.end.offset, 0, row))
    current: dict[tuple[str, str, str], str] = {}
    by_moment: dict[int, tuple[Entry, ...]] = {BEGINNING_MS: ()}
    groups = {change[3].key[1:3] for change in changes}
    if len(groups) * len({change[0] for change in changes}) > MAX_ENTRIES:
        return ()
    changes.sort(key=lambda change: change[:3])
    for number, (moment, _, is_begin, row) in enumerate(changes):
        key = str(row.key[1]), str(row.key[2]), str(row.key[3])
        if is_begin:
            current[key] = str(row.content["value"])
        else:
            current.pop(key, None)
        if number + 1 == len(changes) or changes[number + 1][0] != moment:
            by_moment[moment] = tuple(sorted(_entries(current)))
    return tuple(
        Observation(kind=METADATA_CONFIGS, from_ms=moment, entries=entries) for moment, entries in by_moment.items()
    )


def _is_read(row: Validity) -> bool:
    if row.key[0] != CONFIG:
        return False
    return row.key[3] in (KEPT_NAMES if row.key[1] == GROUP else DYNAMIC_BROKER_NAMES if row.key[1] == BROKER else ())


def _entries(values: Mapping[tuple[str, str, str], str]) -> Iterator[Entry]:
    """The settings of groups, and those of all brokers; unknown where a broker has another one of its own.

    `values`: by resource type, resource and name. The logs don't say which broker coordinates a group.
    """
    of_brokers: dict[str, dict[str, str]] = {}
    for (kind, resource, name), value in values.items():
        if kind == GROUP:
            yield Entry(resource, name, value, DYNAMIC_GROUP_CONFIG)
        else:
            of_brokers.setdefault(name, {})[resource] = value
    for name, value_by_resource in of_brokers.items():
        if set(value_by_resource.values()) == {value_by_resource.get(CLUSTER_DEFAULT)}:
            yield Entry(ALL_GROUPS, name, value_by_resource[CLUSTER_DEFAULT], DYNAMIC_DEFAULT_BROKER_CONFIG)
        else:
            yield Entry(ALL_GROUPS, name)


def doubtful_groups(validities: Iterable[Validity]) -> frozenset[str]:
    """The groups with settings that measures read and that a gap of the log could have changed."""
    return frozenset(
        str(row.key[2]) for row in validities if row.key[1] == GROUP and _is_read(row) and not row.is_certain
    )


def with_moments_of(observed: Sequence[Observation], known_observations: Iterable[Observation]) -> list[Observation]:
    """The observed settings at their own moments and at those of known observations, in order.

    A moment that is known and no longer observed had a record that never was committed.
    """
    moments = sorted({observation.from_ms for observation in (*observed, *known_observations)})
    result, at = [], 0
    for moment in moments:
        while at + 1 < len(observed) and observed[at + 1].from_ms <= moment:
            at += 1
        result.append(replace(observed[at], from_ms=moment))
    return result
