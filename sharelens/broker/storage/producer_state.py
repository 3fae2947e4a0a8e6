"""The idempotent and transactional producers of a partition, rebuilt from its batches.

Rules: org.apache.kafka.storage.internals.log.ProducerStateManager, ProducerAppendInfo, ProducerStateEntry. The file
of a snapshot is Kafka's: version 1, CRC-32C of what follows, entries of 46 bytes with the last batch of each producer.
"""

from collections import deque
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from sharelens.broker.errors import (
    CoordinatorFencedError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducerFencedError,
)
from sharelens.broker.storage.files import replace_file
from sharelens.broker.storage.record_batch import BatchHeader, Marker

KEPT_BATCHES: Final = 5
# Clients choose producer ids: above the bound the longest idle ones without open transactions are removed.
MAX_PRODUCERS: Final = 100_000

_INT32_MAX: Final = (1 << 31) - 1
_SNAPSHOT_HEAD: Final = Struct(">hIi")
_SNAPSHOT_ENTRY: Final = Struct(">qhiqiqiq")
_SNAPSHOT_VERSION: Final = 1
_CRC_END: Final = 6


class SequencedBatch(NamedTuple):
    """A producer's appended batch, kept to recognise its retry."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_offset(self) -> int:
        """The batch's base offset."""
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer: its epoch, last batches (oldest first), and the first offset of its open transaction."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp_ms", "open_from")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp_ms = -1
        self.open_from: int | None = None
        self.batches: deque[SequencedBatch] = deque(maxlen=KEPT_BATCHES)

    @property
    def last_sequence(self) -> int:
        """-1 before the first batch of an epoch."""
        return self.batches[-1].last_sequence if self.batches else -1


