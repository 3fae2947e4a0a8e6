"""The partitions that runs have searched for dead letters, by the lake's ingest extents."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.kafka_log.bounds import log_start
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
        pa.field("oldest_ms", pa.int64()),
    ]
)
"""A searched partition: the end (exclusive), the offsets above it that were left out, the number of dead letters, and
the timestamp of the oldest one (null: there is none, or the partition begins with offset 0)."""
PLACE = DLQ_PARTITION.names[:3]
ORDER = [(name, "ascending") for name in PLACE]
LETTERS_READ = [*PLACE, "timestamp_ms"]


def partitions_in_books(
    extents: Sequence[dict[str, Any]], read_letters: Callable[[pc.Expression], Iterable[pa.Table]]
) -> pa.Table:
    """DLQ_PARTITION rows from rows of bronze.ingest_extent; rows without an extent of such a topic are left out.

    `read_letters` gives LETTERS_READ columns of silver.dlq_record rows that meet a condition, in bounded tables.
    """
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in extents:
        is_ingested = row["status"] == "taken" and row["content"] == "log_record"
        if is_ingested and row["topic"] not in RECORD_TOPICS and not row["source_id"].startswith("rebuild "):
            groups.setdefault((row["topic"], row["topic_id"], row["partition"]), []).append(row)
    rows = []
    for place, partition_extents in groups.items():
        newest = max(partition_extents, key=lambda row: row["run_id"])
        rows.append(
            dict(zip(PLACE, place, strict=True))
            | {
                "log_start_offset": log_start(
                    (row["log_start_offset"], row["log_start_known"]) for row in partition_extents
                ),
                "end_offset": max(row["end_offset_exclusive"] for row in partition_extents),
                "held_back": newest["held_back"],
                "letters": sum(row["record_count"] for row in partition_extents),
            }
        )
    cut = sorted({row["dlq_topic"] for row in rows if row["log_start_offset"] > 0})
    oldest = _oldest_letters(read_letters(pc.field("dlq_topic").isin(pa.array(cut, pa.string())))) if cut else {}
    return partitions_table(row | {"oldest_ms": oldest.get(tuple(row[name] for name in PLACE))} for row in rows)


def _oldest_letters(tables: Iterable[pa.Table]) -> dict[tuple[Any, ...], int]:
    """The timestamp of the oldest dead letter of each partition, from LETTERS_READ columns."""
    oldest: dict[tuple[Any, ...], int] = {}
    for table in tables:
        for row in table.group_by(PLACE).aggregate([("timestamp_ms", "min")]).to_pylist():
            place, first = tuple(row[name] for name in PLACE), row["timestamp_ms_min"]
            oldest[place] = min(first, oldest.get(place, first))
    return oldest


def partitions_table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """DLQ_PARTITION rows by place."""
    return pa.Table.from_pylist(list(rows), schema=DLQ_PARTITION).sort_by(ORDER)
