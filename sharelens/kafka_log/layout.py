"""Lists a log directory: partitions, their segments, log start offsets and high watermarks.

The rules are those of the broker (LogManager, UnifiedLog, LogFileUtils): a partition lives in `TOPIC-N`; `-future` is a
move between disks in progress, `TOPIC-N.<hex>-delete` and `-stray` wait for deletion; `.cleaned`, `.swap` and
`.deleted` mark files that are not, or no longer, part of a log.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sharelens.kafka_log import checkpoints, filesystem, text_files
from sharelens.kafka_log.errors import CheckpointError, LogDirectoryError
from sharelens.kafka_log.files import Entry, Folder, RandomAccess, join, name_of, parent
from sharelens.kafka_log.text_files import PartitionOffsets
from state_model.topics import RECORD_TOPICS
from state_model.uuids import ZERO_UUID

Status = Literal["live", "deleted", "stray"]

_LIVE = re.compile(r"(?P<topic>[^/]+)-(?P<partition>\d{1,10})")
_MARKED = re.compile(r"(?P<topic>[^/]+)-(?P<partition>\d{1,10})(\.[0-9a-f]+)?-(?P<mark>delete|stray|future)")
_SEGMENT = re.compile(r"(\d{20})\.log")
_STATUS: dict[str, Status] = {"delete": "deleted", "stray": "stray"}
CHECKPOINT_SUFFIX = "-offset-checkpoint"
_LOOKS_LIKE = "a Kafka log directory holds folders TOPIC-N with *.log files, and *-checkpoint files beside them"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """One segment: its records start at `base_offset`.

    `size_bytes`, `modified_ms`, `tag` (the ETag of an object) and `index`, its offset index, are as they were listed.
    """

    base_offset: int
    uri: str
    size_bytes: int
    index: Entry | None = None
    modified_ms: int | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDirectory:
    """One copy of one partition.

    `committed_end` is the checkpointed high watermark (exclusive): None when the directory has no such file and is
    read whole. It is at least the log start offset (UnifiedLog begins there), which it is, too, when the file has no
    line for the partition: no record is known to be committed.
    `remote_below`: the log starts below the first local segment, the older part is in tiered storage.
    `log_start_known`: the directory has a log-start-offset-checkpoint; without it, `log_start_offset` is a guess.
    `leader_epochs`: (epoch, first offset). `created_ms`: when the broker wrote partition.metadata, which it does before
    the first record, by the file's time (epoch ms); None: unknown.
    """

    topic: str
    partition: int
    topic_id: str
    uri: str
    source_id: str
    segments: tuple[SegmentFile, ...]
    log_start_offset: int
    remote_below: bool
    committed_end: int | None
    status: Status
    leader_epochs: tuple[tuple[int, int], ...] = ()
    cluster_id: str | None = None
    node_id: int | None = None
    log_start_known: bool = False
    created_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableFolder:
    """A partition folder that can't be listed, or has a damaged file that its records depend on; `error`: one line."""

    topic: str
    partition: int
    error: str

    @property
    def warning(self) -> str:
        """The line of an answer that goes on without the folder."""
        return f"{self.error}; the folder is left out, and what only its records say is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """One log directory.

    `skipped`: folders that were left out and files that were ignored, each with the reason, for a person to read.
    `checkpoint_ms`: when the broker last wrote a checkpoint file (epoch ms), by the file's time; None: unknown.
    `high_watermarks`, `log_starts`: those of the checkpoints by (topic, partition), of replicas without a folder too.
    `unreadable`: folders that are left out because they can't be read.
    """

    uri: str
    source_id: str
    cluster_id: str | None
    node_id: int | None
    partitions: tuple[PartitionDirectory, ...]
    skipped: tuple[str, ...]
    checkpoint_ms: int | None = None
    high_watermarks: Mapping[tuple[str, int], int] = field(default_factory=dict, compare=False)
    log_starts: Mapping[tuple[str, int], int] = field(default_factory=dict, compare=False)
    unreadable: tuple[UnreadableFolder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    folder: Folder
    source_id: str
    cluster_id: str | None
    node_id: int | None
    log_starts: PartitionOffsets | None
    high_watermarks: PartitionOffsets | None


def scan_log_directory(
    uri: str,
    *,
    include_deleted: bool = False,
    topics: Container[str] | None = None,
    leaves_out_unreadable: bool = False,
) -> LogDirectory:
    """List a log directory; folders of topics outside `topics` are not opened.

    Raises LogDirectoryError, in one line, for what is missing, unreadable or no log directory, with the path to give
    instead where that can be seen; with `leaves_out_unreadable` not for a single folder.
    """
    root, entries = _root(filesystem.absolute(uri))
    root = root.listed()
    meta = checkpoints.read_meta(root)
    node = "" if meta.node_id is None else f"node {meta.node_id}: "
    context = _Context(
        folder=root,
        source_id=f"{node}{root.uri}",
        cluster_id=meta.cluster_id,
        node_id=meta.node_id,
        log_starts=checkpoints.read_partition_offsets(root, text_files.LOG_START_CHECKPOINT),
        high_watermarks=checkpoints.read_partition_offsets(root, text_files.HIGH_WATERMARK_CHECKPOINT),
    )
    partitions, skipped, unreadable = [], [], []
    for entry in entries:
        classified = _classify(entry)
        if classified is None or (topics is not None and classified[0] not in topics):
            continue
        topic, partition, mark = classified
        if mark == "future":
            skipped.append(f"{entry.name}: copy between disks in progress")
        elif mark and not include_deleted:
            skipped.append(f"{entry.name}: {mark} pending, taken with --include-deleted")
        elif partition >= 1 << 31:
            skipped.append(f"{entry.name}: partition number too large")
        else:
            status = _STATUS.get(mark, "live")
            try:
                partitions.append(_scan_partition(context, entry.name, topic, partition, status, skipped))
            except LogDirectoryError as error:
                if not leaves_out_unreadable:
                    raise
                unreadable.append(UnreadableFolder(topic=topic, partition=partition, error=str(error)))
    return LogDirectory(
        uri=root.uri,
        source_id=context.source_id,
        cluster_id=meta.cluster_id,
        node_id=meta.node_id,
        partitions=tuple(sorted(partitions, key=lambda copy: (copy.topic, copy.partition, copy.uri))),
        skipped=tuple(skipped),
        checkpoint_ms=_checkpoint_ms(entries),
        high_watermarks=context.high_watermarks or {},
        log_starts=context.log_starts or {},
        unreadable=tuple(unreadable),
    )


def _checkpoint_ms(entries: Iterable[Entry]) -> int | None:
    times = (entry.modified_ms for entry in entries if entry.name.endswith(CHECKPOINT_SUFFIX))
    return max((time for time in times if time is not None), default=None)


def _classify(entry: Entry) -> tuple[str, int, str] | None:
    """(topic, partition, mark) of a partition folder; the mark is empty for a live one."""
    if not entry.is_directory:
        return None
    if match := _MARKED.fullmatch(entry.name):
        return match["topic"], int(match["partition"]), match["mark"]
    if match := _LIVE.fullmatch(entry.name):
        return match["topic"], int(match["partition"]), ""
    return None


def _root(uri: str) -> tuple[Folder, list[Entry]]:
    """A log directory and its entries. Raises LogDirectoryError for anything else, in one line."""
    try:
        folder = filesystem.folder_at(uri)
        entries = folder.entries()
    except FileNotFoundError:
        raise LogDirectoryError(f"no such directory: {uri}{filesystem.on_host(uri)}; {_LOOKS_LIKE}") from None
    except NotADirectoryError:
        raise LogDirectoryError(f"not a directory: {uri}; {_LOOKS_LIKE}") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LogDirectoryError(f"can't list {uri}{filesystem.on_host(uri)}: {reason}") from error
    if any(_classify(entry) and _is_partition(folder.at(entry.name)) for entry in entries):
        return folder, entries
    if any(_SEGMENT.fullmatch(entry.name) for entry in entries):
        raise LogDirectoryError(f"{uri} is the folder of one partition: give its parent, {parent(uri)}")
    if any(entry.name == text_files.HIGH_WATERMARK_CHECKPOINT for entry in entries):
        return folder, entries
    below = [
        join(uri, entry.name) for entry in entries if entry.is_directory and _holds_partitions(folder.at(entry.name))
    ]
    if below:
        remainder_text = f" (and {len(below) - 3} more)" if len(below) > 3 else ""
        raise LogDirectoryError(
            f"{uri} holds log directories, give them one by one: {', '.join(below[:3])}{remainder_text}"
        )
    problem = f"nothing like that in its {len(entries)} entries" if entries else "it is empty"
    raise LogDirectoryError(f"not a log directory: {uri}: {problem}; {_LOOKS_LIKE}")


def _holds_partitions(folder: Folder) -> bool:
    try:
        entries = folder.entries()
    except OSError:
        return False
    return any(_classify(entry) and _is_partition(folder.at(entry.name)) for entry in entries)


def _is_partition(folder: Folder) -> bool:
    """Whether a folder named like a partition has a partition's files; an unreadable folder counts as a partition."""
    try:
        names = [entry.name for entry in folder.entries()]
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(_SEGMENT.fullmatch(name) or name == text_files.PARTITION_METADATA for name in names)