class EndedTransaction(NamedTuple):
    """A completed transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_commit: bool


class ProducerStates:
    """The producers of one partition."""

    __slots__ = ("_entries", "_open")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        # Ascending, because transactions begin in offset order.
        self._open: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterator[tuple[int, ProducerEntry]]:
        """Producer ids and their entries, the longest idle first."""
        yield from self._entries.items()

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction."""
        return next(iter(self._open.values())) if self._open else None

    def check_batch(self, header: BatchHeader) -> SequencedBatch | None:
        """Whether a client's batch may be appended; the appended batch when it is a retry.

        Raises ProducerFencedError, OutOfOrderSequenceError, InvalidTransactionStateError.
        """
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        if header.producer_epoch == entry.epoch:
            for batch in entry.batches:
                if batch.last_sequence == header.last_sequence and batch.offset_delta == header.last_offset_delta:
                    return batch
        _check_epoch(header.producer_id, header.producer_epoch, entry)
        last = entry.last_sequence if header.producer_epoch == entry.epoch else -1
        if header.base_sequence != (last + 1) & _INT32_MAX:
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id} sent sequence {header.base_sequence} after {last}"
            )
        if entry.open_from is not None and not header.is_transactional:
            raise InvalidTransactionStateError(f"producer {header.producer_id} has a transaction open: write inside it")
        return None

    def check_marker(self, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        """Whether a marker may be appended. Raises ProducerFencedError, CoordinatorFencedError."""
        entry = self._entries.get(producer_id)
        if entry is None:
            return
        _check_epoch(producer_id, producer_epoch, entry)
        if coordinator_epoch < entry.coordinator_epoch:
            raise CoordinatorFencedError(
                f"marker of coordinator epoch {coordinator_epoch} after {entry.coordinator_epoch}"
            )

    def apply_batch(self, header: BatchHeader, base_offset: int) -> None:
        """Apply a producer's batch at `base_offset`."""
        entry = self._touch(header.producer_id, header.producer_epoch, header.max_timestamp_ms)
        last_offset = base_offset + header.last_offset_delta
        if header.base_sequence >= 0:
            entry.batches.append(
                SequencedBatch(header.last_sequence, last_offset, header.last_offset_delta, header.max_timestamp_ms)
            )
        if header.is_transactional and entry.open_from is None:
            entry.open_from = self._open[header.producer_id] = base_offset

    def apply_marker(self, header: BatchHeader, base_offset: int, marker: Marker) -> EndedTransaction | None:
        """Apply a marker; the transaction that it ended, if the producer had one open."""
        entry = self._touch(header.producer_id, header.producer_epoch, header.max_timestamp_ms)
        entry.coordinator_epoch = marker.coordinator_epoch
        first = entry.open_from
        entry.open_from = None
        self._open.pop(header.producer_id, None)
        if first is None:
            return None
        return EndedTransaction(header.producer_id, first, base_offset, marker.is_commit)

    def expire(self, before_ms: int) -> int:
        """Remove producers idle since before a time, unless a transaction is open; their number."""
        gone = [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.open_from is None and entry.last_timestamp_ms < before_ms
        ]
        for producer_id in gone:
            del self._entries[producer_id]
        return len(gone)

    def _touch(self, producer_id: int, epoch: int, timestamp_ms: int) -> ProducerEntry:
        """The producer's entry, moved behind all others; a new epoch removes the batches of the older one."""
        entry = self._entries.pop(producer_id, None)
        if entry is None:
            entry = ProducerEntry(epoch)
            if len(self._entries) >= MAX_PRODUCERS:
                self._drop_idlest()
        elif entry.epoch != epoch:
            entry.epoch = epoch
            entry.batches.clear()
        entry.last_timestamp_ms = timestamp_ms
        self._entries[producer_id] = entry
        return entry

    def _drop_idlest(self) -> None:
        for producer_id, entry in self._entries.items():
            if entry.open_from is None:
                del self._entries[producer_id]
                return

    def save(self, path: Path) -> None:
        """Write a snapshot. Raises StorageError."""
        body = [len(self._entries).to_bytes(4, "big")]
        for producer_id, entry in self._entries.items():
            last = entry.batches[-1] if entry.batches else SequencedBatch(-1, -1, 0, entry.last_timestamp_ms)
            open_from = -1 if entry.open_from is None else entry.open_from
            body.append(
                _SNAPSHOT_ENTRY.pack(
                    producer_id,
                    entry.epoch,
                    last.last_sequence,
                    last.last_offset,
                    last.offset_delta,
                    entry.last_timestamp_ms,
                    entry.coordinator_epoch,
                    open_from,
                )
            )
        raw = b"".join(body)
        replace_file(path, _SNAPSHOT_VERSION.to_bytes(2, "big") + crc32c(raw).to_bytes(4, "big") + raw)

    @classmethod
    def load(cls, path: Path) -> "ProducerStates | None":
        """The producers of a snapshot; None when it is damaged."""
        raw = path.read_bytes()
        if len(raw) < _SNAPSHOT_HEAD.size:
            return None
        version, crc, count = _SNAPSHOT_HEAD.unpack_from(raw)
        entries = raw[_SNAPSHOT_HEAD.size :]
        if (
            version != _SNAPSHOT_VERSION
            or crc32c(raw[_CRC_END:]) != crc
            or len(entries) != count * _SNAPSHOT_ENTRY.size
        ):
            return None
        states = cls()
        for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, first in _SNAPSHOT_ENTRY.iter_unpack(
            entries
        ):
            entry = states._touch(producer_id, epoch, timestamp)
            entry.coordinator_epoch = coordinator
            if sequence >= 0:
                entry.batches.append(SequencedBatch(sequence, offset, delta, timestamp))
            if first >= 0:
                entry.open_from = first
        opened = {producer_id: entry.open_from for producer_id, entry in states.items() if entry.open_from is not None}
        states._open = dict(sorted(opened.items(), key=itemgetter(1)))
        return states


def _check_epoch(producer_id: int, epoch: int, entry: ProducerEntry) -> None:
    if epoch < entry.epoch:
        raise ProducerFencedError(f"producer {producer_id} of epoch {epoch}: epoch {entry.epoch} was here already")
