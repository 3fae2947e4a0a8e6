"""The share coordinator on `__share_group_state` (share-group-state-log).

The records of a request and their replay are in state_model; this module adds the log of each state partition, the
clock and the periodic jobs (ShareCoordinatorService, ShareCoordinatorShard). A state partition is loaded from its log
at its first use.
"""

import functools
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sharelens.broker.errors import BrokerError, RecordTooLargeError, StorageError
from sharelens.broker.metrics import BrokerMetrics
from sharelens.broker.ports import Log, Logs, Record, Timers, Topics
from sharelens.broker.storage import record_batch
from state_model import answers, coordinator
from state_model.answers import ErrorCode, ReadAnswer, SummaryAnswer
from state_model.coordinator import COLD_SNAPSHOT_INTERVAL_MS, Records, WriteRequest
from state_model.errors import DecodeError
from state_model.java import partition_for
from state_model.machine import SNAPSHOT_UPDATE_LIMIT, PartitionState, apply
from state_model.rule_sets import KAFKA_4_3, RuleSet
from state_model.share_records import (
    CACHED_KEYS,
    MAX_CACHED_KEY_BYTES,
    SharePartitionKey,
    ShareRecord,
    UnknownTypeRecord,
    UnknownVersionValue,
    decode_record,
    encode_record,
)
from state_model.topics import STATE_TOPIC
from state_model.tuples import maker

# Looked up once: this is the work of every write.
_NONE = ErrorCode.NONE
_entry = maker(Record)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCoordinatorSettings:
    """The share.coordinator.* settings: their defaults are Kafka's.

    Attributes:
        rules: what a write appends; replay is the same for all.
        snapshot_update_limit: share.coordinator.snapshot.update.records.per.snapshot, 0 to 500.
        codec: share.coordinator.state.topic.compression.codec, the number of a compression type.
        load_buffer_bytes: share.coordinator.load.buffer.size.
        prune_interval_ms: share.coordinator.state.topic.prune.interval.ms.
        cold_snapshot_interval_ms: share.coordinator.cold.partition.snapshot.interval.ms.
    """

    rules: RuleSet = KAFKA_4_3
    snapshot_update_limit: int = SNAPSHOT_UPDATE_LIMIT
    codec: int = 0
    load_buffer_bytes: int = 5 << 20
    prune_interval_ms: int = 300_000
    cold_snapshot_interval_ms: int = COLD_SNAPSHOT_INTERVAL_MS


class _StatePartition:
    """A partition of the state topic: its log and its replayed state."""

    __slots__ = ("last_pruned", "log", "state")

    def __init__(self, log: Log, state: PartitionState) -> None:
        self.log = log
        self.state = state
        self.last_pruned: int | None = None


