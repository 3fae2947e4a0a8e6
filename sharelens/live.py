"""A running cluster as the source of an answer: a copy of its logs in a temporary folder while a command runs.

The state log and the group coordinator's log are read from their log start offsets, which is what Kafka itself reads to
load them. The cluster says where topics end, what they are called, and which settings its groups have; with
--user-topics all it gives the records of the topics too.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from broker.config.properties import parse
from measures.observed_settings import END_OFFSETS, GROUP_CONFIGS, Entry, Observation, group_entries
from measures.settings import BROKER_CONFIG, BROKER_NAMES, KEPT_NAMES, Setting
from sharelens.output import name_cell, say_warnings
from sharelens.request import Source
from sharelens.settings_files import NO_SETTINGS_FILES, SettingsFiles
from sharelens.text_files import read_text_file
from state_model.errors import UsageError
from state_model.topics import INTERNAL_TOPICS, OFFSETS_TOPIC, STATE_TOPIC, UNKNOWN_CLUSTER

try:
    from kafka_live.cluster import LATEST, Cluster, Place, Topic
    from kafka_live.command_config import PLAINTEXT, CommandConfig, command_config, unknown_keys
    from kafka_live.configurations import broker_settings, group_ids, group_settings
    from kafka_live.connection import Connection
    from kafka_live.features import ensure_share_groups
    from kafka_live.log_copy import Begin, LogCopy
    from kafka_live.rights import ensure_visible, missing_rights
except ModuleNotFoundError as missing:
    raise UsageError(f"--bootstrap-server needs {missing.name}: pip install 'sharelens[live]'") from missing

if TYPE_CHECKING:
    from jobs.options import RunOptions

LOGS = frozenset({STATE_TOPIC, OFFSETS_TOPIC})
MOST_KEYS, LONGEST_KEY = 10, 60


class UserTopics(Enum):
    """What to read of user topics: nothing, the end offset of each partition, or all records."""

    NONE = "none"
    SAMPLES = "samples"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a cluster is and how to connect; `config_file`: the file that says so, as the command line names it."""

    bootstrap_server: str
    config: CommandConfig = PLAINTEXT
    config_file: str | None = None


def address(bootstrap_server: str | None, config_file: str | None, user_topics: str | None) -> Address | None:
    """The cluster that options name; None: none. Prints a warning about unknown keys in the file.

    Raises:
        SharelensError: the file can't be read.
        UsageError: it has properties that are not supported, or there are options of a cluster without its address.
    """
    if bootstrap_server is None:
        for name, value in (("--user-topics", user_topics), ("--command-config", config_file)):
            if value is not None:
                raise UsageError(f"{name} goes with --bootstrap-server")
        return None
    if config_file is None:
        return Address(bootstrap_server=bootstrap_server)
    where = f"--command-config: {config_file}"
    properties = parse(read_text_file(config_file, "--command-config", "a file of Kafka's client properties"), where)
    if unknown := unknown_keys(properties):
        named = ", ".join(name_cell(key[:LONGEST_KEY]) for key in unknown[:MOST_KEYS])
        more = f" and {len(unknown) - MOST_KEYS} more" if len(unknown) > MOST_KEYS else ""
        say_warnings([f"{where} has unknown keys, which count for nothing: {named}{more}"])
    config = command_config(properties, where)
    return Address(bootstrap_server=bootstrap_server, config=config, config_file=config_file)


