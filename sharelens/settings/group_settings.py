"""Settings of share groups and brokers in files: the output of kafka-configs, and server.properties.

Only settings that measures read are taken from a file; server.properties has passwords, too.
"""

import re
from typing import Generic, NamedTuple, TypeVar

from sharelens.broker.config.broker_keys import BROKER
from sharelens.broker.config.group_keys import GROUP
from sharelens.broker.config.known_keys import is_ignored
from sharelens.kafka_formats.properties import numbered
from sharelens.measures.settings.observations import GROUP_CONFIGS
from sharelens.measures.settings.over_time import (
    BROKER_NAMES,
    DELIVERY_COUNT_LIMIT,
    KEPT_NAMES,
    MAX_RECORD_LOCKS,
    MODEL_NAMES,
    Setting,
)
from sharelens.settings.setting_names import UnknownNames
from sharelens.settings.text_files import read_text_file
from state_model.audit.model_groups.bounds import MAX_STANDBY_REPLICAS
from state_model.errors import UsageError

GROUP_CONFIGS_FROM = "the output of kafka-configs --bootstrap-server HOST:PORT --describe --entity-type groups"
BROKER_CONFIG_FROM = "the broker's server.properties"
HEAD = re.compile(r"(?:Dynamic|All) configs for group (?P<group>.*) are:")
NAME = re.compile(r"[\w.-]+", re.ASCII)
LINE = re.compile(r"\s+(?P<name>[^\s=]+)=(?P<value>.*) sensitive=(?:true|false) synonyms=\{(?P<synonyms>.*)\}")


Read = TypeVar("Read")


class FromFile(NamedTuple, Generic[Read]):
    """The settings in a file, and a warning about names that are probably misspelt; None: there is none."""

    settings: Read
    warning: str | None = None


def read_broker_config(path: str, option: str = "--broker-config") -> FromFile[dict[str, str]]:
    """Settings of BROKER_NAMES by name. The format takes any text for names, so odd names mean a file of another kind.

    Raises:
        SharelensError: the file can't be read, or is broken.
        UsageError: no broker has settings of such names, or a number is none.
    """
    settings: dict[str, str] = {}
    unknown = UnknownNames(BROKER)
    for number, name, value in numbered(read_text_file(path, option, BROKER_CONFIG_FROM), path):
        if NAME.fullmatch(name) is None:
            raise UsageError(
                f"{option}: {name[:40]!r} in line {number} of {path} is no name of a setting; give {BROKER_CONFIG_FROM}"
            )
        if name in BROKER_NAMES:
            settings[name] = _checked(name, value, f"{option}: line {number} of {path}")
        elif not is_ignored(name):
            unknown.add(number, name)
    return FromFile(settings, unknown.warning(f"{option}: {path}"))


def read_group_configs(path: str, option: str = "--group-configs") -> FromFile[dict[str, dict[str, Setting]]]:
    """Settings of KEPT_NAMES by group and name, with the origin of each: the source that counts for Kafka.

    That is the first synonym's.

    Raises:
        SharelensError: the file can't be read.
        UsageError: a line is not what kafka-configs prints, or a number is none.
    """
    groups: dict[str, dict[str, Setting]] = {}
    current: dict[str, Setting] | None = None
    unknown = UnknownNames(GROUP)
    for number, line in enumerate(read_text_file(path, option, GROUP_CONFIGS_FROM).split("\n"), 1):
        line = line.removesuffix("\r")
        head = HEAD.fullmatch(line)
        if head is not None:
            current = groups.setdefault(head["group"], {})
            continue
        if not line.strip():
            continue
        match = LINE.fullmatch(line)
        if match is None or current is None:
            raise UsageError(
                f"{option}: line {number} of {path} is not what kafka-configs prints; give {GROUP_CONFIGS_FROM}"
            )
        if match["name"] in KEPT_NAMES:
            source = match["synonyms"].partition(":")[0].lower() or GROUP_CONFIGS
            value = _checked(match["name"], match["value"], f"{option}: line {number} of {path}")
            current[match["name"]] = Setting(value=value, origin=source)
        else:
            unknown.add(number, match["name"])
    return FromFile(groups, unknown.warning(f"{option}: {path}"))


def _checked(name: str, value: str, where: str) -> str:
    """The value; UsageError where it is to be a number and is none."""
    numbers = (DELIVERY_COUNT_LIMIT, MAX_RECORD_LOCKS, MAX_STANDBY_REPLICAS, *MODEL_NAMES)
    if name.removeprefix("group.") in numbers and Setting(value=value).number is None:
        raise UsageError(f"{where}: {name} is {value[:40]!r}, which is no number of 31 bits; correct the file")
    return value
