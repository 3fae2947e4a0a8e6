"""The effective configuration: values of the start, dynamic changes and defaults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import product

from sharelens.broker.config.broker_keys import BROKER, broker_definition
from sharelens.broker.config.definitions import Definition, Value
from sharelens.broker.config.group_keys import GROUP_KINDS
from sharelens.broker.config.known_keys import is_ignored
from sharelens.broker.config.security_keys import listener_key
from sharelens.broker.config.topic_keys import TOPIC
from sharelens.broker.errors import ConfigError, OptionError


class Source(IntEnum):
    """The source of a value, with its number in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An effective value: the name under which it was set, its text (null when there is none) and its source."""

    name: str
    text: str | None
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenKeys:
    """Keys without effect: those that Kafka has, and unknown ones."""

    ignored: tuple[str, ...]
    unknown: tuple[str, ...]


class Settings:
    """The broker's configuration under Kafka's names.

    `static` is the text of each key that was set at start. Raises ConfigError for a value that can't be used.
    `revision` is another number after each change.
    """

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self._static = {key: text for key, text in (static or {}).items() if broker_definition(key)}
        self._dynamic: dict[str, tuple[str, Source]] = {}
        self._values: dict[str, Value] = {}
        self.revision = 0
        without_effect = [key for key in static or {} if key not in self._static]
        self.given_keys = GivenKeys(
            ignored=tuple(sorted(key for key in without_effect if is_ignored(key))),
            unknown=tuple(sorted(key for key in without_effect if not is_ignored(key))),
        )
        self._refresh()

    def value(self, name: str) -> Value:
        """The effective value of a key."""
        return self._values[name]

    def integer(self, name: str) -> int:
        """The value of an integer key that always has one."""
        value = self._values[name]
        assert isinstance(value, int), name
        return value

    def flag(self, name: str) -> bool:
        """The value of a boolean key."""
        value = self._values[name]
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str:
        """The value of a text key; empty when there is none."""
        value = self._values[name]
        return "" if value is None else str(value)

    def names(self, name: str) -> tuple[str, ...]:
        """The value of a list key."""
        value = self._values[name]
        assert isinstance(value, tuple), name
        return value

    def listener_value(self, listener: str, name: str, mechanism: str | None = None) -> Value:
        """The value of a security key for a listener: its own for the mechanism, else its own, else the broker's."""
        keys = [listener_key(listener, name), name]
        if mechanism is not None:
            keys.insert(0, listener_key(listener, name, mechanism))
        return next(self._values[key] for key in keys if key in self._values)

    def listener_text(self, listener: str, name: str, mechanism: str | None = None) -> str:
        """The value of a text key for a listener; empty when there is none."""
        value = self.listener_value(listener, name, mechanism)
        return "" if value is None else str(value)

    def listener_integer(self, listener: str, name: str, mechanism: str | None = None) -> int:
        """The value of an integer key for a listener."""
        value = self.listener_value(listener, name, mechanism)
        assert isinstance(value, int), name
        return value

    def listener_names(self, listener: str, name: str) -> tuple[str, ...]:
        """The value of a list key for a listener."""
        value = self.listener_value(listener, name)
        assert isinstance(value, tuple), name
        return value

    def listener_keys(self) -> list[str]:
        """The keys of listeners that are set, sorted; also those whose change has no effect."""
        return sorted(key for key in {*self._values, *self._dynamic} if key not in BROKER)

    def change(self, dynamic: Mapping[str, tuple[str, Source]]) -> None:
        """Replace all dynamic changes.

        Raises:
            ConfigError: a value is invalid; nothing has changed then.
        """
        before, self._dynamic = self._dynamic, dict(dynamic)
        try:
            self._refresh()
        except ConfigError:
            self._dynamic = before
            self._refresh()
            raise

    def setting(self, name: str) -> Setting:
        """The effective value with its source."""
        if name in self._dynamic:
            text, source = self._dynamic[name]
            return Setting(name=name, text=text, source=source)
        if name in self._static:
            return Setting(name=name, text=self._static[name], source=Source.STATIC_BROKER)
        definition = definition_of(name)
        return Setting(name=name, text=definition.text(definition.default), source=Source.DEFAULT)

    def chain(self, name: str) -> list[Setting]:
        """The values of a key, the one in force first, the default last."""
        chain = [self.setting(name)]
        if chain[0].source in (Source.DYNAMIC_BROKER, Source.DYNAMIC_DEFAULT_BROKER) and name in self._static:
            chain.append(Setting(name=name, text=self._static[name], source=Source.STATIC_BROKER))
        definition = definition_of(name)
        default = definition.text(definition.default)
        if chain[-1].source is not Source.DEFAULT and default is not None:
            chain.append(Setting(name=name, text=default, source=Source.DEFAULT))
        return chain

    def layers(self, definition: Definition, own_configs: Mapping[str, str], source: Source) -> list[Setting]:
        """The values of a topic's or a group's key, strongest first; `topic_configs` is its own configuration."""
        name = definition.name
        chain = [Setting(name=name, text=own_configs[name], source=source)] if name in own_configs else []
        for synonym, factor in definition.synonyms:
            for setting in self.chain(synonym):
                if setting.text is not None and setting.source is not Source.DEFAULT:
                    text = setting.text if factor == 1 else _scaled(setting.text, factor)
                    chain.append(Setting(name=synonym, text=text, source=setting.source))
        synonym = definition.synonyms[0][0] if definition.synonyms else name
        default = definition.default if definition.default is not None else BROKER[synonym].default
        return [*chain, Setting(name=synonym, text=definition.text(default), source=Source.DEFAULT)]

    def topic_config(self, topic_configs: Mapping[str, str]) -> dict[str, str]:
        """All effective configurations of a topic whose own configuration is `topic_configs`."""
        in_force = {name: self.layers(TOPIC[name], topic_configs, Source.TOPIC)[0].text for name in TOPIC}
        return {name: text for name, text in in_force.items() if text is not None}

    def _refresh(self) -> None:
        values = {name: definition.default for name, definition in BROKER.items()}
        for name, text in self._static.items():
            values[name] = definition_of(name).parse(text)
        for name, (text, _) in self._dynamic.items():
            definition = definition_of(name)
            if not definition.is_stored_only:
                values[name] = definition.parse(text)
        _check_bounds(values)
        self._values = values
        self.revision += 1