class LiveCluster:
    """A cluster, connected at the first `refreshed`; close it, which removes the copy.

    `folder`: where the copy lies; None: a temporary one. `begin_of`: from which offset on each partition of a cluster
    is copied; None: its log start offset.
    """

    def __init__(
        self,
        address: Address,
        user_topics: UserTopics,
        *,
        most_bytes: int,
        folder: Path | None = None,
        begin_of: Callable[[str], Begin] | None = None,
    ) -> None:
        self.address = address
        self._folder = folder
        self._begin_of = begin_of
        self.user_topics = user_topics
        self.read_until_ms = 0
        self._most_bytes = most_bytes
        self._open = ExitStack()
        self._copy: LogCopy | None = None
        self._cluster: Cluster | None = None
        self._names = Path()

    def close(self) -> None:
        """Ends the connections and removes the copy."""
        self._open.close()

    def refreshed(self, source: Source) -> Source:
        """The source with log directories that hold what the cluster's logs hold now.

        Raises:
            ClusterError: the cluster does not answer, a right is missing, or the logs are too large.
            UsageError: the copy belongs to another cluster than --cluster-id names.
        """
        if self._cluster is None:
            self._cluster = Cluster(
                self._open.enter_context(Connection(self.address.bootstrap_server, self.address.config))
            )
        topics = self._cluster.topics()
        self._check(self._cluster.connection, source, LOGS - topics.keys())
        if self._copy is None:
            self._copy = self._new_copy(self._cluster)
        now_ms = time.time_ns() // 1_000_000
        users = [topic for name, topic in topics.items() if name not in INTERNAL_TOPICS]
        takes_all = self.user_topics is UserTopics.ALL
        chosen = [topic for name, topic in topics.items() if name in LOGS or (takes_all and topic in users)]
        self._copy.refresh(chosen)
        ends = {} if self.user_topics is not UserTopics.SAMPLES else self._ends(users)
        self.read_until_ms = now_ms
        observed = (_end_offsets(ends, now_ms), *_settings(self._cluster.connection, now_ms))
        files = self._files(users, observed, source.settings_files)
        return replace(
            source,
            log_dirs=(str(self._copy.folder),),
            topic_names=source.topic_names or files.topics,
            settings_files=files,
            needs_state_log=source.needs_state_log and STATE_TOPIC in topics,
        )

    def _check(self, connection: Connection, source: Source, absent: Set[str]) -> None:
        """Raises ClusterError where the source needs a log that there can't be, or that one may not see.

        `absent`: topics of logs that Metadata does not have. The first time, rights that one lacks are a warning.
        """
        ensure_visible(connection, sorted(absent))
        has_logs = STATE_TOPIC not in absent or (source.takes_group_log and OFFSETS_TOPIC not in absent)
        if source.needs_state_log and not has_logs:
            ensure_share_groups(connection)
        if self._copy is None:
            say_warnings(missing_rights(connection))

    def _new_copy(self, cluster: Cluster) -> LogCopy:
        root = self._folder
        if root is None:
            root = Path(self._open.enter_context(TemporaryDirectory(prefix="sharelens-cluster-")))
        self._names = root / "topics.txt"
        if self._begin_of is None:
            return LogCopy(root / "logs", cluster, most_bytes=self._most_bytes)
        begin = self._begin_of(cluster.cluster_id or UNKNOWN_CLUSTER)
        return LogCopy(root / "logs", cluster, most_bytes=self._most_bytes, begin=begin)

    def _ends(self, topics: Iterable[Topic]) -> Mapping[Place, int]:
        assert self._cluster is not None
        places = (Place(topic.name, number) for topic in topics for number in topic.leaders)
        return self._cluster.offsets(places, LATEST)

    def _files(
        self, topics: Iterable[Topic], observed: Iterable[Observation], typed: SettingsFiles | None
    ) -> SettingsFiles:
        """What the cluster says, as if it stood in files of settings; files of the command line count before it."""
        names = {topic.topic_id: topic.name for topic in topics}
        self._names.write_text("".join(f"{topic_id} {name}\n" for topic_id, name in names.items()))
        typed = typed or NO_SETTINGS_FILES
        kinds = {observation.kind for observation in typed.observations}
        return replace(
            typed,
            topics=typed.topics or str(self._names),
            topic_names=typed.topic_names or tuple(sorted(names.items())),
            observations=(
                *typed.observations,
                *(observation for observation in observed if observation.entries and observation.kind not in kinds),
            ),
        )


def _end_offsets(ends: Mapping[Place, int], now_ms: int) -> Observation:
    entries = sorted(Entry(place.topic, str(place.partition), str(end)) for place, end in ends.items())
    return Observation(kind=END_OFFSETS, from_ms=now_ms, entries=tuple(entries))


def _settings(connection: Connection, now_ms: int) -> Iterator[Observation]:
    """The settings of groups and of a broker that measures read."""
    groups = {
        group: {name: Setting(value=own.value, origin=own.source) for name, own in read.items() if name in KEPT_NAMES}
        for group, read in group_settings(connection, group_ids(connection)).items()
    }
    yield Observation(kind=GROUP_CONFIGS, from_ms=now_ms, entries=group_entries(groups))
    broker = broker_settings(connection)
    entries = (Entry("", name, own.value) for name, own in sorted(broker.items()) if name in BROKER_NAMES)
    yield Observation(kind=BROKER_CONFIG, from_ms=now_ms, entries=tuple(entries))


def fetching(address: Address, user_topics: UserTopics) -> "Callable[[RunOptions], RunOptions]":
    """A function that fetches what a lake lacks of a cluster's logs, into a folder of the lake, for its run to read."""

    def fetch(options: "RunOptions") -> "RunOptions":
        from jobs.ingest.first_missing import first_missing
        from jobs.refusals import fetch_folder

        folder = fetch_folder(options.lake)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        cluster = LiveCluster(
            address,
            user_topics,
            most_bytes=sys.maxsize,
            folder=folder,
            begin_of=lambda cluster_id: first_missing(options.lake, cluster_id),
        )
        with closing(cluster):
            files = SettingsFiles(observations=options.observations)
            source = cluster.refreshed(
                Source(cluster_id=options.cluster_id, settings_files=files, takes_group_log=True)
            )
        assert source.settings_files is not None
        return replace(
            options,
            log_dirs=source.log_dirs,
            observations=source.settings_files.observations,
            topic_names=dict(source.settings_files.topic_names) | options.topic_names,
        )

    return fetch
