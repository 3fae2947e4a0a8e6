"""Log directories of one cluster, and the logs in them that tables are made of."""

import time
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from sharelens.evidence.read_until import read_until
from sharelens.evidence.state_topics import StateTopicLog, check_one_cluster, state_topic_id, state_topics
from sharelens.kafka_log.errors import LogDirectoryError
from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.kafka_log.reader import LogEnd, log_end
from sharelens.kafka_log.union import LogPartition, unite
from sharelens.measures.settings.observations import Settings
from sharelens.measures.topics.extents import TopicPartition
from sharelens.output import name_cell, say_warnings
from sharelens.source.request import Source
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.logs.metadata import LogMetadata
from sharelens.tables.logs.state import StateLog, of_state_log, state_logs
from state_model.errors import UsageError
from state_model.topics import OFFSETS_TOPIC, RECORD_TOPICS, STATE_TOPIC, UNKNOWN_CLUSTER


class LogDirectories:
    """The directories of a source; logs are opened at their first use.

    Raises:
        UsageError: a directory belongs to another cluster than the command line names, or two state topics are of two
            clusters.
    """

    def __init__(self, source: Source, directories: Sequence[LogDirectory]) -> None:
        self.source = source
        self.directories = directories
        self.cluster = _cluster_of(directories, source.cluster_id)
        self.metadata = LogMetadata(source, directories)

    @property
    def settings(self) -> Settings:
        """Those of the command line, and of groups by the metadata log."""
        return self.metadata.settings

    @cached_property
    def logs(self) -> list[StateLog]:
        """The state logs, whose ends are read here."""
        has_group_log = any(part.topic == OFFSETS_TOPIC for each in self.directories for part in each.partitions)
        needed = self.source.needs_state_log and not (self.source.takes_group_log and has_group_log)
        topic_id = None
        if len(self.state_topics) > 1:
            topic_id = state_topic_id(self.metadata.history)
            check_one_cluster(self.state_topics, topic_id)
        uncommitted = self.source.include_uncommitted
        return state_logs(self.directories, include_uncommitted=uncommitted, needed=needed, topic_id=topic_id)

    @cached_property
    def state_topics(self) -> list[StateTopicLog]:
        """The state topics of the directories: several where one was created again."""
        return state_topics(self.united)

    @cached_property
    def united(self) -> tuple[LogPartition, ...]:
        """All partitions, each united from the directories that have a copy."""
        return unite(self.directories)

    @cached_property
    def partitions(self) -> dict[TopicPartition, LogPartition]:
        """They by topic id and partition."""
        return {(part.topic_id, part.partition): part for part in self.united}

    def unreadable_covers(self) -> list[StatePartitionCover]:
        """The state partitions of which every folder is unreadable, without an offset; in order."""
        folders = [folder for directory in self.directories for folder in directory.unreadable]
        errors = {folder.partition: folder.error for folder in folders if folder.topic == STATE_TOPIC}
        if not errors or not self.logs:
            return []
        read_numbers = {log.number for log in self.logs}
        return [
            StatePartitionCover(
                log_topic_id=self.logs[0].partition.topic_id,
                state_partition=number,
                first_offset=0,
                end_offset_exclusive=0,
                log_start_offset=0,
                first_ms=None,
                last_ms=None,
                unreadable=errors[number],
            )
            for number in sorted(errors.keys() - read_numbers)
        ]

    def read_until_ms(self) -> int | None:
        """Until when the copy was taken, by the times of the checkpoint files."""
        log_ends = {(log.partition.topic_id, log.number): log.log_end for log in self.logs}

        def end_of(partition: LogPartition) -> LogEnd:
            return log_ends.get((partition.topic_id, partition.partition)) or log_end(partition)

        return read_until(self.directories, list(self.partitions.values()), end_of, time.time_ns() // 1_000_000)

    def problem_counts(self) -> list[tuple[str, int]]:
        """How often each reason code of a problem came up in the state logs, by reason."""
        counts: Counter[str] = Counter()
        for log in self.logs:
            counts.update(log.read_through().reasons)
        return sorted(counts.items())


def _cluster_of(directories: Sequence[LogDirectory], cluster_id: str | None) -> str:
    """The cluster's id; UsageError when a directory belongs to another cluster."""
    for directory in directories:
        if cluster_id is not None and directory.cluster_id not in (None, cluster_id):
            raise UsageError(
                f"{directory.uri} belongs to cluster {name_cell(directory.cluster_id)}, "
                f"not to {name_cell(cluster_id)}; correct --cluster-id or --log-dir"
            )
    named = [directory.cluster_id for directory in directories if directory.cluster_id is not None]
    return cluster_id or next(iter(named), UNKNOWN_CLUSTER)


def log_directories(source: Source) -> Sequence[LogDirectory]:
    """The log directories of a source that its evidence is made of; warns of folders that can't be read.

    Raises:
        LogDirectoryError: no folder of the state log or of the group coordinator's log can be read, and some are there.
    """
    directories = [
        scan_log_directory(uri, include_deleted=source.include_deleted, leaves_out_unreadable=True)
        for uri in source.log_dirs
    ]
    read_topics = {partition.topic for directory in directories for partition in directory.partitions}
    for folder in (folder for directory in directories for folder in directory.unreadable):
        if folder.topic in RECORD_TOPICS and folder.topic not in read_topics:
            raise LogDirectoryError(folder.error)
        say_warnings([folder.warning])
    return of_state_log(directories) if source.sets_clusters_apart else directories
