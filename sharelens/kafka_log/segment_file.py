"""An open segment file: the batch at a position, its checksum, the next good batch behind damage."""

import zlib

import crc32c
import numpy as np
import numpy.typing as npt

from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.files import Bytes, RandomAccess
from sharelens.kafka_log.layout import SegmentFile

Table = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MAXIMUM_BATCH_BYTES = 256 << 20
RELATIVE_LIMIT = (1 << 31) - 1
_SEARCH_WINDOW_BYTES = 1 << 20
_SEARCH_BUDGET_BYTES = 256 << 20
_CHAIN_HOPS = 64


def crc_ok(data: Bytes, headers: Table) -> Mask:
    """Whether the checksum of each batch fits: CRC-32C, and CRC-32 of messages older than magic 2."""
    view = data.data
    starts = headers[:, rb.POSITION]
    ranges = zip((starts + rb.CRC_START).tolist(), (starts + headers[:, rb.SIZE]).tolist(), strict=True)
    checksum = crc32c.crc32c
    sums = np.array([checksum(view[start:end]) for start, end in ranges], dtype=np.int64)
    for row in np.flatnonzero(headers[:, rb.MAGIC] < 2).tolist():
        start, size = int(headers[row, rb.POSITION]), int(headers[row, rb.SIZE])
        sums[row] = zlib.crc32(view[start + rb.OLD_CRC_START : start + size])
    fits: Mask = sums == headers[:, rb.CRC]
    return fits


def inside(headers: Table, size: int) -> Mask:
    """Whether each batch ends inside the file."""
    return headers[:, rb.POSITION] + headers[:, rb.SIZE] <= size


class OpenSegment:
    """An open segment; its batches have base offsets from `base_offset` up to and including `highest`."""

    def __init__(self, file: RandomAccess, segment: SegmentFile, *, highest: int, is_last: bool) -> None:
        self.file = file
        self.uri = segment.uri
        self.base_offset = segment.base_offset
        self.highest = min(highest, segment.base_offset + RELATIVE_LIMIT)
        self.is_last = is_last
        self.size = file.size()
        self._budget = _SEARCH_BUDGET_BYTES + 2 * self.size

    def header_at(self, position: int) -> Table | None:
        """The header at a position when it is plausible and its batch fits in the file, else None."""
        if position + rb.MINIMUM_HEADER_BYTES > self.size:
            return None
        headers, _, _ = rb.walk_headers(
            self.file.read_at(position, rb.HEADER_BYTES), MAXIMUM_BATCH_BYTES, require_whole=False
        )
        if len(headers) == 0 or position + headers[0, rb.SIZE] > self.size:
            return None
        return headers

    def is_good(self, position: int) -> bool:
        """Whether a batch with a fitting checksum lies at a position."""
        header = self.header_at(position)
        if header is None or not self.base_offset <= header[0, rb.BASE_OFFSET] <= self.highest:
            return False
        return bool(crc_ok(self.file.read_at(position, int(header[0, rb.SIZE])), header)[0])

    def next_good(self, position: int, first_offset: int) -> int | None:
        """Position of the next good batch behind the damage at `position`; None when there is none.

        The chain of lengths is followed as long as it holds, so that batches inside a record's value are never
        taken for the log's own; else the bytes are searched. How many bytes a
        search may checksum is bounded for the whole segment.
        """
        at = position
        for _ in range(_CHAIN_HOPS):
            header = self.header_at(at)
            if header is None:
                break
            at += int(header[0, rb.SIZE])
            if at == self.size:
                return None
            if self.is_good(at):
                return at
        return self._search(position + 1, first_offset)

    def complete_batches(self, position: int, first_offset: int) -> tuple[int, int]:
        """(end position, last offset) of the batches from `position` on that lie whole in the file, whatever their
        checksums; (`position`, `first_offset` - 1) when there is none.

        No field of such a header is certain. A batch covers as many offsets as its two counts agree on, from its base
        offset if that can be one, else from `first_offset`.
        """
        last_offset = first_offset - 1
        while position < self.size:
            data = self.file.read_at(position, _SEARCH_WINDOW_BYTES)
            walked, _, _ = rb.walk_headers(data, MAXIMUM_BATCH_BYTES, require_whole=False)
            complete = inside(walked, self.size - position)
            if not complete.any():
                break
            headers = walked[complete]
            base = headers[:, rb.BASE_OFFSET]
            base = np.where((base >= first_offset) & (base <= self.highest), base, first_offset)
            counts = np.minimum(
                headers[:, rb.LAST_OFFSET] - headers[:, rb.BASE_OFFSET] + 1, headers[:, rb.RECORD_COUNT]
            )
            last_offset = max(last_offset, int((base + np.maximum(counts, 1) - 1).max()))
            position += int(headers[-1, rb.POSITION] + headers[-1, rb.SIZE])
            if not complete.all():
                break
        return position, min(last_offset, self.highest)

    def bytes_in_use(self, position: int) -> int:
        """How many bytes lie from `position` to the last one that is not zero: space is allocated as zeros."""
        used_to = start = position
        while start < self.size:
            data = self.file.read_at(start, _SEARCH_WINDOW_BYTES)
            nonzero = np.flatnonzero(data)
            used_to = start + int(nonzero[-1]) + 1 if len(nonzero) else used_to
            start += max(len(data), 1)
        return used_to - position

    def _search(self, position: int, first_offset: int) -> int | None:
        while position + rb.HEADER_BYTES <= self.size and self._budget > 0:
            window = self.file.read_at(position, _SEARCH_WINDOW_BYTES + rb.HEADER_BYTES)
            for at in rb.possible_headers(window, MAXIMUM_BATCH_BYTES, first_offset, self.highest):
                if self._budget <= 0:
                    break
                if self._fits(window, position, at):
                    return position + at
            position += _SEARCH_WINDOW_BYTES
        return None

    def _fits(self, window: Bytes, position: int, at: int) -> bool:
        """Whether the checksum fits of the candidate at `at` in a window that was read from `position`."""
        size = int.from_bytes(window[at + 8 : at + 12].tobytes(), "big") + rb.LENGTH_PREFIX_BYTES
        if position + at + size > self.size:
            return False
        self._budget -= size
        if at + size > len(window):
            return self.is_good(position + at)
        stored = int.from_bytes(window[at + 17 : at + 21].tobytes(), "big")
        return bool(crc32c.crc32c(window.data[at + rb.CRC_START : at + size]) == stored)
