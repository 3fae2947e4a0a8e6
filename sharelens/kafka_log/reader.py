"""Reads a partition of a log: where it ends, splits for tasks, records, batch headers.

Arguments are offsets, never file positions: files are rolled, compacted, deleted and copied while they are read. Ranges
are half open. The copies of a partition are read as one log (see `merge`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.kafka_log import headers, segments
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.blocks import Start
from sharelens.kafka_log.index_file import header_at, locate, locate_end, read_index
from sharelens.kafka_log.layout import PartitionDirectory, SegmentFile, open_segment
from sharelens.kafka_log.merge import Merge, trusted_epochs
from sharelens.kafka_log.records import RecordParser, problems
from sharelens.kafka_log.segments import CopyReader
from sharelens.kafka_log.union import LogPartition

_UNBOUNDED = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A range of offsets of a partition, for one task: plain values only. `start`: where its first copy begins."""

    partition: LogPartition
    from_offset: int
    to_offset: int
    start: Start | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Records (LOG_RECORD) in offset order and what could not be read on the way (PROBLEM); either may be empty."""

    records: pa.RecordBatch
    problems: pa.RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """Where a log ends.

    `unreadable_bytes`: behind its last complete batch, in all copies: appends in progress. `newest_ms`: the largest
    timestamp of the batches at the end of any copy; None where there is no batch.
    """

    end_offset: int
    unreadable_bytes: int
    newest_ms: int | None = None

    def readable(self, committed_end: int | None, *, include_uncommitted: bool) -> int:
        """The offset up to which (exclusive) the log can be read; `committed_end` is None where it is unknown."""
        if include_uncommitted or committed_end is None:
            return self.end_offset
        return min(self.end_offset, committed_end)


class CopyEnd(NamedTuple):
    """The leader epoch of the last batch of one copy (-1: it has no batch), and where the copy ends."""

    leader_epoch: int
    end: LogEnd


NO_BATCH = CopyEnd(-1, LogEnd(end_offset=0, unreadable_bytes=0))
"""The end of a copy without segments."""


def readable_end(partition: LogPartition, *, include_uncommitted: bool) -> int:
    """The offset up to which (exclusive) the partition can be read now: the end of the log, or the committed end."""
    return log_end(partition).readable(partition.committed_end, include_uncommitted=include_uncommitted)


def log_end(partition: LogPartition) -> LogEnd:
    """Where the log ends: behind its last complete batch.

    Complete batches that can't be read, and bytes that can't be read below the committed end, are damage and count as
    read, so that they are reported once. Of several copies, those of the highest leader epoch decide: what others have
    beyond is not in the log.
    """
    return joined_end([copy_end(copy, partition.committed_end) for copy in partition.copies])


def joined_end(ends: Sequence[CopyEnd]) -> LogEnd:
    """Where a log ends by the ends of its copies."""
    newest_epoch = max((epoch for epoch, _ in ends), default=-1)
    return LogEnd(
        end_offset=max((end.end_offset for epoch, end in ends if epoch == newest_epoch), default=0),
        unreadable_bytes=sum(end.unreadable_bytes for _, end in ends),
        newest_ms=max((end.newest_ms for _, end in ends if end.newest_ms is not None), default=None),
    )


def copy_end(copy: PartitionDirectory, committed_end: int | None) -> CopyEnd:
    """Where one copy of a log ends, whose committed end is that of the log."""
    segments.check_visible(copy)
    end_offset, unreadable_bytes, epoch, newest_ms = 0, 0, -1, -1
    for number in range(len(copy.segments) - 1, -1, -1):
        segment, start = copy.segments[number], locate_end(copy, number)
        up_to_here = replace(copy, segments=copy.segments[: number + 1])
        reader = CopyReader(
            up_to_here,
            from_offset=segment.base_offset,
            to_offset=_UNBOUNDED,
            lost_below=committed_end or 0,
            start=start,
        )
        for block in reader.blocks():
            end_offset = max(end_offset, block.walked_to, *(damage.last_offset + 1 for damage in block.damages))
            epoch = max(epoch, *trusted_epochs(copy, block.headers).tolist()[-1:], -1)
            newest_ms = int(block.headers[:, rb.MAX_TIMESTAMP].max(initial=newest_ms))
        if number + 1 == len(copy.segments):
            unreadable_bytes = reader.unreadable_bytes
        if epoch >= 0:
            break
    known_ms = newest_ms if newest_ms >= 0 else None
    return CopyEnd(epoch, LogEnd(end_offset=end_offset, unreadable_bytes=unreadable_bytes, newest_ms=known_ms))


def splits(partition: LogPartition, from_offset: int, to_offset: int, target_bytes: int) -> list[Split]:
    """Splits of a range, each about `target_bytes` of the largest copy, cut between batches, in offset order.

    The cuts come from the index files; where a segment has none its headers are walked.
    """
    if from_offset >= to_offset:
        return []
    copies = sorted(partition.copies, key=lambda copy: (-_bytes_between(copy, from_offset, to_offset), copy.uri))
    partition = replace(partition, copies=tuple(copies))
    cuts = [(from_offset, None), *_cuts(copies[0], from_offset, to_offset, target_bytes)] if copies else []
    ends = [offset for offset, _ in cuts[1:]] + [to_offset]
    return [_split(partition, first, last, start) for (first, start), last in zip(cuts, ends, strict=True)]


def _bytes_between(copy: PartitionDirectory, from_offset: int, to_offset: int) -> int:
    later_segments = copy.segments[segments.first_segment(copy, from_offset) :]
    return sum(segment.size_bytes for segment in later_segments if segment.base_offset < to_offset)


def _cuts(
    copy: PartitionDirectory, from_offset: int, to_offset: int, target_bytes: int
) -> Iterator[tuple[int, Start | None]]:
    """(first offset, segment and position of its batch) of each split but the first."""
    gathered = 0
    for number in range(segments.first_segment(copy, from_offset), len(copy.segments)):
        segment = copy.segments[number]
        if segment.base_offset >= to_offset:
            return
        if gathered >= target_bytes and segment.base_offset > from_offset:
            yield segment.base_offset, Start(segment=number, position=0)
            gathered = 0
        before = 0
        for offset, position in _candidates(copy, segment, target_bytes):
            if offset <= from_offset:
                before = position
                continue
            if offset >= to_offset:
                return
            if gathered + position - before >= target_bytes:
                yield offset, Start(segment=number, position=position)
                gathered, before = 0, position
        gathered += max(0, segment.size_bytes - before)


def _candidates(copy: PartitionDirectory, segment: SegmentFile, target_bytes: int) -> Iterator[tuple[int, int]]:
    """(base offset, position) of the batches of a segment at which a split may begin, ascending in both."""
    if segment.size_bytes <= target_bytes // 2:
        return
    entries = read_index(segment)
    if len(entries) == 0:
        yield from _walked_candidates(copy, segment)
        return
    step = max(1, target_bytes // 64)
    chosen = entries[np.concatenate([[True], np.diff(entries[:, 1] // step) > 0])]
    before = segment.base_offset
    with open_segment(segment) as file:
        for last, position in chosen.tolist():
            header = header_at(file, position)
            if header is None or header[0, rb.LAST_OFFSET] != last or header[0, rb.BASE_OFFSET] <= before:
                continue
            before = int(header[0, rb.BASE_OFFSET])
            yield before, position


def _walked_candidates(copy: PartitionDirectory, segment: SegmentFile) -> Iterator[tuple[int, int]]:
    alone = replace(copy, segments=(segment,))
    reader = CopyReader(alone, from_offset=segment.base_offset, to_offset=_UNBOUNDED, lost_below=0, bodies=False)
    for block in reader.blocks():
        if len(block.headers):
            yield int(block.headers[0, rb.BASE_OFFSET]), block.data_position + int(block.headers[0, rb.POSITION])


def _split(partition: LogPartition, from_offset: int, to_offset: int, start: Start | None) -> Split:
    """A split with only the segments that it reads, and of each copy the next one: its base offset ends the range."""
    copies = []
    for place, copy in enumerate(partition.copies):
        first = segments.first_segment(copy, from_offset)
        last = sum(segment.base_offset < to_offset for segment in copy.segments) + 1
        copies.append(replace(copy, segments=copy.segments[first:last]))
        if place == 0 and start is not None:
            start = Start(segment=start.segment - first, position=start.position)
    return Split(
        partition=replace(partition, copies=tuple(copies)), from_offset=from_offset, to_offset=to_offset, start=start
    )


def read_split(split: Split, *, include_uncommitted: bool = False, batch_bytes: int = 8 << 20) -> Iterator[Chunk]:
    """The records of a split in offset order, each offset once, in chunks of about `batch_bytes` of log.

    Ends at the committed end unless `include_uncommitted`. Raises SourceMissingError when this machine does not see
    a log directory, CopyConflictError when copies contradict each other; everything else that can't be read is a
    problem row.
    """
    partition, to_offset = split.partition, split.to_offset
    for copy in partition.copies:
        segments.check_visible(copy)
    if partition.committed_end is not None and not include_uncommitted:
        to_offset = min(to_offset, partition.committed_end)
    if to_offset <= split.from_offset:
        return
    parser = RecordParser(partition, from_offset=split.from_offset, to_offset=to_offset)
    readers = [
        (
            copy,
            CopyReader(
                copy,
                from_offset=split.from_offset,
                to_offset=to_offset,
                lost_below=partition.committed_end or 0,
                start=split.start if split.start and place == 0 else locate(copy, split.from_offset),
                batch_bytes=batch_bytes,
            ),
        )
        for place, copy in enumerate(partition.copies)
    ]
    if len(readers) == 1:
        copy, reader = readers[0]
        for block in reader.blocks():
            for records, damages in parser.parse(block):
                yield Chunk(
                    records=records, problems=problems(partition, [(copy.source_id, damage) for damage in damages])
                )
        return
    for records, losses in Merge(partition, readers, parser, split.from_offset).chunks():
        yield Chunk(records=records, problems=problems(partition, losses))


def scan_batches(partition: LogPartition, from_offset: int, to_offset: int) -> Iterator[pa.RecordBatch]:
    """The headers (TOPIC_BATCH) of the batches that touch a range, in offset order; bodies are not read.

    Checksums are not checked, so this is for positions and counts; damage is stepped over silently.
    """
    yield from headers.scan(partition, from_offset, to_offset)


def log_time_end(
    partition: LogPartition, from_offset: int, to_offset: int, running_max_ms: int, until_ms: int
) -> tuple[int, int]:
    """The end (exclusive offset) of the prefix with log time < `until_ms`, and the running maximum at that end.

    Log time is the running maximum of record timestamps; `running_max_ms` is its value before `from_offset`. A batch
    whose maximum timestamp stays below is counted by its header; the batch that reaches it is read record by record.
    """
    if running_max_ms >= until_ms:
        return from_offset, running_max_ms
    for batch in scan_batches(partition, from_offset, to_offset):
        batch = batch.filter(pc.greater(batch["record_count"], 0))
        maxima = batch["max_timestamp_ms"].to_numpy()
        firsts, lasts = batch["base_offset"].to_numpy(), batch["last_offset"].to_numpy()
        by_record = (maxima >= until_ms) | (firsts < from_offset) | (lasts >= to_offset)
        next_row = 0
        for row in np.flatnonzero(by_record).tolist():
            running_max_ms = int(maxima[next_row:row].max(initial=running_max_ms))
            first, last = max(from_offset, int(firsts[row])), min(to_offset, int(lasts[row]) + 1)
            reached, running_max_ms = _record_reaching(partition, first, last, running_max_ms, until_ms)
            if reached is not None:
                return reached, running_max_ms
            next_row = row + 1
        running_max_ms = int(maxima[next_row:].max(initial=running_max_ms))
    return to_offset, running_max_ms


def _record_reaching(
    partition: LogPartition, from_offset: int, to_offset: int, running_max_ms: int, until_ms: int
) -> tuple[int | None, int]:
    """The first record of a range at or after `until_ms` (None: there is none), and the running maximum before it."""
    split = Split(partition=partition, from_offset=from_offset, to_offset=to_offset)
    for chunk in read_split(split, include_uncommitted=True):
        times = chunk.records["timestamp_ms"].to_numpy()
        reached = np.flatnonzero(times >= until_ms)
        if len(reached):
            running_max_ms = int(times[: reached[0]].max(initial=running_max_ms))
            return chunk.records["offset"][int(reached[0])].as_py(), running_max_ms
        running_max_ms = int(times.max(initial=running_max_ms))
    return None, running_max_ms
