"""Offsets without a record for a group, and times of single offsets, from the batch headers of a user topic.

    offsets   0-9 data of producer 7 | 10 ABORT of producer 7 | 11-14 no batch | 15-19 data
              aborted                  control                  absent

Inside a batch compaction may have removed records; a header does not tell which, so those count as records.
"""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.topics.extents import BATCH_COLUMNS, TOPIC_PARTITION, TopicPartition, runs
from state_model.columnar.codes import ints
from state_model.columnar.keys import numbered_partitions
from state_model.columnar.schemas import column

Ints = npt.NDArray[np.int64]
CONTROL, ABSENT, ABORTED = "control", "absent", "aborted"
REASONS = (CONTROL, ABSENT, ABORTED)
LOG_APPEND_TIME = "LogAppendTime"

NO_RECORD = pa.schema(
    [
        *TOPIC_PARTITION,
        column("first_offset", pa.int64(), "first offset of the range", nullable=False),
        column("last_offset", pa.int64(), "last offset of the range (inclusive)", nullable=False),
        column("reason", pa.string(), "control, absent, or aborted (a record, but of an aborted transaction)"),
    ]
)
"""Ranges of offsets that hold no record for a group that reads committed records."""
HEADER_RANGE = pa.schema(
    [
        *TOPIC_PARTITION,
        column("first_offset", pa.int64(), "first offset that a held batch header covers", nullable=False),
        column("last_offset", pa.int64(), "last offset that one covers (inclusive)", nullable=False),
    ]
)
"""The offsets that batch headers cover; other offsets are unknown."""
OFFSET_TIME = pa.schema(
    [
        *TOPIC_PARTITION,
        column("offset", pa.int64(), "the offset that was asked for", nullable=False),
        column("max_timestamp_ms", pa.int64(), "max timestamp of the batch that holds it; null = no such batch"),
        column("timestamp_type", pa.string(), "CreateTime or LogAppendTime; null = no such batch"),
    ]
)


def begins_of(rows: pa.Table) -> dict[TopicPartition, int]:
    """The lowest start offset of each user partition, of rows with topic_id, partition and start_offset.

    A user partition without any start offset is left out: no share group has read it yet.
    """
    partition, partitions = numbered_partitions(rows)
    starts = ints(rows, "start_offset", -1)
    is_named = starts >= 0
    lowest = np.full(len(partitions), np.iinfo(np.int64).max)
    np.minimum.at(lowest, partition[is_named], starts[is_named])
    return {partitions[number]: int(lowest[number]) for number in np.unique(partition[is_named]).tolist()}


