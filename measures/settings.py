"""The known settings of share groups: value and origin. A default needs the file that could override it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

BROKER_CONFIG, KAFKA_DEFAULT = "broker_config", "kafka_default"
DELIVERY_COUNT_LIMIT = "share.delivery.count.limit"
MAX_RECORD_LOCKS = "share.partition.max.record.locks"
ISOLATION_LEVEL = "share.isolation.level"
DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
READ_COMMITTED = "read_committed"
LOWEST_DELIVERY_COUNT_LIMIT = 2
"""No broker takes a lower limit (GroupCoordinatorConfig), so one delivery exceeds none."""

DEFAULTS: Mapping[str, str] = {
    DELIVERY_COUNT_LIMIT: "5",
    MAX_RECORD_LOCKS: "2000",
    ISOLATION_LEVEL: "read_uncommitted",
}
"""Kafka's defaults (GroupCoordinatorConfig, GroupConfig)."""
OF_THE_GROUP_ALONE = frozenset({ISOLATION_LEVEL, DEAD_LETTER_TOPIC})
"""Settings that a broker's file can't change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value with its origin; both null when the value is unknown."""

    value: str | None = None
    origin: str | None = None

    @property
    def number(self) -> int | None:
        """The value as a number; null when it is unknown or none."""
        return int(self.value) if self.value is not None and self.value.isascii() and self.value.isdigit() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The settings from configuration files; None: the run got no such file.

    `groups`: for each group its settings by name. `broker`: the broker's own by name. A group's setting counts before
    the broker's (`group.` and the name). A setting in neither has Kafka's default, if the run got the file that could
    set it.
    """

    groups: Mapping[str, Mapping[str, Setting]] | None = None
    broker: Mapping[str, str] | None = field(default=None)

    def of(self, group_id: str, name: str) -> Setting:
        """One setting of a group."""
        own = (self.groups or {}).get(group_id, {}).get(name)
        if own is not None:
            return own
        if name in OF_THE_GROUP_ALONE:
            is_known = self.groups is not None
        else:
            is_known = self.broker is not None
            written = (self.broker or {}).get(f"group.{name}")
            if written is not None:
                return Setting(value=written, origin=BROKER_CONFIG)
        return Setting(value=DEFAULTS.get(name), origin=KAFKA_DEFAULT) if is_known else Setting()
