"""Reading the small text files of a log directory: checkpoints, meta.properties, partition.metadata."""

from dataclasses import dataclass

from sharelens.kafka_formats import properties
from sharelens.kafka_log.errors import CheckpointError
from sharelens.kafka_log.files import Folder, join
from sharelens.kafka_log.text_files import (
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    PartitionOffsets,
    parse_leader_epochs,
    parse_partition_offsets,
    parse_topic_id,
)
from state_model.uuids import ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Cluster and node id of a log directory; None where meta.properties is missing or lacks them."""

    cluster_id: str | None
    node_id: int | None


def _text_or_none(folder: Folder, name: str) -> str | None:
    try:
        return folder.read_text(name)
    except FileNotFoundError:
        return None


def read_partition_offsets(folder: Folder, name: str) -> PartitionOffsets | None:
    """The entries of one checkpoint of a log directory; None when the file is missing."""
    text = _text_or_none(folder, name)
    return None if text is None else parse_partition_offsets(text, join(folder.uri, name))


def read_leader_epochs(folder: Folder) -> tuple[tuple[int, int], ...]:
    """Leader epochs of a partition folder; empty when the file is missing or broken: they only help to merge copies."""
    text = _text_or_none(folder, LEADER_EPOCH_CHECKPOINT)
    if text is None:
        return ()
    try:
        return parse_leader_epochs(text, join(folder.uri, LEADER_EPOCH_CHECKPOINT))
    except CheckpointError:
        return ()


def read_meta(folder: Folder) -> Meta:
    """cluster.id and node.id (broker.id in ZooKeeper days) of meta.properties. Raises CheckpointError."""
    text = _text_or_none(folder, META_PROPERTIES) or ""
    try:
        parsed = properties.parse(text, join(folder.uri, META_PROPERTIES))
    except properties.PropertiesError as error:
        raise CheckpointError(f"{error}: copy it again") from error
    values = {key: value.strip() for key, value in parsed.items()}
    node = values.get("node.id", values.get("broker.id", ""))
    return Meta(cluster_id=values.get("cluster.id") or None, node_id=int(node) if node.isdecimal() else None)


def read_topic_id(folder: Folder) -> str:
    """The topic id of a partition folder, the zero uuid when partition.metadata is missing. Raises CheckpointError."""
    text = _text_or_none(folder, PARTITION_METADATA)
    if text is None:
        return ZERO_UUID
    return parse_topic_id(text, join(folder.uri, PARTITION_METADATA))
