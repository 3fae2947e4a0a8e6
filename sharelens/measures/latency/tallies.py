"""Tallies behind latency and attempts: one entry for each row of an answer; tallies of parts add up exactly.

    part 1   orders, hour 10, acknowledged   300 offsets   200 of an age of 5 ms, 100 of 7 ms
    part 2   orders, hour 10, acknowledged   100 offsets   100 of an age of 7 ms
    both     orders, hour 10, acknowledged   400 offsets   200 of an age of 5 ms, 200 of 7 ms

Ages are edges of buckets (`sharelens.measures.latency.age_edges`), so a tally stays small whatever ages occur;
contributions that a lake keeps (`contributions`) are tallies again, and add up to the same as their share
partitions' histories.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.settled import BLOCK_BITS, MARKS, NOT_KNOWN, Settled
from sharelens.measures.latency.ages import NO_AGE, PIECES_KEPT, Ages, added_up
from sharelens.measures.latency.schemas import BOTH_TYPES, CREATE_TIME, LOG_APPEND_TIME, OUTCOMES
from sharelens.measures.ranges.places import codes_in
from sharelens.measures.ranges.steps import LAST_OFFSET, Ints, numbered, together
from sharelens.measures.ranges.sums import sums_by
from state_model.columnar.keys import FULL_PLACE_KEY, SHARE_PARTITION_KEY

KEEP_NULLS = pc.ScalarAggregateOptions(skip_nulls=False)
"""The last value as it is: a row that is complete has no reason, whatever rows before it had."""
CLOCK_NAMES = (None, CREATE_TIME, LOG_APPEND_TIME, BOTH_TYPES)
"""The clock names, by the bits of the clocks that occur."""
OPEN_OUTCOME = OUTCOMES.index("open")
NO_FIRST = np.iinfo(np.int64).max
NO_AGES = np.zeros((3, 0), np.int64)
LATENCY_SUMS = ("settled_offsets", "gap_offsets", "deliveries")


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """The grouping of rows, beside group, topic and outcome."""

    partition: bool = True
    hour: bool = True
    block: bool = False

    @property
    def columns(self) -> list[str]:
        """Columns that name the share partitions of a row."""
        return FULL_PLACE_KEY if self.partition else SHARE_PARTITION_KEY[:2]


CONTRIBUTIONS = By(block=True)
"""The grouping of the contributions in a lake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Entries by unit, hour, outcome, delivery count and block, each combination once, in that order.

    `units`: the columns of By, one row a unit, by group and topic id, then by partition. `hour_ms`: NOT_KNOWN where the
    time is not known or rows are not by hour; `outcome`: place in OUTCOMES; `count`, `block`: 0 where rows are not
    grouped by it. `first`, `last`: lowest and highest record offset. `sums`: values by name that add up, at most
    LAST_OFFSET. `first_ms`, `last_ms`: times of outcomes (NO_FIRST, NOT_KNOWN: none known).
    `clocks`: a bit for each that occurs. `least`, `largest_min`, `largest`: exact bounds of the
    smallest and the largest age (NO_AGE, -NO_AGE: none). `lower`, `upper`: the bounds of ages as rows of entry, age and
    number of offsets, by entry and age, each once. `newest`: FULL_PLACE_KEY and completeness of the newest record of
    each share partition.
    """

    units: pa.Table
    unit: Ints
    hour_ms: Ints
    outcome: Ints
    count: Ints
    block: Ints
    first: Ints
    last: Ints
    sums: Mapping[str, Ints]
    first_ms: Ints
    last_ms: Ints
    clocks: Ints
    least: Ints
    largest_min: Ints
    largest: Ints
    lower: Ints
    upper: Ints
    newest: pa.Table

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.unit)

    @property
    def ages(self) -> int:
        """The number of ages, of both sides."""
        return len(self.lower[0]) + len(self.upper[0])


LARGEST_OF = ("last", "last_ms", "largest_min", "largest")
SMALLEST_OF = ("first", "first_ms", "least")


def of_latency(settled: Settled, ages: Ages, by: By) -> Tally:
    """The tally behind LATENCY rows; `ages` has taken all headers, in blocks if rows are by block."""
    gaps = ages.gaps()
    sizes = settled.size - gaps
    is_timed = settled.at_ms != NOT_KNOWN
    counts = ages.counts()
    entry = ages.sample[counts.bucket]
    entries = _entries(settled, by)
    np.bitwise_or.at(entries.clocks, entry, 1 << counts.clock)
    for name in ("least", "largest_min", "largest"):
        getattr(entries, name)[ages.sample] = getattr(ages, name)
    lower, upper = (np.stack([entry, age, counts.weight]) for age in (counts.age_min, counts.age_max))
    sums = {
        "settled_offsets": sizes,
        "gap_offsets": gaps,
        "deliveries": times(sizes, np.maximum(settled.count, 1)),
        "timed_offsets": np.where(is_timed, sizes, 0),
    }
    first_ms, last_ms = np.where(is_timed, settled.at_ms, NO_FIRST), np.where(is_timed, settled.at_ms, NOT_KNOWN)
    tally = replace(entries, sums=sums, first_ms=first_ms, last_ms=last_ms, lower=lower, upper=upper)
    return _reduced(tally, (ages.bucket, ages.sample) if by.block else None)


def of_attempts(settled: Settled, gaps: Ints, by: By) -> Tally:
    """The tally behind ATTEMPTS rows; `gaps`: offsets of each range without a record."""
    still = len(settled.open_place)
    settled_and_open = replace(
        settled,
        place=together([settled.place, settled.open_place]),
        first=together([settled.first, settled.open_first]),
        last=together([settled.last, settled.open_last]),
        at_ms=together([settled.at_ms, np.full(still, NOT_KNOWN, np.int64)]),
        outcome=together([settled.outcome, np.full(still, OPEN_OUTCOME, np.int64)]),
    )
    count = together([settled.count, settled.open_count])
    sums = {"offsets": together([settled.size - gaps, settled.open_size])}
    return _reduced(replace(_entries(settled_and_open, by), count=count, sums=sums))


def of_contributions(rows: pa.Table, by: By) -> Tally:
    """The tally of LATENCY_CONTRIBUTION or ATTEMPTS_CONTRIBUTION rows, grouped as `by`."""
    size = rows.num_rows
    unit, units = _numbered_rows(rows.select(by.columns).combine_chunks())
    is_latency = "settled_offsets" in rows.column_names
    sums = {name: _integers(rows, name) for name in (LATENCY_SUMS if is_latency else ("offsets",))}
    hours = _integers(rows, "hour_ms", NOT_KNOWN)
    if is_latency:
        sums["timed_offsets"] = np.where(hours == NOT_KNOWN, 0, sums["settled_offsets"])
    return _reduced(
        Tally(
            units=units,
            unit=unit,
            hour_ms=hours if by.hour else np.full(size, NOT_KNOWN, np.int64),
            outcome=codes_in(rows.column("outcome"), pa.array(OUTCOMES)),
            count=np.zeros(size, np.int64) if is_latency else _integers(rows, "delivery_count"),
            block=_integers(rows, "first_offset") >> BLOCK_BITS if by.block else np.zeros(size, np.int64),
            first=_integers(rows, "first_offset"),
            last=_integers(rows, "last_offset"),
            sums=sums,
            first_ms=_integers(rows, "first_settled_ms", NO_FIRST),
            last_ms=_integers(rows, "last_settled_ms", NOT_KNOWN),
            clocks=codes_in(rows.column("clock"), pa.array(CLOCK_NAMES[1:])) + 1
            if is_latency
            else np.zeros(size, np.int64),
            least=_integers(rows, "age_min_ms", NO_AGE),
            largest_min=_integers(rows, "age_largest_min_ms", -NO_AGE),
            largest=_integers(rows, "age_max_ms", -NO_AGE),
            lower=_histogram(rows, "ages_at_least"),
            upper=_histogram(rows, "ages_at_most"),
            newest=rows.select([*FULL_PLACE_KEY, *MARKS]).group_by([*FULL_PLACE_KEY, *MARKS]).aggregate([]),
        )
    )


def _integers(rows: pa.Table, name: str, unknown: int | np.int64 = 0) -> Ints:
    """A column, `unknown` for nulls and where there is no such column."""
    if name not in rows.column_names:
        return np.full(rows.num_rows, unknown, np.int64)
    values: Ints = pc.fill_null(rows.column(name).cast(pa.int64()), int(unknown)).to_numpy().copy()
    return values


def _histogram(rows: pa.Table, name: str) -> Ints:
    """Row, age and number of offsets of each bucket of a histogram column."""
    if name not in rows.column_names or rows.num_rows == 0:
        return NO_AGES
    lists = rows.column(name).combine_chunks()
    buckets = lists.flatten()
    row = np.repeat(np.arange(rows.num_rows), lists.value_lengths().to_numpy(zero_copy_only=False))
    return np.stack([row, *(buckets.field(part).to_numpy().astype(np.int64) for part in ("age_ms", "offsets"))])


def added(tallies: Iterable[Tally]) -> Tally:
    """The sum of at least one tally, grouped so that no two tallies share a share partition."""
    pending: list[Tally] = []
    size_limit = PIECES_KEPT
    for tally in tallies:
        pending.append(tally)
        if sum(part.ages + part.size for part in pending) > size_limit:
            pending = [_sum_of(pending)]
            size_limit = max(PIECES_KEPT, 2 * (pending[0].ages + pending[0].size))
    return _sum_of(pending)


def sums_of(entry: Ints, values: Ints, entries: int) -> Ints:
    """The sum of the values of each entry, at most LAST_OFFSET."""
    about = np.bincount(entry, weights=values.astype(np.float64), minlength=entries)
    return np.where(about >= LAST_OFFSET, LAST_OFFSET, sums_by(entry, values, entries))


def times(values: Ints, factor: Ints) -> Ints:
    """The product of two numbers of offsets, at most LAST_OFFSET."""
    fits = values <= LAST_OFFSET // factor
    return np.where(fits, np.where(fits, values, 0) * factor, LAST_OFFSET)


def _entries(settled: Settled, by: By) -> Tally:
    """An entry a range of settled offsets, without sums and ages."""
    if by.partition:
        unit, units = settled.place, settled.places
    else:
        of_place, units = _numbered_rows(settled.places.select(by.columns))
        unit = of_place[settled.place]
    size = len(unit)
    return Tally(
        units=units,
        unit=unit,
        hour_ms=settled.hour_ms if by.hour else np.full(size, NOT_KNOWN, np.int64),
        outcome=settled.outcome,
        count=np.zeros(size, np.int64),
        block=settled.first >> BLOCK_BITS if by.block else np.zeros(size, np.int64),
        first=settled.first.copy(),
        last=settled.last.copy(),
        sums={},
        first_ms=np.full(size, NO_FIRST),
        last_ms=np.full(size, NOT_KNOWN),
        clocks=np.zeros(size, np.int64),
        least=np.full(size, NO_AGE),
        largest_min=np.full(size, -NO_AGE),
        largest=np.full(size, -NO_AGE),
        lower=NO_AGES,
        upper=NO_AGES,
        newest=settled.newest,
    )


def _numbered_rows(rows: pa.Table) -> tuple[Ints, pa.Table]:
    """The rank of each row among the distinct rows, and the distinct rows."""
    names = rows.column_names
    distinct = rows.group_by(names, use_threads=False).aggregate([]).sort_by([(name, "ascending") for name in names])
    numbers = distinct.append_column("number", pa.array(np.arange(distinct.num_rows)))
    joined = rows.append_column("at", pa.array(np.arange(rows.num_rows))).join(numbers, keys=names).sort_by("at")
    return joined.column("number").to_numpy(), distinct


def _reduced(entries: Tally, numbers: tuple[Ints, Ints] | None = None) -> Tally:
    """The tally of entries in any order, in which combinations may repeat.

    `numbers`: the rank of each entry's combination and an entry with each, where they are known (`numbered`).
    """
    combination = (entries.unit, entries.hour_ms, entries.outcome, entries.count, entries.block)
    entry, sample = numbers or numbered(*combination)
    size = len(sample)
    columns = {name: getattr(entries, name)[sample] for name in ("unit", "hour_ms", "outcome", "count", "block")}
    for names, function in ((SMALLEST_OF, np.minimum), (LARGEST_OF, np.maximum)):
        for name in names:
            columns[name] = getattr(entries, name)[sample]
            function.at(columns[name], entry, getattr(entries, name))
    clocks = np.zeros(size, np.int64)
    np.bitwise_or.at(clocks, entry, entries.clocks)
    lower, upper = (added_up(np.stack([entry[side[0]], side[1], side[2]])) for side in (entries.lower, entries.upper))
    sums = {name: sums_of(entry, values, size) for name, values in entries.sums.items()}
    return replace(entries, **columns, sums=sums, clocks=clocks, lower=lower, upper=upper)


def _sum_of(tallies: Sequence[Tally]) -> Tally:
    if len(tallies) == 1:
        return tallies[0]
    number, units = _numbered_rows(pa.concat_tables([tally.units for tally in tallies]))
    first_unit = np.cumsum([0, *(tally.units.num_rows for tally in tallies)])
    first_entry = np.cumsum([0, *(tally.size for tally in tallies)])

    def ages(side: str) -> Ints:
        moved = [
            np.add(getattr(tally, side), [[begin], [0], [0]])
            for tally, begin in zip(tallies, first_entry, strict=False)
        ]
        return np.concatenate(moved, axis=1)

    names = ("hour_ms", "outcome", "count", "block", "clocks", *SMALLEST_OF, *LARGEST_OF)
    columns = {name: together([getattr(tally, name) for tally in tallies]) for name in names}
    return _reduced(
        Tally(
            units=units,
            unit=number[together([tally.unit + begin for tally, begin in zip(tallies, first_unit, strict=False)])],
            sums={name: together([tally.sums[name] for tally in tallies]) for name in tallies[0].sums},
            lower=ages("lower"),
            upper=ages("upper"),
            newest=pa.concat_tables([tally.newest for tally in tallies]),
            **columns,
        )
    )
