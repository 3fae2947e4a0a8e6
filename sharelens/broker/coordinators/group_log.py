"""`__consumer_offsets`: the log of all kinds of groups, and the kind of each group id.

A group lies in one partition, abs(hash of its id) modulo their number (consumer-offsets-records §1). The records of one
operation are one batch. At start the whole log is replayed once, each record by the handler of its kind.
Committed offsets of a transaction wait for the marker that ends it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol, cast

from sharelens.broker.ports import BatchSpan, Log, Logs, ProducerIdentity, Record, Topics, TransactionalLog
from state_model.errors import DecodeError
from state_model.group_records import GroupRecord, decode_record
from state_model.group_schemas import RECORD_TYPES, GroupKind
from state_model.java import partition_for_group
from state_model.share_records import UnknownTypeRecord
from state_model.topics import OFFSETS_TOPIC

LOAD_CHUNK_BYTES = 1 << 20
"""Bytes that a load reads at a time, which bound its memory."""

OFFSET_TYPES = (0, 1)
"""The record types of committed offsets."""

KeyValue = tuple[bytes, bytes | None]
Replay = Callable[[GroupRecord], None]
"""Applies a record of the log to a coordinator's state; a null value is a tombstone."""

_log = logging.getLogger(__name__)


class TransactionReplay(Protocol):
    """Applies the records and markers of transactions during a load."""

    def replay_pending(self, record: GroupRecord, *, partition: int, producer_id: int) -> None:
        """Add a record of the producer's open transaction in this partition."""

    def end_transaction(self, partition: int, producer_id: int, *, is_commit: bool) -> None:
        """Apply the marker that ends it."""


class GroupIds:
    """The kind of each group id; an id belongs to one kind until the group is deleted (consumer-offsets-records §5)."""

    def __init__(self) -> None:
        self._kinds: dict[str, GroupKind] = {}

    def kind(self, group_id: str) -> GroupKind | None:
        """The kind that has the id; None when it is free."""
        return self._kinds.get(group_id)

    def claim(self, group_id: str, kind: GroupKind) -> bool:
        """Claim a free id for `kind`; whether the id belongs to `kind` now."""
        return self._kinds.setdefault(group_id, kind) is kind

    def release(self, group_id: str, kind: GroupKind) -> None:
        """Release the id of a deleted group; without effect when another kind has it."""
        if self._kinds.get(group_id) is kind:
            del self._kinds[group_id]


class GroupLog:
    """Appends to and replays `__consumer_offsets`; `ids` has the kind of each group id."""

    def __init__(self, topics: Topics, logs: Logs, *, codec: int = 0) -> None:
        self.ids = GroupIds()
        self._topics = topics
        self._logs = logs
        self._codec = codec

    def partition_for(self, group_id: str) -> int:
        """The partition of a group's records; the topic is created when it is missing."""
        return partition_for_group(group_id, self._topics.ensure_internal(OFFSETS_TOPIC).partitions)

    def log_for(self, group_id: str) -> Log:
        """The log of a group's records."""
        partition = self.partition_for(group_id)
        log = self._logs.get(OFFSETS_TOPIC, partition)
        assert log is not None, f"{OFFSETS_TOPIC}-{partition} has no log"
        return log

    def append(self, group_id: str, records: Sequence[KeyValue]) -> None:
        """The records of one operation, as one atomic batch; no records, no batch.

        Raises sharelens.broker.errors.StorageError or RecordTooLargeError; nothing was appended then.
        """
        if records:
            entries = [Record(key=key, value=value) for key, value in records]
            self.log_for(group_id).append_records(entries, codec=self._codec, base_sequence=0)

    def append_transactional(self, group_id: str, records: Sequence[KeyValue], producer: ProducerIdentity) -> None:
        """The records of one operation that count when the producer's transaction commits; no records, no batch.

        Raises sharelens.broker.errors.StorageError or RecordTooLargeError; nothing was appended then.
        """
        if records:
            entries = [Record(key=key, value=value) for key, value in records]
            log = cast(TransactionalLog, self.log_for(group_id))
            log.append_records(entries, codec=self._codec, base_sequence=0, producer=producer)

    def load(self, handlers: Mapping[GroupKind, Replay], transactions: TransactionReplay | None = None) -> None:
        """Replay all partitions, each in the order of offsets.

        A record goes to the handler of its type's kind; all but committed offsets claim the group id for it. Types
        without a handler are skipped. A record that can't be decoded, or whose group id belongs to another kind, is
        skipped with a warning. Handlers release the ids of deleted groups. Records and markers of transactions go to
        `transactions`.
        """
        topic = self._topics.by_name(OFFSETS_TOPIC)
        for partition in range(0 if topic is None else topic.partitions):
            log = self._logs.get(OFFSETS_TOPIC, partition)
            if log is not None:
                self._load(log, handlers, transactions)

    def _load(self, log: Log, handlers: Mapping[GroupKind, Replay], transactions: TransactionReplay | None) -> None:
        partition = log.topic_partition.partition
        for span in _runs_of(log):
            if span.is_control:
                aborted = log.aborted_transactions(span.first_offset, span.last_offset)
                ended = (span.producer_id, span.last_offset)
                is_commit = ended not in {(each.producer_id, each.last_offset) for each in aborted}
                if transactions is not None:
                    transactions.end_transaction(partition, span.producer_id, is_commit=is_commit)
                continue
            run_handlers = handlers
            if span.is_transactional:
                run_handlers = _pending_handlers(transactions, partition, span.producer_id)
            for record in log.records(span.first_offset, span.last_offset):
                self._replay(log, record, run_handlers)

    def _replay(self, log: Log, record: Record, handlers: Mapping[GroupKind, Replay]) -> None:
        try:
            decoded = decode_record(record.key, record.value)
        except DecodeError as error:
            _log.warning("skipped the record of %s at offset %d: %s", log.topic_partition, record.offset, error)
            return
        if isinstance(decoded, UnknownTypeRecord):
            return
        kind = RECORD_TYPES[decoded.record_type].group_kind
        handler = handlers.get(kind)
        if handler is None:
            return
        # Committed offsets belong to the id, whatever kind of group has it.
        is_offset = decoded.record_type in OFFSET_TYPES
        if not is_offset and not decoded.is_tombstone and not self.ids.claim(decoded.group_id, kind):
            where = f"{log.topic_partition} at offset {record.offset}"
            _log.warning("skipped the %s of %s: %s is of another kind", decoded.name, where, decoded.group_id)
            return
        handler(decoded)


def _pending_handlers(
    transactions: TransactionReplay | None, partition: int, producer_id: int
) -> dict[GroupKind, Replay]:
    """Only classic groups have records in transactions."""
    if transactions is None:
        return {}
    replay = transactions.replay_pending
    return {GroupKind.CLASSIC: lambda record: replay(record, partition=partition, producer_id=producer_id)}


def _runs_of(log: Log) -> Iterator[BatchSpan]:
    """The batches of a log in order; neighbours outside of transactions that were read together are joined."""
    first = log.log_start_offset
    while first < log.high_watermark:
        spans = log.read(first, max_bytes=LOAD_CHUNK_BYTES).spans
        if not spans:
            return
        for is_special, run in groupby(spans, key=lambda span: span.is_control or span.is_transactional):
            batches = list(run)
            if is_special:
                yield from batches
            else:
                start, end = max(first, batches[0].first_offset), batches[-1].last_offset
                size = sum(batch.size_bytes for batch in batches)
                yield BatchSpan(first_offset=start, last_offset=end, size_bytes=size)
        first = spans[-1].last_offset + 1
