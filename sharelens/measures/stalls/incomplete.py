"""The first incomplete offset of a share partition over time: the first at or above the start offset that isn't done.

    logged   start 100 |  ACKNOWLEDGED 100-104  | 105 AVAILABLE/2 |  ACKNOWLEDGED 106-199  |
                                                  ^ first incomplete offset; 94 finished behind it

The logged start offset trails the broker's by a write, and stays behind when a group comes to rest (share-partition
§8), so progress is judged on this offset. Three kinds of holes between logged ranges are no record that waits: offsets
absent from the topic, which the broker skips; records of aborted transactions, which it archives in memory for a group
that reads committed records and never logs; and control records that it counts as complete although no range says so.
The last two are passed when the group is known to read committed records (aborted only), or when the logged delivery
complete count is larger than the ranges account for, by at least as much.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.numbers import UNKNOWN, Histories
from sharelens.measures.ranges.places import Places
from sharelens.measures.stalls import incomplete_kernels as kernels
from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.measures.topics.headers import spans_of

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
PAST_COLUMNS = ["since_log_offset", "since_ms", "shown_ms", "earlier_write_ms", "last_write_ms"]
"""The columns of PROGRESS rows with the values PAST_SINCE to PAST_WRITTEN."""
FEW_RECORDS = 64
"""Most intervals that last began within so many records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How long each first incomplete offset stood: rows that point into the history of `histories`.

    `records`: that history as the kernel reads it (OFFSET to SLOWED_FROM).
    `rows` (int64, one row an interval, columns BEGIN to WRITTEN_BEFORE): BEGIN and LATEST are the first and the last
    record of the interval, END the record that ended it. FIRST to THROTTLED are as of LATEST: first and last incomplete
    offset, delivery state and count there, offsets finished behind it, the highest offset logged, offsets delivered so
    often that the broker slows down. WRITTEN: log time of the last write that was no cold snapshot. SHOWN: log time of
    the first record that spoke of the offset or of one behind it. SINCE, SINCE_MS: log offset and time of the first
    record, which lies before BEGIN where the history begins inside the interval. WRITTEN_BEFORE: log time of the last
    write before that record. -1: absent or unknown.
    """

    histories: Histories
    records: Ints
    rows: Ints

    @property
    def history(self) -> pa.Table:
        """The rows that `rows` points into."""
        return self.histories.history


def first_incomplete(
    histories: Histories,
    no_records: pa.Table,
    *,
    reads_committed: Flags | None = None,
    slowed_from: Ints | None = None,
    earlier: pa.Table | None = None,
    only_last: bool = False,
) -> Intervals:
    """The intervals of all share partitions, by share partition and state partition, in log order.

    Args:
        histories: of whole share partitions.
        no_records: sharelens.measures.topics.headers.NO_RECORD rows of their user partitions, as far as known.
        reads_committed: for each record of the history whether its group is known to have had
            share.isolation.level=read_committed then. None: of no record.
        slowed_from: for each record, the delivery count from which the broker slowed delivery down; 0: unknown.
        earlier: PROGRESS rows of share partitions whose rows begin later than their log.
        only_last: those intervals alone that no record ended; this reads few records of each share partition.

    Of such a share partition the delivery history has the ranges that were part of the state from the first row on.
    The interval at its first row began there, or, if `since_log_offset` lies before it, at that record.
    """
    places, records = histories.lookup, records_of(histories.history)
    if reads_committed is not None:
        records[:, kernels.READS_COMMITTED] = reads_committed
    if slowed_from is not None:
        records[:, kernels.SLOWED_FROM] = slowed_from
    evidence = (
        records,
        histories.begins,
        histories.ranges,
        histories.range_begins,
        *_holes(no_records, places),
        _past(earlier, histories, records),
    )
    rows = kernels.walk_last(*evidence, FEW_RECORDS) if only_last else kernels.walk_all(*evidence)
    return Intervals(histories=histories, records=records, rows=rows)


def _holes(no_records: pa.Table, places: Places) -> tuple[Ints, Ints]:
    """The ranges of offsets without records (first, last, place in REASONS), and the slice of each place."""
    spans = spans_of(no_records)
    at: dict[TopicPartition, tuple[int, int]] = {}
    parts = [np.empty((0, 3), np.int64)]
    end = 0
    for place, span in spans.items():
        parts.append(np.stack(span, axis=1).astype(np.int64))
        at[place] = (end, end + len(parts[-1]))
        end += len(parts[-1])
    if not at:
        return parts[0], np.zeros((places.count, 2), np.int64)
    of_place = [at.get(place, (0, 0)) for place in topic_partitions(places.keys)]
    return np.concatenate(parts), np.array(of_place, np.int64).reshape(-1, 2)


def _past(earlier: pa.Table | None, histories: Histories, records: Ints) -> Ints:
    """PAST_COLUMNS of each place: the interval at its first row, if it began before that row; -1: unknown.

    Of other places PAST_WRITTEN alone: log time of the last write before the first row.
    """
    past = np.full((histories.places.num_rows, len(PAST_COLUMNS)), UNKNOWN, np.int64)
    if earlier is None or earlier.num_rows == 0 or len(records) == 0:
        return past
    at = histories.lookup.of(earlier)
    values = [pc.fill_null(earlier.column(name), UNKNOWN).to_numpy() for name in PAST_COLUMNS]
    past[at[at >= 0]] = np.stack(values, axis=1)[at >= 0]
    first = records[np.minimum(histories.begins[:-1], len(records) - 1), kernels.OFFSET]
    begins = past[:, kernels.PAST_SINCE] >= first
    past[begins, kernels.PAST_WRITTEN] = past[begins, kernels.PAST_WRITTEN_BEFORE]
    past[begins, : kernels.PAST_WRITTEN] = UNKNOWN
    return past


def records_of(history: pa.Table) -> Ints:
    """SHARE_PARTITION_HISTORY rows as the kernel reads them, the columns of settings unknown (0).

    A cold snapshot repeats the state and is no write.
    """
    update = pc.equal(history.column("record_type"), "update")
    fresh = pc.and_(
        pc.equal(history.column("record_type"), "snapshot"),
        pc.equal(history.column("create_timestamp_ms"), history.column("write_timestamp_ms")),
    )
    gone = pc.equal(history.column("record_type"), "tombstone")
    columns = [
        history.column("log_offset"),
        history.column("log_time_ms"),
        pc.fill_null(history.column("start_offset"), UNKNOWN),
        pc.fill_null(history.column("delivery_complete_count"), UNKNOWN),
        pc.if_else(gone, UNKNOWN, pc.fill_null(history.column("life_log_offset"), 0)),
        pc.or_(update, pc.fill_null(fresh, False)),
    ]
    records = np.zeros((history.num_rows, kernels.SLOWED_FROM + 1), np.int64)
    for number, column in enumerate(columns):
        records[:, number] = pc.cast(column, pa.int64()).to_numpy()
    return records
