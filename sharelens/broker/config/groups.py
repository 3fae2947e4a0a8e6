"""The configurations of groups of all kinds: checked when changed, within the broker's bounds when used."""

from collections.abc import Callable, Mapping
from typing import Generic, Literal, NamedTuple, TypeVar

from sharelens.broker.config.broker_keys import ASSIGNOR_CLASSES
from sharelens.broker.config.durations import duration_ms
from sharelens.broker.config.group_keys import BOUNDS, BY_DURATION, GROUP, GROUP_KINDS, Bounded
from sharelens.broker.config.settings import Settings, parse_all
from sharelens.broker.errors import ConfigError
from sharelens.broker.ports import IsolationLevel, ShareGroupSettings
from state_model.consumer.assignors import ASSIGNORS
from state_model.consumer.soft_state import MigrationPolicy
from state_model.consumer.soft_state import Settings as ConsumerSettings
from state_model.streams.soft_state import Settings as StreamsSettings

T = TypeVar("T")
DEAD_LETTERS_SHARE_VERSION = 2
GROUPS_REMEMBERED = 4_096
LONGEST_REMEMBERED = 256
"""Characters of a group id; so that clients can't fill the memory with long ones."""


def check_group(settings: Settings, group_configs: Mapping[str, str]) -> None:
    """Raise ConfigError for configurations of a group that Kafka refuses."""
    values = parse_all(GROUP, group_configs)
    for name, bounds in BOUNDS.items():
        low, high = _limits(settings, bounds)
        value = values.get(name)
        if isinstance(value, int) and not low <= value <= high:
            raise ConfigError(f"{name}={value!r}: takes an integer from {low} to {high}")
    for kind in GROUP_KINDS:
        session, heartbeat = (
            _number(settings, values, f"{kind}.{name}") for name in ("session.timeout.ms", "heartbeat.interval.ms")
        )
        if session <= heartbeat:
            raise ConfigError(
                f"{kind}.session.timeout.ms={session} must be above {kind}.heartbeat.interval.ms={heartbeat}"
            )


class ConsumerGroupSettings(NamedTuple):
    """The effective configuration of a consumer group: its own value, else the broker's, within bounds."""

    session_timeout_ms: int
    regex_refresh_interval_ms: int
    machine: ConsumerSettings


def consumer_group_settings(
    settings: Settings, group_configs: Mapping[str, str], expression_error: Callable[[str], str | None]
) -> ConsumerGroupSettings:
    """The current settings of a consumer group with its own configuration.

    expression_error: why a regular expression is invalid; None: it is valid.
    """
    values = parse_all(GROUP, group_configs)
    names = [ASSIGNOR_CLASSES.get(name, name) for name in settings.names("group.consumer.assignors")]
    return ConsumerGroupSettings(
        session_timeout_ms=_number(settings, values, "consumer.session.timeout.ms"),
        regex_refresh_interval_ms=settings.integer("group.consumer.regex.refresh.interval.ms"),
        machine=ConsumerSettings(
            assignors={name: ASSIGNORS[name] for name in names},
            heartbeat_interval_ms=_number(settings, values, "consumer.heartbeat.interval.ms"),
            assignment_interval_ms=_number(settings, values, "consumer.assignment.interval.ms"),
            max_size=settings.integer("group.consumer.max.size"),
            classic_max_size=settings.integer("group.max.size"),
            migration_policy=MigrationPolicy(settings.text("group.consumer.migration.policy").lower()),
            regex_error=expression_error,
        ),
    )


class StreamsGroupSettings(NamedTuple):
    """The effective configuration of a streams group: its own value, else the broker's, within bounds."""

    session_timeout_ms: int
    machine: StreamsSettings


def streams_group_settings(settings: Settings, group_configs: Mapping[str, str]) -> StreamsGroupSettings:
    """The current settings of a streams group with its own configuration."""
    values = parse_all(GROUP, group_configs)
    return StreamsGroupSettings(
        session_timeout_ms=_number(settings, values, "streams.session.timeout.ms"),
        machine=StreamsSettings(
            heartbeat_interval_ms=_number(settings, values, "streams.heartbeat.interval.ms"),
            num_standby_replicas=_number(settings, values, "streams.num.standby.replicas"),
            initial_rebalance_delay_ms=_number(settings, values, "streams.initial.rebalance.delay.ms"),
            assignment_interval_ms=_number(settings, values, "streams.assignment.interval.ms"),
            max_size=settings.integer("group.streams.max.size"),
        ),
    )


