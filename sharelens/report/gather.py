"""Gathers the answers of a report, all of one cut."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import Thresholds
from sharelens.findings.verdict import Verdict
from sharelens.groups.schemas import CONSUMER, SHARE, STREAMS
from sharelens.kafka_log.dead_letter_records import DLQ_RECORD
from sharelens.measures.catalog import STAGED
from sharelens.measures.figures import of_sums
from sharelens.measures.life import rows as life_rows
from sharelens.measures.ranges.steps import Ints
from sharelens.measures.schemas import EVENTS, LAG
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.stalls.intervals import MIN_DURATION_MS
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.output import Answer
from sharelens.parameters.filters import KeyFilter, TopicChoice
from sharelens.questions import lag, life, redelivered, stalled
from sharelens.questions.answers.measured import Scope, scope
from sharelens.questions.answers.missing import unnamed_topics
from sharelens.questions.answers.share_partitions import Key, key_of, rows_of_keys
from sharelens.questions.answers.streaming import FirstOfEach, RowChoice
from sharelens.questions.dead_letters import dlq, poison
from sharelens.questions.dead_letters.reconciled import given_up_and_reconciled
from sharelens.questions.findings.judged import judged
from sharelens.questions.findings.overview import group_rows, groups_part
from sharelens.questions.findings.signs import signs_of
from sharelens.questions.groups import groups
from sharelens.questions.timelines.gap_entries import gap_entries
from sharelens.questions.timelines.metadata_entries import metadata_entries
from sharelens.questions.timelines.timeline import up_to_cut
from sharelens.questions.traces import trace
from sharelens.report import orders
from sharelens.report.evidence import with_traces
from sharelens.report.lag_lines import LagPicture
from sharelens.report.maps import Drawn
from sharelens.report.model_digest import ModelDigest, consumer_digest, streams_digest
from sharelens.report.ranking import GroupRanking, group_ranking, share_partition_ranking
from sharelens.report.reading import Reading, outcomes_of
from sharelens.report.timelines import GroupTimeline, TimelineReading, drawn_groups
from sharelens.source.request import CutChoice
from sharelens.tables.known_groups import modelled_groups
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_dead_letters, read_group_records
from sharelens.tables.where import Span
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY
from state_model.streams.records import STREAMS_TYPES

REDELIVERED = RowChoice(order=redelivered.ORDER, row_limit=1, ranks=redelivered.RANKS)
REDELIVERY_COLUMNS = [
    *PLACE_KEY,
    "kind",
    "first_offset",
    "last_offset",
    "max_delivery_count",
    "last_ms",
    "last_log_offset",
    "life_log_offset",
    "completeness",
]
"""What sums, timelines and the order of the rows need: the page has sums alone."""
MOMENTS = 160
TRACES = 12
PINS_TRACED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuestion:
    """The share partitions, cut and settings of a report. `span` bounds stalls, outcomes and charts, in log time.

    `min_duration_ms`: the shortest stall; None: of findings by the lock duration, of tables MIN_DURATION_MS.
    """

    key_filter: KeyFilter = field(default_factory=KeyFilter)
    cut: CutChoice = field(default_factory=CutChoice)
    span: Span = field(default_factory=Span)
    settings: GroupSettings
    end_offsets: EndOffsets | None = None
    min_duration_ms: int | None = None

    @property
    def least_stall_ms(self) -> int:
        """The shortest stall of the tables."""
        return MIN_DURATION_MS if self.min_duration_ms is None else self.min_duration_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """`from_ms` to `to_ms`: the time that charts show; `last_ms`: the end of the evidence or the cut."""

    last_ms: int
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What charts are drawn from. `pins`: the first stall of each share partition; `outcomes`: see `outcomes_of`."""

    timelines: Sequence[GroupTimeline]
    lag: LagPicture | None
    maps: Sequence[Drawn]
    pins: pa.Table
    outcomes: Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The answers of a report by question, all of one cut, with the first rows and sums over all of them.

    `written_ms`: log time of the newest record of each group; `traced`: records with a trace.
    """

    evidence: Tables
    question: ReportQuestion
    times: Times
    signs: Signs
    verdict: Verdict
    ranking: GroupRanking
    answers: Mapping[str, Answer]
    pictures: Pictures
    streams: ModelDigest
    consumers: ModelDigest
    written_ms: Mapping[str, int]
    traced: Sequence[tuple[Key, int]]
    warnings: Sequence[str]

    @property
    def other_groups_alone(self) -> str | None:
        """STREAMS or CONSUMER where there are such groups and no share partition, streams groups first; else None."""
        if self.answers["lag"].row_count > 0 or self.written_ms:
            return None
        return STREAMS if self.streams.groups.num_rows else CONSUMER if self.consumers.groups.num_rows else None


def gather(evidence: Tables, question: ReportQuestion) -> Gathered:
    """The content of a report.

    Raises:
        UsageError: the evidence has none of the names.
        SharelensError: the cut lies before the evidence, or there is none.
    """
    key_filter, cut = question.key_filter, question.cut
    of_streams = modelled_groups(evidence, key_filter.groups, STREAMS_TYPES)
    scoped = scope(evidence, key_filter, cut, of_streams)
    lags = lag.lag(evidence, key_filter, cut, end_offsets=question.end_offsets, other_groups=of_streams)
    coordinated = groups.groups(evidence, frozenset(), cut.as_of_ms)
    lag_rows = lags.table.select(LAG.names)
    read_signs = signs_of(scoped, lag_rows, key_filter, cut, question.settings, question.min_duration_ms)
    thresholds = Thresholds(settings=question.settings, min_duration_ms=question.min_duration_ms)
    verdict = judged(read_signs, thresholds)
    of_share_groups = [row for row in verdict.findings if row.group_type == SHARE]
    open_now = [row for row in of_share_groups if row.question != "audit"]  # those of the audit stand, whatever happens
    ranking = group_ranking(open_now, lag_rows)
    times = _times(read_signs, question)
    drawn = drawn_groups(ranking, scoped.places)
    reading = TimelineReading(drawn, up_to_cut(question.span, cut), times.from_ms, times.to_ms)
    answers, pins = _answers(scoped, question, read_signs.now_ms, ranking, reading)
    past = of_sums("archived_records", answers["poison"].sums), answers["redelivered"].sums
    order = share_partition_ranking(ranking, open_now, lag_rows, answers["stalled"].sums, past)
    traced = _traced(pins, answers["poison"].table, order)
    moments = np.unique(np.linspace(times.from_ms, times.to_ms, MOMENTS).astype(np.int64))
    lives = life.LifeRows(scoped, cut, question.span, orders.lives(ranking), set(EVENTS).difference(orders.EPOCH_MOVES))
    read = _read(scoped, order, traced, moments, lambda rows: reading.add_lives(lives.add(rows)))
    all_groups = group_rows(read_signs, thresholds)
    answers = {
        "lag": lags,
        **answers,
        "life": lives.answer(),
        "groups": groups_part(all_groups, [SHARE]),
        "streams_groups": groups_part(all_groups, [STREAMS]),
        "consumer_groups": replace(coordinated, table=coordinated.table.filter(pc.field("group_type") == CONSUMER)),
    }
    drawn_places, records = _of_groups(scoped, drawn), read_group_records(evidence, frozenset(drawn))
    events = [
        *gap_entries(evidence, drawn_places, scoped.cut),
        *metadata_entries(evidence, drawn_places, records),
    ]
    return Gathered(
        evidence=with_traces(evidence, read_signs.cover, *read.traced, _letters(evidence, traced)),
        question=question,
        times=times,
        signs=read_signs,
        verdict=verdict,
        ranking=ranking,
        answers=answers,
        pictures=Pictures(
            timelines=reading.timelines(records, events, read_signs.names),
            lag=read.lag.picture(evidence, read_signs.names, ranking),
            maps=read.drawn,
            pins=pins,
            outcomes=outcomes_of(scoped),
        ),
        streams=streams_digest(evidence, _groups(key_filter), cut.as_of_ms, question.span),
        consumers=consumer_digest(evidence, _groups(key_filter), cut.as_of_ms, question.span),
        written_ms=read.written_ms,
        traced=traced,
        warnings=_said_once(scoped, [*answers.values(), coordinated], lags, read_signs),
    )


def _times(read_signs: Signs, question: ReportQuestion) -> Times:
    cut, span = question.cut, question.span
    last = read_signs.last_ms if cut.as_of_ms is None else min(read_signs.last_ms, cut.as_of_ms)
    from_ms = read_signs.first_ms if span.from_ms is None else max(read_signs.first_ms, span.from_ms)
    to_ms = max(from_ms, last if span.to_ms is None else min(last, span.to_ms))
    return Times(last_ms=last, from_ms=from_ms, to_ms=to_ms)


def _answers(
    scoped: Scope, question: ReportQuestion, now_ms: int, ranking: GroupRanking, timelines: TimelineReading
) -> tuple[dict[str, Answer], pa.Table]:
    """The answers of streams that are read once, and the first stall of each share partition.

    `timelines` takes the same rows.
    """
    span, settings, least_ms = question.span, question.settings, question.least_stall_ms
    stalls = stalled.StallRows(scoped, span, now_ms, least_ms, orders.STALLS)
    pins = FirstOfEach(SHARE_PARTITION_KEY, orders.STILL_FIRST)
    for rows in stalled.stall_stream(scoped, span, settings, now_ms, min_duration_ms=least_ms):
        long_stalls = stalls.add(rows)
        timelines.add_stalls(long_stalls)
        pins.add(long_stalls.append_column("is_over", stalled.is_over(long_stalls)))
    tables, letter_warnings = given_up_and_reconciled(scoped, question.cut, settings)
    archived = poison.ArchivedRows(scoped, span, orders.archived(ranking))
    letter_warnings = letter_warnings if scoped.places.num_rows else ()
    letters = dlq.ReconciledRows(scoped.evidence, span, orders.dead_letters(ranking), letter_warnings)
    for given_up_rows, letter_rows in tables:
        timelines.add_archived(archived.add(given_up_rows))
        timelines.add_letters(letters.add(letter_rows))
    redeliveries = _also(redelivered.redelivered_stream(scoped, span, REDELIVERY_COLUMNS), timelines.add_redelivered)
    answers = {
        "stalled": stalls.answer(),
        "poison": archived.answer(),
        "redelivered": redelivered.redelivered_answer(scoped, redeliveries, span, choice=REDELIVERED),
        "dlq": letters.answer(),
    }
    return answers, pins.table()


def _also(tables: Iterable[pa.Table], take: Callable[[pa.Table], None]) -> Iterator[pa.Table]:
    """The tables; `take` takes each, too."""
    for table in tables:
        take(table)
        yield table


def _read(
    scoped: Scope,
    order: Sequence[Key],
    traced: Sequence[tuple[Key, int]],
    moments: Ints,
    take_lives: Callable[[pa.Table], None],
) -> Reading:
    """What comes from the histories; `take_lives` takes LIFE rows, from their table or from the same histories."""
    read = Reading(order, traced, moments)
    if scoped.cut.is_whole and scoped.evidence.stored(STAGED["life_event"].table):
        for rows in life.event_stream(scoped):
            take_lives(rows)
        read.take_lake(scoped, scoped.evidence)
        return read
    for part in scoped.parts:
        read.take(part)
        take_lives(life_rows(scoped.inputs(part)))
    for part in scoped.only(rows_of_keys(scoped.misplaced, [key for key, _ in traced])).parts:
        read.trace(part)
    return read


def _of_groups(scoped: Scope, groups: Sequence[str]) -> pa.Table:
    return scoped.places.filter(pc.is_in(scoped.places.column("group_id"), value_set=pa.array(groups, pa.string())))


def _traced(pins: pa.Table, archived: pa.Table, order: Sequence[Key]) -> Sequence[tuple[Key, int]]:
    """The records that matter most: where something stands still now, then the first given up."""
    ranks = {key: rank for rank, key in enumerate(order)}
    still = sorted(pins.filter(pc.field("until_ms").is_null()).to_pylist(), key=lambda row: ranks[key_of(row)])
    records = [(key_of(row), row["first_incomplete_offset"]) for row in still[:PINS_TRACED]]
    records += [(key_of(row), row["offset"]) for row in archived.slice(0, TRACES).to_pylist()]
    return list(dict.fromkeys(records))[:TRACES]


def _letters(evidence: Tables, traced: Sequence[tuple[Key, int]]) -> pa.Table:
    """DLQ_RECORD rows of the dead letters of these records, read at once."""
    return (
        read_dead_letters(evidence, trace.letters_of_records(evidence, traced)) if traced else DLQ_RECORD.empty_table()
    )


def _said_once(scoped: Scope, answers: Iterable[Answer], lags: Answer, read_signs: Signs) -> Sequence[str]:
    """The warnings of all answers, each once."""
    lines = [*scoped.warnings, *(line for answer in answers for line in answer.warnings)]
    return tuple(dict.fromkeys([*lines, *unnamed_topics(lags.table), *read_signs.warnings]))


def _groups(key_filter: KeyFilter) -> frozenset[str] | None:
    """The groups that the report is about; None: all."""
    return None if key_filter.keeps_all else frozenset(key_filter.groups)


def trace_of(gathered: Gathered, key: Key, offset: int) -> Answer:
    """The life of one record up to the cut."""
    group, topic_id, partition = key
    topic = TopicChoice(text=topic_id, partitions=frozenset([partition]))
    return trace.trace(gathered.evidence, KeyFilter(groups=frozenset([group]), topics=(topic,)), offset)
