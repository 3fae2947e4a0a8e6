"""Asks the questions whose answers a report shows, of one cut, and ranks the share partitions by what is wrong."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.settings import GroupSettings
from measures.stalls import MIN_DURATION_MS
from measures.steps import Ints
from sharelens.asked import CutAsked
from sharelens.filters import TopicChoice, Wanted
from sharelens.output import Answer
from sharelens.questions import dlq, groups, lag, poison, redelivered, stalled, trace
from sharelens.questions.completeness import times
from sharelens.questions.evidence import Evidence, Span, StatePartitionCover
from sharelens.questions.lake_evidence import LakeEvidence
from sharelens.questions.measured import Scope, scope
from sharelens.questions.missing import unnamed_topics
from sharelens.report.evidence import with_traces
from sharelens.report.reading import Drawn, LagLines, Reading
from sharelens.report.share_partitions import Key, key_of, rows_of_keys
from state_model.columnar.keys import SHARE_PARTITION_KEY

MOMENTS = 160
TRACES = 12
PINS_TRACED = 6
GIVEN_UP_ORDER = [
    ("last_outcome_ms", "descending"),
    *((name, "ascending") for name in SHARE_PARTITION_KEY),
    ("offset", "descending"),
]
"""Of records given up, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a report is about. `span` bounds log times: of stalls, outcomes, and the charts' time."""

    wanted: Wanted = field(default_factory=Wanted)
    cut: CutAsked = field(default_factory=CutAsked)
    span: Span = field(default_factory=Span)
    settings: GroupSettings
    end_offsets: lag.EndOffsets | None = None
    min_duration_ms: int = MIN_DURATION_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The answers, all of one cut, and what was read of the histories (`Reading`).

    `from_ms` to `to_ms`: the time that charts show; `traced`: records with a trace.
    """

    evidence: Evidence
    asked: Asked
    cover: Sequence[StatePartitionCover]
    first_ms: int
    last_ms: int
    from_ms: int
    to_ms: int
    names: Mapping[str, str]
    lag: pa.Table
    stalls: pa.Table
    poison: pa.Table
    redelivered: pa.Table
    dead_letters: pa.Table
    groups: pa.Table
    written_ms: Mapping[str, int]
    outcomes: Mapping[tuple[int, int], int]
    lag_lines: LagLines
    drawn: Sequence[Drawn]
    traced: Sequence[tuple[Key, int]]
    warnings: Sequence[str]


def gather(evidence: Evidence, asked: Asked) -> Gathered:
    """Everything a report shows.

    Raises:
        UsageError: nothing bears the names that were typed.
        SharelensError: the cut lies before the evidence, or there is none.
    """
    wanted, cut_asked, span = asked.wanted, asked.cut, asked.span
    scoped = scope(evidence, wanted, cut_asked)
    cover = evidence.cover()
    answers = {
        "lag": lag.lag(evidence, wanted, cut_asked, end_offsets=asked.end_offsets),
        "stalls": stalled.stalled(
            evidence, wanted, cut_asked, span, asked.settings, min_duration_ms=asked.min_duration_ms
        ),
        "poison": poison.poison(evidence, wanted, cut_asked, span, asked.settings),
        "redelivered": redelivered.redelivered(evidence, wanted, cut_asked, span),
        "dead_letters": dlq.dlq(evidence, wanted, cut_asked, span, asked.settings),
        "groups": groups.groups(evidence, frozenset(), cut_asked.as_of_ms),
    }
    tables = {name: answer.table for name, answer in answers.items()}
    first, end = (moment or 0 for moment in times(cover))
    last = end if cut_asked.as_of_ms is None else min(end, cut_asked.as_of_ms)
    from_ms = first if span.from_ms is None else max(first, span.from_ms)
    to_ms = max(from_ms, last if span.to_ms is None else min(last, span.to_ms))
    names = evidence.names(scoped.places.column("topic_id").unique().to_pylist())
    traced = _traced(tables["stalls"], tables["poison"])
    read = _read(scoped, tables, traced, np.unique(np.linspace(from_ms, to_ms, MOMENTS).astype(np.int64)), names)
    lines = [*scoped.warnings, *(line for answer in answers.values() for line in answer.warnings)]
    return Gathered(
        evidence=with_traces(evidence, cover, *read.traced),
        asked=asked,
        cover=cover,
        first_ms=first,
        last_ms=last,
        from_ms=from_ms,
        to_ms=to_ms,
        names=names,
        written_ms=read.written_ms,
        outcomes=read.outcomes,
        lag_lines=read.lag_lines(),
        drawn=read.drawn,
        traced=traced,
        warnings=_said_once([*lines, *unnamed_topics(tables["lag"])]),
        **(tables | {"groups": _of_scope(tables["groups"], wanted, read.written_ms.keys())}),
    )


def _read(
    scoped: Scope,
    tables: Mapping[str, pa.Table],
    traced: Sequence[tuple[Key, int]],
    moments: Ints,
    names: Mapping[str, str],
) -> Reading:
    order = ranked(tables["lag"], tables["stalls"], tables["poison"], tables["redelivered"])
    read = Reading(scoped.evidence, order, traced, moments, names)
    if isinstance(scoped.evidence, LakeEvidence) and scoped.cut.is_whole:
        read.take_lake(scoped, scoped.evidence)
    else:
        for part in scoped.parts():
            read.take(part)
    for part in scoped.only(rows_of_keys(scoped.misplaced, [key for key, _ in traced])).parts():
        read.trace(part)
    return read


def _traced(stalls: pa.Table, given_up: pa.Table) -> Sequence[tuple[Key, int]]:
    """The records that matter most: where something stands still now, then the newest given up."""
    pins = still(stalls).slice(0, PINS_TRACED).to_pylist()
    records = [(key_of(row), row["first_incomplete_offset"]) for row in pins]
    records += [(key_of(row), row["offset"]) for row in given_up.sort_by(GIVEN_UP_ORDER).slice(0, TRACES).to_pylist()]
    return list(dict.fromkeys(records))[:TRACES]


def _said_once(lines: Sequence[str]) -> Sequence[str]:
    return tuple(dict.fromkeys(lines))


def _of_scope(table: pa.Table, wanted: Wanted, groups: Collection[str]) -> pa.Table:
    """Share groups of the group coordinator's log that the report is about."""
    if wanted.everything:
        return table
    there = {*groups, *wanted.groups}
    return table.filter(pc.is_in(table.column("group_id"), value_set=pa.array(sorted(there), pa.string())))


