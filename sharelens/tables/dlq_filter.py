"""The filter and the order of the dead letters that a question reads."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.kafka_log.dead_letter_records import DLQ_RECORD

LETTER_ORDER = [
    ("dlq_topic", "ascending"), ("dlq_topic_id", "ascending"), ("dlq_partition", "ascending"),
    ("dlq_offset", "ascending"),
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Conditions on the headers of dead letters; None: no condition. `topics`: names or ids as written."""

    groups: frozenset[str] | None = None
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offsets: frozenset[int] | None = None

    def expression(self) -> pc.Expression | None:
        """The condition on group_id, topic, partition and offset; None when there is none."""
        condition: pc.Expression | None = None
        for name, values, kind in (
            ("group_id", self.groups, pa.string()),
            ("topic", self.topics, pa.string()),
            ("partition", self.partitions, pa.int32()),
            ("offset", self.offsets, pa.int64()),
        ):
            if values is not None:
                part = pc.field(name).isin(pa.array(sorted(values), kind))
                condition = part if condition is None else condition & part
        return condition


ALL_LETTERS = DeadLetterFilter()


def in_order(tables: Iterable[pa.Table]) -> pa.Table:
    """DLQ_RECORD rows of all tables in LETTER_ORDER."""
    return pa.concat_tables([DLQ_RECORD.empty_table(), *tables]).sort_by(LETTER_ORDER)
