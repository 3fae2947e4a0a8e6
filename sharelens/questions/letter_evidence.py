"""What evidence says of dead letters: which of them are wanted, and the partitions that were looked into."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.dead_letters import DLQ_RECORD
from kafka_log.union import log_start

LETTER_ORDER = [
    ("dlq_topic", "ascending"), ("dlq_topic_id", "ascending"), ("dlq_partition", "ascending"),
    ("dlq_offset", "ascending"),
]  # fmt: skip
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
"""A partition that was looked into: up to where (exclusive), offsets above that were left out, dead letters found."""
INTERNAL_CONTENT = ("__share_group_state", "__consumer_offsets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """Which dead letters are wanted, by their headers; None puts no condition. `topics`: names or ids as written."""

    groups: frozenset[str] | None = None
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset: int | None = None

    def expression(self) -> pc.Expression | None:
        """The condition on group_id, topic, partition and offset; None when there is none."""
        found: pc.Expression | None = None
        for name, wanted, kind in (
            ("group_id", self.groups, pa.string()),
            ("topic", self.topics, pa.string()),
            ("partition", self.partitions, pa.int32()),
            ("offset", None if self.offset is None else {self.offset}, pa.int64()),
        ):
            if wanted is not None:
                part = pc.field(name).isin(pa.array(sorted(wanted), kind))
                found = part if found is None else found & part
        return found


def partitions_in_books(extents: Sequence[dict[str, Any]]) -> pa.Table:
    """DLQ_PARTITION rows from taken extents of log records; those of internal topics are left out."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in extents:
        if row["topic"] not in INTERNAL_CONTENT and not str(row["source_id"]).startswith("rebuild "):
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
    """DLQ_PARTITION rows in their order."""
    return pa.Table.from_pylist(list(rows), schema=DLQ_PARTITION).sort_by(LETTER_ORDER[:3])


def in_order(tables: Iterable[pa.Table]) -> pa.Table:
    """DLQ_RECORD rows of all tables in LETTER_ORDER."""
    return pa.concat_tables([DLQ_RECORD.empty_table(), *tables]).sort_by(LETTER_ORDER)
