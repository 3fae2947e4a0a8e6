"""The logs of one log directory: opened at start, created and deleted with their topics, checkpointed, closed.

Implements sharelens.broker.ports.Logs and the catalogue's TopicListener. Rules: Kafka's LogManager.
Without `.kafka_cleanshutdown` the start follows a crash, and every log is checked from its recovery point on.
"""

import logging
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from sharelens.broker.errors import StorageError
from sharelens.broker.ports import Handle, Timers, Topic, TopicPartition
from sharelens.broker.storage.catalog import Catalog
from sharelens.broker.storage.files import OpenFiles, replace_file, storage_errors
from sharelens.broker.storage.local_log import Faults
from sharelens.broker.storage.log_config import LogConfig
from sharelens.broker.storage.partition_log import PartitionLog
from sharelens.kafka_log.errors import CheckpointError
from sharelens.kafka_log.text_files import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    PARTITION_METADATA,
    PartitionOffsets,
    format_partition_metadata,
    format_partition_offsets,
    parse_partition_offsets,
    parse_topic_id,
)
from state_model.uuids import uuid_bytes

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"

_CLEAN_SHUTDOWN: Final = '{"version":0,"brokerEpoch":-1}'
_FOLDER: Final = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,10})")
_MAX_FOLDER_CHARACTERS: Final = 255
COMPACTION_SLICE_BYTES: Final = 64 << 10
"""Bytes of compaction between two turns of the loop: some milliseconds."""
_LONGEST_TIMER_MS: Final = 1 << 40
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerSettings:
    """The broker's intervals (replica.high.watermark.checkpoint.interval.ms, log.flush.*, log.retention.check.*, …)."""

    high_watermark_checkpoint_ms: int = 5_000
    offset_checkpoint_ms: int = 60_000
    flush_scheduler_ms: int = (1 << 63) - 1
    retention_check_ms: int = 300_000
    cleaner_backoff_ms: int = 15_000
    has_cleaner: bool = True
    producer_id_expiration_ms: int = 86_400_000
    producer_id_check_ms: int = 600_000


