"""`__transaction_state`: a record of each transactional id, in Kafka's layout (TransactionLogKey 0, Value 1).

An id lies in one partition, abs(hash) modulo their number. At start the log is replayed: the last record of an id
counts, a tombstone removes it.
"""

import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import cast

from sharelens.broker.ports import Log, Logs, Record, TopicPartition, Topics
from state_model.codec.primitives import need
from state_model.errors import DecodeError
from state_model.java import partition_for_group
from state_model.schema import CLASSIC_STRING, INT8, INT16, INT32, INT64, STRING, CompactArray, Field, Struct, Tree

TRANSACTION_TOPIC = "__transaction_state"
LOAD_CHUNK_OFFSETS = 10_000
"""Offsets that a load reads at a time, which bound its memory."""
NO_PRODUCER = -1
NO_TIME = -1

_KEY_VERSION = 0
_VALUE_VERSION = 1
_INT16 = struct.Struct(">h")
_KEY = Struct(Field(name="transactional_id", kind=CLASSIC_STRING), flexible=False)
_PARTITIONS = Struct(Field(name="topic", kind=STRING), Field(name="partition_ids", kind=CompactArray(item=INT32)))
_VALUE = Struct(
    Field(name="producer_id", kind=INT64),
    Field(name="producer_epoch", kind=INT16),
    Field(name="transaction_timeout_ms", kind=INT32),
    Field(name="transaction_status", kind=INT8),
    Field(name="transaction_partitions", kind=CompactArray(item=_PARTITIONS, nullable=True)),
    Field(name="transaction_last_update_timestamp_ms", kind=INT64),
    Field(name="transaction_start_timestamp_ms", kind=INT64),
    Field(name="previous_producer_id", kind=INT64, tag=0, default=NO_PRODUCER),
    Field(name="next_producer_id", kind=INT64, tag=1, default=NO_PRODUCER),
    Field(name="client_transaction_version", kind=INT16, tag=2, default=0),
    Field(name="next_producer_epoch", kind=INT16, tag=3, default=-1),
)

_log = logging.getLogger(__name__)


class TransactionStatus(IntEnum):
    """The state of a transactional id (org.apache.kafka.coordinator.transaction.TransactionState)."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The state of a transactional id and its newest transaction.

    `last_producer_epoch` is the epoch before the newest bump, to recognise a repeated InitProducerId; it is not
    written to the log. `previous_producer_id` is the id before the newest one, after its epochs were exhausted.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionStatus = TransactionStatus.EMPTY
    partitions: frozenset[TopicPartition] = field(default_factory=frozenset)
    updated_ms: int = NO_TIME
    started_ms: int = NO_TIME
    last_producer_epoch: int = -1
    previous_producer_id: int = NO_PRODUCER


class TransactionLog:
    """Appends to and replays `__transaction_state`."""

    def __init__(self, topics: Topics, logs: Logs) -> None:
        self._topics = topics
        self._logs = logs

    def append(self, transaction: Transaction) -> None:
        """Write a transactional id's newest state.

        Raises sharelens.broker.errors.StorageError or RecordTooLargeError; nothing was appended then.
        """
        record = Record(key=encode_key(transaction.transactional_id), value=encode_value(transaction))
        self._log_for(transaction.transactional_id).append_records([record])

    def remove(self, transactional_id: str) -> None:
        """Write the tombstone of an id. Raises as `append`."""
        self._log_for(transactional_id).append_records([Record(key=encode_key(transactional_id), value=None)])

    def coordinator_epoch(self, transactional_id: str) -> int:
        """The leader epoch of an id's log, for its markers."""
        return self._log_for(transactional_id).leader_epoch

    def load(self) -> dict[str, Transaction]:
        """The newest state of every id. A record that can't be read is skipped with a warning."""
        transactions: dict[str, Transaction] = {}
        topic = self._topics.by_name(TRANSACTION_TOPIC)
        for partition in range(0 if topic is None else topic.partitions):
            log = self._logs.get(TRANSACTION_TOPIC, partition)
            if log is not None:
                for record in _records_of(log):
                    _replay(log, record, transactions)
        return transactions

    def _log_for(self, transactional_id: str) -> Log:
        partitions = self._topics.ensure_internal(TRANSACTION_TOPIC).partitions
        partition = partition_for_group(transactional_id, partitions)
        log = self._logs.get(TRANSACTION_TOPIC, partition)
        assert log is not None, f"{TRANSACTION_TOPIC}-{partition} has no log"
        return log


