"""Several state topics in log directories: one that was created again, a stale disk, or the log of another cluster.

A topic that is created again has a new id, and begins after the one before it ended. So logs of two ids with
overlapping times are of two clusters, unless their directories name one cluster.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from sharelens.evidence.reading import first_offset
from sharelens.kafka_log import reader
from sharelens.kafka_log.errors import MixedClustersError
from sharelens.kafka_log.files import parent
from sharelens.kafka_log.union import LogPartition
from state_model.topics import STATE_TOPIC

if TYPE_CHECKING:
    from sharelens.evidence.metadata_events import MetadataHistory


class StateTopicLog(NamedTuple):
    """One state topic of several: its id, the times of its first and newest records (None: no record), its log
    directories, and the clusters that these name (None: one that names none).
    """

    topic_id: str
    first_ms: int | None
    last_ms: int | None
    directories: frozenset[str]
    clusters: frozenset[str | None]


def state_topics(partitions: Iterable[LogPartition]) -> list[StateTopicLog]:
    """The state topics of partitions, by id; of a single one the logs are not read."""
    by_id: dict[str, list[LogPartition]] = {}
    for partition in partitions:
        if partition.topic == STATE_TOPIC:
            by_id.setdefault(partition.topic_id, []).append(partition)
    return [_topic(topic_id, by_id[topic_id], reads=len(by_id) > 1) for topic_id in sorted(by_id)]


def _topic(topic_id: str, partitions: Sequence[LogPartition], *, reads: bool) -> StateTopicLog:
    copies = [copy for partition in partitions for copy in partition.copies]
    return StateTopicLog(
        topic_id=topic_id,
        first_ms=min(filter(None, map(_first_ms, partitions)), default=None) if reads else None,
        last_ms=max(filter(None, (reader.log_end(log).newest_ms for log in partitions)), default=None)
        if reads
        else None,
        directories=frozenset(parent(copy.uri) for copy in copies),
        clusters=frozenset(copy.cluster_id for copy in copies),
    )


def _first_ms(partition: LogPartition) -> int | None:
    """The time of the first record, by the header of its batch; None without a batch."""
    begin = first_offset(partition)
    for batches in reader.scan_batches(partition, begin, reader.log_end(partition).end_offset):
        if batches.num_rows:
            time_ms: int = batches["base_timestamp_ms"][0].as_py()
            return time_ms
    return None


def state_topic_id(history: "MetadataHistory | None") -> str | None:
    """The id of the state topic at the end of the metadata log; None where that is not known."""
    from state_model.metadata.changes import TOPIC  # deferred: few log directories have several state topics

    rows = [] if history is None else [row for row in history.validities if row.key[0] == TOPIC and row.end is None]
    return next((str(row.key[1]) for row in rows if row.content["name"] == STATE_TOPIC), None)


def check_one_cluster(topics: Sequence[StateTopicLog], current_id: str | None) -> None:
    """Refuses state topics of two clusters; `current_id`: that of the metadata log, which decides where it is there.

    Raises:
        MixedClustersError: two state topics in different directories, of overlapping times.
    """
    if current_id in {topic.topic_id for topic in topics}:
        return
    for first, second in combinations(topics, 2):
        if _are_of_two_clusters(first, second):
            raise MixedClustersError(
                "log directories of two clusters, by their state topics, which have records of the same time: "
                f"{_named(first)} and {_named(second)}; give those of one, or copy meta.properties too"
            )


def _are_of_two_clusters(first: StateTopicLog, second: StateTopicLog) -> bool:
    clusters = first.clusters | second.clusters
    if first.directories & second.directories or (len(clusters) == 1 and None not in clusters):
        return False
    if first.first_ms is None or first.last_ms is None or second.first_ms is None or second.last_ms is None:
        return False
    return first.first_ms <= second.last_ms and second.first_ms <= first.last_ms


def _named(topic: StateTopicLog) -> str:
    return f"{', '.join(sorted(topic.directories))} ({topic.topic_id})"
