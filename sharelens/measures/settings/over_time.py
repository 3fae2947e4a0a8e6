"""The known settings of share groups over time: value and origin. A default needs the file that could override it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from state_model.audit.model_groups.bounds import (
    ASSIGNMENT_INTERVAL,
    HEARTBEAT_INTERVAL,
    INITIAL_DELAY,
    MAX_STANDBY_REPLICAS,
)

BROKER_CONFIG, KAFKA_DEFAULT = "broker_config", "kafka_default"
DELIVERY_COUNT_LIMIT = "share.delivery.count.limit"
MAX_RECORD_LOCKS = "share.partition.max.record.locks"
LOCK_DURATION = "share.record.lock.duration.ms"
ISOLATION_LEVEL = "share.isolation.level"
DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
AUTO_OFFSET_RESET = "share.auto.offset.reset"
READ_COMMITTED, EARLIEST = "read_committed", "earliest"
LOWEST_DELIVERY_COUNT_LIMIT = 2
"""No broker takes a lower limit (GroupCoordinatorConfig), so one delivery exceeds none."""

DEFAULTS: Mapping[str, str] = {
    DELIVERY_COUNT_LIMIT: "5",
    MAX_RECORD_LOCKS: "2000",
    LOCK_DURATION: "30000",
    ISOLATION_LEVEL: "read_uncommitted",
    AUTO_OFFSET_RESET: "latest",
    **{f"{kind}.{ASSIGNMENT_INTERVAL}": "1000" for kind in ("streams", "consumer")},
    **{f"{kind}.{HEARTBEAT_INTERVAL}": "5000" for kind in ("streams", "consumer")},
    f"streams.{INITIAL_DELAY}": "3000",
    MAX_STANDBY_REPLICAS: "2",
}
"""Kafka's defaults (GroupCoordinatorConfig, GroupConfig)."""
OF_THE_GROUP_ALONE = frozenset({ISOLATION_LEVEL, DEAD_LETTER_TOPIC, AUTO_OFFSET_RESET})
"""Settings that a broker's file can't change."""
GROUP_NAMES = (
    *(DELIVERY_COUNT_LIMIT, ISOLATION_LEVEL, MAX_RECORD_LOCKS, LOCK_DURATION, DEAD_LETTER_TOPIC),
    AUTO_OFFSET_RESET,
)
"""The settings of share groups that measures read."""
MODEL_NAMES = (
    *(f"{kind}.{name}" for kind in ("streams", "consumer") for name in (ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL)),
    f"streams.{INITIAL_DELAY}",
)
"""The settings of streams and consumer groups that the audit reads."""
DYNAMIC_BROKER_NAMES = tuple(f"group.{kind}.{ASSIGNMENT_INTERVAL}" for kind in ("streams", "consumer"))
"""The settings of brokers among them that can change without a restart; brokers refuse such a change of the others."""
ALL_GROUPS = ""
"""Stands for a group with the settings that count for all groups before those of the brokers' files."""
KEPT_NAMES = (*GROUP_NAMES, *MODEL_NAMES)
"""The settings of groups that are read from files and logs; no other is kept."""
STATE_PARTITIONS = "share.coordinator.state.topic.num.partitions"
UPDATES_PER_SNAPSHOT = "share.coordinator.snapshot.update.records.per.snapshot"
COLD_SNAPSHOT_INTERVAL = "share.coordinator.cold.partition.snapshot.interval.ms"
COORDINATOR_DEFAULTS: Mapping[str, int] = {UPDATES_PER_SNAPSHOT: 500, COLD_SNAPSHOT_INTERVAL: 300_000}
"""Kafka's defaults (ShareCoordinatorConfig)."""
BROKER_NAMES = (
    *(f"group.{name}" for name in (*KEPT_NAMES, MAX_STANDBY_REPLICAS) if name not in OF_THE_GROUP_ALONE),
    *COORDINATOR_DEFAULTS,
)
"""The settings of brokers that measures and the audit read; no other is kept."""
SHARE_PARTITION_NAMES = (DELIVERY_COUNT_LIMIT, ISOLATION_LEVEL, MAX_RECORD_LOCKS)
"""The settings on which measures of single share partitions depend."""
MAX_NUMBER = (1 << 31) - 1
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value with its origin; both null when the value is unknown."""

    value: str | None = None
    origin: str | None = None

    @property
    def number(self) -> int | None:
        """The value as a number of 31 bits, as Kafka takes; null when it is unknown or none."""
        text = self.value or ""
        is_number = text.isascii() and text.isdigit() and len(text.lstrip("0")) <= len(str(MAX_NUMBER))
        return int(text) if is_number and int(text) <= MAX_NUMBER else None


Content = TypeVar("Content")
Groups = Mapping[str, Mapping[str, Setting]]
"""Settings by group and name."""
Broker = Mapping[str, str]
"""Settings of the brokers by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The settings from configuration files; None: there is no such file.

    `groups`: for each group its settings by name. `broker`: the broker's own by name. A group's setting counts before
    the broker's (`group.` and the name); of the latter, one of ALL_GROUPS counts before that of `broker`. A setting in
    none of them has Kafka's default, if there is the file that could set it. `before`: the settings that were in force
    until `from_ms`; None: these count from the beginning.
    """

    groups: Groups | None = None
    broker: Broker | None = field(default=None)
    from_ms: int = 0
    before: "GroupSettings | None" = None

    def of(self, group_id: str, name: str, at_ms: int | None = None) -> Setting:
        """A setting of a group, as it was in force at a time; None: the newest."""
        return self.in_force(at_ms)._of(group_id, name)

    def in_force(self, at_ms: int | None) -> "GroupSettings":
        """The settings in force at a time; None: the newest."""
        current = self
        while at_ms is not None and current.before is not None and at_ms < current.from_ms:
            current = current.before
        return current

    def periods(self) -> "list[GroupSettings]":
        """The settings of each period, the first one first."""
        result = [self]
        while result[-1].before is not None:
            result.append(result[-1].before)
        return result[::-1]

    def _of(self, group_id: str, name: str) -> Setting:
        group_setting = (self.groups or {}).get(group_id, {}).get(name)
        if group_setting is not None:
            return group_setting
        dynamic = (self.groups or {}).get(ALL_GROUPS, {}).get(f"group.{name}")
        if dynamic is not None:
            return dynamic
        if name in OF_THE_GROUP_ALONE:
            is_known = self.groups is not None
        else:
            is_known = self.broker is not None
            written = (self.broker or {}).get(f"group.{name}")
            if written is not None:
                return Setting(value=written, origin=BROKER_CONFIG)
        return Setting(value=DEFAULTS.get(name), origin=KAFKA_DEFAULT) if is_known else Setting()

    def timeline(self, group_id: str, names: Sequence[str]) -> list[tuple[int, tuple[Setting, ...]]]:
        """(time, settings in the order of `names`) from each change of these settings of a group on."""
        result: list[tuple[int, tuple[Setting, ...]]] = []
        for period in self.periods():
            settings = tuple(period._of(group_id, name) for name in names)
            if not result or result[-1][1] != settings:
                result.append((period.from_ms, settings))
        return result


NO_SETTINGS = GroupSettings()


def changed_groups(before: GroupSettings, now: GroupSettings, groups: Iterable[str], names: Sequence[str]) -> set[str]:
    """The groups with settings, or times of their changes, that differ."""
    if before == now:
        return set()
    return {group for group in groups if before.timeline(group, names) != now.timeline(group, names)}


def largest(settings: GroupSettings, name: str) -> Callable[[str], int | None]:
    """The largest number that a setting of a group ever had; None where it is unknown for some time."""
    periods = settings.periods()

    @cache
    def of_group(group_id: str) -> int | None:
        numbers = [period.of(group_id, name, period.from_ms).number for period in periods]
        known_numbers = [number for number in numbers if number is not None]
        return max(known_numbers) if len(known_numbers) == len(numbers) and known_numbers else None

    return of_group


def bounds_of(settings: GroupSettings, name: str, groups: Sequence[str], limits: tuple[int, int]) -> tuple[Ints, Ints]:
    """The smallest and the largest number that a setting ever had, by group; `limits` where it was unknown."""
    of_group = {}
    for group in set(groups):
        numbers = [period.of(group, name, period.from_ms).number for period in settings.periods()]
        known_numbers = [number for number in numbers if number is not None]
        of_group[group] = (min(known_numbers), max(known_numbers)) if len(known_numbers) == len(numbers) else limits
    pairs = np.array([of_group[group] for group in groups], np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def in_force_at(
    settings: GroupSettings, group_of: Ints, times_ms: Ints
) -> tuple[Ints, list[tuple[int, GroupSettings]]]:
    """For each moment of a group (a number) the place of what was in force, as (number of the group, settings)."""
    periods = settings.periods()
    begins = np.array([period.from_ms for period in periods[1:]], np.int64)
    codes = group_of * len(periods) + (np.searchsorted(begins, times_ms, "right") if len(begins) else 0)
    is_there = np.bincount(codes) > 0
    pairs = [(code // len(periods), periods[code % len(periods)]) for code in np.flatnonzero(is_there).tolist()]
    return (np.cumsum(is_there) - 1)[codes], pairs


def over_time(groups: Mapping[int, Groups], broker: Mapping[int, Broker]) -> GroupSettings:
    """The settings over time from the contents of files; the first content counts from the beginning."""
    moments = sorted({*groups, *broker})
    settings: GroupSettings | None = None
    for moment in moments:
        now = GroupSettings(groups=_at(groups, moment), broker=_at(broker, moment), from_ms=moment, before=settings)
        if settings is None:
            settings = GroupSettings(groups=now.groups, broker=now.broker)
        elif (now.groups, now.broker) != (settings.groups, settings.broker):
            settings = now
    return settings or NO_SETTINGS


def _at(files: Mapping[int, Content], moment: int) -> Content | None:
    """The content of the newest file up to a moment; before the first file, the content of that one."""
    earlier = [time for time in files if time <= moment]
    return files[max(earlier) if earlier else min(files)] if files else None
