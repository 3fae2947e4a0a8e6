"""A log directory with what a cluster's logs hold now: fetched, kept up to date, read like a copy of a broker's own.

    __share_group_state-7/00000000000000000000.log      the batches from the log start offset on
    __share_group_state-7/leader-epoch-checkpoint
    log-start-offset-checkpoint, replication-offset-checkpoint, meta.properties, partition.metadata

Fetch gives record batches as the leader's segments hold them, up to the high watermark, so that no record here is
uncommitted.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sharelens.kafka_live.cluster import EARLIEST, LATEST, Cluster, Fetched, Place, Topic
from sharelens.kafka_live.copied_partition import CopiedPartition
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_log import record_batch, text_files
from sharelens.kafka_log.leader_epochs import UNDEFINED, LeaderEpoch
from sharelens.kafka_log.segment_file import MAXIMUM_BATCH_BYTES
from state_model.topics import INTERNAL_TOPICS

Begin = Callable[[str, str, int, int], tuple[int, tuple[LeaderEpoch, ...], int | None]]
MOST_TURNS = 100
"""How often a log may lose its tail, or start over, while it is fetched: a broker may say so for ever."""
NODE = 0
"""The copy is of no single broker; a log directory has a node id all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Offsets that the broker removed before they were fetched; times of the records beside them, None: unknown."""

    place: Place
    first_offset: int
    last_offset: int
    after_ms: int | None
    before_ms: int | None


def from_log_start(
    topic: str, topic_id: str, partition: int, log_start_offset: int
) -> tuple[int, tuple[LeaderEpoch, ...], int | None]:
    """The beginning of a copy of a whole log."""
    return log_start_offset, (), None


class LogCopy:
    """A folder that `refresh` makes the copy of some topics of a cluster; `most_bytes`: the largest copy. A larger one
    is an error, or where it `stops_at_limit` has the beginnings of the logs, internal topics first, one answer more.
    Folders of partitions may be there, without segments: those of an earlier copy.

    `begin`: the offset behind the reader's records of a partition, their leader epochs, and the time of the newest of
    them (None: there is none), by topic, topic id, partition and log start offset. `pruned`: of the last refresh.
    `bytes_of_topics`: what all refreshes fetched, by topic.
    """

    def __init__(
        self,
        folder: Path,
        cluster: Cluster,
        *,
        most_bytes: int,
        stops_at_limit: bool = False,
        begin: Begin = from_log_start,
    ) -> None:
        self.folder = folder
        self.bytes_of_topics: Counter[str] = Counter()
        self.pruned: list[Pruned] = []
        self._moves: list[tuple[Place, int, int, int | None]] = []
        self._cluster = cluster
        self._most_bytes = most_bytes
        self._stops_at_limit = stops_at_limit
        self._begin = begin
        self._partitions: dict[Place, CopiedPartition] = {}
        self._starts: dict[Place, int] = {}
        self._topic_ids: dict[str, str] = {}

    @property
    def fetched_bytes(self) -> int:
        """Of all topics."""
        return self.bytes_of_topics.total()

    @property
    def is_cut_short(self) -> bool:
        """Whether there is more, which the limit leaves for another copy."""
        return self._stops_at_limit and self.fetched_bytes >= self._most_bytes

    @property
    def positions(self) -> Mapping[Place, int]:
        """The offset behind the last batch of each partition."""
        return {place: partition.offset for place, partition in self._partitions.items()}

    def refresh(self, topics: Iterable[Topic]) -> None:
        """Fetches what came since the last refresh, up to the high watermarks at its beginning.

        A partition whose log lost its tail (an unclean leader election) is truncated where the leader epochs part, as
        a follower's log. A partition whose topic was created again is fetched from its log start offset on. Records
        that the broker pruned before they were fetched are a gap, as in a copied directory.

        Raises:
            ClusterError: the cluster does not answer, a right is missing, or the logs have more than `most_bytes`.
        """
        topics = list(topics)
        self._moves = []
        leader_epochs = {
            Place(topic.name, partition): topic.leader_epochs[partition]
            for topic in topics
            for partition in topic.leaders
        }
        starts = self._cluster.offsets(leader_epochs, EARLIEST)
        ends = self._cluster.offsets(leader_epochs, LATEST)
        for topic in topics:
            if self._topic_ids.setdefault(topic.name, topic.topic_id) != topic.topic_id:
                for place in [place for place in self._partitions if place.topic == topic.name]:
                    self._partitions.pop(place).remove()
                self._topic_ids[topic.name] = topic.topic_id
        for place, start in starts.items():
            self._starts[place] = start
            if place not in self._partitions:
                self._partitions[place] = self._new_partition(place, start)
        self._truncate(leader_epochs)
        for place, end in ends.items():
            self._ensure_inside(place, end)
        self._fetch({place: end for place, end in ends.items() if place.topic in INTERNAL_TOPICS})
        self._fetch({place: end for place, end in ends.items() if place.topic not in INTERNAL_TOPICS})
        self.pruned = [self._pruned(*move) for move in self._moves]
        self._write_checkpoints()

    def _new_partition(self, place: Place, start: int) -> CopiedPartition:
        topic_id = self._topic_ids[place.topic]
        offset, leader_epochs, newest_ms = self._begin(place.topic, topic_id, place.partition, start)
        return CopiedPartition(self._path(place), topic_id, offset, leader_epochs, newest_ms)

    def _truncate(self, leader_epochs: Mapping[Place, int]) -> None:
        """Truncates copies of logs that another leader has led since, where the leader's log is another one."""
        copied_epochs = {place: self._partitions[place].position.leader_epoch for place in leader_epochs}
        unsure = {place: epoch for place, epoch in copied_epochs.items() if UNDEFINED < epoch < leader_epochs[place]}
        if not unsure:
            return
        for place, end in self._cluster.epoch_ends(unsure).items():
            partition = self._partitions[place]
            if end[0] == UNDEFINED:
                self._copy_anew(place)
            elif end[0] < unsure[place] or end[1] < partition.offset:
                partition.truncate(end)

    def _ensure_inside(self, place: Place, end: int) -> None:
        """Leaves no position outside of the log: it was pruned, or truncated without leader epochs to say where."""
        partition = self._partitions[place]
        if partition.offset > end:
            partition = self._copy_anew(place)
            partition.offset = min(partition.offset, end)
        if partition.offset < self._starts[place]:
            self._move_to_start(place)

    def _move_to_start(self, place: Place) -> None:
        partition, start = self._partitions[place], self._starts[place]
        if partition.newest_ms is not None and partition.offset < start:
            self._moves.append((place, partition.offset, start, partition.newest_ms))
        partition.move_to(start)

    def _pruned(self, place: Place, offset: int, start: int, after_ms: int | None) -> Pruned:
        before_ms = self._partitions[place].first_ms
        return Pruned(place=place, first_offset=offset, last_offset=start - 1, after_ms=after_ms, before_ms=before_ms)

    def _copy_anew(self, place: Place) -> CopiedPartition:
        self._partitions[place].remove()
        self._partitions[place] = self._new_partition(place, self._starts[place])
        return self._partitions[place]

    def _fetch(self, ends: Mapping[Place, int]) -> None:
        """Fetches up to the ends. An answer without a batch of any partition: nothing is left below them.

        A broker leaves out partitions once an answer is full, so that one without batches beside others says nothing.
        """
        ends = dict(ends)
        turns: Counter[Place] = Counter()
        while behind := self._behind(ends):
            moved = False
            for fetched in self._cluster.fetch({place: partition.position for place, partition in behind.items()}):
                moved |= self._take(fetched)
                turns[fetched.place] += fetched.is_out_of_range or fetched.diverging is not None
                if turns[fetched.place] > MOST_TURNS:
                    raise ClusterError(
                        f"{self._where(fetched.place)}: the log started over or lost its tail {MOST_TURNS} times while "
                        "it was fetched; look whether a Kafka broker answers there"
                    )
                if fetched.diverging is not None:  # the end may be below the one of before
                    ends |= self._cluster.offsets([fetched.place], LATEST)
            if not moved:  # compaction, or the markers of transactions
                for place, partition in behind.items():
                    partition.offset = ends[place]

    def _behind(self, ends: Mapping[Place, int]) -> Mapping[Place, CopiedPartition]:
        """The partitions that end below an offset; none once the limit is reached."""
        if self.is_cut_short:
            return {}
        behind = {place: self._partitions[place] for place in ends}
        return {place: partition for place, partition in behind.items() if partition.offset < ends[place]}

    def _take(self, fetched: Fetched) -> bool:
        """Changes the copy as an answer says; false where it says nothing."""
        partition = self._partitions[fetched.place]
        if fetched.diverging is not None:
            if not partition.truncate(fetched.diverging):
                raise ClusterError(f"{self._where(fetched.place)}: the answer names a diverging epoch of the future")
            return True
        if not fetched.is_out_of_range:
            return self._append(fetched)
        start = self._cluster.offsets([fetched.place], EARLIEST)[fetched.place]
        self._starts[fetched.place] = start
        if start <= partition.offset:
            self._copy_anew(fetched.place)
        self._move_to_start(fetched.place)
        return True

    def _append(self, fetched: Fetched) -> bool:
        """Appends the whole batches of an answer; false where there are none."""
        data = np.frombuffer(fetched.records, np.uint8)
        headers, size, is_plausible = record_batch.walk_headers(data, MAXIMUM_BATCH_BYTES, require_whole=True)
        if not is_plausible:
            raise ClusterError(
                f"{self._where(fetched.place)}: the answer holds bytes that are no record batch; read a copy of the "
                "broker's log directory with --log-dir"
            )
        if not len(headers):
            return False
        last_offsets = headers[:, record_batch.LAST_OFFSET]
        if last_offsets[0] < self._partitions[fetched.place].offset or (np.diff(last_offsets) <= 0).any():
            raise ClusterError(
                f"{self._where(fetched.place)}: the answer holds batches up to offset {last_offsets.max()} that are "
                "not those asked for, or not in order; look whether a Kafka broker answers there"
            )
        self.bytes_of_topics[fetched.place.topic] += size
        if self.fetched_bytes > self._most_bytes and not self._stops_at_limit:
            raise ClusterError(
                f"{self._cluster.bootstrap_server}: the logs have more than {self._most_bytes} bytes; raise --max-bytes"
            )
        self._partitions[fetched.place].append(fetched.records[:size], headers)
        return True

    def _where(self, place: Place) -> str:
        offset = self._partitions[place].offset
        return f"{self._cluster.bootstrap_server}: {place.topic}-{place.partition} @ {offset}"

    def _path(self, place: Place) -> Path:
        return self.folder / f"{place.topic}-{place.partition}"

    def _write_checkpoints(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        names = {self._path(place).name for place in self._partitions}
        for path in [path for path in self.folder.iterdir() if path.is_dir() and path.name not in names]:
            shutil.rmtree(path, ignore_errors=True)
        for partition in self._partitions.values():
            partition.write_leader_epochs()
        for name, offsets in (
            (text_files.LOG_START_CHECKPOINT, self._starts),
            (text_files.HIGH_WATERMARK_CHECKPOINT, self.positions),
        ):
            lines = {(place.topic, place.partition): offset for place, offset in offsets.items()}
            (self.folder / name).write_text(text_files.format_partition_offsets(lines))
        properties = f"version=1\nnode.id={NODE}\n"
        if self._cluster.cluster_id:
            properties += f"cluster.id={self._cluster.cluster_id}\n"
        (self.folder / text_files.META_PROPERTIES).write_text(properties)