class _Remembered(NamedTuple, Generic[T]):
    """Settings, and the configuration that they were computed from."""

    group_configs: Mapping[str, str]
    revision: int
    level: int
    settings: T


class PerGroup(Generic[T]):
    """The effective settings of each group of a kind, which every request of a member reads."""

    def __init__(
        self,
        settings: Settings,
        group_config: Callable[[str], Mapping[str, str]],
        resolve: Callable[[Mapping[str, str]], T],
        level: Callable[[], int] = lambda: 0,
    ) -> None:
        """`resolve`: the settings of a group with its own configuration, at a level of the kind's feature."""
        self._settings = settings
        self._group_config = group_config
        self._resolve = resolve
        self._level = level
        self._remembered: dict[str, _Remembered[T]] = {}

    def __call__(self, group_id: str) -> T:
        """The current settings of a group.

        They are computed once for each configuration: a group's configuration is never changed in place.
        """
        group_configs, revision, level = self._group_config(group_id), self._settings.revision, self._level()
        remembered = self._remembered.get(group_id)
        if (
            remembered is not None
            and remembered.group_configs is group_configs
            and (remembered.revision, remembered.level) == (revision, level)
        ):
            return remembered.settings
        settings = self._resolve(group_configs)
        if len(group_id) <= LONGEST_REMEMBERED:
            if len(self._remembered) >= GROUPS_REMEMBERED:
                self._remembered.clear()
            self._remembered[group_id] = _Remembered(group_configs, revision, level, settings)
        return settings


class ShareGroups(PerGroup[ShareGroupSettings]):
    """The effective settings of each share group (sharelens.broker.ports.GroupSettings)."""

    def __init__(
        self, settings: Settings, group_config: Callable[[str], Mapping[str, str]], share_version: Callable[[], int]
    ) -> None:
        super().__init__(settings, group_config, self._share_settings, share_version)

    def _share_settings(self, group_configs: Mapping[str, str]) -> ShareGroupSettings:
        settings = self._settings
        values = parse_all(GROUP, group_configs)
        isolation: IsolationLevel = (
            "read_committed" if values.get("share.isolation.level") == "read_committed" else "read_uncommitted"
        )
        return ShareGroupSettings(
            session_timeout_ms=_number(settings, values, "share.session.timeout.ms"),
            heartbeat_interval_ms=_number(settings, values, "share.heartbeat.interval.ms"),
            record_lock_duration_ms=_number(settings, values, "share.record.lock.duration.ms"),
            delivery_count_limit=_number(settings, values, "share.delivery.count.limit"),
            partition_max_record_locks=_number(settings, values, "share.partition.max.record.locks"),
            auto_offset_reset=_reset(str(values.get("share.auto.offset.reset", "latest"))),
            isolation_level=isolation,
            renew_acknowledge_enable=bool(values.get("share.renew.acknowledge.enable", True)),
            assignment_interval_ms=_number(settings, values, "share.assignment.interval.ms"),
            dead_letter_topic=self._dead_letter_topic(values),
            dead_letter_copy_record=bool(values.get("errors.deadletterqueue.copy.record.enable", False)),
        )

    def _dead_letter_topic(self, values: Mapping[str, object]) -> str | None:
        name = str(values.get("errors.deadletterqueue.topic.name", ""))
        return name if name and self._level() >= DEAD_LETTERS_SHARE_VERSION else None


def _number(settings: Settings, values: Mapping[str, object], name: str) -> int:
    """A number of a group within the broker's bounds, which may have become narrower since."""
    value = values.get(name)
    if not isinstance(value, int):
        return settings.integer(f"group.{name}")
    if name not in BOUNDS:
        return value
    low, high = _limits(settings, BOUNDS[name])
    return min(max(value, low), high)


def _limits(settings: Settings, bounds: Bounded) -> tuple[int, int]:
    low = bounds.low if isinstance(bounds.low, int) else settings.integer(bounds.low)
    return low, settings.integer(bounds.high)


def _reset(text: str) -> Literal["earliest", "latest"] | int:
    if text.startswith(BY_DURATION):
        return duration_ms(text.removeprefix(BY_DURATION))
    return "earliest" if text == "earliest" else "latest"
