"""Where the content comes from: each file of the log directories with its SHA-256, or the lake's books and versions."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.kafka_log import filesystem, text_files
from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
from sharelens.kafka_log.files import RandomAccess, join, name_of, parent
from sharelens.kafka_log.layout import LogDirectory, PartitionDirectory
from sharelens.tables.lakes.published import PublishedLake
from sharelens.tables.logs.directories import LogDirectories
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_dead_letter_partitions
from sharelens.tables.where import Keys
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

LOG_DIRECTORIES, LAKE = "log_directories", "lake"
BLOCK_BYTES = 1 << 22
IN_THE_ROOT = (
    text_files.META_PROPERTIES,
    text_files.HIGH_WATERMARK_CHECKPOINT,
    text_files.LOG_START_CHECKPOINT,
)
IN_A_PARTITION = (text_files.PARTITION_METADATA, text_files.LEADER_EPOCH_CHECKPOINT)
EXTENT_COLUMNS = (
    "run_id", "source_id", "node_id", "source_uri", "topic", "topic_id", "partition", "content", "from_offset",
    "end_offset_exclusive", "record_count", "size_bytes", "sha256", "written_at_ms", "sharelens_version", "user",
    "host",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDigest:
    """The first `size_bytes` bytes of a file and their SHA-256; `sha256` is null when it was gone or not hashed."""

    size_bytes: int
    modified_ms: int | None
    sha256: str | None


def sources_of(evidence: Tables, keys: Keys, letter_topics: DeadLetterTopics, *, hash_topics: bool) -> dict[str, Any]:
    """What the manifest says of the sources. Call it once the evidence is open: what it read lies in what is hashed.

    `hash_topics`: segments of user topics too; else their size and time alone.
    """
    match evidence.origin:
        case LogDirectories() as origin:
            return _of_directories(evidence, origin, keys, letter_topics, hash_topics=hash_topics)
        case origin:
            return _of_lake(evidence, origin, keys, letter_topics)


def _of_directories(
    evidence: Tables, origin: LogDirectories, keys: Keys, letter_topics: DeadLetterTopics, *, hash_topics: bool
) -> dict[str, Any]:
    directories = sorted(origin.directories, key=lambda directory: directory.uri)
    files = []
    for number, directory in enumerate(directories):
        for path, hashed in _paths(directory, keys, letter_topics, hash_topics=hash_topics):
            digest = look_at(join(directory.uri, path), hashed=hashed)
            if digest is not None:
                files.append(
                    {
                        "directory": number,
                        "path": path,
                        "size_bytes": digest.size_bytes,
                        "modified_ms": digest.modified_ms,
                        "node_id": directory.node_id,
                        "sha256": digest.sha256,
                    }
                )
    return {
        "kind": LOG_DIRECTORIES,
        "directories": [
            {
                "uri": directory.uri,
                "source_id": directory.source_id,
                "node_id": directory.node_id,
                "cluster_id": directory.cluster_id,
            }
            for directory in directories
        ],
        "files": files,
        "include_uncommitted": origin.source.include_uncommitted,
        "include_deleted": origin.source.include_deleted,
        "topic_names": _text_file(origin.source.topic_names),
        "state_partitions": _state_partitions(evidence),
    }


def _text_file(path: str | None) -> dict[str, Any] | None:
    """The file behind --topic-names."""
    digest = None if path is None else look_at(path)
    return None if digest is None else {"path": path, "size_bytes": digest.size_bytes, "sha256": digest.sha256}


def _state_partitions(evidence: Tables) -> list[dict[str, Any]]:
    """The extent of each state partition at this moment: it grows, and Kafka prunes it."""
    return [part.row() for part in evidence.cover()]


def _paths(
    directory: LogDirectory, keys: Keys, letter_topics: DeadLetterTopics, *, hash_topics: bool
) -> Iterator[tuple[str, bool]]:
    """Paths of files inside a log directory that the content rests on, and whether each is hashed."""
    for name in IN_THE_ROOT:
        yield name, True
    for partition in directory.partitions:
        read_whole = partition.topic in (STATE_TOPIC, OFFSETS_TOPIC) or letter_topics.takes(partition.topic)
        if not read_whole and not _is_selected(partition, keys):
            continue
        folder = name_of(partition.uri)
        for name in IN_A_PARTITION:
            yield f"{folder}/{name}", True
        for segment in partition.segments:
            yield f"{folder}/{name_of(segment.uri)}", read_whole or hash_topics


def _is_selected(partition: PartitionDirectory, keys: Keys) -> bool:
    """Whether `keys` select a user partition; without topics they select none."""
    if keys.topics is None or partition.topic_id not in keys.topics:
        return False
    numbers = keys.topics[partition.topic_id]
    return numbers is None or partition.partition in numbers


def look_at(uri: str, *, hashed: bool = True, size_bytes: int | None = None) -> FileDigest | None:
    """Hashes the file as far as it goes now, or its first `size_bytes`; None when there is none."""
    name = name_of(uri)
    try:
        folder = filesystem.folder_at(parent(uri))
        with folder.open(name) as file:
            size = file.size() if size_bytes is None else min(size_bytes, file.size())
            digest = _digest(file, size) if hashed else None
        return FileDigest(size_bytes=size, modified_ms=folder.modified_ms(name), sha256=digest)
    except FileNotFoundError:
        return None


def _digest(file: RandomAccess, size: int) -> str | None:
    """SHA-256 of the first `size` bytes; null when the file became shorter meanwhile."""
    digest = hashlib.sha256()
    done = 0
    while done < size:
        block = file.read_at(done, min(BLOCK_BYTES, size - done))
        if len(block) == 0:
            return None
        digest.update(block.data)
        done += len(block)
    return digest.hexdigest()


def _of_lake(evidence: Tables, origin: PublishedLake, keys: Keys, letter_topics: DeadLetterTopics) -> dict[str, Any]:
    lake = origin.lake
    return {
        "kind": LAKE,
        "uri": lake.lake.storage.address,
        "run_id": lake.publication["run_id"],
        "published_at_ms": lake.publication["published_at_ms"],
        "tables": [{"table": name, "version": version} for name, version in sorted(lake.versions.items())],
        "extents": extents_of(evidence, origin, keys, letter_topics),
        "state_partitions": _state_partitions(evidence),
    }


def extents_of(
    evidence: Tables, origin: PublishedLake, keys: Keys, letter_topics: DeadLetterTopics
) -> list[dict[str, Any]]:
    """The books' rows of internal topics, of dead letters and of the user partitions of `keys`, in a fixed order."""
    letters = read_dead_letter_partitions(evidence).column("dlq_topic").unique().to_pylist()
    topics = pa.array([STATE_TOPIC, OFFSETS_TOPIC, *filter(letter_topics.takes, letters)], pa.string())
    ours = pc.field("topic").isin(topics)
    users = Keys(topics=keys.topics).expression()
    ours = ours if users is None else ours | users
    condition = (pc.field("cluster_id") == evidence.cluster_id) & (pc.field("status") == "taken") & ours
    rows = origin.lake.scan("bronze.ingest_extent", list(EXTENT_COLUMNS), condition)
    order = ("run_id", "topic", "topic_id", "partition", "source_id", "content")
    return list(rows.sort_by([(name, "ascending") for name in order]).to_pylist())
