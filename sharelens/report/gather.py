"""Gathers the answers of a report, all of one cut."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.file_ends import EndOffsets
from measures.schemas import LAG
from measures.settings import GroupSettings
from measures.stalls import MIN_DURATION_MS
from measures.steps import Ints
from sharelens.filters import KeyFilter, TopicChoice
from sharelens.output import Answer
from sharelens.questions import dlq, groups, lag, poison, redelivered, stalled, trace
from sharelens.questions.completeness import times
from sharelens.questions.evidence import Evidence, Span, StatePartitionCover
from sharelens.questions.findings import Finding, findings
from sharelens.questions.lake_evidence import LakeEvidence
from sharelens.questions.measured import Scope, described, scope
from sharelens.questions.missing import unnamed_topics, unseen
from sharelens.questions.now import now_of
from sharelens.questions.share_partitions import Key, key_of, rows_of_keys
from sharelens.questions.signs import Signs, signs_of
from sharelens.report.digests import (
    REDELIVERY_COLUMNS,
    DeadLetterDigest,
    DeadLetterReading,
    PoisonDigest,
    PoisonReading,
    StallDigest,
    redelivery_sums,
)
from sharelens.report.evidence import with_traces
from sharelens.report.lag_lines import LagLines
from sharelens.report.maps import Drawn
from sharelens.report.ranking import GroupRanking, group_ranking, share_partition_ranking
from sharelens.report.reading import Reading, outcomes_of
from sharelens.request import CutChoice

MOMENTS = 160
TRACES = 12
PINS_TRACED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuestion:
    """The share partitions, cut and settings of a report. `span` bounds stalls, outcomes and charts, in log time."""

    key_filter: KeyFilter = field(default_factory=KeyFilter)
    cut: CutChoice = field(default_factory=CutChoice)
    span: Span = field(default_factory=Span)
    settings: GroupSettings
    end_offsets: EndOffsets | None = None
    min_duration_ms: int = MIN_DURATION_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The answers, all of one cut, and the rows read from the histories (`Reading`).

    `redelivered`: sums by share partition and kind (`redelivery_sums`).
    `from_ms` to `to_ms`: the time that charts show; `traced`: records with a trace.
    """

    evidence: Evidence
    question: ReportQuestion
    cover: Sequence[StatePartitionCover]
    first_ms: int
    last_ms: int
    now_ms: int
    from_ms: int
    to_ms: int
    names: Mapping[str, str]
    lag: pa.Table
    stalls: StallDigest
    poison: PoisonDigest
    redelivered: pa.Table
    dead_letters: DeadLetterDigest
    groups: pa.Table
    signs: Signs
    findings: Sequence[Finding]
    ranking: GroupRanking
    written_ms: Mapping[str, int]
    outcomes: Mapping[tuple[int, int], int]
    lag_lines: LagLines
    drawn: Sequence[Drawn]
    traced: Sequence[tuple[Key, int]]
    warnings: Sequence[str]


