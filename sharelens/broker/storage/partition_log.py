"""A partition's log: appends that are in the file or refused when the call returns, reads by offset, retention.

Implements sharelens.broker.ports.Log. Rules: org.apache.kafka.storage.internals.log.UnifiedLog. On a single node the
high watermark is the end of the log.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from sharelens.broker.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    OffsetOutOfRangeError,
    RecordListTooLargeError,
    RecordTooLargeError,
)
from sharelens.broker.ports import AbortedTransaction, Fetched, ProducerIdentity, Record, Timers, TopicPartition
from sharelens.broker.storage import record_batch as rb
from sharelens.broker.storage.compaction import Steps
from sharelens.broker.storage.files import OpenFiles, storage_errors
from sharelens.broker.storage.indexes import AbortedEntry
from sharelens.broker.storage.leader_epochs import RAISE_AT_START, LeaderEpochs
from sharelens.broker.storage.local_log import Faults, LocalLog
from sharelens.broker.storage.log_config import LogConfig
from sharelens.broker.storage.producer_state import ProducerStates
from sharelens.broker.storage.record_batch import BatchHeader, Buffer
from sharelens.broker.storage.recovery import drop_snapshots, open_log, snapshot_path
from sharelens.broker.storage.segment import BatchFacts
from state_model.tuples import maker

_facts = maker(BatchFacts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The result of a client's append. `log_append_time_ms` is -1 with the producer's timestamps."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool = False


class PartitionLog:
    """See the module. Not safe for threads; every error of the disk is a StorageError, and the log stays readable."""

    def __init__(
        self,
        directory: Path,
        topic_partition: TopicPartition,
        *,
        topic_id: str,
        config: LogConfig,
        timers: Timers,
        files: OpenFiles,
        is_clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        faults: Faults | None = None,
    ) -> None:
        """Open or create it, and begin a new leader epoch. Raises StorageError.

        is_clean: it was closed cleanly. Else batches from `recovery_point` on are checked, a torn tail is truncated.
        """
        opened = open_log(
            directory,
            files,
            is_clean=is_clean,
            recovery_point=recovery_point,
            interval_bytes=config.index_interval_bytes,
            now_ms=timers.now_ms(),
            lost_offsets=0 if faults is None else faults.lost_offsets(topic_partition),
        )
        self.config = config
        self._topic_partition, self._topic_id, self._timers = topic_partition, topic_id, timers
        self._producers: ProducerStates = opened.producers
        self._epochs: LeaderEpochs = opened.epochs
        self._listeners: list[Callable[[], None]] = []
        self._flushed_ms = timers.now_ms()
        self._compacted_to = 0
        self._local = LocalLog(
            directory,
            topic_partition,
            segments=opened.segments,
            end_offset=opened.end_offset,
            recovery_point=opened.end_offset if is_clean else min(recovery_point, opened.end_offset),
            files=files,
            before_roll=self._save_producers,
            faults=faults,
        )
        self._start = min(max(log_start_offset, self.first_segment_offset), opened.end_offset)
        latest = self._epochs.latest
        self._epochs.begin(latest + RAISE_AT_START if latest >= 0 else 0, opened.end_offset)
        self._leader_epoch = self._epochs.latest

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return self._topic_partition

    @property
    def topic_id(self) -> str:
        """The topic's id."""
        return self._topic_id

    @property
    def directory(self) -> Path:
        """The partition's folder."""
        return self._local.directory

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of appended batches."""
        return self._leader_epoch

    @property
    def epochs(self) -> LeaderEpochs:
        """All leader epochs with their first offsets."""
        return self._epochs

    @property
    def producers(self) -> ProducerStates:
        """Idempotent and transactional producers."""
        return self._producers

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        return self._start

    @property
    def high_watermark(self) -> int:
        """The end of the log."""
        return self._local.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, else the high watermark."""
        first = self._producers.first_unstable_offset
        return self._local.end_offset if first is None else first

    @property
    def recovery_point(self) -> int:
        """The recovery point: batches below it are synced to the disk."""
        return self._local.recovery_point

    @property
    def first_segment_offset(self) -> int:
        """The base offset of the oldest segment; the log start offset may lie above it."""
        return self._local.segments[0].base_offset

    @property
    def size_bytes(self) -> int:
        """Size of all segments."""
        return self._local.size_bytes

    def append_records(
        self,
        records: Sequence[Record],
        *,
        codec: int = 0,
        base_sequence: int = -1,
        producer: ProducerIdentity | None = None,
    ) -> int:
        """Append one atomic batch of the broker's own; the first record's offset.

        base_sequence: 0 in the batches of coordinators, although they have no producer.
        producer: the batch belongs to this producer's open transaction, or opens it.
        Raises StorageError, RecordTooLargeError.
        """
        now_ms, base_offset = self._timers.now_ms(), self._local.end_offset
        attributes = rb.LOG_APPEND_TIME if self.config.log_append_time else 0
        producer_id, producer_epoch = producer or (rb.NO_PRODUCER_ID, -1)
        batch = rb.build(
            records,
            base_offset=base_offset,
            leader_epoch=self._leader_epoch,
            now_ms=now_ms,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            attributes=attributes if producer is None else attributes | rb.TRANSACTIONAL,
        )
        self._check_size(len(batch))
        self._append((batch,), len(batch), base_offset + len(records) - 1, rb.max_timestamp_of(batch), now_ms)
        if producer is not None:
            self._producers.apply_batch(rb.split(batch)[0], base_offset)
        self._notify()
        return base_offset

    def append_client(self, data: Buffer) -> Appended:
        """Append the one batch that a producer sent for this partition; a repetition of a recent one appends nothing.

        Raises CorruptBatchError, InvalidRecordError, InvalidTimestampError, RecordTooLargeError,
        RecordListTooLargeError, OutOfOrderSequenceError, ProducerFencedError, InvalidTransactionStateError,
        StorageError.
        """
        header = rb.validate_client(data)
        now_ms, config = self._timers.now_ms(), self.config
        self._check_size(header.size_bytes)
        _check_client(data, header, config, now_ms)
        if header.producer_id >= 0:
            earlier_batch = self._producers.check_batch(header)
            if earlier_batch is not None:
                time_ms = earlier_batch.timestamp_ms if config.log_append_time else -1
                return self._appended(earlier_batch.first_offset, earlier_batch.last_offset, time_ms, is_duplicate=True)
        if config.compression_codec is not None and config.compression_codec != header.codec:
            data, header = _recompressed(data, header, config.compression_codec)
        base_offset = self._local.end_offset
        last_offset = base_offset + header.last_offset_delta
        append_time_ms = now_ms if config.log_append_time else None
        pieces = rb.stamp(
            data, header, base_offset=base_offset, leader_epoch=self._leader_epoch, log_append_time_ms=append_time_ms
        )
        if append_time_ms is not None:
            header = header._replace(max_timestamp_ms=append_time_ms)
        self._append(pieces, header.size_bytes, last_offset, header.max_timestamp_ms, now_ms)
        if header.producer_id >= 0:
            self._producers.apply_batch(header, base_offset)
        self._notify()
        return self._appended(base_offset, last_offset, -1 if append_time_ms is None else append_time_ms)

    def append_marker(self, producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int) -> int:
        """End a producer's transaction here; the marker's offset.

        Raises ProducerFencedError, CoordinatorFencedError, StorageError.
        """
        self._producers.check_marker(producer_id, producer_epoch, coordinator_epoch)
        now_ms, offset = self._timers.now_ms(), self._local.end_offset
        batch = rb.build_control(
            commit=commit,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
            base_offset=offset,
            leader_epoch=self._leader_epoch,
        )
        self._append((batch,), len(batch), offset, now_ms, now_ms)
        ended = self._producers.apply_marker(rb.split(batch)[0], offset, rb.Marker(commit, coordinator_epoch))
        if ended is not None and not commit:
            self._local.add_aborted(AbortedEntry(producer_id, ended.first_offset, offset, self.last_stable_offset))
        self._notify()
        return offset

    def read(self, offset: int, *, max_bytes: int, end_offset: int | None = None) -> Fetched:
        """Whole batches from the one that holds `offset` on, at most of one segment
        (sharelens.broker.ports.Log.read)."""
        end = self._local.end_offset
        if not self._start <= offset <= end:
            raise OffsetOutOfRangeError(f"{self._topic_partition}: offset {offset} is not in {self._start} to {end}")
        return self._local.read(
            offset, max_bytes=max_bytes, end_offset=end if end_offset is None else min(end_offset, end)
        )

    def records(self, first_offset: int, last_offset: int) -> list[Record]:
        """The data records of a range that are still there, in order of offset. Raises CorruptBatchError."""
        first_offset = max(first_offset, self._start)
        return [
            record
            for data, header in self._local.batches(first_offset, last_offset + 1)
            if not header.is_control
            for record in rb.parse(data, header)
            if first_offset <= record.offset <= last_offset
        ]

    def aborted_transactions(self, first_offset: int, last_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that touch a range, in order of their markers."""
        return [
            AbortedTransaction(
                producer_id=entry.producer_id, first_offset=entry.first_offset, last_offset=entry.last_offset
            )
            for entry in self._local.aborted(first_offset, last_offset)
        ]

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Timestamp and offset of the first record at or after a time; None when there is none."""
        for data, header in self._local.batches_at(timestamp_ms, self._start):
            for record in rb.parse(data, header):
                if record.timestamp_ms >= timestamp_ms and record.offset >= self._start:
                    return record.timestamp_ms, record.offset
        return None

    def max_timestamp(self) -> tuple[int, int] | None:
        """The largest timestamp and the first offset that has it (KIP-734); None where no record has one."""
        largest = max(segment.largest_timestamp_ms for segment in self._local.segments)
        return self.offset_for_timestamp(largest) if largest >= 0 else None

    def delete_records(self, before_offset: int) -> int:
        """Raise the log start offset within the log, drop whole segments below it; returns it. Raises StorageError."""
        self._start = max(self._start, min(before_offset, self._local.end_offset))
        if self._local.drop_below(self._start):
            self._epochs.cut_start(self._start)
        return self._start

    def apply_retention(self) -> int:
        """Delete the oldest segments by retention.ms and retention.bytes; their number. Raises StorageError."""
        now_ms, config = self._timers.now_ms(), self.config
        if not config.deletes:
            return 0
        segments, remaining_bytes, doomed = self._local.segments, self._local.size_bytes, 0
        for segment in segments:
            remaining_bytes -= segment.size_bytes
            expired = 0 <= config.retention_ms < now_ms - segment.largest_timestamp_ms
            surplus = 0 <= config.retention_bytes <= remaining_bytes
            if segment.size_bytes == 0 or not ((expired and segment.largest_timestamp_ms >= 0) or surplus):
                break
            doomed += 1
        if doomed == len(segments):
            with storage_errors(f"{self._topic_partition} can't begin a segment"):
                self._local.roll(now_ms)
        if doomed:
            self.delete_records(self._local.segments[doomed].base_offset)
        return doomed

    def compact(self) -> Iterator[int] | None:
        """The steps of a compaction of the closed segments; None while too few bytes are dirty.

        Only below the last stable offset, and older than min.compaction.lag.ms. Other operations on the log may run
        between the steps. It and the steps raise StorageError.
        """
        now_ms, config = self._timers.now_ms(), self.config
        closed = self._local.closed_below(self.last_stable_offset) if config.compacts else []
        if config.min_compaction_lag_ms > 0:
            young_ms = now_ms - config.min_compaction_lag_ms
            closed = list(takewhile(lambda segment: segment.largest_timestamp_ms <= young_ms, closed))
        dirty = sum(segment.size_bytes for segment in closed if segment.base_offset >= self._compacted_to)
        total = sum(segment.size_bytes for segment in closed)
        if not dirty or dirty < config.min_cleanable_dirty_ratio * total:
            return None
        self.flush_closed()
        end = self._local.segments[len(closed)].base_offset
        aborted = list(self._local.aborted(self.first_segment_offset, self._local.end_offset))
        return self._compact(end, self._local.compact(end, aborted, config, now_ms))

    def _compact(self, end: int, steps: Steps) -> Iterator[int]:
        if (yield from steps):
            self._compacted_to = end

    def expire_producers(self, idle_ms: int) -> int:
        """Remove producers that were idle for longer; their number."""
        return self._producers.expire(self._timers.now_ms() - idle_ms)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each append; the returned function unsubscribes it."""
        self._listeners = [*self._listeners, listener]

        def unsubscribe() -> None:
            self._listeners = [subscriber for subscriber in self._listeners if subscriber is not listener]

        return unsubscribe

    def flush(self) -> None:
        """Make all batches durable. Raises StorageError."""
        self._local.flush_below(self._local.end_offset)
        self._flushed_ms = self._timers.now_ms()

    def flush_closed(self) -> None:
        """Make the closed segments durable, which shortens the recovery after a crash. Raises StorageError."""
        self._local.flush_closed()

    def flush_if_due(self) -> None:
        """Flush when flush.ms have passed since the last time. Raises StorageError."""
        if self._local.has_unflushed and self._timers.now_ms() - self._flushed_ms >= self.config.flush_ms:
            self.flush()

    def close(self) -> None:
        """Flush, write indexes and producers: a clean shutdown. Raises StorageError."""
        self._local.close()
        if self._local.end_offset:
            self._save_producers(self._local.end_offset)

    def abandon(self) -> None:
        """Close the files; the log takes no more appends."""
        self._local.abandon()

    def _append(
        self, pieces: tuple[Buffer, ...], size_bytes: int, last_offset: int, max_timestamp_ms: int, now_ms: int
    ) -> None:
        self._local.append(pieces, _facts((size_bytes, last_offset, max_timestamp_ms)), self.config, now_ms)

    def _appended(self, base: int, last: int, time_ms: int, *, is_duplicate: bool = False) -> Appended:
        return Appended(
            base_offset=base,
            last_offset=last,
            log_append_time_ms=time_ms,
            log_start_offset=self._start,
            is_duplicate=is_duplicate,
        )

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes > self.config.max_message_bytes:
            raise RecordTooLargeError(
                f"{self._topic_partition}: a batch of {size_bytes} bytes, "
                f"max.message.bytes is {self.config.max_message_bytes}"
            )
        if size_bytes > self.config.segment_bytes:
            raise RecordListTooLargeError(
                f"{self._topic_partition}: a batch of {size_bytes} bytes, segment.bytes is {self.config.segment_bytes}"
            )

    def _save_producers(self, offset: int) -> None:
        """Write a producer snapshot before the batch at `offset`; each segment keeps the snapshot of its start.

        It restores the producers of deleted records after a crash.
        """
        with storage_errors(f"{self._topic_partition}: old snapshots can't be removed"):
            drop_snapshots(self.directory, {segment.base_offset for segment in self._local.segments})
        self._producers.save(snapshot_path(self.directory, offset))


def _check_client(data: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """The topic's own rules for a client's batch: keys where it is compacted, timestamps near now."""
    if config.compacts and any(record.key is None for record in rb.parse(data, header)):
        raise InvalidRecordError("a record without a key for a compacted topic")
    if config.log_append_time:
        return
    if header.max_timestamp_ms > now_ms + config.timestamp_after_max_ms:
        raise InvalidTimestampError(f"timestamp {header.max_timestamp_ms} is too far after the broker's {now_ms}")
    if 0 <= header.base_timestamp_ms < now_ms - config.timestamp_before_max_ms:
        raise InvalidTimestampError(f"timestamp {header.base_timestamp_ms} is too far before the broker's {now_ms}")


def _recompressed(data: Buffer, header: BatchHeader, codec: int) -> tuple[bytes, BatchHeader]:
    """The batch with the topic's own compression.type."""
    batch = rb.build(
        rb.parse(data, header),
        codec=codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        attributes=header.attributes & rb.TRANSACTIONAL,
    )
    return batch, rb.split(batch)[0]
