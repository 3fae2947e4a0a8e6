"""How long records waited until they were settled, how many deliveries they took, how many were settled a minute."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.figures import total
from sharelens.measures.histories.settled import Settled, settled_of
from sharelens.measures.inputs import Inputs
from sharelens.measures.latency import measure
from sharelens.measures.latency.ages import LARGEST_FIRST, Ages, age_ranges, ages_of
from sharelens.measures.latency.schemas import ACKNOWLEDGED, AGE, ARCHIVED, ATTEMPTS, LATENCY, OPEN, PERCENTILES
from sharelens.measures.latency.tallies import By, Tally, added, of_attempts, of_contributions, of_latency
from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.measures.topics.headers import begins_of
from sharelens.output import Answer, Column, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import time_text
from sharelens.questions.answers.measured import (
    PLACE_ORDER,
    Scope,
    answer,
    kept_rows,
    kept_stream,
    marked,
    rows_of,
    scope,
    stream_of,
)
from sharelens.questions.answers.missing import COPY_FOLDERS, unseen
from sharelens.questions.answers.shape import answer_schema
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_topic_batches
from sharelens.tables.where import Span

MOST_RANGES = 100_000
COUNTS = ("outcome", "delivery_count", "offsets")
CLOCKS = "ages go from the record's timestamp (the producer's clock, if CLOCK is create_time) to the state log's time"
NO_AGES = f"no age is known there, and control records count as settled; {COPY_FOLDERS}"
UNSEEN = (
    "not in the log: the time of the first delivery, how long a member worked on a record, deliveries without outcome"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The histories of a question, part by part. `begun`: user partitions with a settled offset so far."""

    evidence: Tables
    scoped: Scope
    span: Span
    exact: bool = False
    begun: set[TopicPartition] = field(default_factory=set)

    def settled(self, inputs: Inputs) -> Settled:
        """The settled ranges inside the span."""
        done = settled_of(inputs).within(self.span.from_ms, self.span.to_ms)
        self.begun.update(Ages(done).begins())
        return done

    def ages(self, done: Settled) -> Ages:
        """The ages of settled ranges."""
        return ages_of(done, partial(read_topic_batches, self.evidence), self._lowest, exact=self.exact)

    def kept_contributions(self, name: str) -> pa.Table | None:
        """The contributions that a run kept; None where only the histories have the answer."""
        rows = None if self.exact or self.span != Span() else kept_rows(self.scoped, name)
        if rows is not None:
            settled = rows.filter(pc.not_equal(rows.column("outcome"), OPEN)).select(["topic_id", "partition"])
            self.begun.update(topic_partitions(settled.group_by(["topic_id", "partition"]).aggregate([])))
        return rows

    def _lowest(self) -> dict[TopicPartition, int]:
        """Where user partitions begin to matter; all parts are read for it."""
        lowest: dict[TopicPartition, int] = {}
        for part in self.scoped.parts:
            for place, begin in begins_of(part.history).items():
                lowest[place] = min(begin, lowest.get(place, begin))
        return lowest

    @property
    def warnings(self) -> list[str]:
        """Warnings of the scope, and of user partitions that the evidence lacks."""
        return [*self.scoped.warnings, *unseen(self.evidence, self.begun, NO_AGES), *self._dropped()]

    def _dropped(self) -> list[str]:
        """At most one line, where exact percentiles leave out what retention dropped of the histories."""
        dropped = [part.dropped_ms["history"] for part in self.evidence.cover() if "history" in part.dropped_ms]
        if not self.exact or not dropped:
            return []
        line = (
            f"retention dropped histories from before {time_text(max(dropped))}: exact percentiles count only "
            "remaining histories; without --exact all measured offsets count"
        )
        return [line]


def grouping(by: Collection[str]) -> By:
    """The grouping of rows by the words `partition` and `hour`."""
    return By(partition="partition" in by, hour="hour" in by)


def latency(
    evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span, by: By, *, exact: bool = False
) -> Answer:
    """The answer to `sharelens latency`; `span` bounds the log time of the outcomes.

    `exact`: percentiles of the ages' own bounds, from the histories; else edges of buckets.
    """
    read = _reading(evidence, key_filter, cut, span, exact=exact)

    def tally(inputs: Inputs) -> Tally:
        done = read.settled(inputs)
        return of_latency(done, read.ages(done), by)

    table = _rows(read, "latency", by, tally, measure.latency_rows)
    return answer(
        evidence,
        table,
        LAYOUT,
        totals=f"{_latency_totals(table)}\n{CLOCKS}\n{UNSEEN}",
        warnings=read.warnings,
        none="nothing was settled",
    )


def attempts(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span, by: By) -> Answer:
    """The answer to `sharelens attempts`; `span` bounds the log time of the outcomes, and leaves open offsets out."""
    read = _reading(evidence, key_filter, cut, span)

    def tally(inputs: Inputs) -> Tally:
        done = read.settled(inputs)
        return of_attempts(done, read.ages(done).gaps(), by)

    table = _rows(read, "attempts", by, tally, measure.attempts_rows)
    if span != Span():
        table = table.filter(pc.not_equal(table.column("outcome"), OPEN))
    return answer(
        evidence,
        table,
        ATTEMPTS_LAYOUT,
        totals=f"{_attempts_totals(table)}\n{UNSEEN}",
        warnings=read.warnings,
        none="nothing was delivered",
    )


def attempts_stream(scoped: Scope) -> Iterator[pa.Table]:
    """ATTEMPTS rows in tables, in any order, with at least the columns of COUNTS; from the gold table if possible."""
    rows = kept_stream(scoped, "attempts", COUNTS)
    if rows is not None:
        return rows
    read, by = _Reading(evidence=scoped.evidence, scoped=scoped, span=Span()), By(hour=False)

    def of_part(inputs: Inputs) -> pa.Table:
        done = settled_of(inputs)
        return measure.attempts(done, read.ages(done).gaps(), by)

    return stream_of(scoped, of_part)


