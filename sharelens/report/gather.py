"""Gathers the answers of a report, all of one cut."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.groups.schemas import SHARE
from sharelens.groups.summary import GROUPS
from sharelens.measures.catalog import STAGED
from sharelens.measures.life import rows as life_rows
from sharelens.measures.ranges.steps import Ints
from sharelens.measures.schemas import LAG
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.stalls.intervals import MIN_DURATION_MS
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.output import Answer
from sharelens.parameters.filters import KeyFilter, TopicChoice
from sharelens.questions import lag, life, redelivered, stalled
from sharelens.questions.answers.completeness import evidence_times
from sharelens.questions.answers.measured import Scope, described, scope
from sharelens.questions.answers.missing import unnamed_topics, unseen_stalls
from sharelens.questions.answers.now import now_of
from sharelens.questions.answers.share_partitions import Key, key_of, rows_of_keys
from sharelens.questions.dead_letters import dlq, poison
from sharelens.questions.findings.finding import Finding
from sharelens.questions.findings.findings import findings
from sharelens.questions.findings.signs import Signs, signs_of
from sharelens.questions.groups import groups
from sharelens.questions.timelines.gap_entries import gap_entries
from sharelens.questions.timelines.timeline import up_to_cut
from sharelens.questions.traces import trace
from sharelens.report.digests import (
    REDELIVERY_COLUMNS,
    DeadLetterDigest,
    DeadLetterReading,
    LifeDigest,
    LifeReading,
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
from sharelens.report.streams_digest import StreamsDigest, streams_digest
from sharelens.report.timelines import GroupTimeline, TimelineReading, drawn_groups
from sharelens.source.request import CutChoice
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.known_groups import streams_groups
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from sharelens.tables.where import Span

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

    evidence: Tables
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
    lives: LifeDigest
    timelines: Sequence[GroupTimeline]
    groups: pa.Table
    streams: StreamsDigest
    signs: Signs
    findings: Sequence[Finding]
    ranking: GroupRanking
    written_ms: Mapping[str, int]
    outcomes: Mapping[tuple[int, int], int]
    lag_lines: LagLines
    drawn: Sequence[Drawn]
    traced: Sequence[tuple[Key, int]]
    warnings: Sequence[str]

    @property
    def is_about_streams_alone(self) -> bool:
        """Whether there are streams groups and no share partition."""
        return self.streams.groups.num_rows > 0 and self.lag.num_rows == 0 and not self.written_ms


def gather(evidence: Tables, question: ReportQuestion) -> Gathered:
    """The content of a report.

    Raises:
        UsageError: the evidence has none of the names.
        SharelensError: the cut lies before the evidence, or there is none.
    """
    key_filter, cut = question.key_filter, question.cut
    of_streams = streams_groups(evidence, key_filter.groups)
    scoped = scope(evidence, key_filter, cut, of_streams)
    cover = evidence.cover()
    lags = lag.lag(evidence, key_filter, cut, end_offsets=question.end_offsets, other_groups=of_streams)
    coordinated = groups.groups(evidence, frozenset(), cut.as_of_ms)
    now_ms = now_of(evidence, cut)
    lag_rows = lags.table.select(LAG.names)
    read_signs = signs_of(scoped, lag_rows, key_filter, cut, question.settings, question.min_duration_ms)
    wrong = findings(read_signs, question.min_duration_ms)
    of_share_groups = [row for row in wrong if row.group_type == SHARE]
    open_now = [row for row in of_share_groups if row.question != "audit"]  # those of the audit stand, whatever happens
    ranking = group_ranking(open_now, lag_rows)
    first, end = (moment or 0 for moment in evidence_times(evidence))
    last = end if cut.as_of_ms is None else min(end, cut.as_of_ms)
    from_ms = first if question.span.from_ms is None else max(first, question.span.from_ms)
    to_ms = max(from_ms, last if question.span.to_ms is None else min(last, question.span.to_ms))
    drawn = drawn_groups(ranking, scoped.places)
    reading = TimelineReading(drawn, up_to_cut(question.span, cut), from_ms, to_ms)
    digests = _digests(scoped, question, now_ms, ranking, reading)
    names = evidence.names(scoped.places.column("topic_id").unique().to_pylist())
    order = share_partition_ranking(ranking, open_now, lag_rows, digests.stalls.still(), _past(digests))
    traced = _traced(digests.stalls, digests.poison, order)
    lives = LifeReading(ranking)
    moments = np.unique(np.linspace(from_ms, to_ms, MOMENTS).astype(np.int64))
    read = _read(scoped, order, traced, moments, _Lives(span=question.span, lives=lives, timelines=reading))
    life_digest, life_warnings = _with_deletions(evidence, lives.digest(), cut)
    gaps = gap_entries(evidence, _of_groups(scoped, drawn), scoped.cut)
    lines = [*scoped.warnings, *lags.warnings, *digests.warnings, *life_warnings, *coordinated.warnings]
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
        lives=life_digest,
        timelines=reading.timelines(read_group_records(evidence, frozenset(drawn)), gaps, names),
        signs=read_signs,
        findings=wrong,
        ranking=ranking,
        groups=GROUPS.empty_table() if read_signs.groups is None else read_signs.groups,
        streams=streams_digest(evidence, _streams_groups(key_filter), cut.as_of_ms, question.span),
        written_ms=read.written_ms,
        outcomes=outcomes_of(scoped),
        lag_lines=read.lag.lines(evidence, names, ranking),
        drawn=read.drawn,
        traced=traced,
        warnings=_said_once([*lines, *unnamed_topics(lags.table), *read_signs.warnings]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Digests:
    """Digests of the streams that are read once, with their warnings."""

    stalls: StallDigest
    poison: PoisonDigest
    redelivered: pa.Table
    dead_letters: DeadLetterDigest
    warnings: Sequence[str]


def _digests(
    scoped: Scope, question: ReportQuestion, now_ms: int, ranking: GroupRanking, timelines: TimelineReading
) -> _Digests:
    """The digests; `timelines` takes the same rows."""
    evidence, span, settings, least_ms = scoped.evidence, question.span, question.settings, question.min_duration_ms
    stall_rows = stalled.stall_stream(scoped, span, settings, now_ms, min_duration_ms=least_ms)
    long_stalls = (stalled.long_enough(rows, least_ms) for rows in stall_rows)
    stalls = StallDigest.of(_also(long_stalls, timelines.add_stalls))
    given_up_reading, letter_reading = PoisonReading(ranking), DeadLetterReading(ranking)
    tables, letter_warnings = dlq.given_up_and_reconciled(scoped, question.cut, settings)
    for given_up_rows, letter_rows in tables:
        given_up_rows, letter_rows = poison.in_span(given_up_rows, span), dlq.in_span(letter_rows, span)
        given_up_reading.add(given_up_rows)
        timelines.add_archived(given_up_rows)
        letter_reading.add(letter_rows)
        timelines.add_letters(letter_rows)
    given_up, dead_letters = given_up_reading.digest(), letter_reading.digest()
    again = redelivered.redelivered_stream(scoped, span, REDELIVERY_COLUMNS)
    return _Digests(
        stalls=replace(stalls, first=described(evidence, stalls.first)),
        poison=replace(given_up, first=described(evidence, given_up.first)),
        redelivered=redelivery_sums(_also(again, timelines.add_redelivered)),
        dead_letters=dead_letters,
        warnings=(
            *unseen_stalls(evidence, scoped.user_partitions, stalled.UNSEEN),
            *poison.poison_warnings(scoped, without_limit=given_up.without_limit),
            *(letter_warnings if scoped.places.num_rows else ()),
            *dlq.without_topic(dead_letters.sums),
        ),
    )


def _also(tables: Iterable[pa.Table], take: Callable[[pa.Table], None]) -> Iterator[pa.Table]:
    """The tables; `take` takes each, too."""
    for table in tables:
        take(table)
        yield table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lives:
    """Takes LIFE rows of the span, for the section about lives and for the timelines."""

    span: Span
    lives: LifeReading
    timelines: TimelineReading

    def take(self, rows: pa.Table) -> None:
        """Adds rows."""
        rows = filter_rows(rows, self.span.expression())
        self.lives.add(rows)
        self.timelines.add_lives(rows)


def _read(
    scoped: Scope, order: Sequence[Key], traced: Sequence[tuple[Key, int]], moments: Ints, lives: _Lives
) -> Reading:
    """What comes from the histories; `lives` takes LIFE rows, from their table or from the same histories."""
    read = Reading(order, traced, moments)
    if scoped.cut.is_whole and scoped.evidence.stored(STAGED["life_event"].table):
        for rows in life.event_stream(scoped):
            lives.take(rows)
        read.take_lake(scoped, scoped.evidence)
        return read
    for part in scoped.parts:
        read.take(part)
        lives.take(life_rows(scoped.inputs(part)))
    for part in scoped.only(rows_of_keys(scoped.misplaced, [key for key, _ in traced])).parts:
        read.trace(part)
    return read


def _of_groups(scoped: Scope, groups: Sequence[str]) -> pa.Table:
    return scoped.places.filter(pc.is_in(scoped.places.column("group_id"), value_set=pa.array(groups, pa.string())))


def _with_deletions(evidence: Tables, lives: LifeDigest, cut: CutChoice) -> tuple[LifeDigest, Sequence[str]]:
    """The digest, with what deleted and with names of topics in the rows that are shown."""
    rows, warnings = life.with_deletions(evidence, lives.first, cut)
    return replace(lives, first=described(evidence, rows)), warnings


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


def _streams_groups(key_filter: KeyFilter) -> frozenset[str] | None:
    """The streams groups that the report is about; None: all."""
    return None if key_filter.keeps_all else frozenset(key_filter.groups)


def still(stalls: pa.Table) -> pa.Table:
    """The STALL rows that last at the cut."""
    return stalls.filter(pc.is_null(stalls.column("until_ms")))


def trace_of(gathered: Gathered, key: Key, offset: int) -> Answer:
    """The life of one record up to the cut."""
    group, topic_id, partition = key
    topic = TopicChoice(text=topic_id, partitions=frozenset([partition]))
    return trace.trace(gathered.evidence, KeyFilter(groups=frozenset([group]), topics=(topic,)), offset)