def encode_key(transactional_id: str) -> bytes:
    """The key of a transactional id."""
    return _INT16.pack(_KEY_VERSION) + _KEY.write({"transactional_id": transactional_id})


def encode_value(transaction: Transaction) -> bytes:
    """The value of a transactional id. Partitions are null between transactions, as Kafka writes them."""
    partitions: tuple[Tree, ...] | None = None
    if transaction.partitions:
        by_topic: dict[str, list[int]] = {}
        for at in sorted(transaction.partitions):
            by_topic.setdefault(at.topic, []).append(at.partition)
        partitions = tuple({"topic": topic, "partition_ids": tuple(ids)} for topic, ids in by_topic.items())
    return _INT16.pack(_VALUE_VERSION) + _VALUE.write(
        {
            "producer_id": transaction.producer_id,
            "producer_epoch": transaction.producer_epoch,
            "transaction_timeout_ms": transaction.timeout_ms,
            "transaction_status": int(transaction.status),
            "transaction_partitions": partitions,
            "transaction_last_update_timestamp_ms": transaction.updated_ms,
            "transaction_start_timestamp_ms": transaction.started_ms,
            "previous_producer_id": transaction.previous_producer_id,
        }
    )


def decode_key(key: bytes) -> str:
    """The transactional id of a key. Raises a DecodeError for another version and for broken bytes."""
    _check_version(key, _KEY_VERSION)
    return str(_KEY.read(key, 2)[0]["transactional_id"])


def decode_value(transactional_id: str, value: bytes) -> Transaction:
    """The state of an id. Raises a DecodeError for another version and for broken bytes."""
    _check_version(value, _VALUE_VERSION)
    tree, _ = _VALUE.read(value, 2)
    try:
        status = TransactionStatus(cast(int, tree["transaction_status"]))
    except ValueError:
        raise DecodeError(f"{tree['transaction_status']!r} is no status of a transaction") from None
    topics = cast("tuple[Tree, ...]", tree["transaction_partitions"] or ())
    return Transaction(
        transactional_id=transactional_id,
        producer_id=cast(int, tree["producer_id"]),
        producer_epoch=cast(int, tree["producer_epoch"]),
        timeout_ms=cast(int, tree["transaction_timeout_ms"]),
        status=status,
        partitions=frozenset(
            TopicPartition(str(topic["topic"]), partition)
            for topic in topics
            for partition in cast("tuple[int, ...]", topic["partition_ids"])
        ),
        updated_ms=cast(int, tree["transaction_last_update_timestamp_ms"]),
        started_ms=cast(int, tree["transaction_start_timestamp_ms"]),
        previous_producer_id=cast(int, tree["previous_producer_id"]),
    )


def _check_version(buffer: bytes, version: int) -> None:
    need(buffer, 0, 2)
    if _INT16.unpack_from(buffer)[0] != version:
        raise DecodeError(f"version {_INT16.unpack_from(buffer)[0]} is not written here")


def _replay(log: Log, record: Record, transactions: dict[str, Transaction]) -> None:
    try:
        transactional_id = decode_key(record.key or b"")
        if record.value is None:
            transactions.pop(transactional_id, None)
        else:
            transactions[transactional_id] = decode_value(transactional_id, record.value)
    except DecodeError as error:
        _log.warning("skipped the record of %s at offset %d: %s", log.topic_partition, record.offset, error)


def _records_of(log: Log) -> Iterator[Record]:
    first, end = log.log_start_offset, log.high_watermark
    while first < end:
        last = min(first + LOAD_CHUNK_OFFSETS, end) - 1
        yield from log.records(first, last)
        first = last + 1
