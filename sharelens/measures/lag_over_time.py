"""Lag at moments of the past: the state of each moment, and the end of its user partition by the batches' timestamps.

    records of the state log    |start 0    |start 40       |start 40, 25 done
    batches of the topic     |0-49     |50-99        |100-149
    moments                          T1          T2             T3
    lag_inferred                     50          60             85

Every end is an inference: producers set the timestamps (see sharelens.measures.topics.extents).
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.lag import NO_COUNT, NO_END_THEN, NO_START
from sharelens.measures.ranges.places import places_of
from sharelens.measures.schemas import LAG_OVER_TIME
from sharelens.measures.topics.extents import TopicPartition, names_of_topics, runs
from state_model.columnar.keys import SHARE_PARTITION_ORDER, number_keys
from state_model.columnar.schemas import SHARE_PARTITION_HISTORY

Ints = npt.NDArray[np.int64]
HISTORY_COLUMNS = [
    *(name for name in SHARE_PARTITION_HISTORY.names if name in LAG_OVER_TIME.names),
    "record_type",
]
"""The columns of SHARE_PARTITION_HISTORY that lag over time needs."""
MOST_ROWS = 1 << 17


class Arrivals:
    """Computes the end of user partitions at some moments from batch headers, which come in offset order.

    Keeps one offset for each user partition and moment.
    """

    def __init__(self, moments: Ints) -> None:
        """`moments`: epoch ms, ascending."""
        self._moments = moments
        self._ends: dict[TopicPartition, Ints] = {}
        self._newest_ms: dict[TopicPartition, int] = {}

    def take(self, batches: pa.Table) -> None:
        """Notes rows with topic_id, partition, base_offset, last_offset and max_timestamp_ms."""
        if batches.num_rows == 0:
            return
        for partition_batches in runs(batches):
            row = partition_batches.slice(0, 1).select(["topic_id", "partition"]).to_pylist()[0]
            place = row["topic_id"], row["partition"]
            floor = self._newest_ms.get(place, np.iinfo(np.int64).min)
            times = np.maximum(np.maximum.accumulate(partition_batches.column("max_timestamp_ms").to_numpy()), floor)
            ends = np.maximum.accumulate(partition_batches.column("last_offset").to_numpy()) + 1
            at = np.searchsorted(times, self._moments, "right") - 1
            self._ends[place] = np.where(at >= 0, ends[at.clip(min=0)], self.ends(place))
            self._newest_ms[place] = int(times[-1])

    def ends(self, place: TopicPartition) -> Ints:
        """End offset at each moment; -1 before the first header, and of a partition without any."""
        ends = self._ends.get(place)
        return np.full(len(self._moments), -1, np.int64) if ends is None else ends


class RowsAtMoments:
    """Collects the rows of a stream that are valid at some moments: the last row of each place up to each moment."""

    def __init__(self, moments: Ints) -> None:
        """`moments`: epoch ms, ascending."""
        self._moments = moments
        self._parts: list[pa.Table] = []
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Adds rows with PLACE_KEY and log_time_ms; rows of one place come in log order."""
        self._parts.append(self._last_rows(rows))
        self._rows += self._parts[-1].num_rows
        if self._rows > MOST_ROWS and len(self._parts) > 1:
            self._parts = [self.table()]
            self._rows = self._parts[0].num_rows

    def table(self) -> pa.Table:
        """The collected rows; rows of one place in log order, at most one for each place and moment."""
        return self._last_rows(pa.concat_tables(self._parts))

    def _last_rows(self, rows: pa.Table) -> pa.Table:
        """The last row of a place between each two moments; none behind the last moment."""
        moment = np.searchsorted(self._moments, rows.column("log_time_ms").to_numpy(), "left")
        is_early = moment < len(self._moments)
        if not is_early.all():
            rows, moment = rows.filter(pa.array(is_early)), moment[is_early]
        if rows.num_rows == 0:
            return rows
        (place,), places = places_of(rows)
        first = int(moment.min())
        width = int(moment.max()) - first + 1
        last = np.full(places.count * width, -1, np.int64)
        last[place * width + moment - first] = np.arange(rows.num_rows)
        is_last = np.zeros(rows.num_rows, np.bool_)
        is_last[last[last >= 0]] = True
        return rows.filter(pa.array(is_last)).combine_chunks()


def lag_over_time(history: pa.Table, arrivals: Arrivals, moments: Ints, names: Mapping[str, str]) -> pa.Table:
    """LAG_OVER_TIME rows: one a moment at which a share partition was alive; by state partition, key, moment.

    Args:
        history: HISTORY_COLUMNS rows, each share partition in log order; those that `RowsAtMoments` keeps are enough.
        arrivals: the headers of the user partitions, from the smallest start offset in `history` on, at the moments.
        moments: epoch ms, ascending; the number of rows is at most theirs times that of share partitions.
        names: topic names by id, as far as known.
    """
    if history.num_rows == 0:
        return LAG_OVER_TIME.empty_table()
    (number,), keys = number_keys(history)
    place = (number << 31) | history.column("state_partition").to_numpy()
    order = np.argsort(place, kind="stable")
    place, first_moment = (
        place[order],
        np.searchsorted(moments, history.column("log_time_ms").to_numpy()[order], "left"),
    )
    until = np.append(np.where(place[1:] == place[:-1], first_moment[1:], len(moments)), len(moments))
    alive = pc.not_equal(history.column("record_type"), "tombstone").to_numpy(zero_copy_only=False)[order]
    counts = np.where(alive, until - first_moment, 0)
    moment = np.repeat(first_moment - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    rows = np.repeat(order, counts)
    user_partitions = zip(keys.column("topic_id").to_pylist(), keys.column("partition").to_pylist(), strict=True)
    ends = np.stack([arrivals.ends(user_partition) for user_partition in user_partitions])
    table = _measured(history.take(pa.array(rows)), ends[number[rows], moment], moments[moment], names)
    return table.sort_by([("state_partition", "ascending"), *SHARE_PARTITION_ORDER, ("at_ms", "ascending")])


def _measured(rows: pa.Table, ends: Ints, moments: Ints, names: Mapping[str, str]) -> pa.Table:
    """LAG_OVER_TIME rows of history rows, each at its moment, with the end of its user partition (-1: unknown)."""
    start, count = (
        pc.fill_null(rows.column(name).cast(pa.int64()), -1).to_numpy()
        for name in ("start_offset", "delivery_complete_count")
    )
    ends = np.where(ends >= 0, np.maximum(ends, start), -1)
    lags = ends - start - count
    is_lag_known = (start >= 0) & (count >= 0) & (ends >= 0) & (lags >= 0)
    codes = np.select([start < 0, count < 0, ~is_lag_known], [NO_START, NO_COUNT, NO_END_THEN], "")
    columns = {
        "topic": names_of_topics(rows.column("topic_id"), names),
        "at_ms": pa.array(moments, pa.int64()),
        "end_offset_inferred": pa.array(ends, pa.int64(), mask=ends < 0),
        "lag_inferred": pa.array(lags, pa.int64(), mask=~is_lag_known),
        "unknown_reason": pa.array(codes.tolist(), pa.string(), mask=codes == ""),
    }
    names = LAG_OVER_TIME.names
    table = pa.table([columns[name] if name in columns else rows.column(name) for name in names], names=names)
    return table.cast(LAG_OVER_TIME)
