"""One partition from all its copies: disks of one broker, replicas on several, copies of different times."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sharelens.kafka_log.bounds import highest_committed_end, log_start
from sharelens.kafka_log.errors import MixedClustersError
from sharelens.kafka_log.layout import LogDirectory, PartitionDirectory
from state_model.uuids import ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPartition:
    """A partition and its copies.

    `log_start_offset` and `committed_end` (exclusive) are the maximum over the copies that know theirs; without one,
    `log_start_offset` is a guess (`log_start_known` is false; see `log_start`), and `committed_end` is None: no copy
    comes from a directory with a high watermark file.
    """

    topic: str
    topic_id: str
    partition: int
    copies: tuple[PartitionDirectory, ...]
    log_start_offset: int
    committed_end: int | None
    log_start_known: bool = False


def unite(directories: Iterable[LogDirectory]) -> tuple[LogPartition, ...]:
    """The partitions of several log directories, by topic, topic id and partition, in any order of the directories.

    A copy without partition.metadata counts to the topic of its name when that name has one id only. Raises
    MixedClustersError when the directories name more than one cluster.
    """
    directories = sorted(directories, key=lambda directory: directory.uri)
    _check_one_cluster(directories)
    copies = {copy.uri: copy for directory in directories for copy in directory.partitions}
    groups: dict[tuple[str, str, int], list[PartitionDirectory]] = defaultdict(list)
    for copy in _with_topic_ids(list(copies.values())):
        groups[copy.topic, copy.topic_id, copy.partition].append(copy)
    return tuple(_unite_copies(groups[key]) for key in sorted(groups))


def _check_one_cluster(directories: list[LogDirectory]) -> None:
    clusters = {directory.cluster_id: directory.uri for directory in directories if directory.cluster_id is not None}
    if len(clusters) > 1:
        text = ", ".join(f"{uri} belongs to {cluster}" for cluster, uri in sorted(clusters.items()))
        raise MixedClustersError(f"log directories of different clusters in one run: {text}; run once for each cluster")


def _with_topic_ids(copies: list[PartitionDirectory]) -> list[PartitionDirectory]:
    ids_by_topic: dict[str, set[str]] = defaultdict(set)
    for copy in copies:
        if copy.topic_id != ZERO_UUID:
            ids_by_topic[copy.topic].add(copy.topic_id)
    return [
        replace(copy, topic_id=next(iter(ids_by_topic[copy.topic])))
        if copy.topic_id == ZERO_UUID and len(ids_by_topic[copy.topic]) == 1
        else copy
        for copy in copies
    ]


def _unite_copies(copies: list[PartitionDirectory]) -> LogPartition:
    return LogPartition(
        topic=copies[0].topic,
        topic_id=copies[0].topic_id,
        partition=copies[0].partition,
        copies=tuple(copies),
        log_start_offset=log_start(
            (copy.log_start_offset, copy.log_start_known) for copy in copies if copy.segments or copy.log_start_known
        ),
        log_start_known=any(copy.log_start_known for copy in copies),
        committed_end=highest_committed_end(copy.committed_end for copy in copies),
    )