class LogManager:
    """See the module. `start` starts the timers; `close` makes the shutdown clean."""

    def __init__(
        self,
        directory: Path,
        *,
        catalog: Catalog,
        timers: Timers,
        config_of: Callable[[str], LogConfig],
        settings: LogManagerSettings | None = None,
        faults: Faults | None = None,
        write_buffer_bytes: int = 0,
    ) -> None:
        """Open the logs of all topics of the catalogue in a claimed directory. Raises StorageError.

        config_of: the effective settings of a topic.
        write_buffer_bytes: bytes of each log that may be buffered after their append has returned.
        """
        self._directory, self._timers, self._config_of, self._faults = directory, timers, config_of, faults
        self._settings = settings or LogManagerSettings()
        self._files = OpenFiles(buffer_bytes=write_buffer_bytes)
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._by_id: dict[tuple[str, int], PartitionLog] = {}
        self._written: dict[str, str] = {}
        self._timer_handles: dict[str, Handle] = {}
        self._is_compacting = False
        self._compacted_last: tuple[str, int] | None = None
        self.is_after_crash = not self._was_closed() and bool(catalog.topics)
        with storage_errors(f"{directory} can't be opened"):
            self._set_aside_folders(catalog.topics)
        recovery_points = self._read_checkpoint(RECOVERY_POINT_CHECKPOINT)
        log_starts = self._read_checkpoint(LOG_START_CHECKPOINT)
        for topic in catalog.topics.values():
            config = config_of(topic.name)
            for partition in range(topic.partitions):
                key = (topic.name, partition)
                self._open(topic, partition, config, recovery_points.get(key, 0), log_starts.get(key, 0))
        self._unsubscribe = catalog.subscribe(self)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition; None when there is none."""
        return self._logs.get((topic, partition))

    def by_id(self, topic_id: str, partition: int) -> PartitionLog | None:
        """The log of a partition by the topic's id; None when there is none."""
        return self._by_id.get((topic_id, partition))

    def all(self) -> Iterator[PartitionLog]:
        """Every log."""
        yield from self._logs.values()

    def start(self) -> None:
        """Start the timers of checkpoints, flushes, retention and idle producers."""
        settings = self._settings
        self._every(settings.high_watermark_checkpoint_ms, "high watermarks", self.checkpoint_high_watermarks)
        self._every(settings.offset_checkpoint_ms, "offsets", self.checkpoint_offsets)
        self._every(settings.flush_scheduler_ms, "flushes", self.flush_due)
        self._every(settings.retention_check_ms, "retention", self.apply_retention)
        if settings.has_cleaner:
            self._every(settings.cleaner_backoff_ms, "compaction", self.compact_next)
        self._every(settings.producer_id_check_ms, "producers", self.expire_producers)

    def close(self) -> None:
        """Close every log, write the checkpoints and the mark of a clean shutdown. Raises the first StorageError."""
        self._unsubscribe()
        for handle in self._timer_handles.values():
            handle.cancel()
        failed: StorageError | None = None
        for log in self._logs.values():
            try:
                log.close()
            except StorageError as error:
                failed = failed or error
        self._files.close()
        if failed is not None:
            raise failed
        self.checkpoint_high_watermarks()
        self._write_offset_checkpoints()
        replace_file(self._directory / CLEAN_SHUTDOWN_FILE, _CLEAN_SHUTDOWN, durable=True)

    def checkpoint_high_watermarks(self) -> None:
        """Write replication-offset-checkpoint. Raises StorageError."""
        self._write_checkpoint(HIGH_WATERMARK_CHECKPOINT, {key: log.high_watermark for key, log in self._logs.items()})

    def checkpoint_offsets(self) -> None:
        """Make closed segments durable and write the recovery points and log start offsets. Raises StorageError."""
        self._each(PartitionLog.flush_closed)
        self._write_offset_checkpoints()

    def flush_due(self) -> None:
        """Flush the logs whose flush.ms have passed."""
        self._each(PartitionLog.flush_if_due)

    def apply_retention(self) -> None:
        """Delete segments by retention."""
        self._each(PartitionLog.apply_retention)

    def compact_next(self) -> None:
        """Begin to compact the next log with enough dirty bytes, unless a compaction is in progress.

        Logs take turns; each is compacted in slices, between which requests are handled.
        """
        if self._is_compacting:
            return
        keys = list(self._logs)
        begin = keys.index(self._compacted_last) + 1 if self._compacted_last in self._logs else 0
        for key in keys[begin:] + keys[:begin]:
            try:
                steps = self._logs[key].compact()
            except StorageError as error:
                _LOG.warning("%s", error)
                continue
            if steps is not None:
                self._is_compacting, self._compacted_last = True, key
                self._compact_slice(steps)
                return

    def _compact_slice(self, steps: Iterator[int]) -> None:
        done_bytes = 0
        try:
            for size_bytes in steps:
                done_bytes += size_bytes
                if done_bytes >= COMPACTION_SLICE_BYTES:
                    slices = self._timers.after_ms(0, partial(self._compact_slice, steps))
                    self._timer_handles["slices of a compaction"] = slices
                    return
        except StorageError as error:
            _LOG.warning("%s", error)
        self._is_compacting = False

    def expire_producers(self) -> None:
        """Remove producers that were idle for producer.id.expiration.ms."""
        for log in self._logs.values():
            log.expire_producers(self._settings.producer_id_expiration_ms)

    def _each(self, action: Callable[[PartitionLog], object]) -> None:
        """Call a function for all logs; a disk error of one log is logged, and the others continue."""
        for log in list(self._logs.values()):
            try:
                action(log)
            except StorageError as error:
                _LOG.warning("%s", error)

    def topic_changed(self, topic: Topic) -> None:
        """Create the missing logs, update the configuration of all. Raises StorageError."""
        config = self._config_of(topic.name)
        created_logs: list[PartitionLog] = []
        try:
            for partition in range(topic.partitions):
                log = self._logs.get((topic.name, partition))
                if log is None:
                    created_logs.append(self._open(topic, partition, config, 0, 0))
                else:
                    log.config = config
        except StorageError:
            for log in created_logs:
                self._remove(log)
                shutil.rmtree(log.directory, ignore_errors=True)
            raise

    def topic_deleted(self, topic: Topic) -> None:
        """Rename the folders as Kafka does, and remove them after file.delete.delay.ms. Raises StorageError."""
        for partition in range(topic.partitions):
            log = self._logs.get((topic.name, partition))
            if log is not None:
                self._remove(log)
                with storage_errors(f"{log.directory} can't be deleted"):
                    aside = self._set_aside(log.directory, "delete", uuid_bytes(log.topic_id).hex())
                self._timers.after_ms(log.config.file_delete_delay_ms, partial(_remove_tree, aside))

    def _was_closed(self) -> bool:
        """Whether the last shutdown was clean; removes its mark, which `close` writes again."""
        mark = self._directory / CLEAN_SHUTDOWN_FILE
        with storage_errors(f"{mark} can't be removed"):
            was_closed = mark.exists()
            mark.unlink(missing_ok=True)
        return was_closed

    def _open(
        self, topic: Topic, partition: int, config: LogConfig, recovery_point: int, log_start: int
    ) -> PartitionLog:
        folder = self._directory / f"{topic.name}-{partition}"
        with storage_errors(f"{folder} can't be created"):
            is_new = not folder.exists()
            folder.mkdir(mode=0o700, exist_ok=True)
        if not (folder / PARTITION_METADATA).exists():
            replace_file(folder / PARTITION_METADATA, format_partition_metadata(topic.topic_id))
        log = PartitionLog(
            folder,
            TopicPartition(topic.name, partition),
            topic_id=topic.topic_id,
            config=config,
            timers=self._timers,
            files=self._files,
            is_clean=is_new or not self.is_after_crash,
            recovery_point=recovery_point,
            log_start_offset=log_start,
            faults=self._faults,
        )
        self._logs[topic.name, partition] = self._by_id[topic.topic_id, partition] = log
        return log

    def _remove(self, log: PartitionLog) -> None:
        key = log.topic_partition
        del self._logs[key.topic, key.partition], self._by_id[log.topic_id, key.partition]
        log.abandon()

    def _set_aside_folders(self, topics: Mapping[str, Topic]) -> None:
        """Remove folders of deleted partitions; rename partitions that the catalogue does not have."""
        for folder in list(self._directory.iterdir()):
            if not folder.is_dir():
                continue
            match = _FOLDER.fullmatch(folder.name)
            if folder.name.endswith("-delete"):
                _remove_tree(folder)
            elif match is not None and not _belongs(folder, topics.get(match["topic"]), int(match["partition"])):
                aside = self._set_aside(folder, "stray", uuid.uuid4().hex)
                _LOG.warning("%s is no partition of the catalogue: kept as %s", folder, aside.name)

    def _set_aside(self, folder: Path, suffix: str, unique: str) -> Path:
        ending = f".{unique}-{suffix}"
        return folder.rename(folder.with_name(folder.name[: _MAX_FOLDER_CHARACTERS - len(ending)] + ending))

    def _read_checkpoint(self, name: str) -> PartitionOffsets:
        """A checkpoint; empty when it is missing or broken, so that logs are read from their beginning."""
        path = self._directory / name
        try:
            with storage_errors(f"{path} can't be read"):
                return parse_partition_offsets(path.read_text(encoding="utf-8"), str(path)) if path.exists() else {}
        except (CheckpointError, UnicodeDecodeError) as error:
            _LOG.warning("%s", error)
            return {}

    def _write_offset_checkpoints(self) -> None:
        self._write_checkpoint(RECOVERY_POINT_CHECKPOINT, {key: log.recovery_point for key, log in self._logs.items()})
        raised = {
            key: log.log_start_offset
            for key, log in self._logs.items()
            if log.log_start_offset > log.first_segment_offset
        }
        self._write_checkpoint(LOG_START_CHECKPOINT, raised)

    def _write_checkpoint(self, name: str, offsets: PartitionOffsets) -> None:
        text = format_partition_offsets(offsets)
        if self._written.get(name) != text:
            replace_file(self._directory / name, text)
            self._written[name] = text

    def _every(self, interval_ms: int, name: str, action: Callable[[], None]) -> None:
        """Call a function periodically; a disk error is logged."""
        if interval_ms > _LONGEST_TIMER_MS:
            return

        def run() -> None:
            self._timer_handles[name] = self._timers.after_ms(interval_ms, run)
            try:
                action()
            except StorageError as error:
                _LOG.warning("%s: %s", name, error)

        self._timer_handles[name] = self._timers.after_ms(interval_ms, run)


def _belongs(folder: Path, topic: Topic | None, partition: int) -> bool:
    """Whether a folder is a partition of a topic that exists, with its id; without metadata the name decides."""
    if topic is None or partition >= topic.partitions:
        return False
    metadata = folder / PARTITION_METADATA
    try:
        return not metadata.exists() or parse_topic_id(metadata.read_text("utf-8"), str(metadata)) == topic.topic_id
    except (CheckpointError, UnicodeDecodeError):
        metadata.unlink()
        return True


def _remove_tree(folder: Path) -> None:
    """Remove a renamed folder; a failure is retried at the next start."""
    shutil.rmtree(folder, ignore_errors=True)
