"""The indexes of one segment: offsets to positions, times to offsets, aborted transactions.

Formats and rules: org.apache.kafka.storage.internals.log.OffsetIndex (int32 offset from the base, int32 position),
TimeIndex (int64 largest timestamp so far, int32 offset from the base), AbortedTxn (version 0, 34 bytes). An entry is
due at the first batch after more than index.interval.bytes; it names the batch's last offset.
"""

import os
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from sharelens.broker.storage.files import replace_file

OFFSET_ENTRY_BYTES: Final = 8
TIME_ENTRY_BYTES: Final = 12
_TIME_ENTRY: Final = Struct(">qi")
_ABORTED: Final = Struct(">hqqqq")


class SegmentIndex:
    """Offset and time index in memory: four bytes an entry and number, written out when the segment is flushed."""

    __slots__ = ("_base_offset", "_offsets", "_positions", "_time_offsets", "_times")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._offsets = array("I")
        self._positions = array("I")
        self._times = array("q")
        self._time_offsets = array("I")

    @property
    def entries(self) -> int:
        """Size of the offset index."""
        return len(self._offsets)

    @property
    def time_entries(self) -> int:
        """Size of the time index."""
        return len(self._times)

    def add(self, last_offset: int, position: int) -> None:
        """An entry for a batch; both ascend."""
        self._offsets.append(last_offset - self._base_offset)
        self._positions.append(position)

    def add_time(self, timestamp_ms: int, offset: int) -> None:
        """The largest timestamp so far and its offset; nothing when it did not grow."""
        if not self._times or timestamp_ms > self._times[-1]:
            self._times.append(timestamp_ms)
            self._time_offsets.append(offset - self._base_offset)

    def position_of(self, offset: int) -> int:
        """The position from which to search for an offset."""
        count = bisect_right(self._offsets, offset - self._base_offset)
        return self._positions[count - 1] if count else 0

    def position_below(self, position: int) -> int:
        """The last indexed start of a batch at or below a position."""
        count = bisect_right(self._positions, position)
        return self._positions[count - 1] if count else 0

    def offset_of_time(self, timestamp_ms: int) -> int:
        """The offset from which to search for a time."""
        count = bisect_right(self._times, timestamp_ms)
        return self._base_offset + (self._time_offsets[count - 1] if count else 0)

    def save(self, path: Path) -> None:
        """Write `.index` and `.timeindex` beside the segment at `path`. Raises StorageError."""
        pairs = array("I", bytes(OFFSET_ENTRY_BYTES * len(self._offsets)))
        pairs[0::2], pairs[1::2] = self._offsets, self._positions
        if sys.byteorder == "little":
            pairs.byteswap()
        replace_file(path.with_suffix(".index"), pairs.tobytes())
        times = (_TIME_ENTRY.pack(*entry) for entry in zip(self._times, self._time_offsets, strict=True))
        replace_file(path.with_suffix(".timeindex"), b"".join(times))

    @classmethod
    def load(cls, path: Path, base_offset: int, log_bytes: int) -> "SegmentIndex | None":
        """What `save` wrote; None when a file is missing or can't belong to the segment: build it from the batches."""
        try:
            offsets = path.with_suffix(".index").read_bytes()
            times = path.with_suffix(".timeindex").read_bytes()
        except OSError:
            return None
        if len(offsets) % OFFSET_ENTRY_BYTES or len(times) % TIME_ENTRY_BYTES:
            return None
        index = cls(base_offset)
        pairs = array("I", offsets)
        if sys.byteorder == "little":
            pairs.byteswap()
        index._offsets, index._positions = pairs[0::2], pairs[1::2]
        for timestamp, offset in _TIME_ENTRY.iter_unpack(times):
            if offset < 0:
                return None
            index._times.append(timestamp)
            index._time_offsets.append(offset)
        return index if index._is_sane(log_bytes) else None

    def _is_sane(self, log_bytes: int) -> bool:
        for column in (self._offsets, self._positions, self._times):
            if any(map(int.__ge__, column, column[1:])):
                return False
        return not self._positions or self._positions[-1] < log_bytes


def read_last_time(path: Path, base_offset: int) -> tuple[int, int] | None:
    """The largest timestamp of a closed segment and its offset, from the end of its time index; None when missing."""
    try:
        raw = path.with_suffix(".timeindex").read_bytes()[-TIME_ENTRY_BYTES:]
    except OSError:
        return None
    if len(raw) < TIME_ENTRY_BYTES:
        return None
    timestamp, offset = _TIME_ENTRY.unpack(raw)
    return (timestamp, base_offset + offset) if offset >= 0 else None


class AbortedEntry(NamedTuple):
    """An aborted transaction: its producer, first offset, the marker's offset, the last stable offset after it."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def append_aborted(path: Path, entry: AbortedEntry) -> None:
    """Add an entry to the `.txnindex` beside the segment at `path`. Raises OSError."""
    descriptor = os.open(path.with_suffix(".txnindex"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        raw = _ABORTED.pack(0, *entry)
        if os.write(descriptor, raw) != len(raw):
            os.ftruncate(descriptor, size)
            raise OSError(f"{path.with_suffix('.txnindex')} took only a part of an entry")
    finally:
        os.close(descriptor)


def read_aborted(path: Path) -> list[AbortedEntry]:
    """The entries of the `.txnindex` beside the segment at `path`, in order of their markers."""
    try:
        raw = path.with_suffix(".txnindex").read_bytes()
    except FileNotFoundError:
        return []
    complete_bytes = len(raw) - len(raw) % _ABORTED.size
    return [AbortedEntry(*numbers) for _, *numbers in _ABORTED.iter_unpack(raw[:complete_bytes])]


def write_aborted(path: Path, entries: Iterable[AbortedEntry]) -> None:
    """Replace the `.txnindex` beside the segment at `path`; none when there are no entries. Raises StorageError."""
    raw = b"".join(_ABORTED.pack(0, *entry) for entry in entries)
    if raw:
        replace_file(path.with_suffix(".txnindex"), raw)
    else:
        path.with_suffix(".txnindex").unlink(missing_ok=True)
