"""`__consumer_offsets`: the log that all kinds of groups share, and which kind a group id belongs to.

A group lies in one partition, abs(hash of its id) modulo their number (consumer-offsets-records §1). The records of one
operation are one batch. At start the whole log is replayed once, each record handed to the kind that owns its type.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from broker.ports import Log, Logs, Record, Topics
from state_model.errors import DecodeError
from state_model.group_records import GroupRecord, decode_record
from state_model.group_schemas import RECORD_TYPES, GroupKind
from state_model.java import partition_for_group
from state_model.share_records import UnknownTypeRecord

GROUP_TOPIC = "__consumer_offsets"
LOAD_CHUNK_OFFSETS = 10_000
"""Offsets that a load reads at a time, so that its memory has a bound."""

KeyValue = tuple[bytes, bytes | None]
Replay = Callable[[GroupRecord], None]
"""Takes one record of the log into a coordinator's state; a null value is a tombstone."""

_log = logging.getLogger(__name__)


class GroupIds:
    """Which kind of group an id belongs to: one at a time, until the group is gone (consumer-offsets-records §5)."""

    def __init__(self) -> None:
        self._kinds: dict[str, GroupKind] = {}

    def kind(self, group_id: str) -> GroupKind | None:
        """The kind that has the id; None when it is free."""
        return self._kinds.get(group_id)

    def claim(self, group_id: str, kind: GroupKind) -> bool:
        """Whether the id now belongs to `kind`: it was free, or had it already."""
        return self._kinds.setdefault(group_id, kind) is kind

    def release(self, group_id: str, kind: GroupKind) -> None:
        """Free the id of a group that is gone; nothing happens when another kind has it."""
        if self._kinds.get(group_id) is kind:
            del self._kinds[group_id]


class GroupLog:
    """Appends to and replays `__consumer_offsets`; `ids` says whose a group id is."""

    def __init__(self, topics: Topics, logs: Logs, *, codec: int = 0) -> None:
        self.ids = GroupIds()
        self._topics = topics
        self._logs = logs
        self._codec = codec

    def partition_for(self, group_id: str) -> int:
        """The partition that holds a group; the topic is made when it is not there yet."""
        return partition_for_group(group_id, self._topics.ensure_internal(GROUP_TOPIC).partitions)

    def log_for(self, group_id: str) -> Log:
        """The log that holds a group."""
        partition = self.partition_for(group_id)
        log = self._logs.get(GROUP_TOPIC, partition)
        assert log is not None, f"{GROUP_TOPIC}-{partition} has no log"
        return log

    def append(self, group_id: str, records: Sequence[KeyValue]) -> None:
        """The records of one operation, as one atomic batch; no records, no batch.

        Raises broker.errors.StorageError or RecordTooLargeError; nothing is in the log then.
        """
        if records:
            entries = [Record(key=key, value=value) for key, value in records]
            self.log_for(group_id).append_records(entries, codec=self._codec)

    def load(self, handlers: Mapping[GroupKind, Replay]) -> None:
        """Replay everything, partition by partition in the order of offsets.

        A record goes to the handler of its type's kind and claims the group id for it. Types without a handler stay
        in the log, unread. A record that can't be decoded, or speaks for an id that another kind has, is skipped with
        a warning. Handlers of groups that end release their ids.
        """
        topic = self._topics.by_name(GROUP_TOPIC)
        for partition in range(0 if topic is None else topic.partitions):
            log = self._logs.get(GROUP_TOPIC, partition)
            if log is not None:
                for record in _records_of(log):
                    self._replay(log, record, handlers)

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
        if not decoded.is_tombstone and not self.ids.claim(decoded.group_id, kind):
            where = f"{log.topic_partition} at offset {record.offset}"
            _log.warning("skipped the %s of %s: %s is of another kind", decoded.name, where, decoded.group_id)
            return
        handler(decoded)


def _records_of(log: Log) -> Iterator[Record]:
    first, end = log.log_start_offset, log.high_watermark
    while first < end:
        last = min(first + LOAD_CHUNK_OFFSETS, end) - 1
        yield from log.records(first, last)
        first = last + 1
