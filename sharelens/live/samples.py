"""Single batches of a running cluster: times of waiting records, and offsets that hold none, of unfetched topics."""

import threading
from collections.abc import Iterator, Mapping

from sharelens.kafka_live.cluster import Cluster, Place
from sharelens.kafka_live.sampled_batches import Batch, Sampled, sampled
from sharelens.measures.topics.extents import Ints, TopicPartition
from sharelens.measures.topics.headers import ABORTED, ABSENT, CONTROL, LOG_APPEND_TIME, SampledBatches
from sharelens.measures.topics.sampled_batches import sampled_batches
from sharelens.output import name_cell, say_warnings
from sharelens.output.wording import first_of

MOST_BYTES = 64 << 20
"""The largest batches that are read for one answer, together."""
MOST_KEPT = 100_000
CREATE_TIME = "CreateTime"
MOST_NAMES = 5


class LiveSamples:
    """What single batches of a cluster's topics say; a batch is read once while its record is asked for.

    `fetched_bytes`: of all readings.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.fetched_bytes = 0
        self._most_bytes = most_bytes
        self._left_bytes = most_bytes
        self._cluster: Cluster | None = None
        self._names: Mapping[str, str] = {}
        self._ends: Mapping[Place, int] = {}
        self._batches: dict[tuple[str, Sampled], Batch | None] = {}
        self._unreadable: set[str] = set()
        self._named: set[str] = set()
        self._lock = threading.Lock()
        """Questions work on parts of the histories in threads; the cluster's connections serve one at a time."""

    def begin(self, cluster: Cluster, names: Mapping[str, str], ends: Mapping[Place, int]) -> None:
        """Begins a new answer. `names`: of topics by id; `ends`: the end offset of each partition of them."""
        self._cluster, self._names, self._ends = cluster, names, ends
        self._left_bytes = self._most_bytes
        self._unreadable = set()
        if len(self._batches) > MOST_KEPT:
            self._batches.clear()

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions whose batches may be read."""
        ids = {name: topic_id for topic_id, name in self._names.items() if name not in self._unreadable}
        return frozenset((ids[place.topic], place.partition) for place in self._ends if place.topic in ids)

    def of(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """The times of those of the offsets that hold a record, and the ranges without one around the others.

        An aborted record has both: it waits for groups that read uncommitted records alone. Warns once of each topic
        that one may not read, and of offsets beyond the limit of bytes.
        """
        with self._lock:
            readable = dict(self._below_ends(offsets))
            self._read({each: topic_id for each, topic_id in readable.items() if (topic_id, each) not in self._batches})
        times, no_records = [], []
        for each, topic_id in readable.items():
            batch = self._batches.get((topic_id, each))
            if batch is None:
                continue
            place = (topic_id, each.place.partition)
            if batch.base_offset > each.offset:
                no_records.append((*place, each.offset, batch.base_offset - 1, ABSENT))
                continue
            if batch.is_control or batch.is_aborted:
                reason = CONTROL if batch.is_control else ABORTED
                no_records.append((*place, batch.base_offset, batch.last_offset, reason))
            if not batch.is_control:
                clock = LOG_APPEND_TIME if batch.is_log_append_time else CREATE_TIME
                times.append((*place, each.offset, batch.max_timestamp_ms, clock))
        return sampled_batches(times, no_records)

    def _below_ends(self, offsets: Mapping[TopicPartition, Ints]) -> Iterator[tuple[Sampled, str]]:
        """The offsets below the ends of readable partitions, each with its topic's id."""
        for (topic_id, partition), partition_offsets in sorted(offsets.items()):
            name = self._names.get(topic_id)
            if name is None or name in self._unreadable:
                continue
            place = Place(name, partition)
            for offset in partition_offsets.tolist():
                if offset < self._ends.get(place, 0):
                    yield Sampled(place, offset), topic_id

    def _read(self, topic_ids: Mapping[Sampled, str]) -> None:
        if not topic_ids or self._cluster is None:
            return
        samples = sampled(self._cluster, topic_ids, self._left_bytes)
        self._left_bytes -= samples.fetched_bytes
        self.fetched_bytes += samples.fetched_bytes
        self._batches |= {(topic_ids[each], each): batch for each, batch in samples.batches.items()}
        self._unreadable |= samples.forbidden
        forbidden = _forbidden(self._cluster.bootstrap_server, samples.forbidden - self._named)
        say_warnings([*forbidden, *_left_out(samples.left_out)])
        self._named |= samples.forbidden


def _forbidden(where: str, topics: set[str]) -> Iterator[str]:
    if topics:
        named = first_of(sorted(topics), name_cell, MOST_NAMES)
        yield (
            f"{where}: answers are incomplete: no right to read {named}, so that ages of their "
            f"records are "
            "unknown; add it with kafka-acls.sh --add --allow-principal User:NAME --operation Read --topic TOPIC, or "
            "give --user-topics none"
        )


def _left_out(count: int) -> Iterator[str]:
    if count:
        yield (
            f"answers are incomplete: the batches of {count} first incomplete records were not read, because those "
            f"before them have {MOST_BYTES >> 20} MiB; their ages are unknown"
        )
