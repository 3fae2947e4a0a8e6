"""The summary above the rows of `poison` and `dlq`: records by group and cause, bounded in memory and in lines."""

from collections.abc import Sequence

import pyarrow as pa

from sharelens.measures.ranges.offset_counts import offset_counts
from sharelens.output import Answer, Column, RowCounts
from sharelens.questions.answers.streaming import Order, Sums, with_ones
from state_model.columnar.schemas import column

LINES = 10
PLACE = ("topic_id", "partition")


class Digest:
    """Sums of ranges (first_offset, last_offset of a partition) by key: records, share partitions, the newest time."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = list(keys)
        self._sums = Sums([*keys, *PLACE], {"rows": "sum", "records": "sum", "last_ms": "max"})

    def add(self, rows: pa.Table, times: pa.ChunkedArray) -> None:
        """Adds rows, each with its time."""
        records = offset_counts(rows)
        places = with_ones(rows.select([*self._keys, *PLACE]))
        self._sums.add(places.append_column("records", records).append_column("last_ms", times))

    def sums(self) -> pa.Table:
        """The sums by key and share partition: `rows`, `records` and `last_ms`, in any order."""
        return self._sums.table()

    def table(self) -> pa.Table:
        """A row a key with `records`, `partitions` and `last_ms`, in any order."""
        sums = self.sums().group_by(self._keys)
        return sums.aggregate([("records", "sum"), ([], "count_all"), ("last_ms", "max")]).rename_columns(
            {"records_sum": "records", "count_all": "partitions", "last_ms_max": "last_ms"}
        )


def digest_schema(schema: pa.Schema, keys: Sequence[str]) -> pa.Schema:
    """The schema of a digest's table by some fields of the rows."""
    return pa.schema(
        [
            *(schema.field(name) for name in keys),
            column("records", pa.int64(), "record offsets"),
            column("partitions", pa.int64(), "share partitions"),
            column("last_ms", pa.int64(), "the newest time of a row"),
        ]
    )


def as_answer(table: pa.Table, columns: Sequence[Column], order: Order, lines: int = LINES) -> Answer:
    """The first lines of a digest's table by an order."""
    rows = table.sort_by(list(order))
    counts = RowCounts(rows=rows.num_rows, incomplete=0, unnamed_topics=0)
    return Answer(table=rows.slice(0, lines), columns=tuple(columns), all_rows=counts)
