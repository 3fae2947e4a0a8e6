"""The age of settled offsets: from the record's own timestamp to its outcome, within bounds that batch headers give.

    batch header    offsets 10-14, base timestamp 100, max timestamp 130
    state log       12-13 ACKNOWLEDGED at 400           two offsets with an age from 270 to 300

A range of settled offsets and a batch give one piece with a weight; offsets are never enumerated. A record may be
stamped before the first one of its batch (producers set timestamps): then the upper bound is too low.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.settled import LATEST_MS, NOT_KNOWN, Settled
from sharelens.measures.latency.age_edges import lower_edges, upper_edges
from sharelens.measures.latency.schemas import AGE, ARCHIVED, CREATE_TIME, OUTCOMES
from sharelens.measures.latency.schemas import LOG_APPEND_TIME as LOG_APPEND_CLOCK
from sharelens.measures.ranges.steps import Flags, Ints, numbered
from sharelens.measures.topics.extents import BATCH_COLUMNS, TopicPartition, runs
from sharelens.measures.topics.headers import LOG_APPEND_TIME
from state_model.columnar.keys import FULL_PLACE_KEY

HEADER_COLUMNS = [*BATCH_COLUMNS, "base_timestamp_ms"]
"""The columns of a batch header that ages need."""
NO_AGE = np.int64(1 << 62)
"""Larger than every age."""
PIECES_AT_ONCE = 1 << 20
PIECES_KEPT = 1 << 22
CLOCKS = (CREATE_TIME, LOG_APPEND_CLOCK)
ARCHIVED_AT = OUTCOMES.index(ARCHIVED)
LARGEST_FIRST = [
    ("age_max_ms", "descending"),
    *((name, "ascending") for name in (*FULL_PLACE_KEY, "first_offset")),
]
"""The order of AGE rows."""
Headers = Callable[[Mapping[TopicPartition, int]], Iterator[pa.Table]]
"""HEADER_COLUMNS rows of user partitions from these offsets on, by user partition, in offset order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Overlaps of ranges and batches: the range (`entry`), the offsets, the bounds of their age, the clock.

    `clock`: a place in CLOCKS.
    """

    entry: Ints
    first: Ints
    last: Ints
    age_min: Ints
    age_max: Ints
    clock: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeCounts:
    """Offsets by bucket, clock and bounds of the age (edges, or exact), each combination once."""

    bucket: Ints
    clock: Ints
    age_min: Ints
    age_max: Ints
    weight: Ints


class Ages:
    """Computes the ages of settled offsets from batch headers, which come by user partition and in offset order.

    Memory: one entry for each settled range and for each combination of hour, outcome and edges of ages. `exact`: ages
    are not rounded to edges, so memory grows with the number of different ages. `blocks`: a number by which ranges are
    grouped, beside place, hour and outcome.
    `least`, `largest_min`, `largest`: for each bucket the exact bounds of its smallest and its
    largest age (NO_AGE, -NO_AGE: none).
    """

    def __init__(self, settled: Settled, *, exact: bool = False, blocks: Ints | None = None) -> None:
        self._settled = settled
        self._exact = exact
        self._entries = self._by_topic()
        self._span: dict[TopicPartition, tuple[int, int]] = {}
        count = len(settled.place)
        parts = [settled.place, settled.hour_ms, settled.outcome, *([] if blocks is None else [blocks])]
        self.bucket, self.sample = numbered(*parts)
        self.least = np.full(len(self.sample), NO_AGE)
        self.largest_min, self.largest = np.full((2, len(self.sample)), -NO_AGE)
        self._covered, self._control, self._aged = (np.zeros(count, np.int64) for _ in range(3))
        self._samples: list[Ints] = []
        self._rows, self._most_rows = 0, PIECES_KEPT

    def _by_topic(self) -> dict[TopicPartition, Ints]:
        rows = self._settled.places.select(["topic_id", "partition"]).to_pylist()
        topics = [(str(row["topic_id"]), int(row["partition"])) for row in rows]
        number = {name: at for at, name in enumerate(dict.fromkeys(topics))}
        names = list(number)
        of = np.array([number[name] for name in topics], np.int64)[self._settled.place]
        order = np.argsort(of, kind="stable")
        cuts = [0, *(np.flatnonzero(np.diff(of[order])) + 1).tolist(), len(order)]
        parts = [order[begin:end] for begin, end in itertools.pairwise(cuts) if end > begin]
        return {names[int(of[entries[0]])]: entries for entries in parts}

    def begins(self) -> dict[TopicPartition, int]:
        """The smallest settled offset of each user partition: ages need the headers from there on."""
        return {name: int(self._settled.first[entries].min()) for name, entries in self._entries.items()}

    def take(self, batches: pa.Table) -> None:
        """Adds HEADER_COLUMNS rows, which follow the rows of earlier calls; they may be of several user partitions."""
        for pieces in self.pieces(batches):
            weight = pieces.last - pieces.first + 1
            np.add.at(self._aged, pieces.entry, weight)
            bucket = self.bucket[pieces.entry]
            np.minimum.at(self.least, bucket, pieces.age_min)
            np.maximum.at(self.largest_min, bucket, pieces.age_min)
            np.maximum.at(self.largest, bucket, pieces.age_max)
            columns = [bucket, pieces.clock, *self._bounds(pieces), weight]
            # Equal ages are added up in each table, and over all tables when they have become twice as many: memory
            # stays within twice the number of different combinations (or PIECES_KEPT), and the cost is amortized.
            self._samples.append(added_up(np.stack(columns)))
            self._rows += self._samples[-1].shape[1]
            if self._rows > self._most_rows:
                self._samples = [added_up(np.concatenate(self._samples, axis=1))]
                self._rows = self._samples[0].shape[1]
                self._most_rows = max(PIECES_KEPT, 2 * self._rows)

    def _bounds(self, pieces: Pieces) -> tuple[Ints, Ints]:
        if self._exact:
            return pieces.age_min, pieces.age_max
        return lower_edges(pieces.age_min), upper_edges(pieces.age_max)

    def pieces(self, batches: pa.Table) -> Iterator[Pieces]:
        """Pieces with an age, in bounded tables; also counts covered offsets and control records of the ranges."""
        if batches.num_rows == 0:
            return
        for partition_batches in runs(batches.select(HEADER_COLUMNS)):
            place = (
                str(partition_batches.column("topic_id")[0].as_py()),
                int(partition_batches.column("partition")[0].as_py()),
            )
            entries = self._entries.get(place)
            if entries is not None:
                yield from self._of_partition(place, partition_batches, entries)

    def _of_partition(self, place: TopicPartition, partition_batches: pa.Table, entries: Ints) -> Iterator[Pieces]:
        bases, lasts = (partition_batches.column(name).to_numpy() for name in ("base_offset", "last_offset"))
        low, high = int(bases.min()), int(lasts.max())
        before = self._span.get(place, (low, high))
        self._span[place] = (min(low, before[0]), max(high, before[1]))
        control, stamped, oldest, newest, clock = _stamps(partition_batches)
        first, last = self._settled.first, self._settled.last
        for entry, batch in _overlaps(entries, first[entries], last[entries], bases, lasts):
            begin, end = np.maximum(first[entry], bases[batch]), np.minimum(last[entry], lasts[batch])
            weight = np.maximum(end - begin + 1, 0)
            np.add.at(self._covered, entry, weight)
            np.add.at(self._control, entry, np.where(control[batch], weight, 0))
            aged = (weight > 0) & ~control[batch] & stamped[batch] & (self._settled.at_ms[entry] != NOT_KNOWN)
            entry, batch = entry[aged], batch[aged]
            at = self._settled.at_ms[entry]
            yield Pieces(
                entry=entry,
                first=begin[aged],
                last=end[aged],
                age_min=at - newest[batch],
                age_max=at - oldest[batch],
                clock=clock[batch],
            )

    def gaps(self) -> Ints:
        """The number of offsets without a record in each range: control records, archived offsets without a batch."""
        settled = self._settled
        low, high = np.zeros(len(settled.place), np.int64), np.full(len(settled.place), -1, np.int64)
        for name, entries in self._entries.items():
            if name in self._span:
                low[entries], high[entries] = self._span[name]
        offsets_in_span = np.maximum(np.minimum(settled.last, high) - np.maximum(settled.first, low) + 1, 0)
        absent = np.maximum(offsets_in_span - self._covered, 0)
        archived = settled.outcome == ARCHIVED_AT
        return self._control + np.where(archived, absent, 0)

    def unsure(self) -> frozenset[TopicPartition]:
        """User partitions with archived offsets below the first header read: gaps, if the topic has earlier headers."""
        archived = self._settled.outcome == ARCHIVED_AT
        return frozenset(
            name
            for name, entries in self._entries.items()
            if name in self._span and (archived[entries] & (self._settled.first[entries] < self._span[name][0])).any()
        )

    def note_lowest(self, place: TopicPartition, base: int) -> None:
        """Sets where the headers of a user partition begin."""
        low, high = self._span[place]
        self._span[place] = (min(base, low), high)

    def counts(self) -> AgeCounts:
        """The number of offsets of each combination of bucket, clock and age bounds."""
        columns = added_up(np.concatenate([np.zeros((5, 0), np.int64), *self._samples], axis=1))
        bucket, clock, age_min, age_max, weight = columns
        return AgeCounts(bucket=bucket, clock=clock, age_min=age_min, age_max=age_max, weight=weight)

    def listed(self, pieces: Pieces) -> pa.Table:
        """AGE rows of pieces, in their order."""
        settled, entry = self._settled, pieces.entry
        places = pa.array(settled.place[entry])
        columns = {name: settled.places.column(name).take(places) for name in FULL_PLACE_KEY}
        columns |= {
            "first_offset": pa.array(pieces.first),
            "last_offset": pa.array(pieces.last),
            "outcome": pa.array(OUTCOMES, pa.string()).take(pa.array(settled.outcome[entry])),
            "delivery_count": pa.array(settled.count[entry]),
            "settled_ms": pa.array(settled.at_ms[entry]),
            "age_min_ms": pa.array(pieces.age_min),
            "age_max_ms": pa.array(pieces.age_max),
            "clock": pa.array(CLOCKS, pa.string()).take(pa.array(pieces.clock)),
            "log_offset": pa.array(settled.at[entry]),
        }
        return pa.table({name: columns[name] for name in AGE.names}).cast(AGE)


def ages_of(
    settled: Settled,
    headers: Headers,
    lowest: Callable[[], Mapping[TopicPartition, int]],
    *,
    exact: bool = False,
    blocks: Ints | None = None,
) -> Ages:
    """The ages of settled offsets, from the batch headers that `headers` reads from given offsets on.

    `exact`, `blocks`: as `Ages` has them.

    `lowest`: reads the lowest start offset of user partitions; called only where a header below the smallest settled
    offset decides whether that offset is a gap.
    """
    ages = Ages(settled, exact=exact, blocks=blocks)
    for batches in headers(ages.begins()):
        ages.take(batches)
    unsure = ages.unsure()
    begins = {place: begin for place, begin in lowest().items() if place in unsure} if unsure else {}
    for place, begin in begins.items():
        first = next((batches for batches in headers({place: begin}) if batches.num_rows), None)
        if first is not None:
            ages.note_lowest(place, int(first.column("base_offset")[0].as_py()))
    return ages


def _stamps(partition_batches: pa.Table) -> tuple[Flags, Flags, Ints, Ints, Ints]:
    """Arrays over the batches: is it a control batch, does it have timestamps, oldest and newest timestamp, clock."""
    control = pc.is_valid(partition_batches.column("control_type")).to_numpy().astype(np.bool_)
    by_broker = pc.equal(partition_batches.column("timestamp_type"), LOG_APPEND_TIME).to_numpy().astype(np.bool_)
    base, newest = (partition_batches.column(name).to_numpy() for name in ("base_timestamp_ms", "max_timestamp_ms"))
    base = np.where(by_broker, newest, base)
    stamped = (base >= 0) & (newest >= 0)
    base, newest = np.clip(base, 0, LATEST_MS), np.clip(newest, 0, LATEST_MS)
    return control, stamped, np.minimum(base, newest), newest, by_broker.astype(np.int64)


def _overlaps(entries: Ints, first: Ints, last: Ints, bases: Ints, lasts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of a range and a batch that overlap it, in bounded numbers; batches are disjoint and ascend."""
    # Batches are disjoint and ascend, so those that overlap a range follow each other: two searches find them.
    low, high = np.searchsorted(lasts, first, "left"), np.searchsorted(bases, last, "right")
    counts = np.maximum(high - low, 0)
    total = np.cumsum(counts)
    begin = 0
    while begin < len(entries):
        done = int(total[begin - 1]) if begin else 0
        # At most PIECES_AT_ONCE pairs at a time, unless one range alone overlaps more batches.
        end = max(begin + 1, int(np.searchsorted(total, done + PIECES_AT_ONCE, "right")))
        chunk_counts = counts[begin:end]
        within = np.arange(int(chunk_counts.sum())) - np.repeat(np.cumsum(chunk_counts) - chunk_counts, chunk_counts)
        yield np.repeat(entries[begin:end], chunk_counts), np.repeat(low[begin:end], chunk_counts) + within
        begin = end


def added_up(columns: Ints) -> Ints:
    """Distinct columns of values in their order, with the sum of their weights as the last row."""
    if columns.shape[1] == 0:
        return columns
    code, sample = numbered(*columns[:-1])
    weight = np.zeros(len(sample), np.int64)
    np.add.at(weight, code, columns[-1])
    return np.concatenate([columns[:-1, sample], weight[None, :]])


def age_ranges(settled: Settled, batches: Iterator[pa.Table], row_limit: int) -> tuple[pa.Table, bool]:
    """At most `row_limit` AGE rows, largest age first; and whether there were more."""
    ages = Ages(settled)
    # Only the largest ages so far are kept: memory is bounded by `most` and one table of pieces.
    largest, has_more = AGE.empty_table(), False
    for table in batches:
        for pieces in ages.pieces(table):
            largest = pa.concat_tables([largest, ages.listed(pieces)])
            largest, has_more = largest.sort_by(LARGEST_FIRST), has_more or largest.num_rows > row_limit
            largest = largest.slice(0, row_limit).combine_chunks()
    return largest, has_more
