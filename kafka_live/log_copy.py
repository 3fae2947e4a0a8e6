"""A log directory with what a cluster's logs hold now: fetched, kept up to date, read like a copy of a broker's own.

    __share_group_state-7/00000000000000000000.log      the batches from the log start offset on
    __share_group_state-7/leader-epoch-checkpoint
    log-start-offset-checkpoint, replication-offset-checkpoint, meta.properties, partition.metadata

Fetch gives record batches as the leader's segments hold them, up to the high watermark, so that no record here is
uncommitted.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from kafka_live.cluster import EARLIEST, LATEST, Cluster, Fetched, Place, Topic
from kafka_live.copied_partition import CopiedPartition
from kafka_live.errors import ClusterError
from kafka_log import record_batch, text_files
from kafka_log.leader_epochs import UNDEFINED, LeaderEpoch
from kafka_log.segment_file import MAXIMUM_BATCH_BYTES

Begin = Callable[[str, str, int, int], tuple[int, tuple[LeaderEpoch, ...]]]
NODE = 0
"""The copy is of no single broker; a log directory has a node id all the same."""


def from_log_start(
    topic: str, topic_id: str, partition: int, log_start_offset: int
) -> tuple[int, tuple[LeaderEpoch, ...]]:
    """The beginning of a copy of a whole log."""
    return log_start_offset, ()


class LogCopy:
    """A folder that `refresh` makes the copy of some topics of a cluster; `most_bytes`: the largest copy.

    `begin`: from which offset on a partition is copied, and the leader epochs of the records below it that the reader
    has, by topic, topic id, partition and log start offset. `fetched_bytes`: of all refreshes.
    """

    def __init__(self, folder: Path, cluster: Cluster, *, most_bytes: int, begin: Begin = from_log_start) -> None:
        self.folder = folder
        self.fetched_bytes = 0
        self._cluster = cluster
        self._most_bytes = most_bytes
        self._begin = begin
        self._partitions: dict[Place, CopiedPartition] = {}
        self._starts: dict[Place, int] = {}
        self._topic_ids: dict[str, str] = {}

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
        self._fetch(ends)
        self._write_checkpoints()

    def _new_partition(self, place: Place, start: int) -> CopiedPartition:
        topic_id = self._topic_ids[place.topic]
        offset, leader_epochs = self._begin(place.topic, topic_id, place.partition, start)
        return CopiedPartition(self._path(place), topic_id, offset, leader_epochs)

    def _truncate(self, leader_epochs: Mapping[Place, int]) -> None:
        """Truncates copies of logs that another leader has led since, where the leader's log is another one."""
        known = {place: self._partitions[place].position.leader_epoch for place in leader_epochs}
        unsure = {place: epoch for place, epoch in known.items() if UNDEFINED < epoch < leader_epochs[place]}
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
            partition.move_to(self._starts[place])

    def _copy_anew(self, place: Place) -> CopiedPartition:
        self._partitions[place].remove()
        self._partitions[place] = self._new_partition(place, self._starts[place])
        return self._partitions[place]

    def _fetch(self, ends: Mapping[Place, int]) -> None:
        """Fetches up to the ends. An answer without a batch of any partition: nothing is left below them.

        A broker leaves out partitions once an answer is full, so that one without batches beside others says nothing.
        """
        ends = dict(ends)
        while behind := {place: self._partitions[place] for place, end in ends.items() if self._is_below(place, end)}:
            moved = False
            for fetched in self._cluster.fetch({place: partition.position for place, partition in behind.items()}):
                moved |= self._take(fetched)
                if fetched.diverging is not None:  # the end may be below the one of before
                    ends |= self._cluster.offsets([fetched.place], LATEST)
            if not moved:  # compaction, or the markers of transactions
                for place, partition in behind.items():
                    partition.offset = ends[place]

    def _is_below(self, place: Place, end: int) -> bool:
        return self._partitions[place].offset < end

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
            partition = self._copy_anew(fetched.place)
        partition.move_to(start)
        return True

    def _append(self, fetched: Fetched) -> bool:
        """Appends the whole batches of an answer; false where there are none."""
        data = np.frombuffer(fetched.records, np.uint8)
        headers, size, is_plausible = record_batch.walk_headers(data, MAXIMUM_BATCH_BYTES, whole=True)
        if not is_plausible:
            raise ClusterError(
                f"{self._where(fetched.place)}: the answer holds bytes that are no record batch; read a copy of the "
                "broker's log directory with --log-dir"
            )
        if not len(headers):
            return False
        self.fetched_bytes += size
        if self.fetched_bytes > self._most_bytes:
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
