"""Lag at moments of the past: the state of each moment, and the end of its user partition by the batches' timestamps.

    records of the state log    |start 0    |start 40       |start 40, 25 done
    batches of the topic     |0-49     |50-99        |100-149
    moments                          T1          T2             T3
    lag_inferred                     50          60             85

Every end is an inference: producers set the timestamps (see sharelens.measures.topics.extents).

`lag_over_time` has a row for each moment. `changes` has rows on a grid of minutes, only where a value differs from that
of the minute before; its cost is that of the records and batches, however long the log lasted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.inputs import Inputs
from sharelens.measures.lag import DELETED, NO_COUNT, NO_END_THEN, NO_START
from sharelens.measures.ranges.places import codes_in, places_of
from sharelens.measures.schemas import LAG_OVER_TIME
from sharelens.measures.topics.extents import BATCH_COLUMNS, TopicPartition, names_of_topics, runs, topic_partitions
from sharelens.measures.topics.headers import begins_of
from state_model.columnar.codes import ABOVE_ALL, BELOW_ALL
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_ORDER, number_keys
from state_model.columnar.schemas import SHARE_PARTITION_HISTORY, plain

Ints = npt.NDArray[np.int64]
HISTORY_COLUMNS = [
    *(name for name in SHARE_PARTITION_HISTORY.names if name in LAG_OVER_TIME.names),
    "record_type",
]
"""The columns of SHARE_PARTITION_HISTORY that lag over time needs."""
MOST_ROWS = 1 << 17
MINUTE_MS = 60_000
"""The grid of `changes`."""
VALUES = [
    name for name in LAG_OVER_TIME.names if name not in (*PLACE_KEY, "topic", "at_ms", "log_offset", "log_time_ms")
]
"""The columns by which a row of `changes` differs from the one before."""
TOMBSTONE = "tombstone"
ORDER = [("state_partition", "ascending"), *SHARE_PARTITION_ORDER, ("at_ms", "ascending")]


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


class HistoryAtMoments:
    """Collects what `lag_over_time` needs of a stream of the history: rows at moments, and where user partitions begin.

    `begins`: the smallest start offset of each user partition.
    """

    def __init__(self, moments: Ints) -> None:
        """`moments`: epoch ms, ascending."""
        self._rows = RowsAtMoments(moments)
        self._rows.add(SHARE_PARTITION_HISTORY.empty_table().select(HISTORY_COLUMNS))
        self.begins: dict[TopicPartition, int] = {}

    def add(self, history: pa.Table) -> None:
        """Adds rows (HISTORY_COLUMNS); those of one place come in log order."""
        self._rows.add(history.select(HISTORY_COLUMNS))
        for user_partition, begin in begins_of(history).items():
            self.begins[user_partition] = min(begin, self.begins.get(user_partition, begin))

    def table(self) -> pa.Table:
        """The rows; at most one for each place and moment."""
        return self._rows.table()


class RowsAtMoments:
    """Collects the rows of a stream that are valid at some moments: the last row of each place up to each moment."""

    def __init__(self, moments: Ints) -> None:
        """`moments`: epoch ms, ascending."""
        self._moments = moments
        self._parts: list[pa.Table] = []
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Adds rows with PLACE_KEY and log_time_ms; rows of one place come in log order."""
        self._parts.append(plain(self._last_rows(rows)))
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
    alive = ~_is_tombstone(history)[order]
    counts = np.where(alive, until - first_moment, 0)
    moment = np.repeat(first_moment - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    rows = np.repeat(order, counts)
    user_partitions = zip(keys.column("topic_id").to_pylist(), keys.column("partition").to_pylist(), strict=True)
    ends = np.stack([arrivals.ends(user_partition) for user_partition in user_partitions])
    table = lag_at(history.take(pa.array(rows)), ends[number[rows], moment], moments[moment], names)
    return table.sort_by(ORDER)


def lag_at(rows: pa.Table, ends: Ints, moments: Ints, names: Mapping[str, str]) -> pa.Table:
    """LAG_OVER_TIME rows of HISTORY_COLUMNS rows, each at its moment, with the end of its user partition (-1: unknown).

    A tombstone has no values, and DELETED as the reason.
    """
    is_deleted = _is_tombstone(rows)
    ends = np.where(is_deleted, -1, ends)
    start, count = (
        pc.fill_null(rows.column(name).cast(pa.int64()), -1).to_numpy()
        for name in ("start_offset", "delivery_complete_count")
    )
    ends = np.where(ends >= 0, np.maximum(ends, start), -1)
    lags = ends - start - count
    is_lag_known = (start >= 0) & (count >= 0) & (ends >= 0) & (lags >= 0)
    reasons = [DELETED, NO_START, NO_COUNT, NO_END_THEN]
    codes = np.select([is_deleted, start < 0, count < 0, ~is_lag_known], reasons, "")
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


def _is_tombstone(rows: pa.Table) -> npt.NDArray[np.bool_]:
    result: npt.NDArray[np.bool_] = codes_in(rows.column("record_type"), pa.array([TOMBSTONE])) == 0
    return result


def minutes_of(times_ms: Ints) -> Ints:
    """The first minute of the grid, as epoch ms, that does not lie before each time."""
    return -(-np.minimum(times_ms, np.iinfo(np.int64).max - MINUTE_MS) // MINUTE_MS) * MINUTE_MS


@dataclass(frozen=True, slots=True)
class _Ends:
    """End offsets of a user partition (`ends`) at minutes of the grid at which they changed, ascending."""

    minutes: Ints
    ends: Ints


class ArrivalsByMinute:
    """Computes the end of user partitions at the minutes at which batches arrived, from headers in offset order."""

    def __init__(self) -> None:
        self._parts: dict[TopicPartition, list[_Ends]] = {}
        self._newest: dict[TopicPartition, tuple[int, int]] = {}

    def take(self, batches: pa.Table) -> None:
        """Notes rows with topic_id, partition, base_offset, last_offset and max_timestamp_ms."""
        for rows in runs(batches) if batches.num_rows else ():
            (place,) = topic_partitions(rows.slice(0, 1))
            floor_ms, floor = self._newest.get(place, (BELOW_ALL, -1))
            # Batches are in offset order: a batch whose timestamp is lower than an earlier one arrived with that.
            times = np.maximum(np.maximum.accumulate(rows.column("max_timestamp_ms").to_numpy()), floor_ms)
            ends = np.maximum(np.maximum.accumulate(rows.column("last_offset").to_numpy()) + 1, floor)
            minutes = minutes_of(times)
            is_last = np.append(minutes[1:] != minutes[:-1], True)
            self._parts.setdefault(place, []).append(_Ends(minutes[is_last], ends[is_last]))
            self._newest[place] = int(times[-1]), int(ends[-1])

    def ends(self, place: TopicPartition) -> _Ends:
        """The ends of a user partition; a minute may come twice, the last one counts."""
        parts = self._parts.get(place, [])
        return _Ends(
            *(
                np.concatenate([np.empty(0, np.int64), *values])
                for values in ([part.minutes for part in parts], [part.ends for part in parts])
            )
        )


class FirstArrival:
    """Computes from which time on new headers of a user partition change its end; headers come in offset order.

    offsets        0-9     10-19 (new)   20-29
    timestamps     10:00   10:05         10:03: arrived by 10:03 before, by 10:05 now; so 10:00 on
    """

    def __init__(self) -> None:
        self.time_ms = ABOVE_ALL
        self._newest_ms = self._before_ms = BELOW_ALL
        self._has_new = False

    def take(self, batches: pa.Table, is_new: npt.NDArray[np.bool_]) -> None:
        """Notes headers with max_timestamp_ms; `is_new`: which of them are."""
        times = np.maximum(np.maximum.accumulate(batches.column("max_timestamp_ms").to_numpy()), self._newest_ms)
        first = 0
        if not self._has_new and is_new.any():
            self._has_new, first = True, int(np.argmax(is_new))
            self.time_ms = int(times[first])
            self._before_ms = int(times[first - 1]) if first else self._newest_ms
        # Behind a new header earlier ones may have arrived later than they seemed to.
        if self._has_new and not is_new[first:].all():
            self.time_ms = self._before_ms
        self._newest_ms = int(times[-1])


def rows(inputs: Inputs) -> pa.Table:
    """LAG_OVER_TIME rows as `changes` has them, of all headers from the lowest start offset on."""
    arrivals = ArrivalsByMinute()
    for batches in inputs.headers(inputs.lowest_offsets()):
        arrivals.take(batches.select(BATCH_COLUMNS))
    return changes(inputs.history(), arrivals, inputs.names())


def changes(history: pa.Table, arrivals: ArrivalsByMinute, names: Mapping[str, str]) -> pa.Table:
    """LAG_OVER_TIME rows at minutes of log time: where a value differs from that of the minute before.

    A row holds until the next one of its share partition. A deleted share partition has one row with the reason
    DELETED; it has none before its first record.

    Args:
        history: HISTORY_COLUMNS rows in any order.
        arrivals: the headers of the user partitions, from the smallest start offset in `history` on.
        names: topic names by id, as far as known.

    Returns:
        Rows by state partition, share partition and minute.
    """
    if history.num_rows == 0:
        return LAG_OVER_TIME.empty_table()
    (number,), places = places_of(history)
    minute = minutes_of(history.column("log_time_ms").to_numpy())
    order = np.lexsort((history.column("log_offset").to_numpy(), number))
    number, minute = number[order], minute[order]
    # Log time never falls in a state partition: the last record of a minute is the last one in the order of the log.
    is_last = np.append((number[1:] != number[:-1]) | (minute[1:] != minute[:-1]), True)
    arrived, arrived_minute, ends = _arrivals_of(topic_partitions(places.keys), arrivals)
    at = np.concatenate([number[is_last], arrived])
    moments = np.concatenate([minute[is_last], arrived_minute])
    row = np.concatenate([order[is_last], np.full(len(arrived), -1)])
    end = np.concatenate([np.full(int(is_last.sum()), -1), ends])
    in_order = np.lexsort((moments, at))
    at, moments = at[in_order], moments[in_order]
    row, end = (_carried(values[in_order], at) for values in (row, end))
    is_known = (row >= 0) & np.append((at[1:] != at[:-1]) | (moments[1:] != moments[:-1]), True)
    table = lag_at(history.take(pa.array(row[is_known])), end[is_known], moments[is_known], names)
    return without_repeats(table.sort_by(ORDER))


def _arrivals_of(partitions: list[TopicPartition], arrivals: ArrivalsByMinute) -> tuple[Ints, Ints, Ints]:
    """For each share partition (by number) the minutes and ends of its user partition."""
    parts = [arrivals.ends(place) for place in partitions]
    number = np.repeat(np.arange(len(parts)), [len(part.minutes) for part in parts])
    none = np.empty(0, np.int64)
    minutes = np.concatenate([none, *(part.minutes for part in parts)])
    return number, minutes, np.concatenate([none, *(part.ends for part in parts)])


def _carried(values: Ints, at: Ints) -> Ints:
    """The values, and where one is -1, the last other one before it with the same `at`, which ascends."""
    last = np.maximum.accumulate(np.where(values >= 0, np.arange(len(values)), -1))
    first = np.searchsorted(at, at, "left")
    return np.where(last >= first, values[last.clip(min=0)], -1)


def without_repeats(table: pa.Table) -> pa.Table:
    """The rows that differ from the one before in VALUES; rows of a share partition stand together, by minute."""
    if table.num_rows == 0:
        return table
    differs = np.zeros(table.num_rows - 1, np.bool_)
    for name in (*PLACE_KEY, *VALUES):
        values = table.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.cast(pa.string())
        row, before = values.slice(1), values.slice(0, table.num_rows - 1)
        is_other = pc.coalesce(pc.not_equal(row, before), pc.xor(pc.is_null(row), pc.is_null(before)))
        differs |= is_other.to_numpy()
    return table.filter(pa.array(np.append(True, differs)))
