"""How long records waited until they were settled, how many deliveries they took, how many were settled a minute."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from measures import latency as measure
from measures.ages import Ages, age_ranges, taken
from measures.headers import begins_of
from measures.latency_schemas import ACKNOWLEDGED, ARCHIVED, OPEN, PERCENTILES
from measures.settled import Settled, settled
from measures.topics import TopicPartition
from sharelens.asked import CutAsked
from sharelens.filters import Wanted
from sharelens.output import Answer, Column, Row, known, name_column, number_column, time_column
from sharelens.questions.evidence import Evidence, Span
from sharelens.questions.measured import Histories, answer, histories, marked
from sharelens.questions.missing import unseen_partitions
from sharelens.questions.state import completeness_cell, topic_cell
from state_model.columnar.values import Loss

MOST_RANGES = 100_000
CLOCKS = "ages go from the record's timestamp (the producer's clock, if CLOCK is create_time) to the state log's time"
UNSEEN = (
    "not in the log: when a record was first handed out, how long a member worked on it, deliveries without outcome"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What both questions are answered from."""

    histories: Histories
    settled: Settled
    ages: Ages
    warnings: tuple[str, ...]


def latency(evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span, by: measure.By) -> Answer:
    """The answer to `sharelens latency`; `span` bounds the log time of the outcomes."""
    read = _read(evidence, wanted, asked, span)
    table = measure.latency(read.settled, read.ages, read.histories.history, by)
    return answer(
        evidence,
        table,
        _columns(by, LATENCY_COLUMNS),
        told=f"{_latency_told(table)}\n{CLOCKS}\n{UNSEEN}",
        warnings=read.warnings,
        none="nothing was settled",
    )


def attempts(evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span, by: measure.By) -> Answer:
    """The answer to `sharelens attempts`; `span` bounds the log time of the outcomes, and leaves open offsets out."""
    read = _read(evidence, wanted, asked, span)
    table = measure.attempts(read.settled, read.ages.gaps(), read.histories.history, by)
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


def ranges(evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span, most: int = MOST_RANGES) -> Answer:
    """The answer to `sharelens latency --ranges`: settled ranges by batch, those of the largest age first."""
    told = histories(evidence, wanted, asked)
    done = settled(told.history, told.deliveries, _losses(evidence)).within(span.from_ms, span.to_ms)
    begins = Ages(done).begins()
    table, more = age_ranges(done, evidence.topic_batches(begins), most)
    warnings = [*told.warnings, *_unseen(evidence, begins)]
    if more:
        warnings.append(f"only the {most} ranges of the largest age are shown; narrow the question")
    return answer(
        evidence,
        marked(table, told.history),
        RANGE_COLUMNS,
        told=f"{CLOCKS}\n{UNSEEN}",
        warnings=warnings,
        none="no settled offset whose batch header is held",
    )


def _read(evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span) -> _Read:
    told = histories(evidence, wanted, asked)
    done = settled(told.history, told.deliveries, _losses(evidence)).within(span.from_ms, span.to_ms)
    ages = taken(done, evidence.topic_batches, lambda: begins_of(told.history))
    warnings = [*told.warnings, *_unseen(evidence, ages.begins())]
    return _Read(histories=told, settled=done, ages=ages, warnings=tuple(warnings))


def _unseen(evidence: Evidence, wanted: Collection[TopicPartition]) -> list[str]:
    unseen = unseen_partitions(evidence, wanted)
    if unseen == 0:
        return []
    line = (
        f"{unseen} user partitions are not in the evidence: no age is known there, and control records count as "
        "settled; copy their folders too"
    )
    return [line]


def _losses(evidence: Evidence) -> dict[int, tuple[Loss, ...]]:
    return {part.state_partition: part.losses for part in evidence.cover()}


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


def _columns(by: measure.By, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(_where(by)) + columns


def _where(by: measure.By) -> Iterator[Column]:
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
