"""Reads one copy of a partition batch by batch: walks headers, checks checksums, steps over damage and reports it.

A copy is a chain of segments. Blocks come out in offset order; inside a copy their batches never overlap. What could
not be read is a `Damage`, whose offset range is what is missing between the good batches around it.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sharelens.kafka_log import filesystem, layout
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.blocks import KEPT_BYTES, Block, Damage, Start
from sharelens.kafka_log.errors import LogDirectoryError, SourceMissingError
from sharelens.kafka_log.files import Bytes, RandomAccess, parent
from sharelens.kafka_log.layout import PartitionDirectory, SegmentFile
from sharelens.kafka_log.segment_file import (
    MAXIMUM_BATCH_BYTES,
    RELATIVE_LIMIT,
    Mask,
    OpenSegment,
    Table,
    crc_ok,
    inside,
)

_HEADER_WINDOW_BYTES = 256 << 10
_SMALL_WINDOW_BYTES = 4 << 10


class CopyReader:
    """Reads one copy from `from_offset` up to `to_offset` (exclusive), whole batches.

    `lost_below`: bytes that can't be read at the end of the last segment are damage below this offset, the committed
    end; above it they are an append in progress, which `unreadable_bytes` counts once `blocks` has ended. A complete
    batch with a wrong checksum is damage above it too. Without `bodies` only headers are read, records are seeked over
    and checksums not checked; the data of the blocks is then of no use.
    """

    def __init__(
        self,
        copy: PartitionDirectory,
        *,
        from_offset: int,
        to_offset: int,
        lost_below: int,
        start: Start | None = None,
        batch_bytes: int = 8 << 20,
        bodies: bool = True,
    ) -> None:
        self._copy = copy
        self._from = from_offset
        self._to = to_offset
        self._lost_below = lost_below
        self._start = start
        self._bodies = bodies
        self._window = batch_bytes if bodies else _HEADER_WINDOW_BYTES
        self._next_offset = max(from_offset, copy.segments[0].base_offset) if copy.segments else from_offset
        self._pending: list[Damage] = []
        self.unreadable_bytes = 0

    def blocks(self) -> Iterator[Block]:
        """The blocks in offset order; the last one says how far the copy reaches and what is damaged at its end."""
        segments = self._copy.segments
        first = self._start.segment if self._start else first_segment(self._copy, self._from)
        for number in range(first, len(segments)):
            segment = segments[number]
            if segment.base_offset >= self._to:
                break
            is_last = number + 1 == len(segments)
            limit = (1 << 63) - 1 if is_last else segments[number + 1].base_offset - 1
            self._next_offset = max(self._next_offset, min(segment.base_offset, self._to))
            position = self._start.position if self._start and number == first else 0
            try:
                with self._open(segment) as file:
                    opened = OpenSegment(file, segment, highest=limit, is_last=is_last)
                    yield from self._segment_blocks(opened, position)
            except OSError as error:
                self._report_unreadable(segment, limit, error)
            if self._next_offset >= self._to:
                break
        yield self._closing_block()

    def _open(self, segment: SegmentFile) -> RandomAccess:
        """Open a segment; try again when a listed one is missing: it is for a moment, while the cleaner swaps it."""
        try:
            return layout.open_segment(segment)
        except FileNotFoundError:
            if is_gone(self._copy, segment):
                raise
            return layout.open_segment(segment)

    def _closing_block(self) -> Block:
        damages = tuple(self._finish_damages(self._to - 1))
        empty = np.zeros((0, rb.COLUMNS), dtype=np.int64)
        return Block(
            file=self._copy.uri,
            data=np.empty(0, dtype=np.uint8),
            data_position=0,
            headers=empty,
            walked_to=self._next_offset,
            damages=damages,
        )

    def _report_unreadable(self, segment: SegmentFile, limit: int, error: OSError) -> None:
        """Note a segment that can't be read as damage: `vanished` when a fresh listing lacks it, else `unreadable`."""
        gone = is_gone(self._copy, segment)
        if not gone and isinstance(error, FileNotFoundError) and not filesystem.is_local(segment.uri):
            raise LogDirectoryError(
                f"{segment.uri}: the store lists this object and does not have it, so its listings are stale; run "
                "again later"
            ) from None
        last = min(limit, self._to - 1, segment.base_offset + RELATIVE_LIMIT)
        detail = "deleted while it was read" if gone else f"{error.strerror or error} (host {filesystem.host()})"
        self._pending.append(
            Damage(
                file=segment.uri,
                position=0,
                end_position=segment.size_bytes,
                first_offset=self._next_offset,
                last_offset=last,
                reason="vanished" if gone else "unreadable",
                detail=detail,
            )
        )
        self._next_offset = max(self._next_offset, last + 1)

    def _segment_blocks(self, segment: OpenSegment, position: int) -> Iterator[Block]:
        window = self._window
        while position < segment.size and self._next_offset < self._to:
            data = segment.file.read_at(position, window)
            headers, stopped, ended = rb.walk_headers(data, MAXIMUM_BATCH_BYTES, require_whole=self._bodies)
            rows = len(headers)
            if rows == 0 and ended:
                header = segment.header_at(position)
                if header is not None and window < header[0, rb.SIZE]:
                    window = int(header[0, rb.SIZE])
                    continue
            good = crc_ok(data, headers) if self._bodies else inside(headers, segment.size - position)
            reason: str = "bad_header"
            if not good.all():
                reason = "crc_mismatch" if self._bodies else "truncated"
                rows = int(np.argmin(good))
                stopped = int(headers[rows, rb.POSITION])
            yield from self._accept(segment, data, position, headers[:rows])
            position += stopped
            window = self._next_window(headers)
            if (rows == 0 or not good.all()) and self._next_offset < self._to:
                following = self._step_over(segment, position, reason)
                if following is None:
                    return
                position = following

    def _next_window(self, headers: Table) -> int:
        """How many bytes to read next: without bodies few where batches are large, because most of them are skipped."""
        if self._bodies or len(headers) == 0 or headers[:, rb.SIZE].mean() < _HEADER_WINDOW_BYTES // 16:
            return self._window
        return _SMALL_WINDOW_BYTES

    def _step_over(self, segment: OpenSegment, position: int, reason: str) -> int | None:
        """Where the next good batch lies behind the damage at `position`; None when the segment has no more."""
        following = segment.next_good(position, self._next_offset)
        if following is None and segment.is_last:
            self._note_end(segment, position, reason)
            return None
        end = segment.size if following is None else following
        if following is None and segment.header_at(position) is None:
            reason = "truncated"
        self._pending.append(self._damage(segment, position, end, segment.highest, reason))
        if following is None:
            self._next_offset = segment.highest + 1
        return following

    def _note_end(self, segment: OpenSegment, position: int, reason: str) -> None:
        """Records the damage behind the last good batch of the log.

        A batch that is whole but has a wrong checksum is damage, and so is everything below the committed end. The
        rest is an append in progress, of which only the bytes are counted.
        """
        end, last_offset = segment.complete_batches(position, self._next_offset)
        if last_offset + 1 < self._lost_below:
            reason = "truncated" if end == position else reason
            end, last_offset = segment.size, min(segment.highest, self._lost_below - 1)
        if end > position:
            self._pending.append(self._damage(segment, position, end, last_offset, reason))
        self.unreadable_bytes = segment.bytes_in_use(end)

    def _damage(self, segment: OpenSegment, position: int, end: int, last_offset: int, reason: str) -> Damage:
        """The damage from `position` to `end`, whose offsets begin where the batch before it ended."""
        return Damage(
            file=segment.uri,
            position=position,
            end_position=end,
            first_offset=self._next_offset,
            last_offset=last_offset,
            reason=reason,
            detail=f"{end - position} bytes",
            raw=segment.file.read_at(position, min(KEPT_BYTES, end - position)).tobytes(),
        )

    def _accept(self, segment: OpenSegment, data: Bytes, position: int, headers: Table) -> Iterator[Block]:
        """The block of batches in range and in order; batches that don't fit in become damage."""
        headers = headers[headers[:, rb.LAST_OFFSET] >= self._from]
        headers, damages = self._in_order(segment, position, headers)
        if len(headers) == 0 and not damages:
            return
        damages += self._finish_damages(int(headers[0, rb.BASE_OFFSET]) - 1) if len(headers) else []
        beyond = headers[:, rb.BASE_OFFSET] >= self._to
        headers = headers[~beyond]
        old = headers[:, rb.MAGIC] < 2
        old_sets = self._old_batches(segment, position, headers, old)
        damages += old_sets
        if beyond.any():
            self._next_offset = self._to
        elif len(headers):
            reached = max([int(headers[-1, rb.LAST_OFFSET]), *(damage.last_offset for damage in old_sets)])
            self._next_offset = max(self._next_offset, reached + 1)
        yield Block(
            file=segment.uri,
            data=data,
            data_position=position,
            headers=headers[~old],
            walked_to=self._next_offset,
            damages=tuple(damages),
        )

    def _old_batches(self, segment: OpenSegment, position: int, headers: Table, old: Mask) -> list[Damage]:
        """Message sets of before Kafka 0.11, one damage for each unbroken run of them.

        A compressed set names its last offset only, and of a batch with a broken magic byte we know the first
        only: a run reaches from where the batch before it ended to where the next one starts.
        """
        damages = []
        rows = np.flatnonzero(old)
        for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1) if len(rows) else []:
            before = headers[run[0] - 1, rb.LAST_OFFSET] + 1 if run[0] else self._next_offset
            end = int(headers[run[-1], rb.POSITION] + headers[run[-1], rb.SIZE])
            damage = Damage(
                file=segment.uri,
                position=position + int(headers[run[0], rb.POSITION]),
                end_position=position + end,
                first_offset=int(before),
                last_offset=self._before_next(
                    segment, position + end, headers[run[-1] + 1 :], int(headers[run[-1], rb.LAST_OFFSET])
                ),
                reason="unsupported_magic",
                detail=f"{len(run)} message sets of magic {int(headers[run[0], rb.MAGIC])}, older than Kafka 0.11",
            )
            damages.append(self._clip(damage, damage.last_offset))
        return damages

    def _before_next(self, segment: OpenSegment, position: int, rest: Table, at_least: int) -> int:
        """The offset before the next batch, in `rest` or in the file at `position`; not less than `at_least`."""
        following = rest[:1] if len(rest) else segment.header_at(position)
        if following is not None and following[0, rb.BASE_OFFSET] <= segment.highest:
            return max(at_least, int(following[0, rb.BASE_OFFSET]) - 1)
        end = segment.highest if not segment.is_last else min(segment.highest, self._lost_below - 1)
        return max(at_least, end)

    def _in_order(self, segment: OpenSegment, position: int, headers: Table) -> tuple[Table, list[Damage]]:
        """The batches whose offsets ascend and lie in the segment; the CRC does not cover base offsets."""
        if len(headers) == 0:
            return headers, []
        base, last = headers[:, rb.BASE_OFFSET], headers[:, rb.LAST_OFFSET]
        inside = (base >= segment.base_offset) & (base <= segment.highest)
        ascends = base[0] > self._floor() and bool((base[1:] > last[:-1]).all())
        if inside.all() and ascends and not self._jumps(segment, position, headers):
            return headers, []
        return self._choose(segment, position, headers, inside)

    def _floor(self) -> int:
        """The last offset that was read; batches before the range may reach below it."""
        return self._next_offset - 1 if self._next_offset > self._from else -1

    def _jumps(self, segment: OpenSegment, position: int, headers: Table) -> bool:
        """Whether the last batch of the block leaps ahead of what follows it."""
        before = int(headers[-2, rb.LAST_OFFSET]) if len(headers) > 1 else self._next_offset - 1
        if headers[-1, rb.BASE_OFFSET] <= before + 1:
            return False
        following = self._header_after(segment, position, headers, before)
        return following is not None and before < following[0, rb.BASE_OFFSET] <= headers[-1, rb.LAST_OFFSET]

    def _header_after(self, segment: OpenSegment, position: int, headers: Table, floor: int) -> Table | None:
        """The header of the batch that follows the last of a block, or of the next good one where damage follows."""
        position += int(headers[-1, rb.POSITION] + headers[-1, rb.SIZE])
        header = segment.header_at(position)
        if header is not None and (not self._bodies or segment.is_good(position)):
            return header
        following = segment.next_good(position, floor + 1)
        return None if following is None else segment.header_at(following)

    def _choose(self, segment: OpenSegment, position: int, headers: Table, inside: Mask) -> tuple[Table, list[Damage]]:
        """Batches to keep where offsets don't ascend: drops those that go back or that their follower contradicts."""
        is_kept = inside.copy()
        floor = self._floor()
        following = self._header_after(segment, position, headers, floor)
        bases = headers[:, rb.BASE_OFFSET].tolist() + ([] if following is None else [int(following[0, rb.BASE_OFFSET])])
        lasts = headers[:, rb.LAST_OFFSET].tolist()
        expected = self._next_offset
        for row in np.flatnonzero(inside).tolist():
            leaps = bases[row] > expected and row + 1 < len(bases) and floor < bases[row + 1] <= lasts[row]
            if bases[row] <= floor or leaps:
                is_kept[row] = False
            else:
                floor, expected = lasts[row], lasts[row] + 1
        damages = []
        for row in np.flatnonzero(~is_kept).tolist():
            first, final = self._lost_with(bases, lasts, is_kept, row)
            damage = Damage(
                file=segment.uri,
                position=position + int(headers[row, rb.POSITION]),
                end_position=position + int(headers[row, rb.POSITION] + headers[row, rb.SIZE]),
                first_offset=first,
                last_offset=final,
                reason="out_of_order",
                detail=f"a batch says offsets {bases[row]} to {lasts[row]}, its neighbours say otherwise",
            )
            damages.append(self._clip(damage, final))
        return headers[is_kept], damages

    def _lost_with(self, bases: list[int], lasts: list[int], is_kept: Mask, row: int) -> tuple[int, int]:
        """The offsets that are lost with a dropped batch: the gap where it lies, else what only it claims.

        `bases` has one more entry than `lasts` when the batch after the block is known.
        """
        before, after = np.flatnonzero(is_kept[:row]), np.flatnonzero(is_kept[row:])
        first = lasts[int(before[-1])] + 1 if len(before) else self._next_offset
        follower = bases[row + int(after[0])] if len(after) else bases[-1] if len(bases) > len(lasts) else first
        if first < follower:
            return first, follower - 1
        first, last = max(bases[row], self._next_offset), lasts[row]
        for other in np.flatnonzero(is_kept).tolist():
            if bases[other] <= first <= lasts[other]:
                first = lasts[other] + 1
            if bases[other] <= last <= lasts[other]:
                last = bases[other] - 1
        return first, min(last, bases[-1] - 1) if len(bases) > len(lasts) else last

    def _finish_damages(self, last_offset: int) -> list[Damage]:
        """The damages since the last good batch, up to `last_offset`, the offset before the next good one."""
        finished = [self._clip(damage, last_offset) for damage in self._pending]
        self._pending.clear()
        return finished

    def _clip(self, damage: Damage, last_offset: int) -> Damage:
        """A damage with the part of its range that lies in [from_offset, to_offset)."""
        first = max(damage.first_offset, self._from)
        last = min(damage.last_offset, last_offset, self._to - 1)
        lost = f"offsets {first} to {last} are missing" if first <= last else "no offset is missing"
        return replace(damage, first_offset=first, last_offset=last, detail=f"{damage.detail}; {lost}")


def is_gone(copy: PartitionDirectory, segment: SegmentFile) -> bool:
    """Whether a fresh listing lacks the segment. Raises SourceMissingError when this machine lacks the directory."""
    try:
        segments = layout.list_segments(filesystem.folder_at(copy.uri))
        return all(listed.base_offset != segment.base_offset for listed in segments)
    except FileNotFoundError:
        check_visible(copy)
        return True


def check_visible(copy: PartitionDirectory) -> None:
    """Raises SourceMissingError, with host and path, when this machine does not see the copy's log directory.

    A store is the same for all machines.
    """
    if not filesystem.is_local(copy.uri):
        return
    directory = parent(copy.uri)
    try:
        if not filesystem.folder_at(directory).is_empty():
            return
        reason = "it is empty here"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise SourceMissingError(
        f"host {filesystem.host()} does not see the log directory {directory}: {reason}; mount it on every worker"
    )


def first_segment(copy: PartitionDirectory, offset: int) -> int:
    """The index of the segment that would hold an offset."""
    bases = [segment.base_offset for segment in copy.segments]
    return max(0, int(np.searchsorted(bases, offset, side="right")) - 1)
