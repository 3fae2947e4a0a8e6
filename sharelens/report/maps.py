"""Collects the rows for the map of a share partition from streams of its histories."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.lag_over_time import Arrivals
from sharelens.measures.ranges.steps import Ints
from sharelens.questions.answers.share_partitions import Key
from sharelens.report import raster
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_topic_batches
from state_model.columnar.schemas import DELIVERY_HISTORY

HISTORY_COLUMNS = ("log_time_ms", "start_offset")
"""The columns of SHARE_PARTITION_HISTORY that a map needs."""
DELIVERY_COLUMNS = (
    "first_offset", "last_offset", "delivery_state", "delivery_count", "valid_from_ms", "valid_to_ms",
)  # fmt: skip
"""The columns of DELIVERY_HISTORY that a map needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A share partition that has a map, over the log times `from_ms` to `to_ms`.

    `low` to `high`: the record offsets that had a delivery state in this time (half-open). `starts`: the start offset
    at `raster.moments`, -1 where there is none; `least_start`: the smallest one of all records. `deliveries`: the
    DELIVERY_COLUMNS rows that a map shows.
    """

    key: Key
    from_ms: int
    to_ms: int
    low: int
    high: int
    starts: Ints
    least_start: int | None
    deliveries: pa.Table

    def ends(self, evidence: Tables) -> Ints:
        """The end offset of the user partition at `raster.moments` by the batches' timestamps; -1: not known."""
        arrivals = Arrivals(raster.moments(self.from_ms, self.to_ms))
        place = self.key[1:]
        if self.least_start is not None:
            for batches in read_topic_batches(evidence, {place: self.least_start}):
                arrivals.take(batches)
        return arrivals.ends(place)


class MapReading:
    """Collects the map of a share partition: the history first, then the deliveries."""

    def __init__(self, key: Key, from_ms: int, to_ms: int) -> None:
        """`from_ms` to `to_ms`: the time that the charts of the report show."""
        self._key = key
        self._from_ms, self._until_ms = from_ms, to_ms
        self._starts: Ints | None = None
        self._least_start: int | None = None
        self._bounds: Mapping[bool, tuple[int, int]] = {}
        self._visible = [DELIVERY_HISTORY.empty_table().select(DELIVERY_COLUMNS)]

    @property
    def _to_ms(self) -> int:
        return max(self._until_ms, self._from_ms + 1)

    def add_history(self, rows: pa.Table) -> None:
        """Adds HISTORY_COLUMNS rows, in log order."""
        if rows.num_rows == 0:
            return
        times = rows.column("log_time_ms").to_numpy()
        if self._starts is None:
            self._from_ms = max(self._from_ms, min(int(times[0]), self._until_ms - 1))
            self._starts = np.full(raster.COLUMNS + 1, -1, np.int64)
        starts = pc.fill_null(rows.column("start_offset"), -1).to_numpy()
        at = np.searchsorted(times, raster.moments(self._from_ms, self._to_ms), "right") - 1
        self._starts = np.where(at >= 0, starts[at.clip(min=0)], self._starts)
        least = starts[starts >= 0].min(initial=np.iinfo(np.int64).max)
        if least < np.iinfo(np.int64).max and (self._least_start is None or least < self._least_start):
            self._least_start = int(least)

    def add_deliveries(self, rows: pa.Table) -> None:
        """Adds DELIVERY_COLUMNS rows, in any order."""
        if rows.num_rows == 0:
            return
        begun, first, last = (rows.column(name).to_numpy() for name in ("valid_from_ms", "first_offset", "last_offset"))
        ended = pc.fill_null(rows.column("valid_to_ms"), raster.STILL).to_numpy()
        is_inside = (begun <= self._until_ms) & (ended >= self._from_ms)
        bounds = dict(self._bounds)
        for inside in {True, False} & set(is_inside.tolist()):
            low, high = int(first[is_inside == inside].min()), int(last[is_inside == inside].max()) + 1
            before = bounds.get(inside, (low, high))
            bounds[inside] = min(low, before[0]), max(high, before[1])
        self._bounds = bounds
        is_visible = raster.is_visible(begun, ended, self._from_ms, self._to_ms)
        self._visible.append(rows.select(DELIVERY_COLUMNS).filter(pa.array(is_visible)).combine_chunks())

    def drawn(self) -> Drawn:
        """The collected rows; there was a delivery."""
        low, high = self._bounds.get(True) or self._bounds[False]
        starts = np.full(raster.COLUMNS + 1, -1, np.int64) if self._starts is None else self._starts
        return Drawn(
            key=self._key,
            from_ms=self._from_ms,
            to_ms=self._to_ms,
            low=low,
            high=high,
            starts=starts,
            least_start=self._least_start,
            deliveries=pa.concat_tables(self._visible),
        )
