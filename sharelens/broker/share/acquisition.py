"""Acquiring records for a member (§4): new ones from the log, and available ones in the window."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from sharelens.broker.ports import AbortedTransaction, BatchSpan
from sharelens.broker.share.window import CachedBatch, Run, Window
from state_model.share_records import DeliveryState


class AcquireMode(IntEnum):
    """Whether MaxRecords is a soft or a strict limit (ShareAcquireMode)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class AcquiredRange(NamedTuple):
    """Offsets acquired by a member, last inclusive, with their delivery count including this delivery."""

    first_offset: int
    last_offset: int
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The limits of one acquisition."""

    member_id: str
    deadline_ms: int
    max_records: int
    batch_size: int
    mode: AcquireMode
    delivery_count_limit: int
    max_record_locks: int

    @property
    def suspicion_count(self) -> int:
        """Delivery count from which records are delivered in small portions, as they may break their consumers."""
        return max(2, -(-self.delivery_count_limit // 2))

    @property
    def last_chance_count(self) -> int | None:
        """Delivery count after which a record is delivered alone; None where the limit is too low for that."""
        return self.delivery_count_limit - 1 if self.delivery_count_limit > 2 else None


def acquire(window: Window, spans: Sequence[BatchSpan], fetch_offset: int, terms: Terms) -> list[AcquiredRange]:
    """Acquire from the spans of a read at `fetch_offset`: at least one span, in order of offsets.

    MaxRecords and the limit of locks are soft but in record-limit mode: whole log batches and whole cached batches
    are acquired.
    """
    last = spans[-1].last_offset
    record_count = min(terms.max_records, terms.max_record_locks - window.size)
    if record_count <= 0:
        last = min(last, window.end_offset)
        record_count = min(terms.max_records, window.end_offset - fetch_offset + 1)
        if record_count <= 0:
            return []
    first_in_log = spans[0].first_offset
    if fetch_offset < first_in_log:
        window.archive_available(fetch_offset, first_in_log - 1)
        window.close_holes(fetch_offset, first_in_log - 1)
    taking = _Acquisition(window, spans, terms, record_count)
    taking.take(max(first_in_log, window.start_offset), last)
    return taking.ranges


def archive_aborted(
    window: Window,
    spans: Sequence[BatchSpan],
    aborted: Sequence[AbortedTransaction],
    ranges: Sequence[AcquiredRange],
) -> list[AcquiredRange]:
    """Archive acquired records of aborted transactions in memory, without a write; the ranges that stay acquired."""
    remaining_ranges = list(ranges)
    for span in spans:
        if not span.is_transactional or span.is_control or not _is_aborted(span, aborted):
            continue
        outside_ranges: list[AcquiredRange] = []
        for batch in remaining_ranges:
            first, last = max(batch.first_offset, span.first_offset), min(batch.last_offset, span.last_offset)
            if first > last:
                outside_ranges.append(batch)
                continue
            _archive(window, first, last)
            if batch.first_offset < first:
                outside_ranges.append(batch._replace(last_offset=first - 1))
            if batch.last_offset > last:
                outside_ranges.append(batch._replace(first_offset=last + 1))
        remaining_ranges = outside_ranges
    return remaining_ranges


def _archive(window: Window, first: int, last: int) -> None:
    for batch in window.overlapping(first, last):
        for run in batch.cover(first, last):
            run.settle(DeliveryState.ARCHIVED)
            window.delivery_complete_count += window.counted(run)
        batch.coalesce()


def _is_aborted(span: BatchSpan, aborted: Sequence[AbortedTransaction]) -> bool:
    return any(
        transaction.producer_id == span.producer_id
        and transaction.first_offset <= span.first_offset <= transaction.last_offset
        for transaction in aborted
    )


class _Acquisition:
    """One acquisition in progress: the acquired ranges and the remaining number of records."""

    __slots__ = ("_is_over", "_remaining_records", "_spans", "_terms", "_window", "ranges")

    def __init__(self, window: Window, spans: Sequence[BatchSpan], terms: Terms, record_count: int) -> None:
        self._window = window
        self._spans = spans
        self._terms = terms
        self._remaining_records = record_count
        self._is_over = False
        self.ranges: list[AcquiredRange] = []

    @property
    def _is_done(self) -> bool:
        return self._is_over or self._remaining_records <= 0

    def take(self, first: int, last: int) -> None:
        """Go through the window in order: holes and cached batches, then new batches."""
        position = first
        for batch in self._window.overlapping(first, last):
            self._take_holes(position, batch.first - 1)
            if self._is_done:
                return
            self._take_cached(batch, first, last)
            position = batch.last + 1
        self._take_holes(position, last)
        position = max(position, self._window.new_offset)
        if not self._is_done and position <= last:
            self._take_new(position, last)

    def _take_holes(self, first: int, last: int) -> None:
        for hole_first, hole_last in list(self._window.holes):
            if hole_first > last or self._is_done:
                return
            if hole_last >= first:
                self._take_new(max(hole_first, first), min(hole_last, last))

    def _take_new(self, first: int, last: int) -> None:
        edge = last
        if last - first + 1 > self._remaining_records:
            edge = first + self._remaining_records - 1
            last = min(last, self._last_of_span(edge))
        if self._terms.mode is AcquireMode.RECORD_LIMIT:
            self._acquire_new(first, last, min(edge, last))
            return
        if last - first + 1 > self._terms.batch_size:
            for span in self._spans[self._span_index(first) :]:
                if span.first_offset > last:
                    break
                if span.first_offset - first >= self._terms.batch_size:
                    self._acquire_new(first, span.first_offset - 1, span.first_offset - 1)
                    first = span.first_offset
        self._acquire_new(first, last, last)

    def _acquire_new(self, first: int, last: int, acquired_last: int) -> None:
        """Cache a batch of which the part up to `acquired_last` is acquired, the rest available and never delivered."""
        terms = self._terms
        runs = [Run(first, acquired_last, DeliveryState.ACQUIRED, 1, terms.member_id, terms.deadline_ms)]
        if acquired_last < last:
            runs.append(Run(acquired_last + 1, last, DeliveryState.AVAILABLE, 0))
            self._window.may_have_available = True
        self._window.add(CachedBatch(runs, by_offset=acquired_last < last))
        self._took(first, acquired_last, 1)

    def _span_index(self, offset: int) -> int:
        return bisect_left(self._spans, offset, key=lambda span: span.last_offset)

    def _last_of_span(self, offset: int) -> int:
        """The last offset of the log batch that holds an offset, or of the next one where none does."""
        return self._spans[self._span_index(offset)].last_offset

    def _take_cached(self, batch: CachedBatch, first: int, last: int) -> None:
        first, last = max(first, batch.first), min(last, batch.last)
        open_counts = [run.count for run in batch.touching(first, last) if run.is_available]
        highest = max(open_counts, default=-1)
        if highest < 0:
            return
        limit = self._remaining_records if self._terms.mode is AcquireMode.RECORD_LIMIT else last - first + 1
        if highest >= self._terms.suspicion_count:
            if self.ranges:
                self._is_over = True
                return
            portion = (batch.last - batch.first + 1) >> (highest - self._terms.suspicion_count + 1)
            limit = min(limit, max(1, portion))
        is_whole = first == batch.first and last == batch.last and limit >= last - first + 1
        if is_whole and not batch.by_offset and highest != self._terms.last_chance_count:
            self._acquire_again(batch.runs[0])
        else:
            self._take_runs(batch, first, last, limit)
        if highest >= self._terms.suspicion_count:
            self._is_over = True

    def _take_runs(self, batch: CachedBatch, first: int, last: int, limit: int) -> None:
        """Acquire available runs in order; neighbours of equal delivery count become one range."""
        begun = len(self.ranges)
        for run in batch.cover(first, last):
            if limit <= 0:
                break
            if not run.is_available:
                continue
            is_last_chance = run.count == self._terms.last_chance_count
            if is_last_chance and self.ranges:
                self._is_over = True
                break
            size = 1 if is_last_chance else min(limit, run.last - run.first + 1)
            piece = batch.cover(run.first, run.first + size - 1)[0]
            limit -= size
            self._acquire_again(piece)
            if len(self.ranges) - begun > 1:
                self._join_last()
            if is_last_chance:
                self._is_over = True
                break
        batch.coalesce()

    def _acquire_again(self, run: Run) -> None:
        run.state = DeliveryState.ACQUIRED
        run.count += 1
        run.member_id = self._terms.member_id
        run.deadline_ms = self._terms.deadline_ms
        self._took(run.first, run.last, run.count)

    def _join_last(self) -> None:
        before, after = self.ranges[-2:]
        if before.last_offset + 1 == after.first_offset and before.delivery_count == after.delivery_count:
            self.ranges[-2:] = [before._replace(last_offset=after.last_offset)]

    def _took(self, first: int, last: int, count: int) -> None:
        self._remaining_records -= last - first + 1
        self.ranges.append(AcquiredRange(first, last, count))