def list_segments(folder: Folder) -> tuple[SegmentFile, ...]:
    """The segments of a partition folder by base offset. Raises FileNotFoundError when the folder is gone."""
    return _segments(folder.entries(), folder.uri)


def _segments(entries: Sequence[Entry], uri: str) -> tuple[SegmentFile, ...]:
    indexes = {entry.name: entry for entry in entries if entry.size_bytes}
    segments = []
    for entry in entries:
        match = _SEGMENT.fullmatch(entry.name)
        if match is None or entry.is_directory or int(match[1]) >= 1 << 63:
            continue
        segments.append(
            SegmentFile(
                base_offset=int(match[1]),
                uri=join(uri, entry.name),
                size_bytes=entry.size_bytes,
                index=indexes.get(f"{match[1]}.index"),
                modified_ms=entry.modified_ms,
                tag=entry.tag,
            )
        )
    return tuple(sorted(segments, key=lambda segment: segment.base_offset))


def open_segment(segment: SegmentFile) -> RandomAccess:
    """The file of a segment: in a store as it was listed, on a disk as it is now."""
    folder = filesystem.folder_at(parent(segment.uri))
    return folder.open(name_of(segment.uri), size_bytes=segment.size_bytes, tag=segment.tag)


def _topic_id(context: _Context, name: str, topic: str, skipped: list[str]) -> str:
    """The topic id of a partition folder, the zero uuid where a user topic's partition.metadata is missing or damaged.

    Raises CheckpointError when that of a topic in RECORD_TOPICS is damaged: its records would count to another
    incarnation of the topic.
    """
    try:
        return checkpoints.read_topic_id(context.folder.at(name))
    except CheckpointError as error:
        if topic in RECORD_TOPICS:
            raise
        problem = str(error).removeprefix(f"{join(context.folder.uri, name)}/")
        skipped.append(f"{name}/{problem}; without it only other partitions of the topic tell its topic id")
        return ZERO_UUID


