"""Opens a partition's folder: its segments, the end of the log, its producers.

After a clean shutdown the indexes are used as they are. After a crash every segment from the recovery point on is read:
the log ends before the first torn batch, and later segments are deleted (UnifiedLog, LogLoader in Kafka).
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sharelens.broker.storage.compaction import finish_swaps
from sharelens.broker.storage.files import OpenFiles, storage_errors
from sharelens.broker.storage.indexes import AbortedEntry, write_aborted
from sharelens.broker.storage.leader_epochs import LeaderEpochs
from sharelens.broker.storage.producer_state import EndedTransaction, ProducerStates
from sharelens.broker.storage.record_batch import BatchHeader, parse_control
from sharelens.broker.storage.segment import Segment

_SEGMENT = re.compile(r"(\d{20})\.log")
_SNAPSHOT = re.compile(r"(\d{20})\.snapshot")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLog:
    """The content of a partition's folder. `cut_bytes`: size of the removed torn tail."""

    segments: list[Segment]
    end_offset: int
    producers: ProducerStates
    epochs: LeaderEpochs
    cut_bytes: int


def open_log(
    directory: Path,
    files: OpenFiles,
    *,
    is_clean: bool,
    recovery_point: int,
    interval_bytes: int,
    now_ms: int,
    lost_offsets: int = 0,
) -> OpenedLog:
    """Open the folder; a missing or empty one becomes an empty log at offset 0. Raises StorageError.

    lost_offsets: how many of the last offsets are removed first, in whole batches.
    """
    with storage_errors(f"{directory} can't be opened"):
        directory.mkdir(mode=0o700, exist_ok=True)
        finish_swaps(directory, files, interval_bytes, now_ms)
        bases = sorted(int(match[1]) for name in directory.iterdir() if (match := _SEGMENT.fullmatch(name.name)))
        segments = [Segment.open(directory, base, files, created_ms=now_ms) for base in bases]
        if lost_offsets and segments:
            recovery_point = min(recovery_point, _truncate(segments, lost_offsets))
            is_clean = False
        recovered, cut_bytes = _recover(segments, is_clean, recovery_point, interval_bytes)
        if not segments:
            segments.append(Segment.create(directory, 0, files, created_ms=now_ms))
        end_offset = _end_of(segments[-1])
        if cut_bytes:
            _LOG.warning("%s: cut %d bytes of a torn tail, the log ends at %d", directory, cut_bytes, end_offset)
        producers = _replay_producers(directory, segments, recovered, end_offset)
        epochs = LeaderEpochs.load(directory) or _epochs_of(directory, segments)
    return OpenedLog(segments=segments, end_offset=end_offset, producers=producers, epochs=epochs, cut_bytes=cut_bytes)


def snapshots(directory: Path) -> list[int]:
    """The offsets of the producer snapshots of a folder, ascending."""
    return sorted(int(match[1]) for path in directory.iterdir() if (match := _SNAPSHOT.fullmatch(path.name)))


def snapshot_path(directory: Path, offset: int) -> Path:
    """The producers after the batches below `offset`."""
    return directory / f"{offset:020d}.snapshot"


def drop_snapshots(directory: Path, kept_offsets: set[int]) -> None:
    """Remove all other snapshots. Raises OSError."""
    for offset in snapshots(directory):
        if offset not in kept_offsets:
            snapshot_path(directory, offset).unlink()


def _recover(
    segments: list[Segment], is_clean: bool, recovery_point: int, interval_bytes: int
) -> tuple[list[Segment], int]:
    """The segments that were read, and the number of truncated bytes; `segments` shrinks after a truncation."""
    recovered: list[Segment] = []
    cut_bytes = 0
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        following = None if last else segments[number + 1].base_offset
        if is_clean and not (last and _is_torn(segment)):
            continue
        if following is not None and following <= recovery_point:
            continue
        recovered.append(segment)
        cut_bytes += segment.recover(interval_bytes)
        if cut_bytes or (following is not None and _end_of(segment) > following):
            for beyond in segments[number + 1 :]:
                cut_bytes += beyond.size_bytes
                beyond.remove()
            del segments[number + 1 :]
            break
    return recovered, cut_bytes


def _truncate(segments: list[Segment], lost_offsets: int) -> int:
    """Remove the batches that hold any of the last offsets of a log; its new end. The oldest segment stays."""
    target = max(_end_of(segments[-1]) - lost_offsets, segments[0].base_offset)
    while len(segments) > 1 and segments[-1].base_offset >= target:
        segments.pop().remove()
    last = segments[-1]
    header = last.locate(target)
    if header is None:
        return target
    last.truncate(header.position)
    return header.base_offset


def _is_torn(segment: Segment) -> bool:
    """Whether other bytes follow the last batch."""
    position = segment.index.position_below(segment.size_bytes)
    for header in segment.walk(position):
        position = header.position + header.size_bytes
    return position != segment.size_bytes


def _end_of(segment: Segment) -> int:
    """The offset after the last batch of a segment."""
    end = segment.base_offset
    for header in segment.walk(segment.index.position_below(segment.size_bytes)):
        end = header.last_offset + 1
    return end


def _replay_producers(
    directory: Path, segments: list[Segment], recovered: list[Segment], end_offset: int
) -> ProducerStates:
    """The producers from the newest valid snapshot and the batches after it.

    Rewrites the aborted transactions of segments that were read.
    """
    begin = min((segment.base_offset for segment in recovered), default=end_offset)
    producers, start = ProducerStates(), segments[0].base_offset
    for offset in reversed(snapshots(directory)):
        path = snapshot_path(directory, offset)
        loaded = ProducerStates.load(path) if offset <= begin else None
        if loaded is None:
            path.unlink()
            continue
        producers, start = loaded, offset
        break
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= start:
            continue
        if segment.base_offset > start and not snapshot_path(directory, segment.base_offset).exists():
            producers.save(snapshot_path(directory, segment.base_offset))
        aborted = [
            AbortedEntry(ended.producer_id, ended.first_offset, ended.last_offset, stable)
            for ended, stable in (_ended(segment, producers, start) if segment.has_producers else ())
            if not ended.is_commit
        ]
        if segment in recovered:
            write_aborted(segment.path, aborted)
    return producers


def _ended(segment: Segment, producers: ProducerStates, start: int) -> Iterator[tuple[EndedTransaction, int]]:
    """Apply the batches of a segment from `start` on; their ended transactions with the last stable offset."""
    for header in segment.walk(segment.index.position_of(start)):
        if header.base_offset < start or header.producer_id < 0:
            continue
        ended = replay_batch(segment, producers, header)
        if ended is not None:
            stable = producers.first_unstable_offset
            yield ended, ended.last_offset + 1 if stable is None else stable


def replay_batch(segment: Segment, producers: ProducerStates, header: BatchHeader) -> EndedTransaction | None:
    """Apply a batch; the transaction that it ends."""
    if not header.is_control:
        producers.apply_batch(header, header.base_offset)
        return None
    raw = segment.read(header.position, header.size_bytes)
    marker = parse_control(raw, header._replace(position=0))
    return None if marker is None else producers.apply_marker(header, header.base_offset, marker)


def _epochs_of(directory: Path, segments: list[Segment]) -> LeaderEpochs:
    """The leader epochs in the batches."""
    epochs = LeaderEpochs(directory)
    for segment in segments:
        for header in segment.walk():
            epochs.note(header.leader_epoch, header.base_offset)
    return epochs