class ShareCoordinator:
    """Keeps the state of all share partitions (sharelens.broker.ports.Persister)."""

    def __init__(
        self,
        topics: Topics,
        logs: Logs,
        timers: Timers,
        settings: ShareCoordinatorSettings,
        metrics: BrokerMetrics | None = None,
        *,
        is_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """is_on: whether share.version enables share groups now; otherwise the job of cold snapshots rests (§6)."""
        self._is_on = is_on
        self._metrics = metrics or BrokerMetrics()
        self._topics = topics
        self._logs = logs
        self._timers = timers
        self._settings = settings
        self._partitions: dict[int, _StatePartition | None] = {}
        self._remembered_index = functools.lru_cache(maxsize=CACHED_KEYS)(self._find_index)

    def start(self) -> None:
        """Set the timers of the periodic jobs."""
        self._timers.after_ms(self._settings.cold_snapshot_interval_ms, self._snapshot_cold_and_again)
        self._timers.after_ms(self._settings.prune_interval_ms, self._prune_and_again)

    def partition_for(self, key: SharePartitionKey) -> int:
        """The state partition of a share partition; the state topic is created when it is missing."""
        return self._index_of(key)

    def state_of(self, index: int) -> PartitionState | None:
        """The state of a state partition; None when it does not exist, or its log can't be loaded."""
        partition = self._loaded(index)
        return None if partition is None else partition.state

    def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: int) -> ErrorCode:
        """InitializeShareGroupState."""
        partition = self._loaded(self._index_of(key))
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        outcome = coordinator.initialize(
            partition.state,
            key,
            state_epoch=state_epoch,
            start_offset=start_offset,
            now_ms=self._timers.now_ms(),
            topic_partition_exists=self._exists(key),
        )
        return outcome.error_code or self._commit(partition, outcome.records)

    def read(self, key: SharePartitionKey, *, leader_epoch: int) -> ReadAnswer:
        """ReadShareGroupState; a leader epoch above the maximum is recorded before the answer is sent."""
        partition = self._loaded(self._index_of(key))
        if partition is None:
            return ReadAnswer(error_code=ErrorCode.NOT_COORDINATOR)
        outcome = coordinator.read(
            partition.state,
            key,
            leader_epoch=leader_epoch,
            now_ms=self._timers.now_ms(),
            topic_partition_exists=self._exists(key),
        )
        error = self._commit(partition, outcome.records)
        return ReadAnswer(error_code=error) if error else outcome.answer

    def write(self, key: SharePartitionKey, request: WriteRequest) -> ErrorCode:
        """WriteShareGroupState."""
        timing = self._metrics.state_write
        begun_s = timing.clock()
        error = self._write(key, request)
        timing.took(begun_s)
        return error

    def _write(self, key: SharePartitionKey, request: WriteRequest) -> ErrorCode:
        partition = self._loaded(self._index_of(key))
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        outcome = coordinator.write(
            partition.state,
            key,
            request,
            now_ms=self._timers.now_ms(),
            topic_partition_exists=self._exists(key),
        )
        return outcome.error_code or self._commit(partition, outcome.records)

    def delete(self, key: SharePartitionKey) -> ErrorCode:
        """DeleteShareGroupState."""
        partition = self._loaded(self._index_of(key))
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        outcome = coordinator.delete(partition.state, key, topic_partition_exists=self._exists(key))
        return outcome.error_code or self._commit(partition, outcome.records)

    def read_summary(self, key: SharePartitionKey) -> SummaryAnswer:
        """ReadShareGroupStateSummary; never appends."""
        partition = self._loaded(self._index_of(key))
        if partition is None:
            return SummaryAnswer(error_code=ErrorCode.NOT_COORDINATOR)
        return answers.read_summary(partition.state, key, topic_partition_exists=self._exists(key))

    def delete_topics(self, topic_ids: Collection[str]) -> None:
        """Write tombstones for all share partitions of deleted topics, one batch for each state partition."""
        for partition in self._all_loaded():
            self._commit(partition, coordinator.delete_topics(partition.state, topic_ids))

    def snapshot_cold(self) -> None:
        """The job that repeats old snapshots, so that the log below them can be pruned; one batch for each partition.

        It rests while share.version is 0. The rules of 4.3 and 4.4 are the same here.
        """
        if not self._is_on():
            return
        for partition in self._all_loaded():
            records = coordinator.snapshot_cold(
                partition.state,
                now_ms=self._timers.now_ms(),
                interval_ms=self._settings.cold_snapshot_interval_ms,
            )
            self._commit(partition, records)

    def prune(self) -> None:
        """The job that prunes records that no share partition needs."""
        for partition in self._all_loaded():
            point = coordinator.prune_point(partition.state, partition.last_pruned)
            if point is None:
                continue
            try:
                partition.log.delete_records(point)
            except StorageError as error:
                _log.warning("kept the records of %s below %d: %s", partition.log.topic_partition, point, error)
            else:
                partition.last_pruned = point

    def _snapshot_cold_and_again(self) -> None:
        self.snapshot_cold()
        self._timers.after_ms(self._settings.cold_snapshot_interval_ms, self._snapshot_cold_and_again)

    def _prune_and_again(self) -> None:
        self.prune()
        self._timers.after_ms(self._settings.prune_interval_ms, self._prune_and_again)

    def _commit(self, partition: _StatePartition, records: Records) -> ErrorCode:
        """Append, then apply: a refused append leaves the state as it was."""
        if not records:
            return _NONE
        now_ms = self._timers.now_ms()
        entries = [_entry((*encode_record(record), (), now_ms, -1)) for record in records]
        try:
            offset = partition.log.append_records(entries, codec=self._settings.codec, base_sequence=0)
        except StorageError as error:
            _log.warning("could not append to %s: %s", partition.log.topic_partition, error)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        except RecordTooLargeError as error:
            _log.warning("%d records are too many for %s: %s", len(records), partition.log.topic_partition, error)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        state = partition.state
        for record in records:
            state = apply(state, offset, now_ms, record)
            offset += 1
        partition.state = state
        return _NONE

    def _index_of(self, key: SharePartitionKey) -> int:
        is_short = len(key.group_id) <= MAX_CACHED_KEY_BYTES
        return self._remembered_index(key) if is_short else self._find_index(key)

    def _find_index(self, key: SharePartitionKey) -> int:
        count = self._topics.ensure_internal(STATE_TOPIC).partitions
        return partition_for(key.group_id, key.topic_id, key.partition, count)

    def _exists(self, key: SharePartitionKey) -> bool:
        topic = self._topics.by_id(key.topic_id)
        return topic is not None and key.partition < topic.partitions

    def _all_loaded(self) -> Iterator[_StatePartition]:
        topic = self._topics.by_name(STATE_TOPIC)
        for index in range(0 if topic is None else topic.partitions):
            partition = self._loaded(index)
            if partition is not None:
                yield partition

    def _loaded(self, index: int) -> _StatePartition | None:
        loaded = self._partitions.get(index)
        if loaded is not None or index in self._partitions:
            return loaded
        log = self._logs.get(STATE_TOPIC, index)
        if log is None:
            return None
        timing = self._metrics.state_partition_load
        begun_s = timing.clock()
        partition = self._partitions[index] = self._load(log)
        timing.took(begun_s)
        return partition

    def _load(self, log: Log) -> _StatePartition | None:
        """The loaded state partition; None until the next start when its log can't be read."""
        state = PartitionState(rules=self._settings.rules, update_limit=self._settings.snapshot_update_limit)
        try:
            for record in _records_to_replay(log, self._settings.load_buffer_bytes):
                state = apply(state, record.offset, record.timestamp_ms, _decoded(record))
        except (BrokerError, DecodeError) as error:
            _log.error("could not load %s: %s", log.topic_partition, error)
            return None
        partition = _StatePartition(log, state)
        gone = {key.topic_id for key in state.share_partitions if self._topics.by_id(key.topic_id) is None}
        self._commit(partition, coordinator.delete_topics(state, gone))
        return partition


def _decoded(record: Record) -> ShareRecord | UnknownTypeRecord:
    decoded = decode_record(record.key, record.value)
    if isinstance(decoded, ShareRecord) and isinstance(decoded.value, UnknownVersionValue):
        raise DecodeError(f"the record at offset {record.offset} has a value of version {decoded.value.version}")
    return decoded


def _records_to_replay(log: Log, buffer_bytes: int) -> Iterator[Record]:
    """All records of the batches from the log start offset on, and those of its batch below it."""
    at = log.log_start_offset
    while at < log.high_watermark:
        data = log.read(at, max_bytes=buffer_bytes).data
        for header in record_batch.split(data):
            if not header.is_control:
                yield from record_batch.parse(data, header)
            at = header.last_offset + 1
