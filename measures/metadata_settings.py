"""Observations of group settings by the metadata log: one for each moment at which a setting of a group changed.

A group's own setting is all that the metadata log has of it: what brokers read from their files is not in the log.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from measures.observed_settings import METADATA_CONFIGS, Entry, Observation
from measures.settings import KEPT_NAMES
from state_model.metadata.changes import CONFIG
from state_model.metadata.history import Validity

DYNAMIC_GROUP_CONFIG = "dynamic_group_config"
"""The origin of a value, as kafka-configs names it."""
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
        if row.key[:2] == (CONFIG, "group") and row.key[3] in KEPT_NAMES:
            is_first = row.began_earlier and row.begin.timestamp_ms == first_ms
            begin_ms = BEGINNING_MS if is_first else row.begin.timestamp_ms
            changes.append((begin_ms, row.begin.offset, 1, row))
            if row.end is not None:
                changes.append((max(row.end.timestamp_ms, begin_ms), row.end.offset, 0, row))
    current: dict[tuple[str, str], Entry] = {}
    by_moment: dict[int, tuple[Entry, ...]] = {BEGINNING_MS: ()}
    groups = {change[3].key[2] for change in changes}
    if len(groups) * len({change[0] for change in changes}) > MAX_ENTRIES:
        return ()
    changes.sort(key=lambda change: change[:3])
    for number, (moment, _, is_begin, row) in enumerate(changes):
        key = str(row.key[2]), str(row.key[3])
        if is_begin:
            current[key] = Entry(*key, str(row.content["value"]), DYNAMIC_GROUP_CONFIG)
        else:
            current.pop(key, None)
        if number + 1 == len(changes) or changes[number + 1][0] != moment:
            by_moment[moment] = tuple(sorted(current.values()))
    return tuple(
        Observation(kind=METADATA_CONFIGS, from_ms=moment, entries=entries) for moment, entries in by_moment.items()
    )


def doubtful_groups(validities: Iterable[Validity]) -> frozenset[str]:
    """The groups with settings that measures read and that a gap of the log could have changed."""
    return frozenset(
        str(row.key[2])
        for row in validities
        if row.key[:2] == (CONFIG, "group") and row.key[3] in KEPT_NAMES and not row.is_certain
    )


def with_moments_of(observed: Sequence[Observation], known: Iterable[Observation]) -> list[Observation]:
    """The observed settings at their own moments and at those of known observations, in order.

    A moment that is known and no longer observed had a record that never was committed.
    """
    moments = sorted({observation.from_ms for observation in (*observed, *known)})
    result, at = [], 0
    for moment in moments:
        while at + 1 < len(observed) and observed[at + 1].from_ms <= moment:
            at += 1
        result.append(replace(observed[at], from_ms=moment))
    return result
