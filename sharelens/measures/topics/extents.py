"""How far a user partition goes: its end, its last stable offset, how far it went at a moment, by batch headers alone.

    offsets   0 ... 99 | 100-109 data of producer 7 | 110-119 data of producer 8 | 120 COMMIT of producer 8 | end 121
    last stable offset = 100: the first offset of the oldest transaction without a marker (ProducerStateManager)

Headers hold no more than a batch's own timestamps. Those of CreateTime batches are the producers' clocks, so an end at
an earlier moment is an inference; where every batch says LogAppendTime it is as good as the broker's clock.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.schemas import column

TopicPartition = tuple[str, int]
"""(topic id, partition) of a user partition."""
Ints = npt.NDArray[np.int64]

TOPIC_PARTITION = [
    column("topic_id", pa.string(), "id of the user topic, 22 characters", nullable=False),
    column("partition", pa.int32(), "partition of the user topic", nullable=False),
]
TOPIC_EXTENT = pa.schema(
    [
        *TOPIC_PARTITION,
        column("log_start_offset", pa.int64(), "log start offset; null = no checkpoint told it"),
        column("end_offset", pa.int64(), "first offset after what is committed; null = unknown"),
        column(
            "end_offset_source", pa.string(), "high_watermark (checkpoint, up to 5 s old) or log_end (no such file)"
        ),
    ]
)
"""The extent of a user partition by its books alone, without its headers."""
TOPIC_END = pa.schema(
    [
        *TOPIC_PARTITION,
        column("log_start_offset", pa.int64(), "log start offset; null = no checkpoint told it"),
        column("end_offset", pa.int64(), "end offset as Kafka would list it: the high watermark; null = unknown"),
        column("end_offset_source", pa.string(), "high_watermark, log_end or log_append_time; null = unknown"),
        column(
            "last_stable_offset",
            pa.int64(),
            "oldest open transaction's first offset, else the end; null = unknown",
        ),
        column("newest_batch_ms", pa.int64(), "largest timestamp of a batch that was looked at; null = none was"),
        column("end_offset_inferred", pa.int64(), "end at an earlier moment by the batches' timestamps; else null"),
    ]
)

BATCH_COLUMNS = [
    "topic_id",
    "partition",
    "base_offset",
    "last_offset",
    "max_timestamp_ms",
    "timestamp_type",
    "producer_id",
    "transactional",
    "control_type",
]
"""The columns of a batch header (bronze.topic_batch) that measures read."""


@dataclass(slots=True)
class _HeaderState:
    """The state of one user partition after the headers read so far."""

    newest_ms: int | None = None
    end: int | None = None
    end_at_moment: int | None = None
    beyond_moment: bool = False
    by_broker_clock: bool = True
    open_since: dict[int, int] = field(default_factory=dict)


class EndsFromHeaders:
    """Computes the ends of user partitions from batch headers, which come by user partition and in offset order.

    `as_of_ms`: the moment of the ends; None for the end of the evidence. Memory: one entry for each user partition and
    each open transaction, whatever the number of batches.
    """

    def __init__(self, as_of_ms: int | None = None) -> None:
        self._as_of_ms = as_of_ms
        self._header_states: dict[TopicPartition, _HeaderState] = {}

    def take(self, batches: pa.Table) -> None:
        """Adds BATCH_COLUMNS rows, which follow the rows of earlier calls; they may be of several user partitions."""
        if batches.num_rows == 0:
            return
        for partition_batches in runs(batches):
            place = partition_batches.slice(0, 1).select(["topic_id", "partition"]).to_pylist()[0]
            header_state = self._header_states.setdefault((place["topic_id"], place["partition"]), _HeaderState())
            self._note_ends(header_state, partition_batches)
            _note_transactions(header_state.open_since, partition_batches)

    def _note_ends(self, header_state: _HeaderState, partition_batches: pa.Table) -> None:
        times: Ints = partition_batches.column("max_timestamp_ms").to_numpy()
        lasts: Ints = partition_batches.column("last_offset").to_numpy()
        header_state.newest_ms = max(
            int(times.max()), times.min() if header_state.newest_ms is None else header_state.newest_ms
        )
        header_state.end = int(lasts.max()) + 1
        data = pc.is_null(partition_batches.column("control_type"))
        append_time = pc.equal(partition_batches.column("timestamp_type"), "LogAppendTime")
        header_state.by_broker_clock &= bool(pc.all(pc.or_(append_time, pc.invert(data)), min_count=0).as_py())
        if self._as_of_ms is None or header_state.beyond_moment:
            return
        late = np.flatnonzero(times > self._as_of_ms)
        inside = int(late[0]) if len(late) else len(times)
        header_state.beyond_moment = bool(len(late))
        if inside:
            header_state.end_at_moment = int(lasts[:inside].max()) + 1

    def ends(self, extents: pa.Table) -> pa.Table:
        """TOPIC_END rows, one for each of `extents` (TOPIC_EXTENT), in their order.

        The row of a partition without headers at or above its beginning comes from its extent alone.
        """
        rows = [self._row(extent) for extent in extents.to_pylist()]
        return pa.Table.from_pylist(rows, schema=TOPIC_END)

    def _row(self, extent: Mapping[str, object]) -> dict[str, object]:
        header_state = self._header_states.get((str(extent["topic_id"]), int(str(extent["partition"]))), _HeaderState())
        row = {
            **extent,
            "newest_batch_ms": header_state.newest_ms,
            "last_stable_offset": None,
            "end_offset_inferred": None,
        }
        if self._as_of_ms is None:
            ends = [
                value for value in (extent["end_offset"], *header_state.open_since.values()) if isinstance(value, int)
            ]
            return row | {"last_stable_offset": min(ends) if extent["end_offset"] is not None else None}
        end = header_state.end_at_moment if header_state.beyond_moment else extent["end_offset"]
        if header_state.newest_ms is None:  # no batch at or above the beginning: the partition ended there all the time
            return row | {"end_offset_inferred": end}
        is_end_known = header_state.by_broker_clock and end is not None
        return row | {
            "end_offset": end if is_end_known else None,
            "end_offset_source": "log_append_time" if is_end_known else None,
            "end_offset_inferred": end,
        }


def names_of_topics(topic_ids: pa.ChunkedArray, names: Mapping[str, str]) -> pa.ChunkedArray:
    """The name of each topic id; null where it is unknown."""
    ids = pa.array(list(names), pa.string())
    return pa.array(list(names.values()), pa.string()).take(pc.index_in(topic_ids, value_set=ids))


def topic_partitions(rows: pa.Table) -> list[TopicPartition]:
    """The user partition of each row."""
    topics = rows.column("topic_id").combine_chunks()
    return list(zip(topics.to_pylist(), rows.column("partition").to_pylist(), strict=True))


def runs(batches: pa.Table) -> Iterator[pa.Table]:
    """Slices of headers sorted by user partition, one for each user partition."""
    topics = pc.dictionary_encode(batches.column("topic_id").combine_chunks()).indices.to_numpy().astype(np.int64)
    places = (topics << 32) | batches.column("partition").to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), batches.num_rows]
    for first, end in itertools.pairwise(cuts):
        yield batches.slice(first, end - first)


def _note_transactions(open_since: dict[int, int], partition_batches: pa.Table) -> None:
    """Updates the first offset of each producer's open transaction by headers of one partition, in offset order.

    A control batch ends the transaction of its producer; the epoch does not matter, because a coordinator that fences a
    producer writes the marker of its open transaction first.
    """
    marks = partition_batches.filter(
        pc.is_in(partition_batches.column("control_type"), value_set=pa.array(["COMMIT", "ABORT"]))
    )
    data = partition_batches.filter(
        pc.and_(partition_batches.column("transactional"), pc.is_null(partition_batches.column("control_type")))
    )
    closed = dict(_by_producer(marks, "last_offset", "max"))
    for producer in closed:
        open_since.pop(producer, None)
    if closed and data.num_rows:
        ends = pa.array(list(closed.values()), pa.int64())
        where = pc.index_in(data.column("producer_id"), value_set=pa.array(list(closed), pa.int64()))
        data = data.filter(pc.greater(data.column("base_offset"), pc.fill_null(ends.take(where), -1)))
    for producer, first in _by_producer(data, "base_offset", "min"):
        open_since.setdefault(producer, first)


def _by_producer(rows: pa.Table, name: str, how: str) -> list[tuple[int, int]]:
    totals = rows.group_by("producer_id").aggregate([(name, how)])
    return list(zip(totals.column("producer_id").to_pylist(), totals.column(f"{name}_{how}").to_pylist(), strict=True))
