"""What log directories say of user topics: batch headers in bounded tables, and how far a partition goes."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kafka_log import reader
from kafka_log.schemas import TOPIC_BATCH
from kafka_log.union import LogPartition
from lake.user_topics import ROWS_AT_ONCE, extent
from measures.topics import TOPIC_EXTENT


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
