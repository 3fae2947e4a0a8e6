"""The partitions that runs have searched for dead letters, from a lake's books."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from kafka_log.bounds import log_start
from state_model.topics import RECORD_TOPICS

DLQ_PARTITION = pa.schema(
    [
        pa.field("dlq_topic", pa.string()),
        pa.field("dlq_topic_id", pa.string()),
        pa.field("dlq_partition", pa.int32()),
        pa.field("log_start_offset", pa.int64()),
        pa.field("end_offset", pa.int64()),
        pa.field("held_back", pa.int64()),
        pa.field("letters", pa.int64()),
    ]
)
"""A searched partition: the end (exclusive), the offsets above it that were left out, the number of dead letters."""
ORDER = [("dlq_topic", "ascending"), ("dlq_topic_id", "ascending"), ("dlq_partition", "ascending")]


def partitions_in_books(extents: Sequence[dict[str, Any]]) -> pa.Table:
    """DLQ_PARTITION rows from rows of bronze.ingest_extent; rows without an extent of such a topic are left out."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in extents:
        is_ingested = row["status"] == "taken" and row["content"] == "log_record"
        if is_ingested and row["topic"] not in RECORD_TOPICS and not row["source_id"].startswith("rebuild "):
            groups.setdefault((row["topic"], row["topic_id"], row["partition"]), []).append(row)
    rows = []
    for place, mine in groups.items():
        newest = max(mine, key=lambda row: row["run_id"])
        rows.append(
            dict(zip(DLQ_PARTITION.names[:3], place, strict=True))
            | {
                "log_start_offset": log_start((row["log_start_offset"], row["log_start_known"]) for row in mine),
                "end_offset": max(row["end_offset_exclusive"] for row in mine),
                "held_back": newest["held_back"],
                "letters": sum(row["record_count"] for row in mine),
            }
        )
    return partitions_table(rows)


def partitions_table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """DLQ_PARTITION rows by place."""
    return pa.Table.from_pylist(list(rows), schema=DLQ_PARTITION).sort_by(ORDER)
