"""What evidence says of user topics: batch headers in bounded tables, and how far a partition goes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log import reader
from kafka_log.schemas import TOPIC_BATCH
from kafka_log.union import LogPartition, log_start
from measures.topics import TOPIC_EXTENT, TopicPartition
from sharelens.questions.evidence import all_of

BATCH_ORDER = [("topic_id", "ascending"), ("partition", "ascending"), ("base_offset", "ascending")]
GROUP_ORDER = [("partition", "ascending"), ("log_offset", "ascending")]
BOOK_COLUMNS = [
    "topic_id",
    "partition",
    "end_offset_exclusive",
    "log_start_offset",
    "log_start_known",
    "committed_end",
    "record_count",
]
HIGH_WATERMARK, LOG_END = "high_watermark", "log_end"
ROWS_AT_ONCE = 1 << 20
"""Batch headers in a table, about; some 150 bytes each."""


def binned(
    begins: Mapping[TopicPartition, int], rows: Mapping[TopicPartition, int]
) -> Iterator[dict[TopicPartition, int]]:
    """Neighbouring user partitions of `begins`, in order, that hold up to ROWS_AT_ONCE `rows` together."""
    group: dict[TopicPartition, int] = {}
    held = 0
    for place in sorted(begins):
        count = rows.get(place, 0)
        if group and held + count > ROWS_AT_ONCE:
            yield group
            group, held = {}, 0
        if count:
            group[place] = begins[place]
            held += count
    if group:
        yield group


def condition(group: Mapping[TopicPartition, int]) -> pc.Expression | None:
    """What a scan can use to find the headers of some user partitions; it may let others through."""
    topics = pa.array(sorted({topic_id for topic_id, _ in group}), pa.string())
    partitions = pa.array(sorted({partition for _, partition in group}), pa.int32())
    return all_of(
        pc.field("topic_id").isin(topics),
        pc.field("partition").isin(partitions),
        pc.field("last_offset") >= min(group.values()),
    )


def from_begins(found: pa.Table, group: Mapping[TopicPartition, int]) -> pa.Table:
    """The headers of exactly these user partitions that reach the beginning asked for."""
    topics = pa.array([topic_id for topic_id, _ in group], pa.string())
    names = pc.unique(topics)
    index = _places(pc.index_in(topics, value_set=names), pa.array([number for _, number in group], pa.int32()))
    order = np.argsort(index)
    begins = np.fromiter(group.values(), np.int64, len(group))[order]
    here = pc.fill_null(pc.index_in(found.column("topic_id"), value_set=names), -1)
    places = _places(here, found.column("partition"))
    at = np.searchsorted(index[order], places).clip(max=len(begins) - 1)
    wanted = (index[order][at] == places) & (found.column("last_offset").to_numpy() >= begins[at])
    return found.filter(pa.array(wanted))


def _places(topics: pa.Array, partitions: pa.Array) -> npt.NDArray[np.int64]:
    """One number for a topic's number and a partition."""
    numbers: npt.NDArray[np.int64] = topics.to_numpy().astype(np.int64)
    places: npt.NDArray[np.int64] = (numbers << 32) | partitions.to_numpy()
    return places


def batches(partition: LogPartition, begin: int, include_uncommitted: bool) -> Iterator[pa.Table]:
    """TOPIC_BATCH rows of a partition that reach `begin` or lie above, up to where it can be read."""
    end = reader.readable_end(partition, include_uncommitted=include_uncommitted)
    pending: list[pa.RecordBatch] = []
    held = 0
    for found in reader.scan_batches(partition, begin, end):
        pending.append(found)
        held += found.num_rows
        if held >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(pending)
            pending, held = [], 0
    if pending:
        yield pa.Table.from_batches(pending, schema=TOPIC_BATCH)


def extents_of_partitions(partitions: Sequence[LogPartition]) -> pa.Table:
    """TOPIC_EXTENT rows of partitions in log directories."""
    rows = [
        _extent(
            (part.topic_id, part.partition),
            part.log_start_offset if part.log_start_known else None,
            part.committed_end,
            reader.readable_end(part, include_uncommitted=True) if part.committed_end is None else None,
        )
        for part in partitions
    ]
    return pa.Table.from_pylist(rows, schema=TOPIC_EXTENT)


def extents_of_books(books: pa.Table, wanted: Iterable[TopicPartition]) -> pa.Table:
    """TOPIC_EXTENT rows from BOOK_COLUMNS of all runs: the maximum over what they were told."""
    asked = set(wanted)
    told: dict[TopicPartition, list[dict[str, Any]]] = {}
    for row in books.to_pylist():
        place = (row["topic_id"], row["partition"])
        if place in asked:
            told.setdefault(place, []).append(row)
    rows = []
    for place in sorted(told):
        committed: list[int | None] = [row["committed_end"] for row in told[place]]
        starts = [row["log_start_offset"] for row in told[place] if row["log_start_known"]]
        rows.append(
            _extent(
                place,
                log_start((start, True) for start in starts) if starts else None,
                max((end for end in committed if end is not None), default=None),
                max(row["end_offset_exclusive"] for row in told[place]),
            )
        )
    return pa.Table.from_pylist(rows, schema=TOPIC_EXTENT)


def _extent(
    place: TopicPartition, start: int | None, committed_end: int | None, log_end: int | None
) -> dict[str, object]:
    known = committed_end is not None
    return {
        "topic_id": place[0],
        "partition": place[1],
        "log_start_offset": start,
        "end_offset": committed_end if known else log_end,
        "end_offset_source": HIGH_WATERMARK if known else LOG_END,
    }