def ranked(lags: pa.Table, stalls: pa.Table, given_up: pa.Table, redelivered_: pa.Table) -> Sequence[Key]:
    """Share partitions with the worst first: standing still, stood still, given up, behind, redelivered."""
    lasted = stalls.select([*SHARE_PARTITION_KEY, "until_ms"]).append_column(
        "score", pc.add(pc.fill_null(stalls["duration_ms"], 0), 1)
    )
    parts = [
        still(lasted),
        lasted.filter(pc.is_valid(lasted.column("until_ms"))),
        sized(given_up, "offset", "score"),
        lags.select([*SHARE_PARTITION_KEY, "lag"]).rename_columns([*SHARE_PARTITION_KEY, "score"]),
        sized(redelivered_, "first_offset", "score"),
    ]
    scores: dict[Key, list[int]] = {}
    for place, part in enumerate(parts):
        for row in part.group_by(SHARE_PARTITION_KEY).aggregate([("score", "sum")]).to_pylist():
            scores.setdefault(key_of(row), [0] * len(parts))[place] = row["score_sum"] or 0
    return tuple(sorted(scores, key=lambda key: ([-part for part in scores[key]], key)))


def sized(table: pa.Table, first: str, name: str) -> pa.Table:
    """The rows with the number of offsets from `first` to last_offset in a column of that name."""
    return table.append_column(name, pc.add(pc.subtract(table.column("last_offset"), table.column(first)), 1))


def still(stalls: pa.Table) -> pa.Table:
    """The STALL rows of what stands still at the cut."""
    return stalls.filter(pc.is_null(stalls.column("until_ms")))


def trace_of(gathered: Gathered, key: Key, offset: int) -> Answer:
    """The life of one record up to the cut."""
    group, topic_id, partition = key
    topic = TopicChoice(text=topic_id, partitions=frozenset([partition]))
    return trace.trace(gathered.evidence, Wanted(groups=frozenset([group]), topics=(topic,)), offset)
