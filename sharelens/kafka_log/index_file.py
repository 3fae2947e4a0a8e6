"""Offset indexes (`*.index`): where in a segment an offset lies, without reading it.

An entry is two big endian int32: the last offset of a batch relative to the segment's base offset, and the batch's
position (org.apache.kafka.storage.internals.log.OffsetIndex). The file of an active segment is longer than its
entries and filled with zeros. An entry is a hint: it counts only when a batch header with that last offset stands at
the position.
"""

import numpy as np

from sharelens.kafka_log import filesystem
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.blocks import Start
from sharelens.kafka_log.files import RandomAccess, parent
from sharelens.kafka_log.layout import PartitionDirectory, SegmentFile, open_segment
from sharelens.kafka_log.probing import LEAST_BYTES, position_before, position_near_end
from sharelens.kafka_log.segment_file import MAXIMUM_BATCH_BYTES, Table
from sharelens.kafka_log.segments import first_segment
from state_model.topics import RECORD_TOPICS

_MAXIMUM_INDEX_BYTES = 64 << 20


def read_index(segment: SegmentFile) -> Table:
    """(last offset, position) a row, ascending; empty when there is no index or it can't be read."""
    empty = np.zeros((0, 2), dtype=np.int64)
    if segment.index is None:
        return empty
    most_entries = segment.size_bytes // rb.MINIMUM_HEADER_BYTES + 1  # the rest of a large file is zeros
    try:
        folder = filesystem.folder_at(parent(segment.uri))
        with folder.open(segment.index.name, size_bytes=segment.index.size_bytes, tag=segment.index.tag) as file:
            raw = file.read_at(0, min(file.size(), 8 * most_entries, _MAXIMUM_INDEX_BYTES) // 8 * 8)
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
    headers, _, _ = rb.walk_headers(file.read_at(position, rb.HEADER_BYTES), MAXIMUM_BATCH_BYTES, require_whole=False)
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
            with open_segment(segment) as file:
                header = header_at(file, position)
        except OSError:
            header = None
        if header is not None and header[0, rb.LAST_OFFSET] == last:
            return Start(segment=number, position=position)
    position = position_before(segment, offset) if is_probed(copy, segment) else 0
    return Start(segment=number, position=position)


def locate_end(copy: PartitionDirectory, number: int) -> Start:
    """A place in a segment near its end: at its last batch in the index, or where the last windows of it begin."""
    segment = copy.segments[number]
    entries = read_index(segment)
    if len(entries):
        start = locate(copy, int(entries[-1, 0]))
        return start if start.segment == number else Start(segment=number, position=0)
    return Start(segment=number, position=position_near_end(segment) if is_probed(copy, segment) else 0)


def is_probed(copy: PartitionDirectory, segment: SegmentFile) -> bool:
    """Whether positions in a segment without an index are looked for by bisection.

    Only in topics whose batches have at most the usual size; of others few bytes but the headers are read.
    """
    return copy.topic in RECORD_TOPICS and segment.size_bytes >= LEAST_BYTES
