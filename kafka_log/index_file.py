"""Offset indexes (`*.index`): where in a segment an offset lies, without reading it.

An entry is two big endian int32: the last offset of a batch relative to the segment's base offset, and the batch's
position (org.apache.kafka.storage.internals.log.OffsetIndex). The file of an active segment is longer than its
entries and filled with zeros. An entry is a hint: it counts only when a batch header with that last offset stands at
the position.
"""

import numpy as np

from kafka_log import filesystem
from kafka_log import record_batch as rb
from kafka_log.blocks import Start
from kafka_log.filesystem import RandomAccess
from kafka_log.layout import PartitionDirectory, SegmentFile
from kafka_log.segment_file import MAXIMUM_BATCH_BYTES, Table
from kafka_log.segments import first_segment

_MAXIMUM_INDEX_BYTES = 64 << 20


def read_index(segment: SegmentFile) -> Table:
    """(last offset, position) a row, ascending; empty when there is no index or it can't be read."""
    empty = np.zeros((0, 2), dtype=np.int64)
    if segment.index_uri is None:
        return empty
    try:
        with filesystem.filesystem_of(segment.index_uri).open(segment.index_uri) as file:
            raw = file.read_at(0, min(file.size(), _MAXIMUM_INDEX_BYTES) // 8 * 8)
    except OSError:
        return empty
    entries: Table = raw[: len(raw) // 8 * 8].view(">i4").reshape(-1, 2).astype(np.int64)
    entries[:, 0] += segment.base_offset
    ascending = np.all(np.diff(entries, axis=0) > 0, axis=1)
    usable = 1 + (len(ascending) if ascending.all() else int(np.argmin(ascending))) if len(entries) else 0
    entries = entries[:usable]
    return entries[(entries[:, 1] > 0) & (entries[:, 0] >= segment.base_offset)]


def header_at(file: RandomAccess, position: int) -> Table | None:
    """The header row of the batch at a position; None without a plausible header."""
    headers, _, _ = rb.walk_headers(file.read_at(position, rb.HEADER_BYTES), MAXIMUM_BATCH_BYTES, whole=False)
    return headers if len(headers) else None


def locate(copy: PartitionDirectory, offset: int) -> Start:
    """A place at or before the first batch that ends at or after `offset`."""
    number = first_segment(copy, offset)
    if not copy.segments or offset <= copy.segments[number].base_offset:
        return Start(segment=number, position=0)
    segment = copy.segments[number]
    entries = read_index(segment)
    before = int(np.searchsorted(entries[:, 0], offset, side="right")) - 1
    if before >= 0:
        last, position = entries[before].tolist()
        try:
            with filesystem.filesystem_of(segment.uri).open(segment.uri) as file:
                header = header_at(file, position)
        except OSError:
            header = None
        if header is not None and header[0, rb.LAST_OFFSET] == last:
            return Start(segment=number, position=position)
    return Start(segment=number, position=0)
