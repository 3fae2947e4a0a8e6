"""The small text files of a log directory: checkpoints, meta.properties, partition.metadata, leader-epoch-checkpoint.

Formats: org.apache.kafka.server.common.CheckpointFile (version line, count line, one entry a line), a Java properties
file, PartitionMetadataFile (`version: 0`, `topic_id: …`). Kafka creates a checkpoint empty and later replaces it by
an atomic rename: an empty one has no entries yet, one that is cut short was copied badly, and we say so.
"""

import itertools
import re
from dataclasses import dataclass

from kafka_log.errors import CheckpointError
from kafka_log.filesystem import Filesystem, join
from state_model.errors import DecodeError
from state_model.uuids import ZERO_UUID, uuid_bytes

LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"

_PARTITION_ENTRY = re.compile(r"(\S+) (\d+) (\d+)")
_EPOCH_ENTRY = re.compile(r"(\d+) (\d+)")
_INT64_MAX = (1 << 63) - 1
_INT32_MAX = (1 << 31) - 1

PartitionOffsets = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Who wrote a log directory; None where meta.properties is missing or does not say."""

    cluster_id: str | None
    node_id: int | None


def _checkpoint_lines(text: str, uri: str) -> list[str]:
    lines = text.splitlines()
    if not text.strip():
        return []
    if len(lines) < 2 or lines[0].strip() != "0" or not lines[1].strip().isdigit():
        raise CheckpointError(
            f"{uri} is not a Kafka checkpoint (version line 0, then the number of entries): copy it again"
        )
    entries = [line for line in lines[2:] if line.strip()]
    if len(entries) != int(lines[1]):
        raise CheckpointError(f"{uri} announces {lines[1].strip()} entries and holds {len(entries)}: copy it again")
    return entries


def _number(text: str, limit: int, uri: str) -> int:
    number = int(text)
    if number > limit:
        raise CheckpointError(f"{uri} holds a number that is too large for Kafka, {text[:24]}: copy it again")
    return number


def parse_partition_offsets(text: str, uri: str) -> PartitionOffsets:
    """(topic, partition) → offset from a checkpoint of partitions. Raises CheckpointError naming `uri` and the line."""
    offsets: PartitionOffsets = {}
    for number, line in enumerate(_checkpoint_lines(text, uri), start=3):
        match = _PARTITION_ENTRY.fullmatch(line.strip())
        if match is None:
            raise CheckpointError(f"{uri} line {number} is not `topic partition offset`: {line[:80]!r}")
        topic, partition, offset = match.groups()
        offsets[topic, _number(partition, _INT32_MAX, uri)] = _number(offset, _INT64_MAX, uri)
    return offsets


def parse_leader_epochs(text: str, uri: str) -> tuple[tuple[int, int], ...]:
    """(leader epoch, its first offset), ascending in both. Raises CheckpointError."""
    epochs: list[tuple[int, int]] = []
    for number, line in enumerate(_checkpoint_lines(text, uri), start=3):
        match = _EPOCH_ENTRY.fullmatch(line.strip())
        if match is None:
            raise CheckpointError(f"{uri} line {number} is not `epoch start-offset`: {line[:80]!r}")
        epochs.append((_number(match[1], _INT32_MAX, uri), _number(match[2], _INT64_MAX, uri)))
    ordered = all(left[0] < right[0] and left[1] <= right[1] for left, right in itertools.pairwise(epochs))
    if not ordered:
        raise CheckpointError(f"{uri} holds leader epochs that don't ascend: copy it again")
    return tuple(epochs)


def _text_or_none(filesystem: Filesystem, directory: str, name: str) -> str | None:
    try:
        return filesystem.read_text(join(directory, name))
    except FileNotFoundError:
        return None


def read_partition_offsets(filesystem: Filesystem, directory: str, name: str) -> PartitionOffsets | None:
    """The entries of one checkpoint of a log directory; None when the file is missing."""
    text = _text_or_none(filesystem, directory, name)
    return None if text is None else parse_partition_offsets(text, join(directory, name))


def read_leader_epochs(filesystem: Filesystem, directory: str) -> tuple[tuple[int, int], ...]:
    """Leader epochs of a partition folder; empty when the file is missing or broken: they only help to merge copies."""
    text = _text_or_none(filesystem, directory, LEADER_EPOCH_CHECKPOINT)
    if text is None:
        return ()
    try:
        return parse_leader_epochs(text, join(directory, LEADER_EPOCH_CHECKPOINT))
    except CheckpointError:
        return ()


def read_meta(filesystem: Filesystem, directory: str) -> Meta:
    """cluster.id and node.id (broker.id in ZooKeeper days) of meta.properties."""
    text = _text_or_none(filesystem, directory, META_PROPERTIES) or ""
    properties = {}
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.lstrip().startswith("#"):
            properties[name.strip()] = value.strip()
    node = properties.get("node.id", properties.get("broker.id", ""))
    return Meta(cluster_id=properties.get("cluster.id") or None, node_id=int(node) if node.isdecimal() else None)


def read_topic_id(filesystem: Filesystem, directory: str) -> str:
    """The topic id of a partition folder, the zero uuid when partition.metadata is missing. Raises CheckpointError."""
    text = _text_or_none(filesystem, directory, PARTITION_METADATA)
    if text is None:
        return ZERO_UUID
    match = re.search(r"^topic_id:\s*(\S+)\s*$", text, re.MULTILINE)
    try:
        if match is None:
            raise CheckpointError(f"{join(directory, PARTITION_METADATA)} has no line `topic_id: …`: copy it again")
        uuid_bytes(match[1])
    except DecodeError as error:
        raise CheckpointError(f"{join(directory, PARTITION_METADATA)}: {error}: copy it again") from error
    return match[1]
