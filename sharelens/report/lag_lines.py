"""Lag over time for a chart: one line for each group, or for the worst share partitions where there are many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from measures.lag import begins_of
from measures.lag_over_time import HISTORY_COLUMNS, Arrivals, RowsAtMoments, lag_over_time
from measures.steps import Ints
from measures.topics import TopicPartition
from sharelens.questions.evidence import Evidence
from sharelens.report.share_partitions import Key, key_of
from state_model.columnar.schemas import SHARE_PARTITION_HISTORY

LINES = 8
SHARE_PARTITIONS_SUMMED = 400
"""Lag over time is summed by group up to so many share partitions; beyond, the worst ones stand for themselves."""
COLUMNS = tuple(HISTORY_COLUMNS)
"""The columns of SHARE_PARTITION_HISTORY that lag lines need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagLines:
    """Lag over time: AT_MS by line, the largest first. `summed`: a line is a group, else a share partition (Key)."""

    lines: Sequence[tuple[Key | str, Sequence[tuple[int, int | None]]]]
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

    def lines(self, evidence: Evidence, names: Mapping[str, str]) -> LagLines:
        """Lag at the moments; one at which a part of a sum is unknown is unknown."""
        lags = self._lags(evidence, names)
        known = {name: line for name, line in lags.items() if any(value is not None for value in line.values())}
        peaks = {name: max(value for value in line.values() if value is not None) for name, line in known.items()}
        chosen = sorted(known, key=lambda name: (-peaks[name], name))[:LINES]
        moments = self._moments.tolist()
        lines = tuple((name, tuple((at, known[name].get(at)) for at in moments)) for name in chosen)
        whole = len(lags) if self._summed else len(self._ranked)
        return LagLines(lines=lines, summed=self._summed, left_out=whole - len(lines))

    def _lags(self, evidence: Evidence, names: Mapping[str, str]) -> dict[Key | str, dict[int, int | None]]:
        """The lag of each line at the moments at which it has a live share partition."""
        arrivals = Arrivals(self._moments)
        for batches in evidence.topic_batches(self._begins):
            arrivals.take(batches)
        table = lag_over_time(self._rows.table(), arrivals, self._moments, names)
        lags: dict[Key | str, dict[int, int | None]] = {}
        for row in table.select(["group_id", "topic_id", "partition", "at_ms", "lag_inferred"]).to_pylist():
            line = lags.setdefault(row["group_id"] if self._summed else key_of(row), {})
            before, lag = line.get(row["at_ms"], 0), row["lag_inferred"]
            line[row["at_ms"]] = None if before is None or lag is None else before + lag
        return lags


def newest_of_groups(places: pa.Table) -> dict[str, int]:
    """Log time of the newest record of each group, from PLACED rows."""
    newest = places.group_by("group_id").aggregate([("log_time_ms", "max")])
    return {row["group_id"]: row["log_time_ms_max"] for row in newest.to_pylist()}
