"""The files of settings: a folder that --settings names, and the single files of --group-configs and --broker-config.

    group-configs.txt        kafka-configs --describe --entity-type groups
    broker.properties        the brokers' server.properties
    topics.txt               kafka-topics --describe, or lines TOPIC-ID NAME
    end-offsets.txt          kafka-get-offsets
    dead-letter-topics.txt   a topic in each line

A file holds from the time on at which it was modified last. Names that begin with a dot are passed over.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from sharelens.measures.settings.observations import (
    DEAD_LETTER_TOPICS,
    END_OFFSETS,
    GROUP_CONFIGS,
    Entry,
    Observation,
    group_entries,
)
from sharelens.measures.settings.over_time import BROKER_CONFIG
from sharelens.settings.end_offsets import read_end_offsets
from sharelens.settings.files import SettingsFiles
from sharelens.settings.group_settings import FromFile, read_broker_config, read_group_configs
from sharelens.settings.text_files import read_text_file
from sharelens.settings.topic_names import read_topic_names
from state_model.errors import SharelensError, UsageError

OPTION = "--settings"
TOPICS_FILE = "topics.txt"
Entries = tuple[Entry, ...]
LONGEST_TOPIC = 249
"""Kafka takes no longer name."""


def read_settings_folder(folder: str) -> SettingsFiles:
    """The settings in a folder.

    Raises:
        SharelensError: no such folder, or a file in it can't be read or is broken.
        UsageError: a file has another name or is none, a line is not of its format, or there is no file.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as error:
        raise SharelensError(f"{OPTION}: can't read the folder {folder}: {error.strerror or error}") from error
    known_file_names = ", ".join(FILES)
    for name in names:
        if name not in FILES:
            raise UsageError(f"{OPTION}: {name!r} in {folder} is no file of settings; there are {known_file_names}")
    if not names:
        raise UsageError(f"{OPTION}: {folder} has no file of settings; put one of these into it: {known_file_names}")
    paths = {name: os.path.join(folder, name) for name in names}
    for path in paths.values():
        if not os.path.isfile(path):
            raise UsageError(f"{OPTION}: {path} is no regular file; put the text itself into it")
    topics = paths.pop(TOPICS_FILE, None)
    observed = [_observed(FILES[name], path, OPTION) for name, path in paths.items()]
    return SettingsFiles(
        folder=folder,
        topics=topics,
        observations=tuple(observation for observation, _ in observed),
        warnings=tuple(_warnings(observed)),
        topic_names=() if topics is None else tuple(sorted(read_topic_names(topics, OPTION).items())),
    )


def with_single_files(files: SettingsFiles, group_configs: str | None, broker_config: str | None) -> SettingsFiles:
    """The files with single ones, which count before those of the folder; warnings about the single files alone.

    Raises:
        SharelensError: a file can't be read, or is broken.
        UsageError: a line is not of its format.
    """
    single = []
    if group_configs is not None:
        single.append(_observed(GROUP_CONFIGS, group_configs, "--group-configs"))
    if broker_config is not None:
        single.append(_observed(BROKER_CONFIG, broker_config, "--broker-config"))
    kinds = {observation.kind for observation, _ in single}
    other_observations = (observation for observation in files.observations if observation.kind not in kinds)
    return replace(
        files,
        group_configs=group_configs,
        broker_config=broker_config,
        observations=(*other_observations, *(observation for observation, _ in single)),
        warnings=tuple(_warnings(single)),
    )


def _observed(kind: str, path: str, option: str) -> tuple[Observation, str | None]:
    """What a file says, and the warning about it."""
    entries, warning = READERS[kind](path, option)
    now_ms = time.time_ns() // 1_000_000
    modified_ms = Path(path).stat().st_mtime_ns // 1_000_000
    return Observation(kind=kind, from_ms=max(0, min(now_ms, modified_ms)), entries=entries), warning


def _warnings(observed: Sequence[tuple[Observation, str | None]]) -> list[str]:
    return [warning for _, warning in observed if warning is not None]


def _group_configs(path: str, option: str) -> FromFile[Entries]:
    groups, warning = read_group_configs(path, option)
    return FromFile(group_entries(groups), warning)


def _broker_config(path: str, option: str) -> FromFile[Entries]:
    settings, warning = read_broker_config(path, option)
    return FromFile(tuple(Entry("", name, value) for name, value in sorted(settings.items())), warning)


def _end_offsets(path: str, option: str) -> FromFile[Entries]:
    ends = read_end_offsets(path, option)
    entries = (Entry(topic, str(partition), str(offset)) for (topic, partition), offset in ends.items())
    return FromFile(tuple(sorted(entries)))


def _dead_letter_topics(path: str, option: str) -> FromFile[Entries]:
    """Lines that are blank or begin with # are passed over."""
    topics = set()
    for number, line in enumerate(read_text_file(path, option, "a topic in each line").splitlines(), 1):
        topic = line.strip()
        if not topic or topic.startswith("#"):
            continue
        if len(topic.split()) != 1 or len(topic) > LONGEST_TOPIC or topic.startswith("__"):
            raise UsageError(
                f"{option}: line {number} of {path} is no topic that can hold dead letters; write one name a line"
            )
        topics.add(topic)
    return FromFile(tuple(Entry(topic, "") for topic in sorted(topics)))


READERS: dict[str, Callable[[str, str], FromFile[Entries]]] = {
    GROUP_CONFIGS: _group_configs,
    BROKER_CONFIG: _broker_config,
    END_OFFSETS: _end_offsets,
    DEAD_LETTER_TOPICS: _dead_letter_topics,
}
FILES = {
    "group-configs.txt": GROUP_CONFIGS,
    "broker.properties": BROKER_CONFIG,
    TOPICS_FILE: "topics",
    "end-offsets.txt": END_OFFSETS,
    "dead-letter-topics.txt": DEAD_LETTER_TOPICS,
}
"""The kind of settings in each file of a folder."""
