"""Topic names that the group coordinator's log tells, for topics whose folders are gone."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_log import reader
from kafka_log.union import LogPartition
from state_model import group_records
from state_model.errors import DecodeError

STATE_PARTITION_METADATA = 15
"""Record type ShareGroupStatePartitionMetadata: the only group record that names topics beside their ids."""
KEY_BEGIN = STATE_PARTITION_METADATA.to_bytes(2, "big")
UNKNOWN_TOPIC = "<UNKNOWN>"
"""What the group coordinator writes for the name of a topic that is gone."""
SPLIT_BYTES = 64 << 20


def read_group_names(partition: LogPartition, *, include_uncommitted: bool) -> dict[str, str]:
    """Topic names by id from one partition of __consumer_offsets; what can't be decoded tells nothing."""
    names: dict[str, str] = {}
    for records in _record_chunks(partition, include_uncommitted):
        for row in _naming_rows(records):
            names.update(_names_in(row["key"], row["value"]))
    return names


def read_group_records(partition: LogPartition, include_uncommitted: bool) -> Iterator[pa.Table]:
    """GROUP_RECORD rows of one partition of __consumer_offsets, in offset order; what can't be decoded is left out."""
    from jobs.decode.group_records import decode_groups

    for records in _record_chunks(partition, include_uncommitted):
        yield decode_groups(pa.Table.from_batches([records])).records


def _record_chunks(partition: LogPartition, include_uncommitted: bool) -> Iterator[pa.RecordBatch]:
    """All that can be read of a partition (LOG_RECORD)."""
    begin = min((segment.base_offset for copy in partition.copies for segment in copy.segments), default=0)
    end = reader.readable_end(partition, include_uncommitted=include_uncommitted)
    for part in reader.splits(partition, begin, end, SPLIT_BYTES):
        for chunk in reader.read_split(part, include_uncommitted=include_uncommitted):
            yield chunk.records


def _naming_rows(records: pa.RecordBatch) -> list[dict[str, Any]]:
    begins = pc.equal(pc.binary_slice(records.column("key"), 0, 2), pa.scalar(KEY_BEGIN))
    wanted = pc.and_(pc.fill_null(begins, False), pc.invert(records.column("is_control")))
    rows: list[dict[str, Any]] = records.select(["key", "value"]).filter(wanted).to_pylist()
    return rows


def _names_in(key: bytes, value: bytes | None) -> Iterator[tuple[str, str]]:
    try:
        record = group_records.decode_record(key, value)
    except DecodeError:
        return
    held = getattr(record, "value", None) or {}
    for entries in held.values():
        for entry in entries if isinstance(entries, list | tuple) else ():
            if isinstance(entry, dict) and entry.get("topic_name") not in (None, UNKNOWN_TOPIC):
                yield str(entry["topic_id"]), str(entry["topic_name"])