def gather(evidence: Evidence, question: ReportQuestion) -> Gathered:
    """The content of a report.

    Raises:
        UsageError: the evidence has none of the names.
        SharelensError: the cut lies before the evidence, or there is none.
    """
    key_filter, cut = question.key_filter, question.cut
    scoped = scope(evidence, key_filter, cut)
    cover = evidence.cover()
    lags = lag.lag(evidence, key_filter, cut, end_offsets=question.end_offsets)
    coordinated = groups.groups(evidence, frozenset(), cut.as_of_ms)
    now_ms = now_of(evidence, cut)
    lag_rows = lags.table.select(LAG.names)
    read_signs = signs_of(scoped, lag_rows, key_filter, cut, question.settings, question.min_duration_ms)
    wrong = findings(read_signs, question.min_duration_ms)
    ranking = group_ranking(wrong, lag_rows)
    digests = _digests(scoped, question, now_ms, ranking)
    first, end = (moment or 0 for moment in times(cover))
    last = end if cut.as_of_ms is None else min(end, cut.as_of_ms)
    from_ms = first if question.span.from_ms is None else max(first, question.span.from_ms)
    to_ms = max(from_ms, last if question.span.to_ms is None else min(last, question.span.to_ms))
    names = evidence.names(scoped.places.column("topic_id").unique().to_pylist())
    order = share_partition_ranking(ranking, wrong, lag_rows, digests.stalls.still(), _past(digests))
    traced = _traced(digests.stalls, digests.poison, order)
    read = _read(scoped, order, traced, np.unique(np.linspace(from_ms, to_ms, MOMENTS).astype(np.int64)))
    lines = [*scoped.warnings, *lags.warnings, *digests.warnings, *coordinated.warnings]
    return Gathered(
        evidence=with_traces(evidence, cover, *read.traced),
        question=question,
        cover=cover,
        first_ms=first,
        last_ms=last,
        now_ms=now_ms,
        from_ms=from_ms,
        to_ms=to_ms,
        names=names,
        lag=lags.table,
        stalls=digests.stalls,
        poison=digests.poison,
        redelivered=digests.redelivered,
        dead_letters=digests.dead_letters,
        signs=read_signs,
        findings=wrong,
        ranking=ranking,
        groups=_of_scope(coordinated.table, key_filter, read.written_ms.keys()),
        written_ms=read.written_ms,
        outcomes=outcomes_of(scoped),
        lag_lines=read.lag.lines(evidence, names, ranking),
        drawn=read.drawn,
        traced=traced,
        warnings=_said_once([*lines, *unnamed_topics(lags.table)]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Digests:
    """Digests of the streams that are read once, with their warnings."""

    stalls: StallDigest
    poison: PoisonDigest
    redelivered: pa.Table
    dead_letters: DeadLetterDigest
    warnings: Sequence[str]


def _digests(scoped: Scope, question: ReportQuestion, now_ms: int, ranking: GroupRanking) -> _Digests:
    evidence, span, settings, least_ms = scoped.evidence, question.span, question.settings, question.min_duration_ms
    stall_rows = stalled.stall_stream(scoped, span, settings, now_ms, min_duration_ms=least_ms)
    stalls = StallDigest.of(stalled.long_enough(rows, least_ms) for rows in stall_rows)
    given_up_reading, letter_reading = PoisonReading(ranking), DeadLetterReading(ranking)
    tables, letter_warnings = dlq.given_up_and_reconciled(scoped, question.cut, settings)
    for given_up_rows, letter_rows in tables:
        given_up_reading.add(poison.in_span(given_up_rows, span))
        letter_reading.add(dlq.in_span(letter_rows, span))
    given_up, dead_letters = given_up_reading.digest(), letter_reading.digest()
    return _Digests(
        stalls=replace(stalls, first=described(evidence, stalls.first)),
        poison=replace(given_up, first=described(evidence, given_up.first)),
        redelivered=redelivery_sums(redelivered.redelivered_stream(scoped, span, REDELIVERY_COLUMNS)),
        dead_letters=dead_letters,
        warnings=(
            *unseen(evidence, scoped.user_partitions, stalled.UNSEEN),
            *poison.poison_warnings(scoped, without_limit=given_up.without_limit),
            *letter_warnings,
            *dlq.without_topic(dead_letters.sums),
        ),
    )


def _read(scoped: Scope, order: Sequence[Key], traced: Sequence[tuple[Key, int]], moments: Ints) -> Reading:
    read = Reading(order, traced, moments)
    if isinstance(scoped.evidence, LakeEvidence) and scoped.cut.is_whole:
        read.take_lake(scoped, scoped.evidence)
    else:
        for part in scoped.parts():
            read.take(part)
        for part in scoped.only(rows_of_keys(scoped.misplaced, [key for key, _ in traced])).parts():
            read.trace(part)
    return read


def _past(digests: _Digests) -> Sequence[pa.Table]:
    """Sums of what is over, as `share_partition_ranking` takes them."""
    archived, again = (
        table.append_column("score", table.column("records")) for table in (digests.poison.sums, digests.redelivered)
    )
    return digests.stalls.over(), archived, again


def _traced(stalls: StallDigest, given_up: PoisonDigest, order: Sequence[Key]) -> Sequence[tuple[Key, int]]:
    """The records that matter most: where something stands still now, then the first given up."""
    ranks = {key: rank for rank, key in enumerate(order)}
    pins = sorted(still(stalls.pins).to_pylist(), key=lambda row: ranks[key_of(row)])
    records = [(key_of(row), row["first_incomplete_offset"]) for row in pins[:PINS_TRACED]]
    records += [(key_of(row), row["offset"]) for row in given_up.first.slice(0, TRACES).to_pylist()]
    return list(dict.fromkeys(records))[:TRACES]


def _said_once(lines: Sequence[str]) -> Sequence[str]:
    return tuple(dict.fromkeys(lines))


def _of_scope(table: pa.Table, key_filter: KeyFilter, groups: Collection[str]) -> pa.Table:
    """Share groups of the group coordinator's log that the report is about."""
    if key_filter.keeps_all:
        return table
    there = {*groups, *key_filter.groups}
    return table.filter(pc.is_in(table.column("group_id"), value_set=pa.array(sorted(there), pa.string())))


def still(stalls: pa.Table) -> pa.Table:
    """The STALL rows that last at the cut."""
    return stalls.filter(pc.is_null(stalls.column("until_ms")))


def trace_of(gathered: Gathered, key: Key, offset: int) -> Answer:
    """The life of one record up to the cut."""
    group, topic_id, partition = key
    topic = TopicChoice(text=topic_id, partitions=frozenset([partition]))
    return trace.trace(gathered.evidence, KeyFilter(groups=frozenset([group]), topics=(topic,)), offset)
