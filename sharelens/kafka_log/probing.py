"""Positions in large segments without an index, by bisection: copies in buckets have segments alone.

Bytes that look like a batch may lie inside a record. But a record is no longer than a batch may be, which is 1 MiB
(max.message.bytes) unless a topic of records says otherwise; so batches with good checksums that follow each other for
longer than that are the log's own.
"""

from dataclasses import dataclass

from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.files import RandomAccess
from sharelens.kafka_log.layout import SegmentFile, open_segment
from sharelens.kafka_log.segment_file import MAXIMUM_BATCH_BYTES, RELATIVE_LIMIT, crc_ok

LEAST_BYTES = 8 << 20
"""Smaller segments are read from their beginning."""
CHAIN_BYTES = 1_250_000
SEARCHED_BYTES = 1 << 20
WINDOW_BYTES = SEARCHED_BYTES + CHAIN_BYTES + (256 << 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of the log: its position in the segment, its base offset."""

    position: int
    base_offset: int


def position_before(segment: SegmentFile, offset: int) -> int:
    """The position of a batch at or before the first one that ends at or after `offset`; 0 where none is certain.

    Reads the end first, which is what is new since an earlier look, then O(log n) windows.
    """
    low, high = 0, segment.size_bytes - WINDOW_BYTES
    with open_segment(segment) as file:
        last = batch_behind(file, segment, high)
        if last is not None and last.base_offset <= offset:
            return last.position
        while high - low > 2 * WINDOW_BYTES:
            middle = (low + high) // 2
            batch = batch_behind(file, segment, middle)
            if batch is None:  # damage, which the reader steps over batch by batch
                return low
            if batch.base_offset <= offset:
                low = batch.position
            else:
                high = middle
    return low


def position_near_end(segment: SegmentFile) -> int:
    """The position of a batch in the last windows of a segment; 0 where none is certain."""
    with open_segment(segment) as file:
        batch = batch_behind(file, segment, max(0, segment.size_bytes - WINDOW_BYTES))
    return 0 if batch is None else batch.position


def batch_behind(file: RandomAccess, segment: SegmentFile, position: int) -> Batch | None:
    """The first batch at or behind a position that is certain to be the log's own; None when it lies further off."""
    data = file.read_at(position, WINDOW_BYTES)
    candidates = rb.possible_headers(
        data, MAXIMUM_BATCH_BYTES, segment.base_offset, segment.base_offset + RELATIVE_LIMIT
    )
    for at in candidates:
        if at > SEARCHED_BYTES:
            break
        chain = data[at:]
        headers, length, _ = rb.walk_headers(chain, MAXIMUM_BATCH_BYTES, require_whole=True)
        if length < CHAIN_BYTES or not crc_ok(chain, headers).all():
            continue
        if (headers[1:, rb.BASE_OFFSET] > headers[:-1, rb.LAST_OFFSET]).all():
            return Batch(position=position + at, base_offset=int(headers[0, rb.BASE_OFFSET]))
    return None
