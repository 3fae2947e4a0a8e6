"""Latency: how old records were when they were settled; attempts: how many deliveries that took.

Percentiles are by nearest rank over offsets. Each has two bounds: the percentile of the lower bounds of all ages, and
that of the upper ones; the true one lies between, because every age lies between its own bounds. Bounds are edges of
buckets (`sharelens.measures.latency.age_edges`) unless ages are exact; the smallest and the largest age are exact.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.settled import BLOCK_BITS, MARKS, NOT_KNOWN, Settled, settled_of
from sharelens.measures.inputs import Inputs
from sharelens.measures.latency.ages import Ages, ages_of
from sharelens.measures.latency.schemas import (
    ATTEMPTS,
    ATTEMPTS_CONTRIBUTION,
    LATENCY_CONTRIBUTION,
    OUTCOMES,
    PERCENTILES,
)
from sharelens.measures.latency.tallies import (
    CLOCK_NAMES,
    CONTRIBUTIONS,
    KEEP_NULLS,
    By,
    Tally,
    of_attempts,
    of_latency,
    sums_of,
    times,
)
from sharelens.measures.ranges.steps import Ints, numbered
from state_model.columnar.keys import FULL_PLACE_KEY, PLACE_KEY

MINUTE_MS, MINUTES_AN_HOUR = 60_000, 60
HOURLY_ATTEMPTS = pa.schema(
    [ATTEMPTS.field(name) for name in (*PLACE_KEY, "hour_ms", "offsets", "deliveries", "extra_deliveries")]
)
"""The sums of ATTEMPTS rows of settled records by place and hour."""
WORST_LAST = ("complete", "uncommitted", "provisional", "incomplete")


def latency_of(inputs: Inputs) -> pa.Table:
    """LATENCY_CONTRIBUTION rows."""
    done, ages = _in_blocks(inputs)
    return latency(done, ages, CONTRIBUTIONS)


def attempts_of(inputs: Inputs) -> pa.Table:
    """ATTEMPTS_CONTRIBUTION rows."""
    done, ages = _in_blocks(inputs)
    return attempts(done, ages.gaps(), CONTRIBUTIONS)


def attempts_by_hour(inputs: Inputs, from_ms: int) -> pa.Table:
    """HOURLY_ATTEMPTS rows of what was settled at or after `from_ms`: the sums of ATTEMPTS rows by place and hour."""
    done = settled_of(inputs).within(from_ms, None)
    sizes = done.size - ages_of(done, inputs.headers, inputs.lowest_offsets).gaps()
    hour, hour_row = numbered(done.place, done.hour_ms)
    offsets, deliveries = (
        sums_of(hour, values, len(hour_row)) for values in (sizes, times(sizes, np.maximum(done.count, 1)))
    )
    places = done.places.select(PLACE_KEY).take(pa.array(done.place[hour_row]))
    sums = (done.hour_ms[hour_row], offsets, deliveries, deliveries - offsets)
    rows = pa.Table.from_arrays([*places.columns, *map(pa.array, sums)], names=HOURLY_ATTEMPTS.names)
    return rows.cast(HOURLY_ATTEMPTS)


def _in_blocks(inputs: Inputs) -> tuple[Settled, Ages]:
    def read() -> tuple[Settled, Ages]:
        done = inputs.once("settled in blocks", lambda: settled_of(inputs).in_blocks())
        return done, ages_of(done, inputs.headers, inputs.lowest_offsets, blocks=done.first >> BLOCK_BITS)

    return inputs.once("ages", read)


def latency(settled: Settled, ages: Ages, by: By) -> pa.Table:
    """LATENCY rows by group, topic, partition, state partition, hour and outcome; `ages` has taken all headers.

    Columns that `by` leaves out are absent. Completeness is that of the histories' newest rows, the worst of several.
    """
    return latency_rows(of_latency(settled, ages, by), by)


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
    if by.block:
        columns |= {
            "ages_at_least": _histogram(tally.lower, tally.size),
            "ages_at_most": _histogram(tally.upper, tally.size),
        }
    return _table(columns, LATENCY_CONTRIBUTION, by, tally.newest)


def attempts(settled: Settled, gaps: Ints, by: By) -> pa.Table:
    """ATTEMPTS rows in the order of LATENCY, then by delivery count; `gaps`: offsets of each range without a record."""
    return attempts_rows(of_attempts(settled, gaps, by), by)


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
    table = _table(columns, ATTEMPTS_CONTRIBUTION, by, tally.newest)
    return table.filter(pc.greater(table.column("offsets"), 0))


def _where(tally: Tally, by: By) -> dict[str, pa.Array]:
    units = pa.array(tally.unit)
    columns = {name: tally.units.column(name).take(units) for name in by.columns}
    hours = pa.array(tally.hour_ms, mask=tally.hour_ms == NOT_KNOWN)
    columns["outcome"] = pa.array(OUTCOMES, pa.string()).take(pa.array(tally.outcome))
    if by.block:
        columns |= {"first_offset": pa.array(tally.first), "last_offset": pa.array(tally.last)}
    return columns | ({"hour_ms": hours} if by.hour else {})


def _ratio(part: Ints, total: Ints) -> pa.Array:
    return pa.array(part / np.maximum(total, 1), mask=total == 0)


def _histogram(ages: Ints, entries: int) -> pa.Array:
    """The buckets of each entry; `ages`: a side of a Tally."""
    entry, age, offsets = ages
    kind = LATENCY_CONTRIBUTION.field("ages_at_least").type
    begins = np.searchsorted(entry, np.arange(entries + 1)).astype(np.int32)
    buckets = pa.StructArray.from_arrays([pa.array(age), pa.array(offsets)], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(begins), buckets).cast(kind)


def _ages(tally: Tally) -> dict[str, pa.Array]:
    """The columns about ages, one value an entry."""
    size = tally.size
    aged = sums_of(tally.lower[0], tally.lower[2], size)
    lows, highs = (_quantiles(side, size) for side in (tally.lower, tally.upper))
    none = aged == 0
    columns = {
        "aged_offsets": pa.array(aged),
        "clock": pa.array(CLOCK_NAMES, pa.string()).take(pa.array(tally.clocks)),
        "age_min_ms": pa.array(tally.least, mask=none),
        "age_largest_min_ms": pa.array(tally.largest_min, mask=none),
        "age_max_ms": pa.array(tally.largest, mask=none),
    }
    for rank in PERCENTILES:
        columns[f"age_p{rank}_min_ms"] = pa.array(np.maximum(lows[rank], tally.least), mask=none)
        columns[f"age_p{rank}_max_ms"] = pa.array(np.minimum(highs[rank], tally.largest), mask=none)
    for name, (entry, age, weight) in (("min", tally.upper), ("max", tally.lower)):
        columns[f"negative_offsets_{name}"] = pa.array(sums_of(entry, np.where(age < 0, weight, 0), size))
    return columns


def _quantiles(ages: Ints, entries: int) -> Mapping[int, Ints]:
    """Percentiles of each entry, by nearest rank; 0 for one without ages.

    `ages`: a side of a Tally.
    """
    entry, age, weight = ages
    reached = np.cumsum(weight)
    begin, end = (np.searchsorted(entry, np.arange(entries), side) for side in ("left", "right"))
    has_ages = end > begin
    before = np.append(0, reached)[begin]
    total = np.append(0, reached)[end] - before
    quantiles = {}
    for rank in PERCENTILES:
        hundreds, part = np.divmod(total, 100)
        target = np.maximum(hundreds * rank + -(-part * rank // 100), 1)
        at = np.minimum(np.searchsorted(reached, before + target, "left"), np.maximum(end - 1, 0))
        quantiles[rank] = np.where(has_ages, np.append(age, 0)[np.where(has_ages, at, len(age))], 0)
    return quantiles


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
    fields = pa.schema([field for field in schema if field.name in columns])
    return pa.table({name: columns[name] for name in fields.names}).cast(fields)


def _completeness(rows: pa.Table, newest: pa.Table, by: By) -> dict[str, pa.Array]:
    """The mark of each row: of its share partitions' newest records the worst, with its reason."""
    rank = pc.index_in(newest.column("completeness"), value_set=pa.array(WORST_LAST))
    order = [("rank", "ascending"), *((name, "ascending") for name in FULL_PLACE_KEY)]
    worst = newest.append_column("rank", rank).sort_by(order).group_by(by.columns, use_threads=False)
    marks = worst.aggregate([(name, "last", KEEP_NULLS) for name in MARKS])
    numbers = pa.array(np.arange(rows.num_rows))
    joined = rows.append_column("row", numbers).join(marks, keys=by.columns).sort_by("row")
    return {name: joined.column(f"{name}_last") for name in MARKS}
