"""Batch headers, dead letters and extents of topics in log directories, in bounded tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.reading import read_whole
from sharelens.kafka_log import reader
from sharelens.kafka_log.dead_letter_records import letters_of, typed_letters
from sharelens.kafka_log.schemas import TOPIC_BATCH
from sharelens.kafka_log.union import LogPartition
from sharelens.lake.user_topics import ROWS_AT_ONCE, extent
from sharelens.measures.topics.extents import TOPIC_EXTENT


def batches(partition: LogPartition, begin: int, include_uncommitted: bool) -> Iterator[pa.Table]:
    """TOPIC_BATCH rows of a partition that reach `begin` or lie above, up to where it can be read."""
    end = reader.readable_end(partition, include_uncommitted=include_uncommitted)
    pending: list[pa.RecordBatch] = []
    count = 0
    for headers in reader.scan_batches(partition, begin, end):
        pending.append(headers)
        count += headers.num_rows
        if count >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(pending)
            pending, count = [], 0
    if pending:
        yield pa.Table.from_batches(pending, schema=TOPIC_BATCH)


def extents(partitions: Sequence[LogPartition]) -> pa.Table:
    """TOPIC_EXTENT rows of partitions in log directories."""
    rows = [
        extent(
            (part.topic_id, part.partition),
            part.log_start_offset if part.log_start_known else None,
            part.committed_end,
            reader.readable_end(part, include_uncommitted=True),
        )
        for part in partitions
    ]
    return pa.Table.from_pylist(rows, schema=TOPIC_EXTENT)


def read_letters(partition: LogPartition, include_uncommitted: bool) -> Iterator[pa.Table]:
    """DLQ_RECORD rows of a partition in offset order, in bounded tables; damaged batches are left out."""
    for chunk in read_whole(partition, include_uncommitted=include_uncommitted):
        letters = letters_of(chunk.records, keep_values=False)
        yield typed_letters(pa.Table.from_batches([letters]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LettersSeen:
    """How many dead letters of a partition were read, and the timestamp of the oldest; None: there was none."""

    count: int = 0
    oldest_ms: int | None = None

    def also(self, letters: pa.Table) -> "LettersSeen":
        """The same with these DLQ_RECORD rows."""
        times = (self.oldest_ms, pc.min(letters.column("timestamp_ms")).as_py())
        oldest_ms = min((time for time in times if time is not None), default=None)
        return LettersSeen(count=self.count + letters.num_rows, oldest_ms=oldest_ms)


def partition_row(partition: LogPartition, include_uncommitted: bool, letters: LettersSeen) -> dict[str, Any]:
    """A DLQ_PARTITION row of a partition in log directories."""
    log_end = reader.log_end(partition)
    end = log_end.readable(partition.committed_end, include_uncommitted=include_uncommitted)
    return {
        "dlq_topic": partition.topic,
        "dlq_topic_id": partition.topic_id,
        "dlq_partition": partition.partition,
        "log_start_offset": partition.log_start_offset,
        "end_offset": end,
        "held_back": max(0, log_end.end_offset - end),
        "letters": letters.count,
        "oldest_ms": letters.oldest_ms if partition.log_start_offset > 0 else None,
    }
