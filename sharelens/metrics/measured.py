"""The rows that the figures come from: a lake's gold tables where the publication has them, else the measures."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.figures import by_share_partition
from sharelens.questions.answers.shape import with_names
from sharelens.tables.port import Tables
from sharelens.tables.reading import read
from state_model.columnar.keys import SHARE_PARTITION_KEY

if TYPE_CHECKING:
    from sharelens.metrics.from_histories import FromHistories

LAG_COLUMNS = [
    *SHARE_PARTITION_KEY,
    "topic",
    "start_offset",
    "end_offset",
    "lag",
    "unknown_reason",
    "log_time_ms",
    "completeness",
]
STALL_COLUMNS = [*SHARE_PARTITION_KEY, "since_ms", "until_ms", "first_incomplete_offset", "window_used"]
POISON_COLUMNS = [*SHARE_PARTITION_KEY, "offset", "last_offset", "cause"]
REDELIVERED_COLUMNS = [*SHARE_PARTITION_KEY, "first_offset", "last_offset"]
DEAD_LETTER_COLUMNS = [*SHARE_PARTITION_KEY, "offset", "last_offset", "status"]
UNKNOWN = "unknown"


class Measured:
    """Rows of all share partitions of one cluster, at the end of the evidence."""

    def __init__(self, evidence: Tables) -> None:
        self._evidence = evidence

    @cached_property
    def lag(self) -> pa.Table:
        """One row a live share partition."""
        rows = self._rows("gold.lag", LAG_COLUMNS, lambda: self._computed.lag())
        return with_names(rows, self._evidence.names(rows.column("topic_id").unique().to_pylist()))

    @cached_property
    def stalls(self) -> pa.Table:
        """What still stands, one row a share partition at most."""
        rows = self._rows("gold.stall", STALL_COLUMNS, lambda: self._computed.stalls())
        rows = rows.filter(pc.is_null(rows.column("until_ms"))).sort_by("since_ms")
        return rows.group_by(SHARE_PARTITION_KEY, use_threads=False).aggregate(
            [(name, "first") for name in ("since_ms", "first_incomplete_offset", "window_used")]
        )

    def archived(self) -> pa.Table:
        """`records` given up a share partition; offsets without a record are none."""
        rows = self._rows("gold.poison_record", POISON_COLUMNS, lambda: self._computed.poison())
        return by_share_partition("archived_records", rows)

    def redelivered(self) -> pa.Table:
        """`records` delivered more than once a share partition."""
        rows = self._rows("gold.redelivered_record", REDELIVERED_COLUMNS, lambda: self._computed.redelivered())
        return by_share_partition("redelivered_records", rows)

    def dead_letters_missing(self) -> tuple[frozenset[str], pa.Table]:
        """Groups of which a dead-letter topic is known, and the missing `records` of their share partitions."""
        rows = self._rows("gold.dlq_reconciliation", DEAD_LETTER_COLUMNS, lambda: self._computed.dead_letters())
        judged = rows.filter(pc.not_equal(rows.column("status"), UNKNOWN))
        return frozenset(judged.column("group_id").to_pylist()), by_share_partition("dead_letters_missing", judged)

    def _rows(self, table: str, columns: list[str], computed: Callable[[], pa.Table]) -> pa.Table:
        return read(self._evidence, table, columns) if self._evidence.stored(table) else computed().select(columns)

    @cached_property
    def _computed(self) -> "FromHistories":
        from sharelens.metrics.from_histories import FromHistories

        return FromHistories(self._evidence)
