"""The features of the cluster (KIP-584) and the Kafka version whose rules the coordinators follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sharelens.broker.errors import ConfigError, OptionError

KafkaVersion = Literal["4.3", "4.4"]
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
DEFAULT_STREAMS_VERSION = 1
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
            STREAMS_VERSION: Levels(lowest=0, highest=DEFAULT_STREAMS_VERSION),
        }

    def finalized(self) -> Mapping[str, int]:
        """The levels in force."""
        return self.levels

    @property
    def share_version(self) -> int:
        """0: share groups are off; 2: dead letters too."""
        return self.levels[SHARE_VERSION]

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
    for name in requested:
        if name not in (SHARE_VERSION, STREAMS_VERSION):
            raise ConfigError(f"feature {name} is not supported: {SHARE_VERSION} and {STREAMS_VERSION} are")
    level = requested.get(SHARE_VERSION, stored.get(SHARE_VERSION, DEFAULT_SHARE_VERSION))
    version = kafka_version or ("4.4" if level >= DEAD_LETTERS_SHARE_VERSION else "4.3")
    highest = _highest(version)
    if not 0 <= level <= highest:
        raise ConfigError(f"{SHARE_VERSION}={level}: Kafka {version} has levels from 0 to {highest}")
    streams = requested.get(STREAMS_VERSION, stored.get(STREAMS_VERSION, DEFAULT_STREAMS_VERSION))
    if not 0 <= streams <= DEFAULT_STREAMS_VERSION:
        raise ConfigError(f"{STREAMS_VERSION}={streams}: this broker has levels from 0 to {DEFAULT_STREAMS_VERSION}")
    return Features(kafka_version=version, levels={SHARE_VERSION: level, STREAMS_VERSION: streams})


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