def definition_of(name: str) -> Definition:
    """The definition of a key that Settings have. Raises KeyError for another one."""
    definition = broker_definition(name)
    if definition is None:
        raise KeyError(name)
    return definition


def _scaled(text: str, factor: int) -> str:
    """A number in a finer unit; negative numbers mean without limit in every unit."""
    number = int(text)
    return str(number * factor if number >= 0 else -1)


def _check_bounds(values: Mapping[str, Value]) -> None:
    """The checks between keys that Kafka makes at start (ShareGroupConfig, GroupCoordinatorConfig)."""
    _ascending(values, "group.streams.num.standby.replicas", "group.streams.max.standby.replicas")
    for kind in GROUP_KINDS:
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        _ascending(values, heartbeat, session, strictly=True)
    for kind, name in (
        ("share", "delivery.count.limit"),
        ("share", "record.lock.duration.ms"),
        ("share", "partition.max.record.locks"),
        *product(GROUP_KINDS, ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")),
    ):
        low, value, high = (f"group.{kind}.{part}{name}" for part in ("min.", "", "max."))
        _ascending(values, low, value)
        _ascending(values, value, high)
    _ascending(values, "group.min.session.timeout.ms", "group.max.session.timeout.ms")


def _ascending(values: Mapping[str, Value], low: str, high: str, *, strictly: bool = False) -> None:
    smaller, larger = values[low], values[high]
    assert isinstance(smaller, int)
    assert isinstance(larger, int)
    if smaller > larger or (strictly and smaller == larger):
        raise ConfigError(f"{low}={smaller} must be {'below' if strictly else 'at most'} {high}={larger}")


def parse_all(definitions: Mapping[str, Definition], configs: Mapping[str, str]) -> dict[str, Value]:
    """The values of a topic's or a group's configurations.

    Raises:
        ConfigError: an unknown key, or a value that can't be used.
    """
    for name in configs:
        if name not in definitions:
            raise ConfigError(f"unknown configuration {name}")
    return {name: definitions[name].parse(text) for name, text in configs.items()}


def parse_overrides(pairs: Iterable[str]) -> dict[str, str]:
    """Keys and values of texts `key=value`.

    Raises:
        OptionError: a text has no `=`.
    """
    overrides = {}
    for pair in pairs:
        key, parted, text = pair.partition("=")
        if not parted or not key.strip():
            raise OptionError(f"--set {pair!r} is no key=value")
        overrides[key.strip()] = text
    return overrides
