"""One segment of a log: a file of record batches, its sparse index, and the walk over its batch headers.

Rules: org.apache.kafka.storage.internals.log.LogSegment (when to roll, what is indexed, recovery).
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from sharelens.broker.storage.files import OpenFiles
from sharelens.broker.storage.indexes import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, SegmentIndex, read_last_time
from sharelens.broker.storage.log_config import LogConfig
from sharelens.broker.storage.record_batch import HEADER_BYTES, BatchHeader, Buffer, checksum_holds, read_header

_WALK_BYTES: Final = 64 << 10
_CHECK_BYTES: Final = 1 << 20
_INT32_MAX: Final = (1 << 31) - 1


class BatchFacts(NamedTuple):
    """The index fields of an appended batch."""

    size_bytes: int
    last_offset: int
    max_timestamp_ms: int


def batch_facts(header: BatchHeader) -> BatchFacts:
    """The index fields of a batch with its final offsets."""
    return BatchFacts(
        size_bytes=header.size_bytes, last_offset=header.last_offset, max_timestamp_ms=header.max_timestamp_ms
    )


class Segment:
    """The batches from `base_offset` on. Positions are bytes from the start of the file."""

    __slots__ = (
        "_files",
        "_first_timestamp_ms",
        "_index",
        "_since_bytes",
        "base_offset",
        "created_ms",
        "has_producers",
        "largest_timestamp_ms",
        "largest_timestamp_offset",
        "log_path",
        "path",
        "size_bytes",
    )

    def __init__(self, directory: Path, base_offset: int, files: OpenFiles, *, created_ms: int) -> None:
        self.path = directory / f"{base_offset:020d}.log"
        self.log_path = str(self.path)
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.size_bytes = 0
        self.largest_timestamp_ms = -1
        self.largest_timestamp_offset = base_offset
        # Known after a recovery, else unknown.
        self.has_producers = True
        self._files = files
        self._first_timestamp_ms: int | None = None
        self._index: SegmentIndex | None = SegmentIndex(base_offset)
        self._since_bytes = 0

    @classmethod
    def create(cls, directory: Path, base_offset: int, files: OpenFiles, *, created_ms: int) -> "Segment":
        """A new segment with empty indexes. Raises OSError, StorageError."""
        segment = cls(directory, base_offset, files, created_ms=created_ms)
        os.ftruncate(files.get(segment.log_path), 0)
        segment.path.with_suffix(".txnindex").unlink(missing_ok=True)
        segment.save_index()
        return segment

    @classmethod
    def open(cls, directory: Path, base_offset: int, files: OpenFiles, *, created_ms: int) -> "Segment":
        """A cleanly closed segment: its index is loaded at its first use. Raises OSError."""
        segment = cls(directory, base_offset, files, created_ms=created_ms)
        segment.size_bytes = segment.path.stat().st_size
        segment._index = None
        last = read_last_time(segment.path, base_offset)
        if last is not None:
            segment.largest_timestamp_ms, segment.largest_timestamp_offset = last
        return segment

    @property
    def descriptor(self) -> int:
        """The descriptor of the log file, valid until another file is opened."""
        return self._files.get(self.log_path)

    @property
    def index(self) -> SegmentIndex:
        """The index, loaded from its files, or built from the batches when those are invalid."""
        if self._index is None:
            self._index = SegmentIndex.load(self.path, self.base_offset, self.size_bytes)
            if self._index is None:
                self._rebuild(self.walk(), LogConfig().index_interval_bytes)
                self.save_index()
        assert self._index is not None
        return self._index

    def must_roll(self, batch: BatchFacts, config: LogConfig, now_ms: int) -> bool:
        """Whether a batch belongs into a new segment: size, age, a full index, an offset too far from the base."""
        size_bytes, last_offset, max_timestamp_ms = batch
        if self.size_bytes == 0:
            return last_offset - self.base_offset > _INT32_MAX
        first_ms = self._first_timestamp_ms
        if first_ms is None:
            first = read_header(self.read(0, HEADER_BYTES))
            first_ms = self._first_timestamp_ms = first.max_timestamp_ms if first is not None else -1
        age_ms = max_timestamp_ms - first_ms if first_ms >= 0 and max_timestamp_ms >= 0 else now_ms - self.created_ms
        return (
            self.size_bytes + size_bytes > config.segment_bytes
            or age_ms > config.segment_ms
            or last_offset - self.base_offset > _INT32_MAX
            or self._is_index_full(config.segment_index_bytes)
        )

    def _is_index_full(self, limit_bytes: int) -> bool:
        index = self._index
        if index is None:
            index = self.index
        return (
            index.entries >= limit_bytes // OFFSET_ENTRY_BYTES or index.time_entries >= limit_bytes // TIME_ENTRY_BYTES
        )

    def write(self, pieces: tuple[Buffer, ...], size_bytes: int) -> None:
        """Write a batch behind the last one; it becomes readable with `note`. Raises OSError."""
        self._files.append(self.log_path, pieces, size_bytes, self.size_bytes)

    def undo_write(self) -> None:
        """Truncate the bytes of `write`. Raises OSError."""
        os.ftruncate(self._files.get(self.log_path), self.size_bytes)

    def note(self, batch: BatchFacts, interval_bytes: int) -> None:
        """Index the batch that was written at the end."""
        if batch.max_timestamp_ms > self.largest_timestamp_ms:
            self.largest_timestamp_ms = batch.max_timestamp_ms
            self.largest_timestamp_offset = batch.last_offset
        if self._first_timestamp_ms is None and self.size_bytes == 0:
            self._first_timestamp_ms = batch.max_timestamp_ms
        if self._since_bytes > interval_bytes:
            index = self.index
            index.add(batch.last_offset, self.size_bytes)
            index.add_time(self.largest_timestamp_ms, self.largest_timestamp_offset)
            self._since_bytes = 0
        self._since_bytes += batch.size_bytes
        self.size_bytes += batch.size_bytes

    def save_index(self) -> None:
        """Write the index files, the time index with the largest timestamp so far. Raises StorageError."""
        if self.largest_timestamp_ms >= 0:
            self.index.add_time(self.largest_timestamp_ms, self.largest_timestamp_offset)
        self.index.save(self.path)

    def unload_index(self) -> None:
        """Free the memory of the index, which was saved."""
        self._index = None

    def sync(self) -> None:
        """Make its batches durable. Raises OSError."""
        os.fsync(self.descriptor)

    def remove(self) -> None:
        """Remove its files. Raises OSError."""
        self._files.forget(self.log_path)
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            self.path.with_suffix(suffix).unlink(missing_ok=True)

    def read(self, position: int, length: int) -> bytes:
        """Bytes of the file; fewer at its end. Raises OSError."""
        return os.pread(self.descriptor, min(length, self.size_bytes - position), position)

    def walk(self, position: int = 0) -> Iterator[BatchHeader]:
        """The headers of the batches from the start of one on (`position`: in the file); ends at other bytes."""
        chunk, start, end = b"", position, self.size_bytes
        while position < end:
            if position - start + HEADER_BYTES > len(chunk):
                chunk, start = os.pread(self.descriptor, min(_WALK_BYTES, end - position), position), position
            header = read_header(chunk, position - start, origin=start)
            if header is None or position + header.size_bytes > end:
                return
            yield header
            position += header.size_bytes

    def walk_whole(self) -> Iterator[tuple[BatchHeader, bytes, int]]:
        """As `walk` from the beginning, with the bytes that hold the batch and where it starts in them."""
        chunk, start, position, end = b"", 0, 0, self.size_bytes
        while position < end:
            header = read_header(chunk, position - start, origin=start)
            if header is None or position + header.size_bytes > start + len(chunk):
                chunk, start = os.pread(self.descriptor, min(_CHECK_BYTES, end - position), position), position
                header = read_header(chunk, origin=start)
                if header is None or position + header.size_bytes > end:
                    return
                if header.size_bytes > len(chunk):
                    chunk = os.pread(self.descriptor, header.size_bytes, position)
            yield header, chunk, position - start
            position += header.size_bytes

    def header_at(self, position: int) -> BatchHeader | None:
        """The header of the batch that starts at a position."""
        return next(self.walk(position), None)

    def locate(self, offset: int) -> BatchHeader | None:
        """The first batch that ends at or after an offset."""
        for header in self.walk(self.index.position_of(offset)):
            if header.last_offset >= offset:
                return header
        return None

    def stop_position(self, first: BatchHeader, max_bytes: int, end_offset: int) -> int:
        """The end position of whole batches below `end_offset` within the limit, at least of the first."""
        limit = first.position + max_bytes
        first_end = first.position + first.size_bytes
        # All batches before an indexed one below the limit fit, and those before the entry of an offset begin below it.
        stop = max(first_end, min(self.index.position_below(limit), self.index.position_of(end_offset)))
        for header in self.walk(stop):
            if header.base_offset >= end_offset or header.position + header.size_bytes > limit:
                break
            stop = header.position + header.size_bytes
        return stop

    def truncate(self, position: int) -> None:
        """Remove the batches from the one at a position on; `recover` makes the indexes anew. Raises OSError."""
        self.size_bytes = position
        os.ftruncate(self.descriptor, position)

    def recover(self, interval_bytes: int) -> int:
        """Truncate the file at the first batch that is torn or out of order, rebuild the indexes.

        Returns the number of truncated bytes. Raises OSError, StorageError.
        """
        before = self.size_bytes
        sound = (header for header, data, start in self.walk_whole() if checksum_holds(data, header, start))
        self.size_bytes = self._rebuild(sound, interval_bytes)
        os.ftruncate(self.descriptor, self.size_bytes)
        self.save_index()
        return before - self.size_bytes

    def _rebuild(self, headers: Iterable[BatchHeader], interval_bytes: int) -> int:
        """Build the indexes from batches; the end of the last valid batch in order."""
        end, next_offset = self.size_bytes, self.base_offset
        self._index = SegmentIndex(self.base_offset)
        self._since_bytes, self._first_timestamp_ms = 0, None
        self.largest_timestamp_ms, self.largest_timestamp_offset = -1, self.base_offset
        self.has_producers = False
        good = 0
        for header in headers:
            if header.position != good or header.base_offset < next_offset:
                break
            if header.last_offset - self.base_offset > _INT32_MAX:
                break
            self.size_bytes = good
            self.note(batch_facts(header), interval_bytes)
            good, self.size_bytes = self.size_bytes, end
            next_offset = header.last_offset + 1
            if header.producer_id >= 0:
                self.has_producers = True
        return good
