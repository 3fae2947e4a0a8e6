"""The small text files of a log directory as text: checkpoints, partition.metadata, and their names.

Formats: org.apache.kafka.server.common.CheckpointFile (version line, count line, one entry a line),
PartitionMetadataFile (`version: 0`, `topic_id: …`); meta.properties is in Java's format (kafka_formats.properties).
Kafka creates a checkpoint empty and later replaces it by an atomic rename: an empty one has no entries yet, one that
is cut short is a bad copy and raises CheckpointError.
No I/O here, and no library: the broker shares it.
"""

import itertools
import re
from collections.abc import Iterable, Mapping

from sharelens.kafka_log.errors import CheckpointError
from state_model.errors import DecodeError
from state_model.uuids import uuid_bytes

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
    ordered = all(
        left_entry[0] < right[0] and left_entry[1] <= right[1] for left_entry, right in itertools.pairwise(epochs)
    )
    if not ordered:
        raise CheckpointError(f"{uri} holds leader epochs that don't ascend: copy it again")
    return tuple(epochs)


def format_partition_offsets(offsets: Mapping[tuple[str, int], int]) -> str:
    """A checkpoint of (topic, partition) → offset."""
    return _format_checkpoint([f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()])


def format_leader_epochs(epochs: Iterable[tuple[int, int]]) -> str:
    """A leader-epoch-checkpoint of (leader epoch, its first offset)."""
    return _format_checkpoint([f"{epoch} {offset}" for epoch, offset in epochs])


def _format_checkpoint(lines: list[str]) -> str:
    return "\n".join(["0", str(len(lines)), *lines, ""])


def parse_topic_id(text: str, uri: str) -> str:
    """The topic id of a partition.metadata. Raises CheckpointError naming `uri`."""
    match = re.search(r"^topic_id:\s*(\S+)\s*$", text, re.MULTILINE)
    try:
        if match is None:
            raise CheckpointError(f"{uri} has no line `topic_id: …`: copy it again")
        uuid_bytes(match[1])
    except DecodeError as error:
        raise CheckpointError(f"{uri}: {error}: copy it again") from error
    return match[1]


def format_partition_metadata(topic_id: str) -> str:
    """A partition.metadata: Kafka ends its last line without a line feed."""
    return f"version: 0\ntopic_id: {topic_id}"
