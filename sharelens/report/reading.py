"""What a report shows of the histories themselves, in one pass over their parts.

Of most share partitions only sums stay: lags at moments, outcomes, the last write. Whole histories stay of the few that
are drawn, and the scalars of those with a trace.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures import lag_over_time as over_time
from measures.delivery_outcomes import outcomes_of
from measures.lag import begins_of
from measures.steps import LAST_OFFSET, Ints, numbered
from sharelens.questions.evidence import Evidence
from sharelens.questions.lake_evidence import LakeEvidence
from sharelens.questions.measure_inputs import Part
from sharelens.questions.measured import Scope
from sharelens.report.raster import ACKNOWLEDGED, ARCHIVED
from sharelens.report.share_partitions import Key, key_of, rows_of_keys
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY, number_keys
from state_model.columnar.schemas import DELIVERY_HISTORY, SHARE_PARTITION_HISTORY
from state_model.share_records import DeliveryState

LINES = 8
SHARE_PARTITIONS_SUMMED = 400
"""Lag over time is summed by group up to so many share partitions; beyond, the worst ones stand for themselves."""
MAPS = 3
HIGHEST_COUNT = 10
OUTCOME = (
    *PLACE_KEY, "life_log_offset", "delivery_state", "delivery_count", "first_offset", "last_offset",
    "valid_from_log_offset", "valid_to_log_offset",
)  # fmt: skip
"""The columns of DELIVERY_HISTORY that tell outcomes."""
DONE = ((DeliveryState.ACKNOWLEDGED, ACKNOWLEDGED), (DeliveryState.ARCHIVED, ARCHIVED))


@dataclass(frozen=True, slots=True, kw_only=True)
class LagLines:
    """Lag over time: AT_MS by line, the largest first. `summed`: a line is a group, else a share partition (Key)."""

    lines: Sequence[tuple[Key | str, Sequence[tuple[int, int | None]]]]
    summed: bool
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows of one share partition that has a map."""

    key: Key
    history: pa.Table
    deliveries: pa.Table


