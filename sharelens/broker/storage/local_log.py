"""The segments of one partition as one sequence of batches: append, roll, read by offset or time, drop, flush.

Rules: org.apache.kafka.storage.internals.log.LocalLog and LogSegments. Offsets are not checked against the log
start offset; the partition log does that, and has producers and epochs.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Final, Protocol

from sharelens.broker.errors import CorruptBatchError, StorageError
from sharelens.broker.ports import Fetched, TopicPartition
from sharelens.broker.storage import compaction
from sharelens.broker.storage import record_batch as rb
from sharelens.broker.storage.files import OpenFiles, storage_errors
from sharelens.broker.storage.indexes import AbortedEntry, append_aborted, read_aborted
from sharelens.broker.storage.log_config import LogConfig
from sharelens.broker.storage.record_batch import BatchHeader, Buffer
from sharelens.broker.storage.segment import BatchFacts, Segment

NO_BATCHES: Final = Fetched(data=b"", spans=())
_READ_BYTES: Final = 1 << 20
_MAX_HINTS: Final = 32
_BASE_OFFSET: Final = attrgetter("base_offset")


class Faults(Protocol):
    """Hooks of fault injection at the opening of a log and around the write of a batch."""

    def lost_offsets(self, topic_partition: TopicPartition) -> int:
        """How many of its last offsets a log loses before it is opened."""

    def before_append(self, topic_partition: TopicPartition, data: bytes) -> bytes:
        """The bytes to write instead; other ones are a torn write, which fails. May raise OSError, end the process."""

    def after_append(self, topic_partition: TopicPartition) -> None:
        """After the write, before it counts. May raise OSError, end the process."""


class LocalLog:
    """Every error of the disk is a StorageError; after a failed write the log is as it was, and readable."""

    def __init__(
        self,
        directory: Path,
        topic_partition: TopicPartition,
        *,
        segments: list[Segment],
        end_offset: int,
        recovery_point: int,
        files: OpenFiles,
        before_roll: Callable[[int], None],
        faults: Faults | None = None,
    ) -> None:
        """before_roll: called with the base offset of a segment that is about to begin."""
        self.directory = directory
        self.segments = segments
        self.end_offset = end_offset
        self.recovery_point = recovery_point
        self._topic_partition = topic_partition
        self._files = files
        self._active = segments[-1]
        self._before_roll = before_roll
        self._faults = faults
        self._hints: dict[int, tuple[Segment, int]] = {}
        self._unsaved_aborted: list[tuple[Segment, AbortedEntry]] = []
        self._unflushed_records = 0
        self._is_closed = self._must_undo = False
        self._compaction: compaction.Steps | None = None

    @property
    def size_bytes(self) -> int:
        """Of all segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def has_unflushed(self) -> bool:
        """Whether batches were appended since the last flush."""
        return self._unflushed_records > 0

    def append(self, pieces: tuple[Buffer, ...], batch: BatchFacts, config: LogConfig, now_ms: int) -> None:
        """Append a batch. Raises StorageError."""
        if self._is_closed:
            raise StorageError(f"{self._topic_partition} is closed")
        unflushed = self._unflushed_records + batch.last_offset + 1 - self.end_offset
        try:
            self._undo()
            if self._active.must_roll(batch, config, now_ms):
                self.roll(now_ms)
            segment = self._active
            if self._faults is None:
                segment.write(pieces, batch.size_bytes)
            else:
                self._write_with(self._faults, segment, b"".join(pieces))
            if unflushed >= config.flush_messages:
                segment.sync()
        except OSError as error:
            self._undo_later()
            raise StorageError(f"{self._topic_partition} takes no write: {error.strerror or error}") from error
        segment.note(batch, config.index_interval_bytes)
        self.end_offset = batch.last_offset + 1
        self._unflushed_records = unflushed
        if unflushed >= config.flush_messages:
            self.flush_below(self.end_offset)

    def _write_with(self, faults: Faults, segment: Segment, data: bytes) -> None:
        written = faults.before_append(self._topic_partition, data)
        segment.write((written,), len(written))
        faults.after_append(self._topic_partition)
        if written != data:
            raise OSError("the write was torn")

    def _undo(self) -> None:
        """Truncate the bytes of a failed write. Raises OSError."""
        if self._must_undo:
            self._active.undo_write()
            self._must_undo = False

    def _undo_later(self) -> None:
        """Truncate now if the disk allows it, else before the next write: bytes behind the end are not read."""
        self._must_undo = True
        try:
            self._undo()
        except OSError:
            return

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin one at the end of the log. Raises OSError, StorageError."""
        self._active.save_index()
        self._before_roll(self.end_offset)
        fresh = Segment.create(self.directory, self.end_offset, self._files, created_ms=now_ms)
        self._active.unload_index()
        self.segments.append(fresh)
        self._active = fresh

    def read(self, offset: int, *, max_bytes: int, end_offset: int) -> Fetched:
        """Whole batches of one segment from the one that holds `offset` on, as sharelens.broker.ports.Log.read says."""
        if offset >= end_offset:
            return NO_BATCHES
        with storage_errors(f"{self._topic_partition} can't be read at offset {offset}"):
            place = self._place(offset, max_bytes, end_offset)
            if place is None:
                return NO_BATCHES
            segment, position, stop = place
            data = segment.read(position, stop - position)
        spans = rb.spans(data)
        if spans:
            if len(self._hints) >= _MAX_HINTS:
                self._hints.clear()
            self._hints[spans[-1].last_offset + 1] = (segment, stop)
        return Fetched(data=data, spans=spans)

    def _place(self, offset: int, max_bytes: int, end_offset: int) -> tuple[Segment, int, int] | None:
        """Segment and positions of the batches to read; None when the next batch begins at `end_offset` or later."""
        to_the_end = end_offset >= self.end_offset
        hint = self._hints.get(offset)
        if hint is not None and hint[1] < hint[0].size_bytes:
            segment, position = hint
            if to_the_end and segment.size_bytes - position <= max_bytes:
                return segment, position, segment.size_bytes
            first = segment.header_at(position)
        else:
            segment, first = self._locate(offset)
        if first is None or first.base_offset >= end_offset:
            return None
        if to_the_end and segment.size_bytes - first.position <= max_bytes:
            return segment, first.position, segment.size_bytes
        return segment, first.position, segment.stop_position(first, max_bytes, end_offset)

    def _locate(self, offset: int) -> tuple[Segment, BatchHeader | None]:
        """The first batch that ends at or after an offset; offsets may be missing between batches."""
        for segment in self.segments[self._segment_number(offset) :]:
            first = segment.locate(offset)
            self._unload_others(segment)
            if first is not None:
                return segment, first
        return self._active, None

    def _segment_number(self, offset: int) -> int:
        return max(0, bisect_right(self.segments, offset, key=_BASE_OFFSET) - 1)

    def _unload_others(self, used: Segment) -> None:
        """Keep the index of one closed segment in memory."""
        if used is not self._active:
            for segment in self.segments[:-1]:
                if segment is not used:
                    segment.unload_index()

    def batches(self, first_offset: int, end_offset: int) -> Iterator[tuple[bytes, BatchHeader]]:
        """The batches that touch a range in order: data, and header with position 0. Raises StorageError."""
        offset, end_offset = first_offset, min(end_offset, self.end_offset)
        while offset < end_offset:
            fetched = self.read(offset, max_bytes=_READ_BYTES, end_offset=end_offset)
            if not fetched.spans:
                return
            position = 0
            for span in fetched.spans:
                data = fetched.data[position : position + span.size_bytes]
                header = rb.read_header(data)
                assert header is not None
                yield data, header
                position += span.size_bytes
            offset = fetched.spans[-1].last_offset + 1

    def batches_at(self, timestamp_ms: int, from_offset: int) -> Iterator[tuple[bytes, BatchHeader]]:
        """The batches from an offset on whose maximum timestamp is at or after a time. Raises StorageError."""
        with storage_errors(f"{self._topic_partition} can't be searched"):
            for segment in self.segments[self._segment_number(from_offset) :]:
                if segment.largest_timestamp_ms < timestamp_ms:
                    continue
                begin = max(segment.index.offset_of_time(timestamp_ms), from_offset)
                position = segment.index.position_of(begin)
                self._unload_others(segment)
                for header in segment.walk(position):
                    if header.max_timestamp_ms >= timestamp_ms and header.last_offset >= from_offset:
                        yield segment.read(header.position, header.size_bytes), header._replace(position=0)

    def add_aborted(self, entry: AbortedEntry) -> None:
        """An aborted transaction, whose marker was appended last; kept in memory while its index takes no write."""
        self._unsaved_aborted.append((self._active, entry))
        try:
            self._save_aborted()
        except OSError:
            return

    def _save_aborted(self) -> None:
        while self._unsaved_aborted:
            segment, entry = self._unsaved_aborted[0]
            append_aborted(segment.path, entry)
            del self._unsaved_aborted[0]

    def aborted(self, first_offset: int, last_offset: int) -> Iterator[AbortedEntry]:
        """The aborted transactions that touch a range, in order of their markers. Raises StorageError."""
        with storage_errors(f"{self._topic_partition}: aborted transactions can't be read"):
            for segment in self.segments[self._segment_number(first_offset) :]:
                unsaved = [entry for owner, entry in self._unsaved_aborted if owner is segment]
                for entry in read_aborted(segment.path) + unsaved:
                    if entry.last_offset >= first_offset and entry.first_offset <= last_offset:
                        yield entry
                    if entry.last_stable_offset > last_offset:
                        return

    def drop_below(self, offset: int) -> int:
        """Remove the segments that end at or below an offset; how many. The active one stays. Raises StorageError."""
        doomed = self.segments[: self._segment_number(offset)]
        if doomed:
            self._end_compaction()
        with storage_errors(f"{self._topic_partition}: old segments can't be removed"):
            for segment in doomed:
                self.segments.remove(segment)
                segment.remove()
        return len(doomed)

    def compact(
        self, end_offset: int, aborted: Iterable[AbortedEntry], config: LogConfig, now_ms: int
    ) -> compaction.Steps:
        """Keep only the last record of each key in the closed segments that end at or below an offset.

        In steps, between which all else may happen to the log; they end early when one of the segments is deleted, or
        another compaction begins. Raises StorageError.
        """
        self._end_compaction()
        closed = self.closed_below(end_offset)
        ends = [segment.base_offset for segment in self.segments[1 : len(closed) + 1]]
        cleaning = compaction.Pass(aborted, now_ms=now_ms, retention_ms=config.delete_retention_ms)
        self._compaction = self._compact(cleaning, closed, ends, config)
        return self._compaction

    def _compact(
        self, cleaning: compaction.Pass, closed: list[Segment], ends: list[int], config: LogConfig
    ) -> compaction.Steps:
        with storage_errors(f"{self._topic_partition} can't be compacted"):
            try:
                for segment in closed:
                    if not cleaning.is_full:
                        yield from cleaning.note(segment)
                for group in list(compaction.groups(closed, config.segment_bytes, ends)):
                    new_segment = yield from compaction.rewrite(
                        group, cleaning, self._files, config.index_interval_bytes
                    )
                    if new_segment is not None:
                        self._replace(group, new_segment)
                        new_segment.save_index()
                        new_segment.unload_index()
            except CorruptBatchError as error:
                raise StorageError(f"{self._topic_partition} can't be compacted: {error}") from error
        return True

    def _end_compaction(self) -> None:
        if self._compaction is not None:
            self._compaction.close()
            self._compaction = None

    def closed_below(self, end_offset: int) -> list[Segment]:
        """The closed segments that end at or below an offset."""
        following = [segment.base_offset for segment in self.segments[1:]]
        return [segment for segment, end in zip(self.segments, following, strict=False) if end <= end_offset]

    def _replace(self, group: list[Segment], new_segment: Segment) -> None:
        at = self.segments.index(group[0])
        self.segments[at : at + len(group)] = [new_segment]
        self._hints.clear()
        self._unsaved_aborted = [(owner, entry) for owner, entry in self._unsaved_aborted if owner not in group]

    def flush_below(self, offset: int) -> None:
        """Make the batches below an offset durable, whole segments at a time. Raises StorageError."""
        if offset > self.recovery_point:
            with storage_errors(f"{self._topic_partition} can't be flushed"):
                for segment in self.segments[self._segment_number(self.recovery_point) :]:
                    if segment.base_offset < offset:
                        segment.sync()
            self.recovery_point = offset
        if offset == self.end_offset:
            self._unflushed_records = 0

    def flush_closed(self) -> None:
        """Make the closed segments durable. Raises StorageError."""
        self.flush_below(self._active.base_offset)

    def close(self) -> None:
        """Flush and write the indexes, as at a clean shutdown. Raises StorageError."""
        self.flush_below(self.end_offset)
        with storage_errors(f"{self._topic_partition} can't be closed"):
            self._undo()
            self._save_aborted()
            self._active.save_index()
        self.abandon()

    def abandon(self) -> None:
        """Close the files; the log takes no more appends."""
        self._end_compaction()
        self._is_closed = True
        for segment in self.segments:
            self._files.forget(segment.log_path)