def _rows(
    read: _Reading, name: str, by: By, tally: Callable[[Inputs], Tally], rows: Callable[[Tally, By], pa.Table]
) -> pa.Table:
    """Rows from the gold table, or of all parts: a row of a share partition comes from one part, other rows add up."""
    contributions = read.kept_contributions(name)
    if contributions is not None:
        table = rows(of_contributions(contributions, by), by)
        return table.sort_by(PLACE_ORDER) if by.partition else table
    if by.partition:
        return rows_of(read.scoped, lambda inputs: rows(tally(inputs), by))
    return rows(added(read.scoped.parts.stream(lambda part: tally(read.scoped.inputs(part)))), by)


def ranges(
    evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span, range_limit: int = MOST_RANGES
) -> Answer:
    """The answer to `sharelens latency --ranges`: settled ranges by batch, those of the largest age first."""
    read = _reading(evidence, key_filter, cut, span)
    largest: list[pa.Table] = []
    has_more = False
    for part in read.scoped.parts:
        done = read.settled(read.scoped.inputs(part))
        ranges_of_part, beyond = age_ranges(done, read_topic_batches(evidence, Ages(done).begins()), range_limit)
        candidates = pa.concat_tables([*largest, marked(ranges_of_part, part.history)]).sort_by(LARGEST_FIRST)
        has_more = has_more or beyond or candidates.num_rows > range_limit
        largest = [candidates.slice(0, range_limit).combine_chunks()]
    warnings = read.warnings
    if has_more:
        warnings.append(f"only the {range_limit} ranges of the largest age are shown; narrow the question")
    return answer(
        evidence,
        largest[0],
        RANGE_LAYOUT,
        totals=f"{CLOCKS}\n{UNSEEN}",
        warnings=warnings,
        none="no settled offset with a batch header",
    )


def _reading(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span, *, exact: bool = False) -> _Reading:
    return _Reading(evidence=evidence, scoped=scope(evidence, key_filter, cut), span=span, exact=exact)


def _sum(table: pa.Table, name: str) -> int:
    return sum(table.column(name).to_pylist())


def _latency_totals(table: pa.Table) -> str:
    done = {name: table.filter(pc.equal(table.column("outcome"), name)) for name in (ACKNOWLEDGED, ARCHIVED)}
    parts = [f"{name} {_sum(rows, 'settled_offsets')}" for name, rows in done.items()]
    total, aged = _sum(table, "settled_offsets"), _sum(table, "aged_offsets")
    negative = _sum(table, "negative_offsets_max")
    totals = f"record offsets: {', '.join(parts)}; no age known {total - aged}; archived without a record "
    totals += str(_sum(table, "gap_offsets"))
    return totals + (f"; age may be negative {negative} (clocks differ)" if negative else "")


def _attempts_totals(table: pa.Table) -> str:
    names = ("settled_records", "deliveries", "repeated_deliveries", "open_records")
    offsets, deliveries, repeated, still = (total(name, table) for name in names)
    ratio = f"{deliveries / offsets:.3f}" if offsets else "-"
    return (
        f"settled record offsets {offsets}, deliveries {deliveries}, extra {repeated}, to a settled offset {ratio}; "
        f"delivered and open {still}"
    )


def _bounds(heading: str, low: str, high: str) -> Column:
    """`270..300`: the bounds of a value."""

    def cell(row: Row) -> str:
        least, largest = row[low], row[high]
        if least is None:
            return number_text(None)
        return f"{least}" if least == largest else f"{least}..{largest}"

    return Column(heading=heading, cell=cell, right=True, fields=(low, high))


IMPORTANT = "GROUP TOPIC PARTITION HOUR OUTCOME P50-MS P99-MS LARGEST-MS SETTLED DELIVERY-COUNT OFFSETS"
VARIES = "state_partition and partition with --by partition; hour_ms with --by hour"
LAYOUT = Layout(
    schema=answer_schema(LATENCY),
    fields="group_id topic partition hour_ms outcome settled_offsets aged_offsets clock age_p50_min_ms age_p90_min_ms "
    "age_p99_min_ms age_largest_min_ms negative_offsets_min deliveries_per_settled settled_per_minute "
    "first_settled_ms last_settled_ms completeness",
    headings={"settled_offsets": "SETTLED", "aged_offsets": "AGED", "settled_per_minute": "PER-MINUTE"},
    cells=(
        *(_bounds(f"P{rank}-MS", f"age_p{rank}_min_ms", f"age_p{rank}_max_ms") for rank in PERCENTILES),
        _bounds("LARGEST-MS", "age_largest_min_ms", "age_max_ms"),
        _bounds("NEGATIVE", "negative_offsets_min", "negative_offsets_max"),
    ),
    important=IMPORTANT,
    varies=VARIES,
)
ATTEMPTS_LAYOUT = Layout(
    schema=answer_schema(ATTEMPTS),
    fields="group_id topic partition hour_ms outcome delivery_count offsets deliveries extra_deliveries completeness",
    important=IMPORTANT,
    varies=VARIES,
)
RANGE_LAYOUT = Layout(
    schema=answer_schema(AGE),
    fields="group_id topic partition first_offset last_offset outcome delivery_count age_min_ms clock settled_ms "
    "state_partition log_offset completeness",
    cells=(_bounds("AGE-MS", "age_min_ms", "age_max_ms"),),
    important="GROUP TOPIC PARTITION FIRST-OFFSET LAST-OFFSET AGE-MS OUTCOME DELIVERY-COUNT SETTLED",
)