class NoRecords:
    """Collects the ranges without records from batch headers, which come by user partition and in offset order.

    Memory: one entry for each range and for each transaction that is still open.
    """

    def __init__(self) -> None:
        self._ranges: list[pa.Table] = []
        self._spans: dict[TopicPartition, tuple[int, int]] = {}
        self._open: dict[TopicPartition, pa.Table] = {}

    @classmethod
    def of(cls, headers: Iterable[pa.Table]) -> "NoRecords":
        """The ranges without records of batch headers that come in bounded tables."""
        no_records = cls()
        for batches in headers:
            no_records.take(batches)
        return no_records

    def take(self, batches: pa.Table) -> None:
        """Adds BATCH_COLUMNS rows, which follow the rows of earlier calls; they may be of several user partitions."""
        if batches.num_rows == 0:
            return
        for partition_batches in runs(batches.select(BATCH_COLUMNS)):
            place = (
                str(partition_batches.column("topic_id")[0].as_py()),
                int(partition_batches.column("partition")[0].as_py()),
            )
            self._note(place, partition_batches)

    def _note(self, place: TopicPartition, partition_batches: pa.Table) -> None:
        bases: Ints = partition_batches.column("base_offset").to_numpy()
        lasts: Ints = partition_batches.column("last_offset").to_numpy()
        before = self._spans.get(place)
        ends = np.concatenate([[bases[0] - 1 if before is None else before[1]], np.maximum.accumulate(lasts)[:-1]])
        holes = np.flatnonzero(bases > ends + 1)
        self._add(place, ends[holes] + 1, bases[holes] - 1, ABSENT)
        control = pc.is_valid(partition_batches.column("control_type")).to_numpy()
        self._add(place, bases[control], lasts[control], CONTROL)
        self._spans[place] = (int(bases[0]) if before is None else before[0], max(int(lasts.max()), int(ends[-1])))
        self._note_aborted(place, partition_batches)

    def _note_aborted(self, place: TopicPartition, partition_batches: pa.Table) -> None:
        """Data of a transaction is aborted when the next marker of its producer says ABORT."""
        transactional = partition_batches.filter(
            pc.or_(partition_batches.column("transactional"), pc.is_valid(partition_batches.column("control_type")))
        )
        waiting = self._open.pop(place, None)
        rows = transactional if waiting is None else pa.concat_tables([waiting, transactional])
        if rows.num_rows == 0:
            return
        rows = rows.sort_by([("producer_id", "ascending"), ("base_offset", "ascending")])
        marker = pc.fill_null(rows.column("control_type"), "").to_numpy(zero_copy_only=False)
        producers: Ints = rows.column("producer_id").to_numpy()
        ends_one = (marker == "COMMIT") | (marker == "ABORT")
        at = np.arange(len(marker))
        following = np.minimum.accumulate(np.where(ends_one, at, len(marker))[::-1])[::-1]
        has_marker = following < len(marker)
        where = np.where(has_marker, following, 0)
        has_marker &= producers[where] == producers
        data = marker == ""
        aborted = data & has_marker & (marker[where] == "ABORT")
        bases, lasts = (rows.column(name).to_numpy()[aborted] for name in ("base_offset", "last_offset"))
        self._add(place, bases, lasts, ABORTED)
        still_open = rows.filter(pa.array(data & ~has_marker))
        if still_open.num_rows:
            self._open[place] = still_open

    def _add(self, place: TopicPartition, firsts: Ints, lasts: Ints, reason: str) -> None:
        if len(firsts):
            count = len(firsts)
            columns = [pa.repeat(place[0], count), pa.array(np.full(count, place[1], np.int32)), firsts, lasts]
            self._ranges.append(pa.table([*columns, pa.repeat(reason, count)], schema=NO_RECORD))

    def ranges(self) -> pa.Table:
        """NO_RECORD rows by user partition and first offset, disjoint."""
        rows = pa.concat_tables([NO_RECORD.empty_table(), *self._ranges])
        return rows.sort_by([(name, "ascending") for name in ("topic_id", "partition", "first_offset")])

    def open_transactions(self) -> dict[TopicPartition, int]:
        """The first offset of the oldest transaction without a marker, by user partition: the last stable offset."""
        return {place: int(pc.min(rows.column("base_offset")).as_py()) for place, rows in self._open.items()}

    def header_ranges(self) -> pa.Table:
        """HEADER_RANGE rows, one a user partition."""
        rows = [(*place, *span) for place, span in sorted(self._spans.items())]
        return pa.Table.from_pylist(
            [dict(zip(HEADER_RANGE.names, row, strict=True)) for row in rows], schema=HEADER_RANGE
        )


class OffsetTimes:
    """Collects the timestamps of given offsets from batch headers, which come in the same order as for NoRecords."""

    def __init__(self, offsets: dict[TopicPartition, Ints]) -> None:
        """`offsets`: ascending offsets without repetition, by user partition."""
        self._offsets = offsets
        self._times: dict[TopicPartition, list[tuple[int, int, str]]] = {}

    def take(self, batches: pa.Table) -> None:
        """Adds BATCH_COLUMNS rows."""
        if batches.num_rows == 0:
            return
        for partition_batches in runs(batches.select(BATCH_COLUMNS)):
            place = (
                str(partition_batches.column("topic_id")[0].as_py()),
                int(partition_batches.column("partition")[0].as_py()),
            )
            offsets = self._offsets.get(place)
            if offsets is None:
                continue
            at = np.searchsorted(partition_batches.column("last_offset").to_numpy(), offsets)
            inside = at < partition_batches.num_rows
            inside[inside] = partition_batches.column("base_offset").to_numpy()[at[inside]] <= offsets[inside]
            rows = partition_batches.select(["max_timestamp_ms", "timestamp_type"]).take(pa.array(at[inside]))
            times = zip(offsets[inside].tolist(), *(part.to_pylist() for part in rows.columns), strict=True)
            self._times.setdefault(place, []).extend(times)

    def table(self) -> pa.Table:
        """OFFSET_TIME rows of the offsets that a batch covers."""
        rows = [
            dict(zip(OFFSET_TIME.names, (*place, *time), strict=True))
            for place, times in sorted(self._times.items())
            for time in times
        ]
        return pa.Table.from_pylist(rows, schema=OFFSET_TIME)


