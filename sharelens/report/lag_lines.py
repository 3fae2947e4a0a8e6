"""Lag over time for a chart: one line for each group, or for the worst share partitions where there are many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from sharelens.measures.lag import begins_of
from sharelens.measures.lag_over_time import HISTORY_COLUMNS, Arrivals, RowsAtMoments, lag_over_time
from sharelens.measures.ranges.steps import Ints
from sharelens.measures.topics.extents import TopicPartition
from sharelens.questions.answers.share_partitions import Key, key_of
from sharelens.report.ranking import GroupRanking
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_topic_batches
from state_model.columnar.schemas import SHARE_PARTITION_HISTORY

LINES = 8
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
class LagLines:
    """Lag over time, the worst line first. `summed`: a line is a group, else a share partition (Key)."""

    lines: Sequence[tuple[Key | str, Sequence[Point]]]
    summed: bool
    left_out: int


class LagReading:
    """Collects what lag lines need from a stream of the history: at most one row of a share partition a moment."""

    def __init__(self, ranked: Sequence[Key], moments: Ints) -> None:
        """`ranked`: share partitions, worst first; `moments`: epoch ms, ascending."""
        self._ranked, self._moments = ranked, moments
        self._summed = len(ranked) <= SHARE_PARTITIONS_SUMMED
        self.keys = ranked if self._summed else ranked[:LINES]
        """The share partitions whose rows are needed."""
        self._rows = RowsAtMoments(moments)
        self._rows.add(SHARE_PARTITION_HISTORY.empty_table().select(COLUMNS))
        self._begins: dict[TopicPartition, int] = {}

    def add(self, history: pa.Table) -> None:
        """Adds rows (COLUMNS) of these share partitions, in log order."""
        self._rows.add(history.select(COLUMNS))
        for place, begin in begins_of(history).items():
            self._begins[place] = min(begin, self._begins.get(place, begin))

    def lines(self, evidence: Tables, names: Mapping[str, str], ranking: GroupRanking) -> LagLines:
        """Lag at the moments, of LINES lines: what is open now first, then the highest lags."""
        lags = self._lags(evidence, names)
        peaks = {
            line: max(point.lag for point in points.values() if point.lag is not None)
            for line, points in lags.items()
            if any(point.lag is not None for point in points.values())
        }
        ranks = {key: rank for rank, key in enumerate(self.keys)}

        def order(line: Key | str) -> tuple[int, int, Key | str]:
            return ranking.place(line) if isinstance(line, str) else ranks[line], -peaks[line], line

        moments = self._moments.tolist()
        lines = tuple(
            (line, tuple(lags[line].get(at, Point(at, None, is_part=False)) for at in moments))
            for line in sorted(peaks, key=order)[:LINES]
        )
        line_count = len(lags) if self._summed else len(self._ranked)
        return LagLines(lines=lines, summed=self._summed, left_out=line_count - len(lines))

    def _lags(self, evidence: Tables, names: Mapping[str, str]) -> dict[Key | str, dict[int, Point]]:
        """The lag of each line at the moments at which it has a live share partition."""
        arrivals = Arrivals(self._moments)
        for batches in read_topic_batches(evidence, self._begins):
            arrivals.take(batches)
        return points_of(lag_over_time(self._rows.table(), arrivals, self._moments, names), summed=self._summed)


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


def newest_of_groups(places: pa.Table) -> dict[str, int]:
    """Log time of the newest record of each group, from PLACED rows."""
    newest = places.group_by("group_id").aggregate([("log_time_ms", "max")])
    return {row["group_id"]: row["log_time_ms_max"] for row in newest.to_pylist()}
