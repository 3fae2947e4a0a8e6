"""Latency: how old records were when they were settled; attempts: how many deliveries that took.

Percentiles are by nearest rank over offsets. Each has two bounds: the percentile of the lower bounds of all ages, and
that of the upper ones; the true one lies between, because every age lies between its own bounds.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.ages import Ages
from measures.latency_schemas import ATTEMPTS, BOTH, CREATE_TIME, LATENCY, LOG_APPEND_TIME, OUTCOMES, PERCENTILES
from measures.lives import PLACE
from measures.settled import NOT_KNOWN, Settled
from measures.steps import Ints
from measures.tallies import KEEP_NULLS, MARKS, By, Tally, of_attempts, of_latency, sums_of, times

MINUTE_MS, MINUTES_AN_HOUR = 60_000, 60
CLOCK_NAMES = (None, CREATE_TIME, LOG_APPEND_TIME, BOTH)
"""By a bit for each clock that occurs."""
WORST_LAST = ("complete", "uncommitted", "provisional", "incomplete")


def latency(settled: Settled, ages: Ages, history: pa.Table, by: By) -> pa.Table:
    """LATENCY rows by group, topic, partition, state partition, hour and outcome; `ages` has taken all headers.

    Columns that `by` leaves out are absent. Completeness is that of the histories' newest rows, the worst of several.
    """
    return latency_rows(of_latency(settled, ages, history, by), by)


def latency_rows(tally: Tally, by: By) -> pa.Table:
    """LATENCY rows of a tally (`of_latency`), as `latency` gives them."""
    sums = tally.sums
    columns = _where(tally, by) | {
        "settled_offsets": pa.array(sums["settled_offsets"]),
        "gap_offsets": pa.array(sums["gap_offsets"]),
        **_ages(tally),
        "deliveries": pa.array(sums["deliveries"]),
        "extra_deliveries": pa.array(sums["deliveries"] - sums["settled_offsets"]),
        "deliveries_per_settled": _ratio(sums["deliveries"], sums["settled_offsets"]),
        **_rates(tally, by),
    }
    return _table(columns, LATENCY, by, tally.newest)


def attempts(settled: Settled, gaps: Ints, history: pa.Table, by: By) -> pa.Table:
    """ATTEMPTS rows in the order of LATENCY, then by delivery count; `gaps`: offsets of each range without a record."""
    return attempts_rows(of_attempts(settled, gaps, history, by), by)


def attempts_rows(tally: Tally, by: By) -> pa.Table:
    """ATTEMPTS rows of a tally (`of_attempts`), as `attempts` gives them."""
    offsets = tally.sums["offsets"]
    deliveries = times(offsets, np.maximum(tally.count, 1))
    columns = _where(tally, by) | {
        "delivery_count": pa.array(tally.count),
        "offsets": pa.array(offsets),
        "deliveries": pa.array(deliveries),
        "extra_deliveries": pa.array(deliveries - offsets),
    }
    table = _table(columns, ATTEMPTS, by, tally.newest)
    return table.filter(pc.greater(table.column("offsets"), 0))


def _where(tally: Tally, by: By) -> dict[str, pa.Array]:
    units = pa.array(tally.unit)
    columns = {name: tally.units.column(name).take(units) for name in by.columns}
    hours = pa.array(tally.hour_ms, mask=tally.hour_ms == NOT_KNOWN)
    columns["outcome"] = pa.array(OUTCOMES, pa.string()).take(pa.array(tally.outcome))
    return columns | ({"hour_ms": hours} if by.hour else {})


def _ratio(part: Ints, whole: Ints) -> pa.Array:
    return pa.array(part / np.maximum(whole, 1), mask=whole == 0)


def _ages(tally: Tally) -> dict[str, pa.Array]:
    """The columns about ages, one value an entry."""
    size = tally.size
    aged = sums_of(tally.lower[0], tally.lower[2], size)
    lows, highs = (_quantiles(side, size) for side in (tally.lower, tally.upper))
    none = aged == 0
    columns = {
        "aged_offsets": pa.array(aged),
        "clock": pa.array(CLOCK_NAMES, pa.string()).take(pa.array(tally.clocks)),
        "age_min_ms": pa.array(lows[0], mask=none),
        "age_largest_min_ms": pa.array(lows[100], mask=none),
        "age_max_ms": pa.array(highs[100], mask=none),
    }
    for rank in PERCENTILES:
        columns[f"age_p{rank}_min_ms"] = pa.array(lows[rank], mask=none)
        columns[f"age_p{rank}_max_ms"] = pa.array(highs[rank], mask=none)
    for name, (entry, age, weight) in (("min", tally.upper), ("max", tally.lower)):
        columns[f"negative_offsets_{name}"] = pa.array(sums_of(entry, np.where(age < 0, weight, 0), size))
    return columns


def _quantiles(ages: Ints, entries: int) -> Mapping[int, Ints]:
    """The smallest age (0), percentiles and the largest (100) of each entry, by nearest rank; 0 for one of none.

    `ages`: a side of a Tally.
    """
    entry, age, weight = ages
    reached = np.cumsum(weight)
    begin, end = (np.searchsorted(entry, np.arange(entries), side) for side in ("left", "right"))
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


def _rates(tally: Tally, by: By) -> dict[str, pa.Array]:
    """When the first and the last outcome came, and offsets a minute."""
    none = tally.last_ms == NOT_KNOWN
    span = np.full(tally.size, MINUTES_AN_HOUR * MINUTE_MS)
    if not by.hour:
        span = np.where(none, 0, tally.last_ms - np.where(none, 0, tally.first_ms))
    rate = tally.sums["timed_offsets"] * float(MINUTE_MS) / np.maximum(span, 1)
    return {
        "first_settled_ms": pa.array(tally.first_ms, mask=none),
        "last_settled_ms": pa.array(tally.last_ms, mask=none),
        "settled_per_minute": pa.array(rate, mask=none | (span == 0)),
    }


def _table(columns: dict[str, pa.Array], schema: pa.Schema, by: By, newest: pa.Table) -> pa.Table:
    columns |= _completeness(pa.table({name: columns[name] for name in by.columns}), newest, by)
    wanted = pa.schema([field for field in schema if field.name in columns])
    return pa.table({name: columns[name] for name in wanted.names}).cast(wanted)


def _completeness(rows: pa.Table, newest: pa.Table, by: By) -> dict[str, pa.Array]:
    """The mark of each row: of its share partitions' newest records the worst, with its reason."""
    rank = pc.index_in(newest.column("completeness"), value_set=pa.array(WORST_LAST))
    order = [("rank", "ascending"), *((name, "ascending") for name in PLACE)]
    worst = newest.append_column("rank", rank).sort_by(order).group_by(by.columns, use_threads=False)
    marks = worst.aggregate([(name, "last", KEEP_NULLS) for name in MARKS])
    numbers = pa.array(np.arange(rows.num_rows))
    joined = rows.append_column("row", numbers).join(marks, keys=by.columns).sort_by("row")
    return {name: joined.column(f"{name}_last") for name in MARKS}
