"""Compaction: of the closed segments of a log only the last record of each key stays, at its offset.

Rules: org.apache.kafka.storage.internals.log.LogCleaner and Cleaner. Records of aborted transactions go. A record
without a value stays delete.retention.ms from its first cleaning: its batch then gets a delete horizon
(KIP-534), as does the marker of a transaction of which no record is left. Records without a key stay.

One pass goes over all segments in order, so a record is removed before the record that made it obsolete. A crash at any
moment leaves each record in place or obsolete, never lost: the new file is complete and on the disk before its name
ends in `.swap`, and a start carries on from there.

The work has steps of one batch, so that requests are handled in between. Closed segments don't change meanwhile; when
one is deleted, the steps end, and their output is removed.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from sharelens.broker.errors import StorageError
from sharelens.broker.ports import Record
from sharelens.broker.storage import record_batch as rb
from sharelens.broker.storage.files import OpenFiles, sync_directory, write_at
from sharelens.broker.storage.indexes import AbortedEntry
from sharelens.broker.storage.record_batch import BatchHeader
from sharelens.broker.storage.segment import Segment, batch_facts

KEYS_MAX: Final = 500_000
"""Bound of the keys of one pass; records of other keys stay."""
CLEANED, SWAP = ".cleaned", ".swap"
Steps = Generator[int, None, bool]
"""Steps that yield their size in bytes and return True at the end."""
_SYNC_BYTES: Final = 8 << 20
"""Bytes between two syncs, which bound the duration of a sync."""
_DIGEST_BYTES: Final = 16
_INT32_MAX: Final = (1 << 31) - 1
_SWAPPED: Final = re.compile(r"(\d{20})\.log\.swap")
_LEFT_BEHIND: Final = re.compile(r"\d{20}\.log\.cleaned")
_INDEXES: Final = (".index", ".timeindex", ".txnindex")


class Pass:
    """One pass over segments: first all keys are collected, then each segment is cleaned, in the same order.

    `is_full`: there is no room for more keys.
    """

    def __init__(self, aborted: Iterable[AbortedEntry], *, now_ms: int, retention_ms: int) -> None:
        """`aborted`: all transactions that touch the segments. `retention_ms`: delete.retention.ms."""
        self._now_ms = now_ms
        self._horizon_ms = now_ms + retention_ms
        self.has_changed = self.is_full = False
        self._latest: dict[bytes, int] = {}
        self._with_records: set[int] = set()
        self._aborted: dict[int, list[tuple[int, int]]] = {}
        for entry in aborted:
            self._aborted.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))

    def note(self, segment: Segment) -> Iterator[int]:
        """Collect the last offsets of its keys."""
        latest = self._latest
        for header, data in _batches(segment):
            if not header.is_control and not self._is_aborted(header):
                for record in rb.parse(data, header):
                    if record.key is not None:
                        latest[_digest(record.key)] = record.offset
            if len(latest) >= KEYS_MAX:
                self.is_full = True
                return
            yield header.size_bytes

    def clean(self, segment: Segment) -> Iterator[tuple[int, bytes | None]]:
        """The size of each batch, and its remaining records; `has_changed` is true after a difference."""
        for header, data in _batches(segment):
            remaining_batch = self._marker(header, data) if header.is_control else self._remaining_batch(header, data)
            if remaining_batch is not data:
                self.has_changed = True
            yield header.size_bytes, remaining_batch

    def _remaining_batch(self, header: BatchHeader, data: bytes) -> bytes | None:
        if self._is_aborted(header):
            return None
        records = rb.parse(data, header)
        horizon_ms = rb.delete_horizon(header)
        kept_records = [record for record in records if self._stays(record, horizon_ms)]
        if not kept_records:
            return None
        if header.is_transactional:
            self._with_records.add(header.producer_id)
        if horizon_ms is None and any(record.value is None for record in kept_records):
            return rb.rebuild(header, kept_records, delete_horizon_ms=self._horizon_ms)
        return data if len(kept_records) == len(records) else rb.rebuild(header, kept_records)

    def _stays(self, record: Record, horizon_ms: int | None) -> bool:
        if record.key is None:
            return True
        latest = self._latest.get(_digest(record.key), -1)
        if latest > record.offset:
            return False
        is_over = record.value is None and horizon_ms is not None and horizon_ms < self._now_ms
        return not (is_over and latest == record.offset)

    def _marker(self, header: BatchHeader, data: bytes) -> bytes | None:
        """A marker is needed for as long as there is a record of its transaction."""
        if header.producer_id in self._with_records:
            self._with_records.remove(header.producer_id)
            return data
        horizon_ms = rb.delete_horizon(header)
        if horizon_ms is None:
            return rb.rebuild(header, rb.parse(data, header), delete_horizon_ms=self._horizon_ms)
        return None if horizon_ms < self._now_ms else data

    def _is_aborted(self, header: BatchHeader) -> bool:
        ended = self._aborted.get(header.producer_id) if header.is_transactional else None
        if not ended:
            return False
        index = bisect_right(ended, (header.base_offset, _INT32_MAX << 32)) - 1
        return index >= 0 and header.base_offset <= ended[index][1]


def groups(segments: Sequence[Segment], segment_bytes: int, ends: Sequence[int]) -> Iterator[list[Segment]]:
    """Neighbouring segments that fit into one. `ends`: the base offset that follows each."""
    group: list[Segment] = []
    size = 0
    for segment, end in zip(segments, ends, strict=True):
        fits = size + segment.size_bytes <= segment_bytes and (not group or end - group[0].base_offset <= _INT32_MAX)
        if group and not fits:
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size_bytes
    if group:
        yield group


def rewrite(
    group: Sequence[Segment], cleaning: Pass, files: OpenFiles, interval_bytes: int
) -> Generator[int, None, Segment | None]:
    """One segment in the place of a group, with its remaining records; None when nothing would change.

    In steps; the last of them exchanges the files, all but the index, which the new segment has in memory. Raises
    OSError, CorruptBatchError; the group is then as it was, or the next start finishes the work.
    """
    first = group[0]
    scratch = Path(first.log_path + CLEANED)
    new_segment = Segment(first.path.parent, first.base_offset, files, created_ms=first.created_ms)
    cleaning.has_changed = False
    try:
        yield from _write(scratch, group, cleaning, new_segment, interval_bytes)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    if len(group) == 1 and not cleaning.has_changed:
        scratch.unlink()
        return None
    swap = Path(first.log_path + SWAP)
    scratch.rename(swap)
    sync_directory(swap.parent)
    for segment in group[1:]:
        segment.remove()
    _put_in_place(swap, first.path, files)
    return new_segment


def finish_swaps(directory: Path, files: OpenFiles, interval_bytes: int, now_ms: int) -> None:
    """Finish or undo an interrupted cleaning: incomplete files are deleted, complete ones replace their sources.

    Some sources of a complete file may exist. A source that begins behind its last batch has no record in it and
    stays: its records are obsolete, not wrong. Raises OSError, StorageError.
    """
    names = [path.name for path in directory.iterdir()]
    for name in filter(_LEFT_BEHIND.fullmatch, names):
        (directory / name).unlink()
    for base in sorted(int(match[1]) for name in names if (match := _SWAPPED.fullmatch(name))):
        swap = directory / f"{base:020d}.log.swap"
        end = _end_of(swap, base)
        for other in sorted(directory.glob("*.log")):
            if base < int(other.stem) < end:
                for suffix in (".log", *_INDEXES):
                    other.with_suffix(suffix).unlink(missing_ok=True)
        path = directory / f"{base:020d}.log"
        _put_in_place(swap, path, files)
        segment = Segment.open(directory, base, files, created_ms=now_ms)
        if segment.recover(interval_bytes):
            raise StorageError(f"{path} is not what was written")


def _put_in_place(swap: Path, path: Path, files: OpenFiles) -> None:
    """The aborted transactions of the old segment go with its index: none of their records is left."""
    files.forget(str(path))
    for suffix in _INDEXES:
        path.with_suffix(suffix).unlink(missing_ok=True)
    swap.rename(path)
    sync_directory(path.parent)


def _write(
    path: Path, group: Sequence[Segment], cleaning: Pass, new_segment: Segment, interval_bytes: int
) -> Iterator[int]:
    """Write the remaining records of a group, make them durable, and index them in the new segment."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    unsynced = 0
    try:
        for segment in group:
            for size_bytes, batch in cleaning.clean(segment):
                if batch is not None:
                    write_at(descriptor, batch, new_segment.size_bytes)
                    header = rb.read_header(batch)
                    assert header is not None
                    new_segment.note(batch_facts(header), interval_bytes)
                    unsynced += len(batch)
                if unsynced >= _SYNC_BYTES:
                    os.fsync(descriptor)
                    unsynced = 0
                yield size_bytes
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _batches(segment: Segment) -> Iterator[tuple[BatchHeader, bytes]]:
    for header, data, start in segment.walk_whole():
        yield header._replace(position=0), data[start : start + header.size_bytes]


def _end_of(path: Path, base_offset: int) -> int:
    """The offset behind the last batch of a file that was written whole."""
    end = base_offset
    with path.open("rb") as file:
        while (header := rb.read_header(file.read(rb.HEADER_BYTES))) is not None:
            end = header.last_offset + 1
            file.seek(header.size_bytes - rb.HEADER_BYTES, os.SEEK_CUR)
    return end


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
