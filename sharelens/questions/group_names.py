"""Records of the group coordinator's log, from log directories."""

from collections.abc import Iterator

import pyarrow as pa

from evidence.group_decoding import decode_groups, topic_names
from kafka_log import reader
from kafka_log.union import LogPartition

SPLIT_BYTES = 64 << 20


def read_group_names(partition: LogPartition, *, include_uncommitted: bool) -> dict[str, str]:
    """Topic names by id from one partition of __consumer_offsets; records that can't be decoded hold none."""
    names: dict[str, str] = {}
    for records in _record_chunks(partition, include_uncommitted):
        names.update(topic_names(records))
    return names


def read_group_records(partition: LogPartition, include_uncommitted: bool) -> Iterator[pa.Table]:
    """GROUP_RECORD rows of one partition of __consumer_offsets, in offset order; what can't be decoded is left out."""
    for records in _record_chunks(partition, include_uncommitted):
        yield decode_groups(records).records


def _record_chunks(partition: LogPartition, include_uncommitted: bool) -> Iterator[pa.Table]:
    """All that can be read of a partition (LOG_RECORD)."""
    begin = min((segment.base_offset for copy in partition.copies for segment in copy.segments), default=0)
    end = reader.readable_end(partition, include_uncommitted=include_uncommitted)
    for part in reader.splits(partition, begin, end, SPLIT_BYTES):
        for chunk in reader.read_split(part, include_uncommitted=include_uncommitted):
            yield pa.Table.from_batches([chunk.records])