class Reading:
    """Takes the parts of the histories one after the other.

    `written_ms`: log time of the newest record of each group. `outcomes`: offsets by (cell code, delivery count up to
    HIGHEST_COUNT) of the outcomes that end a record's way.
    """

    def __init__(
        self,
        evidence: Evidence,
        ranked: Sequence[Key],
        traced: Iterable[tuple[Key, int]],
        moments: Ints,
        names: Mapping[str, str],
    ) -> None:
        """`ranked`: share partitions, worst first; `traced`: records with a trace; `moments`: epoch ms, ascending."""
        self.written_ms: dict[str, int] = {}
        self.outcomes: dict[tuple[int, int], int] = {}
        self._evidence, self._names, self._moments = evidence, names, moments
        self._ranked = ranked
        self._rank = {key: place for place, key in enumerate(ranked)}
        self._summed = len(ranked) <= SHARE_PARTITIONS_SUMMED
        self._lined = ranked if self._summed else ranked[:LINES]
        self._lags: dict[Key | str, dict[int, int | None]] = {}
        self._drawn: dict[int, Drawn] = {}
        self._traced: dict[Key, pc.Expression] = {}
        for key, offset in traced:
            around = (pc.field("first_offset") <= offset) & (pc.field("last_offset") >= offset)
            self._traced[key] = self._traced[key] | around if key in self._traced else around
        self._history = [SHARE_PARTITION_HISTORY.empty_table()]
        self._deliveries = [DELIVERY_HISTORY.empty_table()]

    def take(self, part: Part) -> None:
        """Notes a part of the share partitions that are not misplaced."""
        written = part.history.group_by("group_id").aggregate([("log_time_ms", "max")])
        for row in written.to_pylist():
            self.written_ms[row["group_id"]] = max(row["log_time_ms_max"], self.written_ms.get(row["group_id"], 0))
        self._take_outcomes(part.deliveries)
        self._take_histories(part)

    def take_lake(self, scope: Scope, evidence: LakeEvidence) -> None:
        """Notes all share partitions that are not misplaced, at the end of a lake's evidence.

        Of most of them nothing but the columns of OUTCOME is read.
        """
        newest = scope.places.group_by("group_id").aggregate([("log_time_ms", "max")])
        self.written_ms = {row["group_id"]: row["log_time_ms_max"] for row in newest.to_pylist()}
        with_deliveries: set[Key] = set()
        for places in scope.stretches():
            ranges = evidence.delivery_ranges(places, OUTCOME)
            self._take_outcomes(ranges)
            with_deliveries.update(
                map(key_of, ranges.select(SHARE_PARTITION_KEY).group_by(SHARE_PARTITION_KEY).aggregate([]).to_pylist())
            )
        drawn = [key for key in self._ranked if key in with_deliveries][:MAPS]
        needed = list(dict.fromkeys([*self._lined, *self._traced, *drawn]))
        for part in scope.only(rows_of_keys(scope.places, needed)).parts():
            self._take_histories(part)

    def _take_outcomes(self, ranges: pa.Table) -> None:
        for outcome, count in outcomes_in(ranges).items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count

    def _take_histories(self, part: Part) -> None:
        self._take_lags(part.history)
        self._draw(part)
        self.trace(part)

    def trace(self, part: Part) -> None:
        """Keeps what traces need of a part, misplaced or not."""
        self._history.append(rows_of_keys(part.history, list(self._traced)))
        for key, around in self._traced.items():
            self._deliveries.append(rows_of_keys(part.deliveries.filter(around), [key]))

    @property
    def traced(self) -> tuple[pa.Table, pa.Table]:
        """SHARE_PARTITION_HISTORY rows of share partitions with a trace, DELIVERY_HISTORY rows around the records."""
        return pa.concat_tables(self._history), pa.concat_tables(self._deliveries)

    @property
    def drawn(self) -> Sequence[Drawn]:
        """The worst share partitions that have any delivery state, MAPS at most."""
        return [self._drawn[rank] for rank in sorted(self._drawn)]

    def _draw(self, part: Part) -> None:
        there = map(
            key_of, part.deliveries.select(SHARE_PARTITION_KEY).group_by(SHARE_PARTITION_KEY).aggregate([]).to_pylist()
        )
        for rank in sorted(self._rank[key] for key in there if key in self._rank)[:MAPS]:
            if len(self._drawn) == MAPS and rank > max(self._drawn):
                break
            key = self._ranked[rank]
            history, deliveries = (rows_of_keys(rows, [key]) for rows in (part.history, part.deliveries))
            self._drawn[rank] = Drawn(key=key, history=history, deliveries=deliveries)
            if len(self._drawn) > MAPS:
                del self._drawn[max(self._drawn)]

    def _take_lags(self, history: pa.Table) -> None:
        history = rows_of_keys(history, self._lined)
        arrivals = over_time.Arrivals()
        for batches in self._evidence.topic_batches(begins_of(history)):
            arrivals.take(batches)
        table = over_time.lag_over_time(history, arrivals, self._moments, self._names)
        for row in table.select([*SHARE_PARTITION_KEY, "at_ms", "lag_inferred"]).to_pylist():
            line = self._lags.setdefault(row["group_id"] if self._summed else key_of(row), {})
            before, lag_now = line.get(row["at_ms"], 0), row["lag_inferred"]
            line[row["at_ms"]] = None if before is None or lag_now is None else before + lag_now

    def lag_lines(self) -> LagLines:
        """Lag at the moments; one at which a part of a sum is unknown is unknown."""
        known = {name: line for name, line in self._lags.items() if any(value is not None for value in line.values())}
        peaks = {name: max(value for value in line.values() if value is not None) for name, line in known.items()}
        chosen = sorted(known, key=lambda name: (-peaks[name], name))[:LINES]
        moments = self._moments.tolist()
        lines = tuple((name, tuple((at, known[name].get(at)) for at in moments)) for name in chosen)
        whole = len(self._lags) if self._summed else len(self._rank)
        return LagLines(lines=lines, summed=self._summed, left_out=whole - len(lines))


def outcomes_in(deliveries: pa.Table) -> dict[tuple[int, int], int]:
    """Offsets by (cell code, delivery count up to HIGHEST_COUNT) of the outcomes in DELIVERY_HISTORY rows."""
    if deliveries.num_rows == 0:
        return {}
    (keys,), _ = number_keys(deliveries)
    places = [
        deliveries.column(column).to_numpy().astype(np.int64) for column in ("state_partition", "life_log_offset")
    ]
    life, _ = numbered(keys, *places)
    outcomes = outcomes_of(deliveries, life)
    size = np.minimum(outcomes.last, LAST_OFFSET) - outcomes.first + 1
    count = np.clip(outcomes.count, 0, HIGHEST_COUNT)
    sums: dict[tuple[int, int], int] = {}
    for state, code in DONE:
        for number in np.unique(count[outcomes.state == state]).tolist():
            sums[code, number] = int(size[(outcomes.state == state) & (count == number)].sum())
    return sums
