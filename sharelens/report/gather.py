"""Asks the questions whose answers a report shows, of one cut, and ranks the share partitions by what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures import lag_over_time as over_time
from measures.lag import begins_of
from measures.settings import GroupSettings
from measures.stalls import MIN_DURATION_MS
from sharelens.asked import CutAsked
from sharelens.filters import TopicChoice, Wanted
from sharelens.output import Answer
from sharelens.questions import dlq, groups, lag, poison, redelivered, stalled, trace
from sharelens.questions.completeness import check_cut, cut_of, times
from sharelens.questions.evidence import KEY, Evidence, Span, StatePartitionCover
from sharelens.questions.missing import unnamed_topics
from sharelens.questions.naming import resolve
from sharelens.report.evidence import held

LINES = 8
SHARE_PARTITIONS_SUMMED = 400
"""Lag over time is summed by group up to so many share partitions; beyond, the worst ones stand for themselves."""
MOMENTS = 160
Key = tuple[str, str, int]
Row = Mapping[str, Any]


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
    """The answers, all of one cut. `from_ms` to `to_ms`: the time that charts show; `ranked`: the worst first."""

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
    history: pa.Table
    deliveries: pa.Table
    warnings: Sequence[str]
    ranked: Sequence[Key]


def gather(evidence: Evidence, asked: Asked) -> Gathered:
    """Everything a report shows.

    Raises:
        UsageError: nothing bears the names that were typed.
        SharelensError: the cut lies before the evidence, or there is none.
    """
    keys, cut = resolve(evidence, asked.wanted), cut_of(asked.cut)
    read = held(evidence, keys, cut)
    warnings = check_cut(read, cut)
    wanted, cut_asked, span = asked.wanted, asked.cut, asked.span
    answers = {
        "lag": lag.lag(read, wanted, cut_asked, end_offsets=asked.end_offsets),
        "stalls": stalled.stalled(read, wanted, cut_asked, span, asked.settings, min_duration_ms=asked.min_duration_ms),
        "poison": poison.poison(read, wanted, cut_asked, span, asked.settings),
        "redelivered": redelivered.redelivered(read, wanted, cut_asked, span),
        "dead_letters": dlq.dlq(read, wanted, cut_asked, span, asked.settings),
        "groups": groups.groups(read, frozenset(), asked.cut.as_of_ms),
    }
    history, deliveries = read.history(keys), read.deliveries(keys, cut)
    first, end = (moment or 0 for moment in times(read.cover()))
    last = end if asked.cut.as_of_ms is None else min(end, asked.cut.as_of_ms)
    from_ms = first if span.from_ms is None else max(first, span.from_ms)
    tables = {name: answer.table for name, answer in answers.items()}
    return Gathered(
        evidence=read,
        asked=asked,
        cover=read.cover(),
        first_ms=first,
        last_ms=last,
        from_ms=from_ms,
        to_ms=max(from_ms, last if span.to_ms is None else min(last, span.to_ms)),
        names=read.names(history.column("topic_id").unique().to_pylist()),
        history=history,
        deliveries=deliveries,
        warnings=_said_once(
            [
                *warnings,
                *(line for answer in answers.values() for line in answer.warnings),
                *unnamed_topics(tables["lag"]),
            ]
        ),
        ranked=ranked(tables["lag"], tables["stalls"], tables["poison"], tables["redelivered"]),
        **(tables | {"groups": _of_scope(tables["groups"], wanted, history)}),
    )


def _said_once(lines: Sequence[str]) -> Sequence[str]:
    return tuple(dict.fromkeys(lines))


def _of_scope(table: pa.Table, wanted: Wanted, history: pa.Table) -> pa.Table:
    """Share groups of the group coordinator's log that the report is about."""
    if wanted.everything:
        return table
    there = set(history.column("group_id").unique().to_pylist()) | wanted.groups
    return table.filter(pc.is_in(table.column("group_id"), value_set=pa.array(sorted(there), pa.string())))


