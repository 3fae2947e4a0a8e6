"""Offsets of a user partition without a record, from its batch headers: markers, aborted transactions, absent offsets.

    headers   0-9 data | 10-14 data of producer 7 | 15 ABORT of producer 7 |      | 20-29 data
    offsets              10-14 aborted              15 control              16-19 compacted

A window of time is the offsets that Kafka's own lookup by time gives: from the first batch whose largest timestamp
reaches its beginning up to the first whose largest timestamp reaches its end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.ranges.steps import Ints
from sharelens.measures.topics.extents import BATCH_COLUMNS, TopicPartition, runs

WHATS = ("aborted", "control", "expired", "compacted", "unknown")
ABORTED, CONTROL, EXPIRED, COMPACTED, UNKNOWN = range(len(WHATS))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLog:
    """A window of one user partition: offsets [first, end), and their classes by its batch headers.

    `looked_at`: offsets whose headers were read; `batch_offsets`: how many of these lie in a known batch.

    `range_first`, `range_last`, `kind`: ascending, disjoint ranges inside the window, with `kind` as an index into
    WHATS; other offsets lie in ordinary or committed batches.
    """

    first: int
    end: int
    looked_at: int
    batch_offsets: int
    range_first: Ints
    range_last: Ints
    kind: Ints


@dataclass(slots=True)
class _HeaderSums:
    """The sums over the headers of one user partition read so far."""

    next_offset: int | None = None
    first_in_window: int | None = None
    end_of_window: int | None = None
    batches: list[tuple[int, int]] = field(default_factory=list)
    no_record_ranges: list[tuple[int, int, int]] = field(default_factory=list)
    pending: dict[int, list[tuple[int, int]]] = field(default_factory=dict)


class TopicLogs:
    """Collects batch headers, by user partition and in offset order; keeps markers, aborted batches and holes.

    `from_ms`, `to_ms`: the window (half-open); None puts no bound.
    """

    def __init__(self, from_ms: int | None = None, to_ms: int | None = None) -> None:
        self._from_ms = from_ms
        self._to_ms = to_ms
        self._header_sums: dict[TopicPartition, _HeaderSums] = {}

    def take(self, batches: pa.Table) -> None:
        """Adds BATCH_COLUMNS rows, which follow the rows of earlier calls; they may be of several user partitions."""
        if batches.num_rows == 0:
            return
        for partition_batches in runs(batches.select(BATCH_COLUMNS)):
            place = partition_batches.slice(0, 1).select(["topic_id", "partition"]).to_pylist()[0]
            header_sums = self._header_sums.setdefault((place["topic_id"], place["partition"]), _HeaderSums())
            self._note_window(header_sums, partition_batches)
            _note_extent(header_sums, partition_batches)
            _note_transactions(header_sums, partition_batches)

    def _note_window(self, header_sums: _HeaderSums, partition_batches: pa.Table) -> None:
        times: Ints = partition_batches.column("max_timestamp_ms").to_numpy()
        base: Ints = partition_batches.column("base_offset").to_numpy()
        if header_sums.first_in_window is None:
            header_sums.first_in_window = _first_reaching(base, times, self._from_ms)
        if header_sums.end_of_window is None and self._to_ms is not None:
            header_sums.end_of_window = _first_reaching(base, times, self._to_ms)

    def log(
        self, place: TopicPartition, *, first: int | None, end: int | None, log_start: int | None, looked_from: int = 0
    ) -> TopicLog | None:
        """The window of a user partition; None when its end is unknown.

        `first`, `end`: where the account begins and ends when no time says so (None: where the headers do).
        `looked_from`: headers of batches below were not read.
        """
        header_sums = self._header_sums.get(place, _HeaderSums())
        known_end = end if end is not None else header_sums.next_offset
        if known_end is None:
            return None
        begin = first if first is not None else (header_sums.batches[0][0] if header_sums.batches else known_end)
        if self._from_ms is not None:
            begin = max(begin, known_end if header_sums.first_in_window is None else header_sums.first_in_window)
        stop = known_end if header_sums.end_of_window is None else min(known_end, header_sums.end_of_window)
        stop = max(begin, stop)
        batches = _within(header_sums.batches, begin, stop)
        all_ranges = [*header_sums.no_record_ranges, *_holes(batches, begin, stop, log_start)]
        inside = sorted((max(a, begin), min(b, stop - 1), kind) for a, b, kind in all_ranges if a < stop and b >= begin)
        columns = np.array(inside, np.int64).reshape(-1, 3).T
        return TopicLog(
            first=begin,
            end=stop,
            looked_at=stop - min(stop, max(begin, looked_from)),
            batch_offsets=sum(last - base + 1 for base, last in _within(batches, looked_from, stop)),
            range_first=columns[0],
            range_last=columns[1],
            kind=columns[2],
        )


def _first_reaching(base: Ints, times: Ints, moment: int | None) -> int | None:
    reached = np.flatnonzero(times >= moment) if moment is not None else np.zeros(1, np.int64)
    return int(base[reached[0]]) if len(reached) else None


def _note_extent(header_sums: _HeaderSums, partition_batches: pa.Table) -> None:
    """Runs of batches without a hole between them."""
    base: Ints = partition_batches.column("base_offset").to_numpy()
    last: Ints = partition_batches.column("last_offset").to_numpy()
    cuts = np.flatnonzero(base[1:] > last[:-1] + 1)
    firsts, lasts = base[np.append(0, cuts + 1)].tolist(), last[np.append(cuts, len(last) - 1)].tolist()
    for first, end in zip(firsts, lasts, strict=True):
        if header_sums.batches and header_sums.batches[-1][1] + 1 >= first:
            header_sums.batches[-1] = (header_sums.batches[-1][0], max(header_sums.batches[-1][1], end))
        else:
            header_sums.batches.append((first, end))
    header_sums.next_offset = max(header_sums.next_offset or 0, int(last.max()) + 1)


def _note_transactions(header_sums: _HeaderSums, partition_batches: pa.Table) -> None:
    """Adds markers and aborted ranges; offsets of an open transaction wait for its marker."""
    telling = pc.or_(partition_batches.column("transactional"), pc.is_valid(partition_batches.column("control_type")))
    for row in partition_batches.filter(telling).to_pylist():
        first, last, producer = row["base_offset"], row["last_offset"], row["producer_id"]
        if row["control_type"] is None:
            _append(header_sums.pending.setdefault(producer, []), first, last)
            continue
        header_sums.no_record_ranges.append((first, last, CONTROL))
        waiting = header_sums.pending.pop(producer, [])
        if row["control_type"] == "ABORT":
            header_sums.no_record_ranges += [(*piece, ABORTED) for piece in waiting]


def _append(pieces: list[tuple[int, int]], first: int, last: int) -> None:
    if pieces and pieces[-1][1] + 1 == first:
        pieces[-1] = (pieces[-1][0], last)
    else:
        pieces.append((first, last))


def _within(pieces: list[tuple[int, int]], begin: int, stop: int) -> list[tuple[int, int]]:
    return [(max(a, begin), min(b, stop - 1)) for a, b in pieces if a < stop and b >= begin]


def _holes(batches: list[tuple[int, int]], begin: int, stop: int, log_start: int | None) -> list[tuple[int, int, int]]:
    """Offsets of the window without a batch: below the log start expired; between batches compacted; else unknown."""
    holes: list[tuple[int, int, int]] = []
    at = begin
    for first, last in [*batches, (stop, stop)]:
        if at < first:
            holes += _hole(at, first - 1, log_start, between=bool(batches) and batches[0][0] < at < batches[-1][1])
        at = last + 1
    return holes


def _hole(first: int, last: int, log_start: int | None, *, between: bool) -> list[tuple[int, int, int]]:
    below = min(last + 1, max(first, log_start or 0))
    kind = COMPACTED if between else UNKNOWN
    parts = [(first, below - 1, EXPIRED), (below, last, kind)]
    return [part for part in parts if part[0] <= part[1]]


def limits(logs: Mapping[TopicPartition, TopicLog]) -> dict[TopicPartition, tuple[int, int]]:
    """First offset and end of each window."""
    return {place: (log.first, log.end) for place, log in logs.items()}
