"""How long records waited until they were settled, how many deliveries they took, how many were settled a minute."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from measures import latency as measure
from measures.ages import LARGEST_FIRST, Ages, age_ranges, taken
from measures.headers import begins_of
from measures.latency_schemas import ACKNOWLEDGED, ARCHIVED, OPEN, PERCENTILES
from measures.settled import Settled, settled
from measures.tallies import By, Tally, added, of_attempts, of_latency
from measures.topics import TopicPartition
from sharelens.asked import CutAsked
from sharelens.filters import Wanted
from sharelens.output import Answer, Column, Row, known, name_column, number_column, time_column
from sharelens.questions.evidence import Evidence, Span
from sharelens.questions.measured import Part, Scope, answer, marked, of_parts, scope
from sharelens.questions.missing import unseen
from sharelens.questions.state import completeness_cell, topic_cell
from state_model.columnar.values import Loss

MOST_RANGES = 100_000
CLOCKS = "ages go from the record's timestamp (the producer's clock, if CLOCK is create_time) to the state log's time"
NO_AGES = "no age is known there, and control records count as settled; copy their folders too"
UNSEEN = (
    "not in the log: when a record was first handed out, how long a member worked on it, deliveries without outcome"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What the questions are answered from, part by part.

    `begun`: user partitions that hold a settled offset, of the parts so far.
    """

    evidence: Evidence
    asked: Scope
    span: Span
    losses: Mapping[int, tuple[Loss, ...]]
    begun: set[TopicPartition] = field(default_factory=set)

    def settled(self, part: Part) -> Settled:
        """What was settled inside the span."""
        done = settled(part.history, part.deliveries, self.losses).within(self.span.from_ms, self.span.to_ms)
        self.begun.update(Ages(done).begins())
        return done

    def ages(self, done: Settled) -> Ages:
        """The ages of what was settled."""
        return taken(done, self.evidence.topic_batches, self._lowest)

    def _lowest(self) -> dict[TopicPartition, int]:
        """Where user partitions begin to matter; all parts are read for it."""
        lowest: dict[TopicPartition, int] = {}
        for part in self.asked.parts():
            for place, begin in begins_of(part.history).items():
                lowest[place] = min(begin, lowest.get(place, begin))
        return lowest

    @property
    def warnings(self) -> list[str]:
        """Those of the scope, and what is not in the evidence of what was asked for so far."""
        return [*self.asked.warnings, *unseen(self.evidence, self.begun, NO_AGES)]


def latency(evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span, by: By) -> Answer:
    """The answer to `sharelens latency`; `span` bounds the log time of the outcomes."""
    read = _reading(evidence, wanted, asked, span)

    def tally(part: Part) -> Tally:
        done = read.settled(part)
        return of_latency(done, read.ages(done), part.history, by)

    table = _rows(read.asked, by, tally, measure.latency_rows)
    return answer(
        evidence,
        table,
        _columns(by, LATENCY_COLUMNS),
        told=f"{_latency_told(table)}\n{CLOCKS}\n{UNSEEN}",
        warnings=read.warnings,
        none="nothing was settled",
    )


def attempts(evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span, by: By) -> Answer:
    """The answer to `sharelens attempts`; `span` bounds the log time of the outcomes, and leaves open offsets out."""
    read = _reading(evidence, wanted, asked, span)

    def tally(part: Part) -> Tally:
        done = read.settled(part)
        return of_attempts(done, read.ages(done).gaps(), part.history, by)

    table = _rows(read.asked, by, tally, measure.attempts_rows)
    if span != Span():
        table = table.filter(pc.not_equal(table.column("outcome"), OPEN))
    return answer(
        evidence,
        table,
        _columns(by, ATTEMPTS_COLUMNS),
        told=f"{_attempts_told(table)}\n{UNSEEN}",
        warnings=read.warnings,
        none="nothing was delivered",
    )


def _rows(asked: Scope, by: By, tally: Callable[[Part], Tally], rows: Callable[[Tally, By], pa.Table]) -> pa.Table:
    """The rows of all parts: a row about a share partition is of one part, others add up over all."""
    if by.partition:
        return of_parts(asked, lambda part: rows(tally(part), by))
    return rows(added(tally(part) for part in asked.parts()), by)


def ranges(evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span, most: int = MOST_RANGES) -> Answer:
    """The answer to `sharelens latency --ranges`: settled ranges by batch, those of the largest age first."""
    read = _reading(evidence, wanted, asked, span)
    held: list[pa.Table] = []
    more = False
    for part in read.asked.parts():
        done = read.settled(part)
        found, beyond = age_ranges(done, evidence.topic_batches(Ages(done).begins()), most)
        both = pa.concat_tables([*held, marked(found, part.history)]).sort_by(LARGEST_FIRST)
        more = more or beyond or both.num_rows > most
        held = [both.slice(0, most).combine_chunks()]
    warnings = read.warnings
    if more:
        warnings.append(f"only the {most} ranges of the largest age are shown; narrow the question")
    return answer(
        evidence,
        held[0],
        RANGE_COLUMNS,
        told=f"{CLOCKS}\n{UNSEEN}",
        warnings=warnings,
        none="no settled offset whose batch header is held",
    )


