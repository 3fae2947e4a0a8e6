"""The files behind --group-configs and --broker-config: settings of share groups."""

import re

from broker.config.properties import parse
from measures.settings import GroupSettings, Setting
from sharelens.text_files import read_text_file
from state_model.errors import UsageError

GROUP_CONFIGS_FROM = "the output of kafka-configs --bootstrap-server HOST:PORT --describe --entity-type groups"
GROUP_CONFIGS = "group_configs"
HEAD = re.compile(r"(?:Dynamic|All) configs for group (?P<group>.*) are:")
NAME = re.compile(r"[\w.-]+", re.ASCII)
LINE = re.compile(r"\s+(?P<name>[^\s=]+)=(?P<value>.*) sensitive=(?:true|false) synonyms=\{(?P<synonyms>.*)\}")


def read_group_settings(group_configs: str | None, broker_config: str | None) -> GroupSettings:
    """The settings in the files; None: not given.

    Raises:
        SharelensError: a file can't be read, or server.properties is broken.
        UsageError: a line is not what kafka-configs prints, or no broker has settings of such names.
    """
    return GroupSettings(
        groups=None if group_configs is None else _groups(group_configs),
        broker=None if broker_config is None else _broker(broker_config),
    )


def _broker(path: str) -> dict[str, str]:
    """Settings by name. The format takes any text for names, so odd names mean a file of another kind."""
    settings = parse(read_text_file(path, "--broker-config", "the broker's server.properties"), path)
    odd = next((name for name in settings if NAME.fullmatch(name) is None), None)
    if odd is not None:
        raise UsageError(
            f"--broker-config: {odd[:40]!r} in {path} is no name of a setting; give the broker's server.properties"
        )
    return settings


def _groups(path: str) -> dict[str, dict[str, Setting]]:
    """Settings by group and name. The origin is the first synonym's source, which is the one that counts for Kafka."""
    groups: dict[str, dict[str, Setting]] = {}
    current: dict[str, Setting] | None = None
    for number, line in enumerate(read_text_file(path, "--group-configs", GROUP_CONFIGS_FROM).split("\n"), 1):
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
                f"--group-configs: line {number} of {path} is not what kafka-configs prints; give {GROUP_CONFIGS_FROM}"
            )
        source = match["synonyms"].partition(":")[0].lower() or GROUP_CONFIGS
        current[match["name"]] = Setting(value=match["value"], origin=source)
    return groups
