"""Latency: how old records were when they were settled; attempts: how many deliveries that took.

Percentiles are by nearest rank over offsets. Each has two bounds: the percentile of the lower bounds of all ages, and
that of the upper ones; the true one lies between, because every age lies between its own bounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.ages import AgeCounts, Ages
from measures.latency_schemas import ATTEMPTS, BOTH, CREATE_TIME, LATENCY, LOG_APPEND_TIME, OUTCOMES, PERCENTILES
from measures.lives import PLACE
from measures.settled import NOT_KNOWN, Settled
from measures.steps import LAST_OFFSET, Ints, numbered
from state_model.columnar.keys import KEY

MINUTE_MS, MINUTES_AN_HOUR = 60_000, 60
CLOCK_NAMES = (None, CREATE_TIME, LOG_APPEND_TIME, BOTH)
"""By a bit for each clock that occurs."""
WORST_LAST = ("complete", "uncommitted", "provisional", "incomplete")
KEEP_NULLS = pc.ScalarAggregateOptions(skip_nulls=False)
"""The last value as it is: a row that is complete has no reason, whatever rows before it had."""
OPEN_OUTCOME = OUTCOMES.index("open")


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
class _Rows:
    """The rows of an answer: for each of some entries its `row`, and the values of each row."""

    row: Ints
    place: Ints
    hour_ms: Ints
    outcome: Ints
    count: Ints

    @property
    def size(self) -> int:
        """Rows."""
        return len(self.place)


def latency(settled: Settled, ages: Ages, history: pa.Table, by: By) -> pa.Table:
    """LATENCY rows by group, topic, partition, state partition, hour and outcome; `ages` has taken all headers.

    Columns that `by` leaves out are absent. Completeness is that of the histories' newest rows, the worst of several.
    """
    rows = _rows(settled, by, settled.place, settled.hour_ms, settled.outcome)
    gaps = ages.gaps()
    sizes = settled.size - gaps
    settled_offsets = _sums(rows.row, sizes, rows.size)
    deliveries = _sums(rows.row, _times(sizes, np.maximum(settled.count, 1)), rows.size)
    columns = _where(rows, settled, by) | {
        "outcome": pa.array(OUTCOMES, pa.string()).take(pa.array(rows.outcome)),
        "settled_offsets": pa.array(settled_offsets),
        "gap_offsets": pa.array(_sums(rows.row, gaps, rows.size)),
        **_ages(ages.counts(), rows.row[ages.sample], rows.size),
        "deliveries": pa.array(deliveries),
        "extra_deliveries": pa.array(deliveries - settled_offsets),
        "deliveries_per_settled": _ratio(deliveries, settled_offsets),
        **_rates(settled, sizes, rows, by),
    }
    return _table(columns, LATENCY, by, history)


def attempts(settled: Settled, gaps: Ints, history: pa.Table, by: By) -> pa.Table:
    """ATTEMPTS rows in the order of LATENCY, then by delivery count; `gaps`: offsets of each range without a record."""
    still = len(settled.open_place)
    sizes = np.concatenate([settled.size - gaps, settled.open_size])
    rows = _rows(
        settled,
        by,
        np.concatenate([settled.place, settled.open_place]),
        np.concatenate([settled.hour_ms, np.full(still, NOT_KNOWN, np.int64)]),
        np.concatenate([settled.outcome, np.full(still, OPEN_OUTCOME, np.int64)]),
        np.concatenate([settled.count, settled.open_count]),
    )
    offsets = _sums(rows.row, sizes, rows.size)
    deliveries = _times(offsets, np.maximum(rows.count, 1))
    columns = _where(rows, settled, by) | {
        "outcome": pa.array(OUTCOMES, pa.string()).take(pa.array(rows.outcome)),
        "delivery_count": pa.array(rows.count),
        "offsets": pa.array(offsets),
        "deliveries": pa.array(deliveries),
        "extra_deliveries": pa.array(deliveries - offsets),
    }
    table = _table(columns, ATTEMPTS, by, history)
    return table.filter(pc.greater(table.column("offsets"), 0))


def _rows(settled: Settled, by: By, place: Ints, hour_ms: Ints, outcome: Ints, count: Ints | None = None) -> _Rows:
    """The rows of entries with a place, hour, outcome and maybe a delivery count."""
    count = np.zeros(len(place), np.int64) if count is None else count
    hour_ms = hour_ms if by.hour else np.full(len(place), NOT_KNOWN, np.int64)
    unit = _units(settled.places, by)[place] if settled.places.num_rows else place
    row, sample = numbered(unit, hour_ms, outcome, count)
    return _Rows(row=row, place=place[sample], hour_ms=hour_ms[sample], outcome=outcome[sample], count=count[sample])


def _units(places: pa.Table, by: By) -> Ints:
    """For each place what it is counted under, in the order of the answer."""
    if by.partition:
        return np.arange(places.num_rows)
    order = places.select(KEY[:2]).append_column("at", pa.array(np.arange(places.num_rows)))
    names = order.group_by(KEY[:2], use_threads=False).aggregate([("at", "min")])
    names = names.sort_by([(name, "ascending") for name in KEY[:2]])
    joined = order.join(names.append_column("unit", pa.array(np.arange(names.num_rows))), keys=KEY[:2]).sort_by("at")
    units: Ints = joined.column("unit").to_numpy()
    return units


def _where(rows: _Rows, settled: Settled, by: By) -> dict[str, pa.Array]:
    places = pa.array(rows.place)
    columns = {name: settled.places.column(name).take(places) for name in by.columns}
    hours = pa.array(rows.hour_ms, mask=rows.hour_ms == NOT_KNOWN)
    return columns | ({"hour_ms": hours} if by.hour else {})


def _sums(row: Ints, values: Ints, rows: int) -> Ints:
    """The sum of the values of each row; what would not fit 64 bits is the largest offset."""
    total = np.zeros(rows, np.int64)
    np.add.at(total, row, values)
    about = np.bincount(row, weights=values.astype(np.float64), minlength=rows)
    return np.where(about >= LAST_OFFSET, LAST_OFFSET, total)


def _times(values: Ints, factor: Ints) -> Ints:
    """The product; what would not fit 64 bits is the largest offset."""
    fits = values <= LAST_OFFSET // factor
    return np.where(fits, np.where(fits, values, 0) * factor, LAST_OFFSET)


def _ratio(part: Ints, whole: Ints) -> pa.Array:
    return pa.array(part / np.maximum(whole, 1), mask=whole == 0)


def _ages(counts: AgeCounts, row_of_bucket: Ints, rows: int) -> dict[str, pa.Array]:
    """The columns about ages, one value a row."""
    row = row_of_bucket[counts.bucket]
    aged = _sums(row, counts.weight, rows)
    clocks = np.zeros(rows, np.int64)
    np.bitwise_or.at(clocks, row, 1 << counts.clock)
    lows, highs = (_quantiles(row, age, counts.weight, rows) for age in (counts.age_min, counts.age_max))
    none = aged == 0
    columns = {
        "aged_offsets": pa.array(aged),
        "clock": pa.array(CLOCK_NAMES, pa.string()).take(pa.array(clocks)),
        "age_min_ms": pa.array(lows[0], mask=none),
        "age_largest_min_ms": pa.array(lows[100], mask=none),
        "age_max_ms": pa.array(highs[100], mask=none),
    }
    for rank in PERCENTILES:
        columns[f"age_p{rank}_min_ms"] = pa.array(lows[rank], mask=none)
        columns[f"age_p{rank}_max_ms"] = pa.array(highs[rank], mask=none)
    for name, age in (("min", counts.age_max), ("max", counts.age_min)):
        columns[f"negative_offsets_{name}"] = pa.array(_sums(row, np.where(age < 0, counts.weight, 0), rows))
    return columns


def _quantiles(row: Ints, age: Ints, weight: Ints, rows: int) -> Mapping[int, Ints]:
    """The smallest age (0), percentiles and the largest (100) of each row, by nearest rank; 0 for a row of none."""
    order = np.lexsort((age, row))
    row, age, weight = row[order], age[order], weight[order]
    reached = np.cumsum(weight)
    begin, end = np.searchsorted(row, np.arange(rows), "left"), np.searchsorted(row, np.arange(rows), "right")
    some = end > begin
    before = np.append(0, reached)[begin]
    total = np.append(0, reached)[end] - before
    found = {}
    for rank in (0, *PERCENTILES, 100):
        whole, part = np.divmod(total, 100)
        target = np.maximum(whole * rank + -(-part * rank // 100), 1)
        at = np.minimum(np.searchsorted(reached, before + target, "left"), np.maximum(end - 1, 0))
        found[rank] = np.where(some, np.append(age, 0)[np.where(some, at, len(age))], 0)
    return found


def _rates(settled: Settled, sizes: Ints, rows: _Rows, by: By) -> dict[str, pa.Array]:
    """When the first and the last outcome came, and offsets a minute."""
    known = settled.at_ms != NOT_KNOWN
    first, last = np.full(rows.size, np.iinfo(np.int64).max), np.full(rows.size, NOT_KNOWN)
    np.minimum.at(first, rows.row[known], settled.at_ms[known])
    np.maximum.at(last, rows.row[known], settled.at_ms[known])
    none = last == NOT_KNOWN
    timed = _sums(rows.row[known], sizes[known], rows.size)
    span = np.full(rows.size, MINUTES_AN_HOUR * MINUTE_MS) if by.hour else np.where(none, 0, last - first)
    rate = timed * float(MINUTE_MS) / np.maximum(span, 1)
    return {
        "first_settled_ms": pa.array(first, mask=none),
        "last_settled_ms": pa.array(last, mask=none),
        "settled_per_minute": pa.array(rate, mask=none | (span == 0)),
    }


def _table(columns: dict[str, pa.Array], schema: pa.Schema, by: By, history: pa.Table) -> pa.Table:
    columns |= _completeness(pa.table({name: columns[name] for name in by.columns}), history, by)
    wanted = pa.schema([field for field in schema if field.name in columns])
    return pa.table({name: columns[name] for name in wanted.names}).cast(wanted)


def _completeness(rows: pa.Table, history: pa.Table, by: By) -> dict[str, pa.Array]:
    """The mark of each row: of its share partitions' newest records the worst, with its reason."""
    names = ["completeness", "completeness_reason"]
    newest = history.select([*PLACE, "log_offset", *names]).sort_by([("log_offset", "ascending")])
    newest = newest.group_by(PLACE, use_threads=False).aggregate([(name, "last", KEEP_NULLS) for name in names])
    newest = newest.rename_columns([*PLACE, *names])
    rank = pc.index_in(newest.column("completeness"), value_set=pa.array(WORST_LAST))
    order = [("rank", "ascending"), *((name, "ascending") for name in PLACE)]
    worst = newest.append_column("rank", rank).sort_by(order).group_by(by.columns, use_threads=False)
    marks = worst.aggregate([(name, "last", KEEP_NULLS) for name in names])
    numbers = pa.array(np.arange(rows.num_rows))
    joined = rows.append_column("row", numbers).join(marks, keys=by.columns).sort_by("row")
    return {name: joined.column(f"{name}_last") for name in names}
