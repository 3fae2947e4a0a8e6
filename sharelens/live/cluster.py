"""A running cluster as the source of an answer: a copy of its logs in a temporary folder while a command runs.

The state log and the group coordinator's log are read from their log start offsets, which is what Kafka itself reads to
load them. The cluster says where topics end, what they are called, and which settings its groups have; with
--user-topics all it gives the records of the topics too.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

from sharelens.kafka_formats.properties import numbered
from sharelens.live.left_out import LeftOut
from sharelens.measures.settings.observations import (
    END_OFFSETS,
    GROUP_CONFIGS,
    Entry,
    Observation,
    group_entries,
)
from sharelens.measures.settings.over_time import BROKER_CONFIG, BROKER_NAMES, KEPT_NAMES, Setting
from sharelens.output import name_cell, say_warnings
from sharelens.output.wording import listed
from sharelens.parameters.times import time_text
from sharelens.settings.files import NO_SETTINGS_FILES, SettingsFiles
from sharelens.settings.text_files import read_text_file
from state_model.errors import UsageError
from state_model.topics import INTERNAL_TOPICS, OFFSETS_TOPIC, STATE_TOPIC, UNKNOWN_CLUSTER

try:
    from sharelens.kafka_live.cluster import LATEST, NO_OFFSET, READ_COMMITTED, READ_UNCOMMITTED, Cluster, Place, Topic
    from sharelens.kafka_live.command_config import PLAINTEXT, CommandConfig, command_config, unknown_lines
    from sharelens.kafka_live.configurations import broker_settings, group_ids, group_settings
    from sharelens.kafka_live.connection import Connection
    from sharelens.kafka_live.errors import ClusterError
    from sharelens.kafka_live.features import ensure_share_groups
    from sharelens.kafka_live.log_copy import Begin, LogCopy, Pruned
    from sharelens.kafka_live.rights import ensure_visible, missing_rights
    from sharelens.live.check import LiveCheck
    from sharelens.live.samples import LiveSamples
except ModuleNotFoundError as missing:
    raise UsageError(f"--bootstrap-server needs {missing.name}: pip install 'sharelens[live]'") from missing

LOGS = frozenset({STATE_TOPIC, OFFSETS_TOPIC})
MOST_KEYS, LONGEST_KEY = 10, 60


class UserTopics(Enum):
    """What to read of user topics: nothing, end offsets and the batches of first incomplete records, or all records."""

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
    text = read_text_file(config_file, "--command-config", "a file of Kafka's client properties")
    lines = list(numbered(text, where))
    if unknown := unknown_lines(lines):
        named = ", ".join(name_cell(key[:LONGEST_KEY]) for key in unknown[:MOST_KEYS])
        remainder_text = f" and {len(unknown) - MOST_KEYS} more" if len(unknown) > MOST_KEYS else ""
        say_warnings([f"{where} has unknown keys, which count for nothing: {named}{remainder_text}"])
    config = command_config({key: value for _, key, value in lines}, where)
    return Address(bootstrap_server=bootstrap_server, config=config, config_file=config_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedLogs:
    """What a cluster's logs hold now: the log directory with their copy, and what the cluster says besides.

    `settings_files`: those of the command line, and behind them the cluster's own settings and names of topics.
    """

    folder: Path
    settings_files: SettingsFiles
    has_state_log: bool


class LiveCluster:
    """A cluster, connected at the first `refresh`; close it, which removes the copy.

    `folder`: where the copy lies; None: a temporary one. `begin_of`: from which offset on each partition of a cluster
    is copied; None: its log start offset. `left_out`: what earlier ones have named, which is not named again;
    `samples`: what they have read.
    """

    def __init__(
        self,
        address: Address,
        user_topics: UserTopics,
        *,
        most_bytes: int,
        folder: Path | None = None,
        begin_of: Callable[[str], Begin] | None = None,
        left_out: LeftOut | None = None,
        samples: LiveSamples | None = None,
    ) -> None:
        self.address = address
        self._folder = folder
        self._begin_of = begin_of
        self.user_topics = user_topics
        self.read_until_ms = 0
        self.stable_offsets: Mapping[Place, int] = {}
        self.samples = samples or LiveSamples()
        self.left_out = left_out or LeftOut()
        self._most_bytes = most_bytes
        self._open = ExitStack()
        self._copy: LogCopy | None = None
        self._cluster: Cluster | None = None
        self._names = Path()
        self._user_topics: Mapping[str, str] = {}
        self._sampled_ends: Mapping[Place, int] = {}

    def close(self) -> None:
        """Ends the connections and removes the copy."""
        self._open.close()

    @property
    def is_cut_short(self) -> bool:
        """Whether the limit of bytes left something for the next run."""
        return self._copy is not None and self._copy.is_cut_short

    @property
    def fetched_bytes(self) -> tuple[int, int]:
        """Bytes of logs, and of user topics, that were fetched so far."""
        by_topic = {} if self._copy is None else self._copy.bytes_of_topics
        logs = sum(size for topic, size in by_topic.items() if topic in LOGS)
        return logs, sum(by_topic.values()) - logs + self.samples.fetched_bytes

    @property
    def has_group_records(self) -> bool:
        """Whether records of __consumer_offsets were fetched."""
        return self._copy is not None and self._copy.bytes_of_topics[OFFSETS_TOPIC] > 0

    def ensure_visible(self, topic: str) -> None:
        """Raises ClusterError if one may not describe a topic, which need not exist then."""
        assert self._cluster is not None
        ensure_visible(self._cluster.connection, [topic])

    def ensure_records(self, topic: str) -> None:
        """Raises an error where the copy has no records of a user topic (name or id).

        Raises:
            ClusterError: the cluster has no such topic, or one may not describe it.
            UsageError: no records of user topics are fetched.
        """
        if topic not in self._user_topics and topic not in self._user_topics.values():
            self.ensure_visible(topic)
            there = listed(sorted(self._user_topics.values()))
            raise ClusterError(f"no topic {name_cell(topic)} in {self.address.bootstrap_server}; topics there: {there}")
        if self.user_topics is not UserTopics.ALL:
            raise UsageError(
                f"records of topic {name_cell(topic)} are fetched with --user-topics all; give that option"
            )

    def ends_at(self, moment_ms: int, topics: Set[str]) -> Mapping[Place, int]:
        """The first offset of each partition with a timestamp behind a moment, or its end; with --user-topics samples.

        Raises:
            ClusterError: a partition has no leader.
        """
        ends = {place: end for place, end in self._sampled_ends.items() if place.topic in topics}
        if not ends:
            return {}
        assert self._cluster is not None
        then = self._cluster.offsets(ends, moment_ms + 1)
        return {place: end if then[place] == NO_OFFSET else then[place] for place, end in ends.items()}

    def check(self) -> LiveCheck:
        """Compares answers from the copy with the coordinators of the cluster."""
        assert self._cluster is not None
        assert self._copy is not None
        return LiveCheck(self._cluster, self._copy.positions)

    def refresh(
        self,
        cluster_id: str | None,
        settings_files: SettingsFiles | None,
        *,
        needs_state_log: bool,
        takes_group_log: bool,
    ) -> CopiedLogs:
        """The copy of what the cluster's logs hold now. The arguments are as in `sharelens.source.request.Source`.

        Raises:
            ClusterError: the cluster does not answer, a right is missing, the logs are too large, or it is another one
                than --cluster-id names.
        """
        if self._cluster is None:
            self._cluster = Cluster(
                self._open.enter_context(Connection(self.address.bootstrap_server, self.address.config))
            )
        topics = self._cluster.topics()
        self._ensure_named(cluster_id, self._cluster.cluster_id)
        absent = LOGS - topics.keys()
        has_logs = STATE_TOPIC not in absent or (takes_group_log and OFFSETS_TOPIC not in absent)
        self._check(self._cluster.connection, absent, needs_share_groups=needs_state_log and not has_logs)
        if self._copy is None:
            self._copy = self._new_copy(self._cluster)
        now_ms = time.time_ns() // 1_000_000
        users = [topic for name, topic in topics.items() if name not in INTERNAL_TOPICS]
        takes_all = self.user_topics is UserTopics.ALL
        chosen = [topic for name, topic in topics.items() if name in LOGS or (takes_all and topic in users)]
        self._copy.refresh(chosen)
        say_warnings(_pruned(self.address.bootstrap_server, self._copy.pruned))
        is_sampled = self.user_topics is UserTopics.SAMPLES
        needs_ends = is_sampled or (takes_all and self._copy.is_cut_short)
        self.stable_offsets = self._ends(users, READ_COMMITTED) if is_sampled else {}
        ends = self._ends(users, READ_UNCOMMITTED) if needs_ends else {}
        self._user_topics = {topic.topic_id: topic.name for topic in users}
        self._sampled_ends = ends if is_sampled else {}
        self.samples.begin(self._cluster, self._user_topics, ends)
        self.read_until_ms = now_ms
        observed = (_end_offsets(ends, now_ms), *self._settings(self._cluster.connection, topics, now_ms))
        files = self._files(users, observed, settings_files)
        return CopiedLogs(folder=self._copy.folder, settings_files=files, has_state_log=STATE_TOPIC in topics)

    def _ensure_named(self, named: str | None, cluster_id: str | None) -> None:
        if named is not None and cluster_id is not None and named != cluster_id:
            raise ClusterError(
                f"--cluster-id {named}, but {self.address.bootstrap_server} is of cluster {cluster_id}; leave the "
                "option out, or give another --bootstrap-server"
            )

    def _check(self, connection: Connection, absent: Set[str], *, needs_share_groups: bool) -> None:
        """Raises ClusterError where a log is needed that there can't be, or that one may not see.

        `absent`: topics of logs that Metadata does not have. The first time, rights that one lacks are a warning.
        """
        ensure_visible(connection, sorted(absent))
        if needs_share_groups:
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
        return LogCopy(root / "logs", cluster, most_bytes=self._most_bytes, stops_at_limit=True, begin=begin)

    def _ends(self, topics: Iterable[Topic], isolation_level: int) -> Mapping[Place, int]:
        assert self._cluster is not None
        places = (Place(topic.name, number) for topic in topics for number in topic.leaders)
        return self._cluster.offsets(places, LATEST, isolation_level)

    def _settings(self, connection: Connection, topics: Mapping[str, Topic], now_ms: int) -> Iterator[Observation]:
        """The settings of groups and of a broker that measures read."""
        listed = group_ids(connection)
        self.left_out.begin(self.address.bootstrap_server, listed, {topic.topic_id for topic in topics.values()})
        settings = group_settings(connection, listed)
        say_warnings(self.left_out.without_settings(listed - settings.keys()))
        groups = {
            group: {
                name: Setting(value=setting.value, origin=setting.source)
                for name, setting in read.items()
                if name in KEPT_NAMES
            }
            for group, read in settings.items()
        }
        yield Observation(kind=GROUP_CONFIGS, from_ms=now_ms, entries=group_entries(groups))
        broker = broker_settings(connection)
        entries = (Entry("", name, setting.value) for name, setting in sorted(broker.items()) if name in BROKER_NAMES)
        yield Observation(kind=BROKER_CONFIG, from_ms=now_ms, entries=tuple(entries))

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


def _pruned(where: str, ranges: Iterable[Pruned]) -> Iterator[str]:
    """A line for each range of a log that the brokers removed too early."""
    for each in ranges:
        if each.place.topic in LOGS:
            yield (
                f"{where}: gap: the brokers removed offsets {each.first_offset} to {each.last_offset} of "
                f"{each.place.topic}-{each.place.partition} before they were fetched, written between "
                f"{time_text(each.after_ms)} and {time_text(each.before_ms)}; read more often than they prune"
            )


def _end_offsets(ends: Mapping[Place, int], now_ms: int) -> Observation:
    entries = sorted(Entry(place.topic, str(place.partition), str(end)) for place, end in ends.items())
    return Observation(kind=END_OFFSETS, from_ms=now_ms, entries=tuple(entries))