def _reading(evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span) -> _Reading:
    told = scope(evidence, wanted, asked)
    losses = {part.state_partition: part.losses for part in evidence.cover()}
    return _Reading(evidence=evidence, asked=told, span=span, losses=losses)


def _sum(table: pa.Table, name: str) -> int:
    return sum(table.column(name).to_pylist())


def _latency_told(table: pa.Table) -> str:
    done = {name: table.filter(pc.equal(table.column("outcome"), name)) for name in (ACKNOWLEDGED, ARCHIVED)}
    parts = [f"{name} {_sum(rows, 'settled_offsets')}" for name, rows in done.items()]
    total, aged = _sum(table, "settled_offsets"), _sum(table, "aged_offsets")
    negative = _sum(table, "negative_offsets_max")
    told = f"record offsets: {', '.join(parts)}; no age known {total - aged}; archived without a record "
    told += str(_sum(table, "gap_offsets"))
    return told + (f"; age may be negative {negative} (clocks differ)" if negative else "")


def _attempts_told(table: pa.Table) -> str:
    done = table.filter(pc.not_equal(table.column("outcome"), OPEN))
    offsets, deliveries = _sum(done, "offsets"), _sum(done, "deliveries")
    ratio = f"{deliveries / offsets:.3f}" if offsets else "-"
    still = _sum(table, "offsets") - offsets
    return (
        f"settled record offsets {offsets}, deliveries {deliveries}, extra {_sum(done, 'extra_deliveries')}, "
        f"to a settled offset {ratio}; delivered and open {still}"
    )


def _bounds(heading: str, low: str, high: str) -> Column:
    """`270..300`: the bounds of a value."""

    def cell(row: Row) -> str:
        least, most = row[low], row[high]
        if least is None:
            return known(None)
        return f"{least}" if least == most else f"{least}..{most}"

    return Column(heading=heading, cell=cell, right=True)


def _decimal(heading: str, field: str) -> Column:
    def cell(row: Row) -> str:
        value = row[field]
        return f"{value:.2f}" if isinstance(value, float) else known(None)

    return Column(heading=heading, cell=cell, right=True)


def _columns(by: By, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(_where(by)) + columns


def _where(by: By) -> Iterator[Column]:
    yield name_column("GROUP", "group_id")
    yield Column(heading="TOPIC", cell=topic_cell)
    if by.partition:
        yield number_column("PARTITION", "partition")
    if by.hour:
        yield time_column("HOUR", "hour_ms")
    yield name_column("OUTCOME", "outcome")


LATENCY_COLUMNS = (
    number_column("SETTLED", "settled_offsets"),
    number_column("AGED", "aged_offsets"),
    name_column("CLOCK", "clock"),
    *(_bounds(f"P{rank}-MS", f"age_p{rank}_min_ms", f"age_p{rank}_max_ms") for rank in PERCENTILES),
    _bounds("LARGEST-MS", "age_largest_min_ms", "age_max_ms"),
    _bounds("NEGATIVE", "negative_offsets_min", "negative_offsets_max"),
    _decimal("DELIVERIES-PER-SETTLED", "deliveries_per_settled"),
    _decimal("PER-MINUTE", "settled_per_minute"),
    time_column("FIRST-SETTLED", "first_settled_ms"),
    time_column("LAST-SETTLED", "last_settled_ms"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
ATTEMPTS_COLUMNS = (
    number_column("DELIVERY-COUNT", "delivery_count"),
    number_column("OFFSETS", "offsets"),
    number_column("DELIVERIES", "deliveries"),
    number_column("EXTRA-DELIVERIES", "extra_deliveries"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
RANGE_COLUMNS = (
    name_column("GROUP", "group_id"),
    Column(heading="TOPIC", cell=topic_cell),
    number_column("PARTITION", "partition"),
    number_column("FIRST-OFFSET", "first_offset"),
    number_column("LAST-OFFSET", "last_offset"),
    name_column("OUTCOME", "outcome"),
    number_column("DELIVERY-COUNT", "delivery_count"),
    _bounds("AGE-MS", "age_min_ms", "age_max_ms"),
    name_column("CLOCK", "clock"),
    time_column("SETTLED", "settled_ms"),
    number_column("STATE-PARTITION", "state_partition"),
    number_column("STATE-LOG-OFFSET", "log_offset"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
