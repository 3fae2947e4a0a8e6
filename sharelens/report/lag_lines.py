"""Lag over time for a chart: one line for each group, or for the worst share partitions where there are many."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from sharelens.measures.lag_over_time import HISTORY_COLUMNS, Arrivals, HistoryAtMoments, lag_over_time
from sharelens.measures.ranges.steps import Ints
from sharelens.output.wording import place, short
from sharelens.questions.answers.share_partitions import Key, key_of
from sharelens.report.ranking import GroupRanking
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_topic_batches

LINES = 8
OF_THE_WORST = "the worst share partitions"
SHARE_PARTITIONS_SUMMED = 400
"""Lag over time is summed by group up to so many share partitions; beyond, the worst ones stand for themselves."""
COLUMNS = tuple(HISTORY_COLUMNS)
"""The columns of SHARE_PARTITION_HISTORY that lag lines need."""


class Point(NamedTuple):
    """The lag of a line at a moment: the sum of its known parts, None where there is none. `is_part`: not of all."""

    at_ms: int
    lag: int | None
    is_part: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LagPicture:
    """Lag over time: at most LINES lines by name, the most important one first; `text`: what they are."""

    lines: Sequence[tuple[str, Sequence[Point]]]
    from_ms: int
    to_ms: int
    text: str


class LagReading:
    """Collects what lag lines need from a stream of the history: at most one row of a share partition a moment."""

    def __init__(self, ranked: Sequence[Key], moments: Ints) -> None:
        """`ranked`: share partitions, worst first; `moments`: epoch ms, ascending."""
        self._ranked, self._moments = ranked, moments
        self._summed = len(ranked) <= SHARE_PARTITIONS_SUMMED
        self.keys = ranked if self._summed else ranked[:LINES]
        """The share partitions whose rows are needed."""
        self._history = HistoryAtMoments(moments)

    def add(self, history: pa.Table) -> None:
        """Adds rows (COLUMNS) of these share partitions, in log order."""
        self._history.add(history)

    def picture(self, evidence: Tables, names: Mapping[str, str], ranking: GroupRanking) -> LagPicture | None:
        """Lag at the moments: what is open now first, then the highest lags; None where none is known."""
        ranks = {key: rank for rank, key in enumerate(self.keys)}
        lags = self._lags(evidence, names)
        return lag_picture(
            lags,
            self._moments.tolist(),
            names,
            rank=lambda line: ranking.place(line) if isinstance(line, str) else ranks[line],
            of_what="each share group, summed over its share partitions" if self._summed else OF_THE_WORST,
            line_count=len(lags) if self._summed else len(self._ranked),
        )

    def _lags(self, evidence: Tables, names: Mapping[str, str]) -> dict[Key | str, dict[int, Point]]:
        """The lag of each line at the moments at which it has a live share partition."""
        arrivals = Arrivals(self._moments)
        for batches in read_topic_batches(evidence, self._history.begins):
            arrivals.take(batches)
        return points_of(lag_over_time(self._history.table(), arrivals, self._moments, names), summed=self._summed)


def points_of(rows: pa.Table, *, summed: bool) -> dict[Key | str, dict[int, Point]]:
    """LAG_OVER_TIME rows as points by moment of each share partition, or `summed` of each group."""
    lags: dict[Key | str, dict[int, Point]] = {}
    for row in rows.select(["group_id", "topic_id", "partition", "at_ms", "lag_inferred"]).to_pylist():
        at, lag = row["at_ms"], row["lag_inferred"]
        points = lags.setdefault(row["group_id"] if summed else key_of(row), {})
        before = points.get(at, Point(at, None, is_part=False))
        known_lags = [part for part in (before.lag, lag) if part is not None]
        points[at] = Point(at, sum(known_lags) if known_lags else None, is_part=before.is_part or lag is None)
    return lags


def lag_picture(
    lags: Mapping[Key | str, Mapping[int, Point]],
    moments: Sequence[int],
    names: Mapping[str, str],
    *,
    rank: Callable[[Key | str], int],
    of_what: str,
    line_count: int,
) -> LagPicture | None:
    """The first LINES lines by rank, then by their highest lag; None where no lag is known.

    `names`: of topics by id; `of_what`: what a line is; `line_count`: of all lines, those without a known lag too.
    """
    known_lags = {
        line: [point.lag for point in points.values() if point.lag is not None] for line, points in lags.items()
    }
    peaks = {line: max(values) for line, values in known_lags.items() if values}
    if not peaks:
        return None
    chosen = sorted(peaks, key=lambda line: (rank(line), -peaks[line], line))[:LINES]
    remainder = line_count - len(chosen)
    return LagPicture(
        lines=[
            (_label(line, names), [lags[line].get(at, Point(at, None, is_part=False)) for at in moments])
            for line in chosen
        ],
        from_ms=moments[0],
        to_ms=max(moments[-1], moments[0] + 1),
        text=f"Lag of {of_what}. The end offsets of the past are inferred from the batches' timestamps."
        f"{f' {remainder} more not drawn.' if remainder else ''}",
    )


def _label(line: Key | str, names: Mapping[str, str]) -> str:
    if isinstance(line, str):
        return short(line)
    group, topic_id, partition = line
    return f"{short(group)} · {short(place(names.get(topic_id), topic_id, partition))}"


def newest_of_groups(places: pa.Table) -> dict[str, int]:
    """Log time of the newest record of each group, from PLACED rows."""
    newest = places.group_by("group_id").aggregate([("log_time_ms", "max")])
    return {row["group_id"]: row["log_time_ms_max"] for row in newest.to_pylist()}
