"""What latency and attempts add up: a tally has one entry a row of their answers, and tallies of parts add up exactly.

    part 1   orders, hour 10, acknowledged   300 offsets   200 of an age of 5 ms, 100 of 7 ms
    part 2   orders, hour 10, acknowledged   100 offsets   100 of an age of 7 ms
    both     orders, hour 10, acknowledged   400 offsets   200 of an age of 5 ms, 200 of 7 ms

Every age that occurs is kept, so percentiles of a sum are those of all offsets at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.ages import PIECES_KEPT, Ages, added_up
from measures.latency_schemas import OUTCOMES
from measures.lives import PLACE
from measures.settled import NOT_KNOWN, Settled
from measures.steps import LAST_OFFSET, Ints, numbered, together
from state_model.columnar.keys import KEY

MARKS = ["completeness", "completeness_reason"]
KEEP_NULLS = pc.ScalarAggregateOptions(skip_nulls=False)
"""The last value as it is: a row that is complete has no reason, whatever rows before it had."""
OPEN_OUTCOME = OUTCOMES.index("open")
NO_FIRST = np.iinfo(np.int64).max
NO_AGES = np.zeros((3, 0), np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """What rows are told apart by, beside group, topic and outcome."""

    partition: bool = True
    hour: bool = True

    @property
    def columns(self) -> list[str]:
        """Columns that say which share partitions a row is about."""
        return PLACE if self.partition else KEY[:2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Entries by unit, hour, outcome and delivery count, each combination once, in that order.

    `units`: the columns of By, one row a unit, by group and topic id, then by partition. `hour_ms`: NOT_KNOWN where the
    time is not known or rows are not by hour; `outcome`: place in OUTCOMES; `count`: 0 where rows are not told apart by
    it. `sums`: values by name that add up; what would not fit 64 bits is LAST_OFFSET. `first_ms`, `last_ms`: times of
    outcomes (NO_FIRST, NOT_KNOWN: none known). `clocks`: a bit for each that occurs. `lower`, `upper`: the bounds of
    ages as rows of entry, age and number of offsets, by entry and age, each once. `newest`: PLACE and completeness
    of the newest record of each share partition.
    """

    units: pa.Table
    unit: Ints
    hour_ms: Ints
    outcome: Ints
    count: Ints
    sums: Mapping[str, Ints]
    first_ms: Ints
    last_ms: Ints
    clocks: Ints
    lower: Ints
    upper: Ints
    newest: pa.Table

    @property
    def size(self) -> int:
        """Entries."""
        return len(self.unit)

    @property
    def ages(self) -> int:
        """Ages held, of both sides."""
        return len(self.lower[0]) + len(self.upper[0])


def of_latency(settled: Settled, ages: Ages, history: pa.Table, by: By) -> Tally:
    """What LATENCY rows add up; `ages` has taken all headers, `history`: SHARE_PARTITION_HISTORY rows."""
    gaps = ages.gaps()
    sizes = settled.size - gaps
    known = settled.at_ms != NOT_KNOWN
    entries = _entries(settled, by, history)
    entries = replace(
        entries,
        sums={
            "settled_offsets": sizes,
            "gap_offsets": gaps,
            "deliveries": times(sizes, np.maximum(settled.count, 1)),
            "timed_offsets": np.where(known, sizes, 0),
        },
        first_ms=np.where(known, settled.at_ms, NO_FIRST),
        last_ms=np.where(known, settled.at_ms, NOT_KNOWN),
    )
    counts = ages.counts()
    entry = ages.sample[counts.bucket]
    np.bitwise_or.at(entries.clocks, entry, 1 << counts.clock)
    lower, upper = (np.stack([entry, age, counts.weight]) for age in (counts.age_min, counts.age_max))
    return _reduced(replace(entries, lower=lower, upper=upper))


def of_attempts(settled: Settled, gaps: Ints, history: pa.Table, by: By) -> Tally:
    """What ATTEMPTS rows add up; `gaps`: offsets of each range without a record."""
    still = len(settled.open_place)
    together_ = replace(
        settled,
        place=together([settled.place, settled.open_place]),
        at_ms=together([settled.at_ms, np.full(still, NOT_KNOWN, np.int64)]),
        outcome=together([settled.outcome, np.full(still, OPEN_OUTCOME, np.int64)]),
    )
    entries = _entries(together_, by, history)
    count = together([settled.count, settled.open_count])
    sums = {"offsets": together([settled.size - gaps, settled.open_size])}
    return _reduced(replace(entries, count=count, sums=sums))