class SampledBatches(NamedTuple):
    """OFFSET_TIME and NO_RECORD rows from single batches, for offsets whose other headers are unknown."""

    times: pa.Table
    no_records: pa.Table


NO_SAMPLES = SampledBatches(times=OFFSET_TIME.empty_table(), no_records=NO_RECORD.empty_table())


def with_sampled(no_records: pa.Table, sampled: pa.Table) -> pa.Table:
    """NO_RECORD rows of the headers and the samples (few), disjoint and in order."""
    rows = pa.concat_tables([no_records, sampled]).sort_by(
        [(name, "ascending") for name in ("topic_id", "partition", "first_offset")]
    )
    disjoint_rows: list[dict[str, Any]] = []
    for row in rows.to_pylist():
        before = (
            disjoint_rows[-1]
            if disjoint_rows and all(disjoint_rows[-1][name] == row[name] for name in ("topic_id", "partition"))
            else None
        )
        first = row["first_offset"] if before is None else max(row["first_offset"], before["last_offset"] + 1)
        if first <= row["last_offset"]:
            disjoint_rows.append(row | {"first_offset": first})
    return pa.Table.from_pylist(disjoint_rows, schema=NO_RECORD)


Spans = Mapping[TopicPartition, tuple[Ints, Ints, npt.NDArray[np.int8]]]
"""By user partition: first offsets, last offsets, and the reasons as places in REASONS."""


def spans_of(ranges: pa.Table) -> Spans:
    """NO_RECORD rows by user partition: first offsets, last offsets, and the reasons as places in REASONS."""
    spans: dict[TopicPartition, tuple[Ints, Ints, npt.NDArray[np.int8]]] = {}
    if ranges.num_rows == 0:
        return spans
    ranges = ranges.combine_chunks()
    topics = pc.dictionary_encode(ranges.column("topic_id")).combine_chunks().indices.to_numpy().astype(np.int64)
    places = (topics << 32) | ranges.column("partition").to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), ranges.num_rows]
    firsts, lasts = (ranges.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    reasons = pc.index_in(ranges.column("reason"), value_set=pa.array(REASONS)).to_numpy().astype(np.int8)
    for begin, end in itertools.pairwise(cuts):
        place = (str(ranges.column("topic_id")[begin].as_py()), int(ranges.column("partition")[begin].as_py()))
        spans[place] = (firsts[begin:end], lasts[begin:end], reasons[begin:end])
    return spans


def news_from(partition_batches: pa.Table, is_new: npt.NDArray[np.bool_]) -> int | None:
    """The lowest offset that new headers of one user partition describe; None without new headers.

    `partition_batches`: BATCH_COLUMNS rows in offset order. A header also describes the gap between it and the one
    before, and an ABORT marker describes the data of its producer before it.
    """
    if not is_new.any():
        return None
    bases: Ints = partition_batches.column("base_offset").to_numpy()
    earlier: Ints = partition_batches.column("last_offset").to_numpy()[: int(np.argmax(is_new))]
    producers: Ints = partition_batches.column("producer_id").to_numpy()
    marker = pc.is_valid(partition_batches.column("control_type")).to_numpy()
    aborts = is_new & pc.fill_null(pc.equal(partition_batches.column("control_type"), "ABORT"), False).to_numpy()
    lowest = int(bases[is_new].min())
    lowest = min(lowest, int(earlier.max()) + 1) if len(earlier) else lowest
    for producer in np.unique(producers[aborts]).tolist():
        is_of_producer = producers == producer
        before = bases[is_of_producer & marker & ~is_new]
        data = bases[is_of_producer & ~marker & (bases > before.max(initial=-1))]
        lowest = min(lowest, int(data.min(initial=lowest)))
    return lowest
