"""Tables for traces: rows of the traced share partitions, up to the cut of a report."""

from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa

from sharelens.evidence.conditions import filter_rows
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.port import DELIVERIES, HISTORY, LETTERS, Tables
from sharelens.tables.where import ALL_ROWS, Order, Where


class EvidenceWithTraces:
    """Tables that answers questions about single records of some share partitions from rows in memory.

    These rows end at the cut, and the cover is that of the first reading: later ones read parts of a log only. All
    else is as in the evidence below it.
    """

    def __init__(
        self,
        evidence: Tables,
        cover: Sequence[StatePartitionCover],
        history: pa.Table,
        deliveries: pa.Table,
        letters: pa.Table,
    ) -> None:
        """`history`: SCALARS of the history rows about the records' lives, in log order; `deliveries`: their ranges.

        `letters`: DLQ_RECORD rows of the records.
        """
        self._evidence = evidence
        self._cover = cover
        self._history = history
        self._deliveries = deliveries
        self._letters = letters

    def __getattr__(self, name: str) -> object:
        return getattr(self._evidence, name)

    def scan(
        self, table: str, columns: Sequence[str] | None = None, where: Where = ALL_ROWS, order: Order = Order.ANY
    ) -> Iterator[pa.Table]:
        """Histories of the share partitions in memory, as one table; ranges as they stood at the cut; dead letters."""
        in_memory = {HISTORY: self._history, DELIVERIES: self._deliveries, LETTERS: self._letters}.get(table)
        if in_memory is None:
            yield from self._evidence.scan(table, columns, where, order)
            return
        rows = filter_rows(in_memory, where.letters.expression() if table == LETTERS else where.expression())
        yield rows if columns is None else rows.select(list(columns))

    def cover(self) -> Sequence[StatePartitionCover]:
        """Of the first reading."""
        return self._cover


def with_traces(
    evidence: Tables,
    cover: Sequence[StatePartitionCover],
    history: pa.Table,
    deliveries: pa.Table,
    letters: pa.Table,
) -> Tables:
    """The evidence, with what traces need of the histories in memory."""
    return cast("Tables", EvidenceWithTraces(evidence, cover, history, deliveries, letters))