def added(tallies: Iterable[Tally]) -> Tally:
    """The sum of one tally or more, whose rows are by group: those of a share partition never meet."""
    held: list[Tally] = []
    most = PIECES_KEPT
    for tally in tallies:
        held.append(tally)
        if sum(one.ages + one.size for one in held) > most:
            held = [_sum_of(held)]
            most = max(PIECES_KEPT, 2 * (held[0].ages + held[0].size))
    return _sum_of(held)


def sums_of(entry: Ints, values: Ints, entries: int) -> Ints:
    """The sum of the values of each entry; what would not fit 64 bits is the largest offset."""
    total = np.zeros(entries, np.int64)
    np.add.at(total, entry, values)
    about = np.bincount(entry, weights=values.astype(np.float64), minlength=entries)
    return np.where(about >= LAST_OFFSET, LAST_OFFSET, total)


def times(values: Ints, factor: Ints) -> Ints:
    """The product; what would not fit 64 bits is the largest offset."""
    fits = values <= LAST_OFFSET // factor
    return np.where(fits, np.where(fits, values, 0) * factor, LAST_OFFSET)


def _entries(settled: Settled, by: By, history: pa.Table) -> Tally:
    """An entry a range of settled offsets, of which nothing is told yet."""
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
        sums={},
        first_ms=np.full(size, NO_FIRST),
        last_ms=np.full(size, NOT_KNOWN),
        clocks=np.zeros(size, np.int64),
        lower=NO_AGES,
        upper=NO_AGES,
        newest=_newest(history),
    )


def _newest(history: pa.Table) -> pa.Table:
    rows = history.select([*PLACE, "log_offset", *MARKS]).sort_by([("log_offset", "ascending")])
    newest = rows.group_by(PLACE, use_threads=False).aggregate([(name, "last", KEEP_NULLS) for name in MARKS])
    return newest.rename_columns([*PLACE, *MARKS])


def _numbered_rows(rows: pa.Table) -> tuple[Ints, pa.Table]:
    """The number of each row among the distinct ones, in their order; and these."""
    names = rows.column_names
    distinct = rows.group_by(names, use_threads=False).aggregate([]).sort_by([(name, "ascending") for name in names])
    numbers = distinct.append_column("number", pa.array(np.arange(distinct.num_rows)))
    joined = rows.append_column("at", pa.array(np.arange(rows.num_rows))).join(numbers, keys=names).sort_by("at")
    return joined.column("number").to_numpy(), distinct


def _reduced(entries: Tally) -> Tally:
    """The tally of entries in any order, several of one combination perhaps."""
    entry, sample = numbered(entries.unit, entries.hour_ms, entries.outcome, entries.count)
    size = len(sample)
    first, last = np.full(size, NO_FIRST), np.full(size, NOT_KNOWN)
    np.minimum.at(first, entry, entries.first_ms)
    np.maximum.at(last, entry, entries.last_ms)
    clocks = np.zeros(size, np.int64)
    np.bitwise_or.at(clocks, entry, entries.clocks)
    lower, upper = (
        added_up(np.stack([entry[found[0]], found[1], found[2]])) for found in (entries.lower, entries.upper)
    )
    return replace(
        entries,
        unit=entries.unit[sample],
        hour_ms=entries.hour_ms[sample],
        outcome=entries.outcome[sample],
        count=entries.count[sample],
        sums={name: sums_of(entry, values, size) for name, values in entries.sums.items()},
        first_ms=first,
        last_ms=last,
        clocks=clocks,
        lower=lower,
        upper=upper,
    )


def _sum_of(tallies: list[Tally]) -> Tally:
    if len(tallies) == 1:
        return tallies[0]
    number, units = _numbered_rows(pa.concat_tables([one.units for one in tallies]))
    first_unit = np.cumsum([0, *(one.units.num_rows for one in tallies)])
    first_entry = np.cumsum([0, *(one.size for one in tallies)])

    def ages(side: str) -> Ints:
        moved = [
            np.add(getattr(one, side), [[begin], [0], [0]]) for one, begin in zip(tallies, first_entry, strict=False)
        ]
        return np.concatenate(moved, axis=1)

    def joined(name: str) -> Ints:
        return together([getattr(one, name) for one in tallies])

    return _reduced(
        Tally(
            units=units,
            unit=number[together([one.unit + begin for one, begin in zip(tallies, first_unit, strict=False)])],
            hour_ms=joined("hour_ms"),
            outcome=joined("outcome"),
            count=joined("count"),
            sums={name: together([one.sums[name] for one in tallies]) for name in tallies[0].sums},
            first_ms=joined("first_ms"),
            last_ms=joined("last_ms"),
            clocks=joined("clocks"),
            lower=ages("lower"),
            upper=ages("upper"),
            newest=pa.concat_tables([one.newest for one in tallies]),
        )
    )