def _scan_partition(
    context: _Context, name: str, topic: str, partition: int, status: Status, skipped: list[str]
) -> PartitionDirectory:
    folder = context.folder.at(name)
    uri = folder.uri
    try:
        entries = folder.entries()
        segments = _segments(entries, uri)
        topic_id = _topic_id(context, name, topic, skipped)
        epochs = checkpoints.read_leader_epochs(folder)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LogDirectoryError(f"can't read {uri}{filesystem.on_host(uri)}: {reason}") from error
    first = segments[0].base_offset if segments else 0
    key = (topic, partition)
    log_start = (context.log_starts or {}).get(key, first) if status == "live" else first
    committed = None
    if context.high_watermarks is not None:
        committed = max(log_start, context.high_watermarks.get(key, 0))
    return PartitionDirectory(
        topic=topic,
        partition=partition,
        topic_id=topic_id,
        uri=uri,
        source_id=context.source_id,
        segments=segments,
        log_start_offset=log_start,
        remote_below=bool(segments) and log_start < first,
        committed_end=committed if status == "live" else None,
        status=status,
        leader_epochs=epochs,
        cluster_id=context.cluster_id,
        node_id=context.node_id,
        log_start_known=context.log_starts is not None and status == "live",
        created_ms=next((entry.modified_ms for entry in entries if entry.name == text_files.PARTITION_METADATA), None),
    )
