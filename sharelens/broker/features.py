"""The features of the cluster (KIP-584) and the Kafka version whose rules the coordinators follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sharelens.broker.errors import ConfigError, OptionError

KafkaVersion = Literal["4.3", "4.4"]
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
GROUP_VERSION = "group.version"
SWITCHES = (GROUP_VERSION, STREAMS_VERSION)
"""Features with levels 0 (off) and SWITCHED_ON, the default."""
SWITCHED_ON = 1
DEFAULT_SHARE_VERSION = 1
DEAD_LETTERS_SHARE_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The inclusive range of levels of a feature."""

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Supported features and their levels. transaction.version is absent, so that clients keep to its level 0."""

    kafka_version: KafkaVersion
    levels: Mapping[str, int]
    epoch: int = 0

    @property
    def supported(self) -> Mapping[str, Levels]:
        """Each feature that can be set, with its levels."""
        return {
            SHARE_VERSION: Levels(lowest=0, highest=_highest(self.kafka_version)),
            **{name: Levels(lowest=0, highest=SWITCHED_ON) for name in SWITCHES},
        }

    def finalized(self) -> Mapping[str, int]:
        """The levels in force."""
        return self.levels

    @property
    def share_version(self) -> int:
        """0: share groups are off; 2: dead letters too."""
        return self.levels[SHARE_VERSION]

    @property
    def group_version(self) -> int:
        """0: consumer groups whose members have epochs are off."""
        return self.levels[GROUP_VERSION]

    @property
    def streams_version(self) -> int:
        """0: streams groups are off."""
        return self.levels[STREAMS_VERSION]


def choose(requested: Mapping[str, int], stored: Mapping[str, int], kafka_version: KafkaVersion | None) -> Features:
    """The features of a start: the requested levels, else the levels stored in the log directory.

    Level 2 of share.version came with Kafka 4.4 and selects its rules unless another version is requested.

    Raises:
        ConfigError: an unknown feature, or a level that the version of Kafka does not have.
    """
    feature_names = (SHARE_VERSION, *SWITCHES)
    for name in requested:
        if name not in feature_names:
            raise ConfigError(f"feature {name} is not supported: {', '.join(feature_names)} are")
    level = requested.get(SHARE_VERSION, stored.get(SHARE_VERSION, DEFAULT_SHARE_VERSION))
    version = kafka_version or ("4.4" if level >= DEAD_LETTERS_SHARE_VERSION else "4.3")
    highest = _highest(version)
    if not 0 <= level <= highest:
        raise ConfigError(f"{SHARE_VERSION}={level}: Kafka {version} has levels from 0 to {highest}")
    levels = {SHARE_VERSION: level}
    for name in SWITCHES:
        levels[name] = requested.get(name, stored.get(name, SWITCHED_ON))
        if not 0 <= levels[name] <= SWITCHED_ON:
            raise ConfigError(f"{name}={levels[name]}: this broker has levels from 0 to {SWITCHED_ON}")
    return Features(kafka_version=version, levels=levels)


def parse(texts: tuple[str, ...]) -> dict[str, int]:
    """Levels of texts `feature=level`.

    Raises:
        OptionError: a text has another form.
    """
    levels = {}
    for text in texts:
        name, _, level = text.partition("=")
        if not level.isdecimal():
            raise OptionError(f"--feature {text!r} is no feature=level, such as {SHARE_VERSION}=2")
        levels[name] = int(level)
    return levels


def _highest(version: KafkaVersion) -> int:
    return DEAD_LETTERS_SHARE_VERSION if version == "4.4" else DEFAULT_SHARE_VERSION
