"""A log directory with what a cluster's logs hold now: fetched, kept up to date, read like a copy of a broker's own.

    __share_group_state-7/00000000000000000000.log      the batches from the log start offset on
    log-start-offset-checkpoint, replication-offset-checkpoint, meta.properties, partition.metadata

Fetch gives record batches as the leader's segments hold them, up to the high watermark, so that no record here is
uncommitted.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from kafka_live.cluster import EARLIEST, LATEST, Cluster, Fetched, Place, Topic
from kafka_live.errors import ClusterError
from kafka_log import record_batch, text_files
from kafka_log.segment_file import MAXIMUM_BATCH_BYTES

Begin = Callable[[str, str, int, int], int]
SEGMENT_BYTES = 1 << 30
NS_PER_MS = 1_000_000
NODE = 0
"""The copy is of no single broker; a log directory has a node id all the same."""


class LogCopy:
    """A folder that `refresh` makes the copy of some topics of a cluster; `most_bytes`: the largest copy.

    `begin`: from which offset on a partition is copied, by topic, topic id, partition and log start offset.
    `positions`: the offset behind the last batch of each partition. `fetched_bytes`: of all refreshes.
    """

    def __init__(
        self, folder: Path, cluster: Cluster, *, most_bytes: int, begin: Begin = lambda _, __, ___, start: start
    ) -> None:
        self.folder = folder
        self.positions: dict[Place, int] = {}
        self.fetched_bytes = 0
        self._cluster = cluster
        self._most_bytes = most_bytes
        self._begin = begin
        self._starts: dict[Place, int] = {}
        self._topic_ids: dict[str, str] = {}

    def refresh(self, topics: Iterable[Topic]) -> None:
        """Fetches what came since the last refresh, up to the high watermarks at its beginning.

        A partition whose topic was created again, or whose log ends below what was fetched (an unclean leader election
        lost the tail), is fetched from its log start offset on. Records that the broker pruned before they were fetched
        are a gap, as in a copied directory.

        Raises:
            ClusterError: the cluster does not answer, a right is missing, or the logs have more than `most_bytes`.
        """
        topics = list(topics)
        places = [Place(topic.name, partition) for topic in topics for partition in topic.leaders]
        starts, ends = self._cluster.offsets(places, EARLIEST), self._cluster.offsets(places, LATEST)
        for topic in topics:
            if self._topic_ids.setdefault(topic.name, topic.topic_id) != topic.topic_id:
                for partition in [place for place in self.positions if place.topic == topic.name]:
                    self._drop(partition)
                self._topic_ids[topic.name] = topic.topic_id
        for place in places:
            if self.positions.get(place, 0) > ends[place]:
                self._drop(place)
            self._starts[place] = starts[place]
            if place not in self.positions:
                self._make_folder(place)
                begin = self._begin(place.topic, self._topic_ids[place.topic], place.partition, starts[place])
                self.positions[place] = min(begin, ends[place])
            self.positions[place] = max(self.positions[place], starts[place])
        self._fetch({place: ends[place] for place in places})
        self._write_checkpoints()

    def _fetch(self, ends: Mapping[Place, int]) -> None:
        """Fetches up to the ends. An answer without a batch of any partition: nothing is left below them.

        A broker leaves out partitions once an answer is full, so that one without batches beside others says nothing.
        """
        while behind := {place: self.positions[place] for place, end in ends.items() if self.positions[place] < end}:
            moved = False
            for fetched in self._cluster.fetch(behind):
                if fetched.is_out_of_range:
                    self._move_to_start(fetched.place)
                    moved = True
                else:
                    moved |= self._append(fetched)
            if not moved:  # compaction, or the markers of transactions
                self.positions |= {place: ends[place] for place in behind}

    def _append(self, fetched: Fetched) -> bool:
        """Appends the whole batches of an answer; false where there are none."""
        data = np.frombuffer(fetched.records, np.uint8)
        headers, size, is_plausible = record_batch.walk_headers(data, MAXIMUM_BATCH_BYTES, whole=True)
        if not is_plausible:
            raise ClusterError(
                f"{self._cluster.bootstrap_server}: {fetched.place.topic}-{fetched.place.partition} @ "
                f"{self.positions[fetched.place]}: the answer holds bytes that are no record batch; read a copy of "
                "the broker's log directory with --log-dir"
            )
        if not len(headers):
            return False
        self.fetched_bytes += size
        if self.fetched_bytes > self._most_bytes:
            raise ClusterError(
                f"{self._cluster.bootstrap_server}: the logs have more than {self._most_bytes} bytes; raise --max-bytes"
            )
        first = int(headers[0, record_batch.BASE_OFFSET])
        path = self._segment(fetched.place, first)
        with path.open("ab") as segment:
            segment.write(fetched.records[:size])
        newest_ms = int(headers[:, record_batch.MAX_TIMESTAMP].max())
        if (
            0 <= newest_ms < time.time_ns() // NS_PER_MS
        ):  # as on the broker's disk, where it is about the time of the append
            os.utime(path, ns=(newest_ms * NS_PER_MS, newest_ms * NS_PER_MS))
        self.positions[fetched.place] = int(headers[-1, record_batch.LAST_OFFSET]) + 1
        return True

    def _segment(self, place: Place, first_offset: int) -> Path:
        """The newest segment, or a new one where there is none or it is full."""
        segments = sorted(self._path(place).glob("*.log"))
        if segments and segments[-1].stat().st_size < SEGMENT_BYTES:
            return segments[-1]
        return self._path(place) / f"{first_offset:020d}.log"

    def _move_to_start(self, place: Place) -> None:
        """Goes on at the log start offset, which has passed the position."""
        start = self._cluster.offsets([place], EARLIEST)[place]
        if start <= self.positions[place]:
            self._drop(place)
            self._make_folder(place)
        self._starts[place] = self.positions[place] = start

    def _make_folder(self, place: Place) -> None:
        folder = self._path(place)
        folder.mkdir(parents=True, exist_ok=True)
        metadata = text_files.format_partition_metadata(self._topic_ids[place.topic])
        (folder / text_files.PARTITION_METADATA).write_text(metadata)

    def _drop(self, place: Place) -> None:
        shutil.rmtree(self._path(place), ignore_errors=True)
        self.positions.pop(place, None)

    def _path(self, place: Place) -> Path:
        return self.folder / f"{place.topic}-{place.partition}"

    def _write_checkpoints(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
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
