"""Records of the group coordinator's log, from log directories."""

from collections.abc import Iterator

import pyarrow as pa

from evidence.group_decoding import decode_groups, topic_names
from evidence.reading import read_whole
from kafka_log.union import LogPartition


def read_group_names(partition: LogPartition, *, include_uncommitted: bool) -> dict[str, str]:
    """Topic names by id from one partition of __consumer_offsets; records that can't be decoded hold none."""
    names: dict[str, str] = {}
    for chunk in read_whole(partition, include_uncommitted=include_uncommitted):
        names.update(topic_names(pa.Table.from_batches([chunk.records])))
    return names


def read_group_records(partition: LogPartition, include_uncommitted: bool) -> Iterator[pa.Table]:
    """GROUP_RECORD rows of one partition of __consumer_offsets, in offset order; what can't be decoded is left out."""
    for chunk in read_whole(partition, include_uncommitted=include_uncommitted):
        yield decode_groups(pa.Table.from_batches([chunk.records])).records