def ranked(lags: pa.Table, stalls: pa.Table, given_up: pa.Table, redelivered_: pa.Table) -> Sequence[Key]:
    """Share partitions with the worst first: standing still, stood still, given up, behind, redelivered."""
    lasted = stalls.select([*KEY, "until_ms"]).append_column("score", pc.add(pc.fill_null(stalls["duration_ms"], 0), 1))
    parts = [
        still(lasted),
        lasted.filter(pc.is_valid(lasted.column("until_ms"))),
        sized(given_up, "offset", "score"),
        lags.select([*KEY, "lag"]).rename_columns([*KEY, "score"]),
        sized(redelivered_, "first_offset", "score"),
    ]
    scores: dict[Key, list[int]] = {}
    for place, part in enumerate(parts):
        for row in part.group_by(KEY).aggregate([("score", "sum")]).to_pylist():
            scores.setdefault(key_of(row), [0] * len(parts))[place] = row["score_sum"] or 0
    return tuple(sorted(scores, key=lambda key: ([-part for part in scores[key]], key)))


def sized(table: pa.Table, first: str, name: str) -> pa.Table:
    """The rows with the number of offsets from `first` to last_offset in a column of that name."""
    return table.append_column(name, pc.add(pc.subtract(table.column("last_offset"), table.column(first)), 1))


def still(stalls: pa.Table) -> pa.Table:
    """The STALL rows of what stands still at the cut."""
    return stalls.filter(pc.is_null(stalls.column("until_ms")))


def key_of(row: Row) -> Key:
    """(group, topic id, partition) of a row."""
    return row["group_id"], row["topic_id"], row["partition"]


def rows_of_keys(table: pa.Table, keys: Sequence[Key]) -> pa.Table:
    """The rows of share partitions, in their order."""
    columns = [pa.array(column) for column in zip(*keys, strict=True)] if keys else [pa.array([])] * 3
    wanted = pa.table(columns, names=KEY).cast(pa.schema([table.schema.field(name) for name in KEY]))
    number = pa.array(range(table.num_rows), pa.int64())
    found = table.select(KEY).append_column("row", number).join(wanted, keys=KEY, join_type="left semi")
    return table.take(found.column("row").sort())


@dataclass(frozen=True, slots=True, kw_only=True)
class LagLines:
    """Lag over time: AT_MS by line, the largest first. `summed`: a line is a group, else a share partition (Key)."""

    lines: Sequence[tuple[Key | str, Sequence[tuple[int, int | None]]]]
    summed: bool
    left_out: int


def lag_lines(gathered: Gathered) -> LagLines:
    """Lag at MOMENTS moments of the charts' time; a moment at which a part of a sum is unknown is unknown."""
    summed = len(gathered.ranked) <= SHARE_PARTITIONS_SUMMED
    keys = gathered.ranked if summed else gathered.ranked[:LINES]
    history = rows_of_keys(gathered.history, keys)
    arrivals = over_time.Arrivals()
    for batches in gathered.evidence.topic_batches(begins_of(history)):
        arrivals.take(batches)
    moments = np.unique(np.linspace(gathered.from_ms, gathered.to_ms, MOMENTS).astype(np.int64))
    table = over_time.lag_over_time(history, arrivals, moments, gathered.names)
    sums: dict[Key | str, dict[int, int | None]] = {}
    for row in table.select([*KEY, "at_ms", "lag_inferred"]).to_pylist():
        line = sums.setdefault(row["group_id"] if summed else key_of(row), {})
        before = line.get(row["at_ms"], 0)
        lag_now = row["lag_inferred"]
        line[row["at_ms"]] = None if before is None or lag_now is None else before + lag_now
    known = {name: line for name, line in sums.items() if any(value is not None for value in line.values())}
    peaks = {name: max(value for value in line.values() if value is not None) for name, line in known.items()}
    chosen = sorted(known, key=lambda name: (-peaks[name], name))[:LINES]
    lines = tuple((name, tuple((int(at), known[name].get(int(at))) for at in moments)) for name in chosen)
    whole = len(sums) if summed else len(gathered.ranked)
    return LagLines(lines=lines, summed=summed, left_out=whole - len(lines))


def trace_of(gathered: Gathered, key: Key, offset: int) -> Answer:
    """The life of one record up to the cut."""
    group, topic_id, partition = key
    topic = TopicChoice(text=topic_id, partitions=frozenset([partition]))
    return trace.trace(gathered.evidence, Wanted(groups=frozenset([group]), topics=(topic,)), offset)
