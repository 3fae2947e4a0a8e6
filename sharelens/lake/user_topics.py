"""User topics of a lake: their batch headers in bounded tables, and the extents of their partitions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.kafka_log.bounds import highest_committed_end, log_start
from sharelens.measures.ranges.sums import sums_by
from sharelens.measures.topics.extents import TOPIC_EXTENT, TopicPartition
from state_model.columnar.codes import ints
from state_model.columnar.keys import numbered_partitions

Scan = Callable[[str, list[str], pc.Expression], pa.Table]
"""Rows of a table with these columns that meet a condition, those of one cluster alone."""

BATCH_ORDER = [("topic_id", "ascending"), ("partition", "ascending"), ("base_offset", "ascending")]
BOOK_COLUMNS = [
    "topic_id",
    "partition",
    "end_offset_exclusive",
    "held_back",
    "log_start_offset",
    "log_start_known",
    "committed_end",
    "record_count",
]
HIGH_WATERMARK, LOG_END = "high_watermark", "log_end"
ROWS_AT_ONCE = 1 << 20
"""Batch headers in a table, about; some 150 bytes each."""


def books(scan: Scan) -> pa.Table:
    """BOOK_COLUMNS of all runs: the extents of user partitions that they took."""
    condition = (pc.field("content") == "topic_batch") & (pc.field("status") == "taken")
    return scan("bronze.ingest_extent", BOOK_COLUMNS, condition)


def newest_topic(scan: Scan, topic_ids: Sequence[str]) -> str | None:
    """The one of these topic ids whose extents were read last; None if several were, and without an extent.

    The time of a source decides before the run: a copy may be read after a newer one.
    """
    condition = (pc.field("content") == "topic_batch") & pc.field("topic_id").isin(pa.array(topic_ids, pa.string()))
    rows = scan("bronze.ingest_extent", ["topic_id", "read_until_ms", "run_id"], condition).to_pylist()
    newest = max(((row["read_until_ms"] or 0, row["run_id"]) for row in rows), default=None)
    ids = {row["topic_id"] for row in rows if (row["read_until_ms"] or 0, row["run_id"]) == newest}
    return ids.pop() if len(ids) == 1 else None


def batches(
    scan: Scan, extent_rows: pa.Table, begins: Mapping[TopicPartition, int], columns: list[str]
) -> Iterator[pa.Table]:
    """Headers that reach the beginnings or lie above, by (topic id, partition), then in offset order.

    `extent_rows`: the books. `columns` names topic_id, partition, base_offset and last_offset among others.
    """
    for group in _binned(begins, _row_counts(extent_rows)):
        headers = scan("bronze.topic_batch", columns, _condition(group))
        yield _from_begins(headers, group).sort_by(BATCH_ORDER)


def names(scan: Scan, where: pc.Expression) -> dict[str, str]:
    """The newest name of each topic id, of the rows of silver.name that meet a condition."""
    rows = scan("silver.name", ["topic_id", "topic", "run_id"], where).sort_by("run_id")
    return dict(zip(rows.column("topic_id").to_pylist(), rows.column("topic").to_pylist(), strict=True))


def _row_counts(extent_rows: pa.Table) -> dict[TopicPartition, int]:
    partition, partitions = numbered_partitions(extent_rows)
    counts = sums_by(partition, ints(extent_rows, "record_count", 0), len(partitions))
    return dict(zip(partitions, counts.tolist(), strict=True))


def _binned(
    begins: Mapping[TopicPartition, int], rows: Mapping[TopicPartition, int]
) -> Iterator[dict[TopicPartition, int]]:
    """Neighbouring user partitions of `begins`, in order, that hold up to ROWS_AT_ONCE `rows` together."""
    group: dict[TopicPartition, int] = {}
    group_rows = 0
    for place in sorted(begins):
        count = rows.get(place, 0)
        if group and group_rows + count > ROWS_AT_ONCE:
            yield group
            group, group_rows = {}, 0
        if count:
            group[place] = begins[place]
            group_rows += count
    if group:
        yield group


def _condition(group: Mapping[TopicPartition, int]) -> pc.Expression:
    """A condition for the headers of some user partitions; further headers may meet it."""
    topics = pa.array(sorted({topic_id for topic_id, _ in group}), pa.string())
    partitions = pa.array(sorted({partition for _, partition in group}), pa.int32())
    in_partitions: pc.Expression = pc.field("topic_id").isin(topics) & pc.field("partition").isin(partitions)
    return in_partitions & (pc.field("last_offset") >= min(group.values()))


def _from_begins(headers: pa.Table, group: Mapping[TopicPartition, int]) -> pa.Table:
    """The headers of these user partitions that reach the beginning of each."""
    topics = pa.array([topic_id for topic_id, _ in group], pa.string())
    names = pc.unique(topics)
    index = _places(pc.index_in(topics, value_set=names), pa.array([number for _, number in group], pa.int32()))
    order = np.argsort(index)
    begins = np.fromiter(group.values(), np.int64, len(group))[order]
    topic_index = pc.fill_null(pc.index_in(headers.column("topic_id"), value_set=names), -1)
    places = _places(topic_index, headers.column("partition"))
    at = np.searchsorted(index[order], places).clip(max=len(begins) - 1)
    reaches = (index[order][at] == places) & (headers.column("last_offset").to_numpy() >= begins[at])
    return headers.filter(pa.array(reaches))


def _places(topics: pa.Array, partitions: pa.Array) -> npt.NDArray[np.int64]:
    """A topic's number and a partition, packed into one integer."""
    numbers: npt.NDArray[np.int64] = topics.to_numpy().astype(np.int64)
    places: npt.NDArray[np.int64] = (numbers << 32) | partitions.to_numpy()
    return places


def extents(extent_rows: pa.Table, partitions: Iterable[TopicPartition]) -> pa.Table:
    """TOPIC_EXTENT rows from the books, by (topic id, partition): the maximum over all runs."""
    selected = set(partitions)
    rows_of: dict[TopicPartition, list[dict[str, Any]]] = {}
    for row in extent_rows.to_pylist():
        place = (row["topic_id"], row["partition"])
        if place in selected:
            rows_of.setdefault(place, []).append(row)
    rows = []
    for place in sorted(rows_of):
        starts = [row["log_start_offset"] for row in rows_of[place] if row["log_start_known"]]
        rows.append(
            extent(
                place,
                log_start((start, True) for start in starts) if starts else None,
                highest_committed_end(row["committed_end"] for row in rows_of[place]),
                max(row["end_offset_exclusive"] + row["held_back"] for row in rows_of[place]),
            )
        )
    return pa.Table.from_pylist(rows, schema=TOPIC_EXTENT)


def extent(place: TopicPartition, start: int | None, committed_end: int | None, log_end: int) -> dict[str, object]:
    """A TOPIC_EXTENT row: the high watermark, or the end of the log where there is no such checkpoint.

    A high watermark of 0 also stands for a checkpoint without a line for the partition: for a log with records it
    is unknown. `log_end`: where the log ends, committed or not.
    """
    end: int | None = committed_end or log_end
    source: str | None = HIGH_WATERMARK if committed_end else LOG_END
    if committed_end == 0 and log_end:
        end, source = None, None
    return {
        "topic_id": place[0],
        "partition": place[1],
        "log_start_offset": start,
        "end_offset": end,
        "end_offset_source": source,
    }
