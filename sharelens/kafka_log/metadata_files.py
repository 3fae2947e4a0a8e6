"""The files of the metadata log in log directories: the partition `__cluster_metadata-0` and its snapshots.

A snapshot is `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`; unfinished (`.part`) and deleted ones are passed
over (metadata-log §1). The log's committed end stands in no checkpoint file: its partition is read to its end.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sharelens.kafka_log import filesystem
from sharelens.kafka_log.files import join
from sharelens.kafka_log.layout import LogDirectory, PartitionDirectory, SegmentFile
from sharelens.kafka_log.union import LogPartition, unite
from state_model.topics import METADATA_TOPIC

_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """A metadata snapshot: the state of all offsets below `end_offset`. `partition`: its file, read as a log."""

    end_offset: int
    epoch: int
    size_bytes: int
    partition: LogPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFiles:
    """The metadata log with all its copies, and its snapshots by end offset and epoch, each once."""

    log: LogPartition
    snapshots: tuple[SnapshotFile, ...]

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments and snapshots."""
        segments = (segment.size_bytes for copy in self.log.copies for segment in copy.segments)
        return sum(segments) + sum(snapshot.size_bytes for snapshot in self.snapshots)


def metadata_files(directories: Iterable[LogDirectory]) -> MetadataFiles | None:
    """The metadata log of log directories; None when none of them has one.

    Raises MixedClustersError when the directories name more than one cluster.
    """
    of_metadata = (
        replace(directory, partitions=tuple(copy for copy in directory.partitions if _is_metadata(copy)))
        for directory in directories
    )
    partitions = unite(of_metadata)
    if not partitions:
        return None
    log = replace(partitions[0], committed_end=None)
    snapshots: dict[tuple[int, int], SnapshotFile] = {}
    for copy in log.copies:
        for snapshot in _snapshots(copy):
            snapshots.setdefault((snapshot.end_offset, snapshot.epoch), snapshot)
    return MetadataFiles(log=log, snapshots=tuple(snapshots[key] for key in sorted(snapshots)))


def _is_metadata(copy: PartitionDirectory) -> bool:
    return copy.topic == METADATA_TOPIC and copy.partition == 0 and copy.status == "live"


def _snapshots(copy: PartitionDirectory) -> list[SnapshotFile]:
    snapshots = []
    for entry in filesystem.folder_at(copy.uri).entries():
        match = _SNAPSHOT.fullmatch(entry.name)
        if match is None or entry.is_directory or int(match[1]) >= 1 << 63 or int(match[2]) >= 1 << 31:
            continue
        file = SegmentFile(base_offset=0, uri=join(copy.uri, entry.name), size_bytes=entry.size_bytes)
        alone = replace(copy, segments=(file,), log_start_offset=0, committed_end=None, leader_epochs=())
        partition = LogPartition(
            topic=copy.topic,
            topic_id=copy.topic_id,
            partition=copy.partition,
            copies=(alone,),
            log_start_offset=0,
            committed_end=None,
        )
        snapshots.append(
            SnapshotFile(
                end_offset=int(match[1]), epoch=int(match[2]), size_bytes=entry.size_bytes, partition=partition
            )
        )
    return snapshots
