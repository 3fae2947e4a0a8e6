"""Evidence for traces: rows of the traced share partitions, up to the cut of a report."""

from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.lake.bounded_scan import Choice
from sharelens.questions.evidence import Evidence, Keys, StatePartitionCover


class EvidenceWithTraces:
    """Evidence that answers questions about single records of some share partitions from rows in memory.

    These rows end at the cut, and the cover is that of the first reading: later ones read parts of a log only. All
    else is as in the evidence below it.
    """

    def __init__(
        self, evidence: Evidence, cover: Sequence[StatePartitionCover], history: pa.Table, deliveries: pa.Table
    ) -> None:
        """`history`: SCALARS of the history rows about the records' lives, in log order; `deliveries`: their ranges."""
        self._evidence = evidence
        self._cover = cover
        self._history = history
        self._deliveries = deliveries

    def __getattr__(self, name: str) -> object:
        return getattr(self._evidence, name)

    def history_in_parts(self, keys: Keys, columns: Sequence[str], choice: Choice | None = None) -> Iterator[pa.Table]:
        """Of the share partitions in memory, as one table."""
        yield filter_rows(self._history, keys.expression()).select(list(columns))

    def delivery(self, keys: Keys, offset: int) -> pa.Table:
        """As they stood at the cut."""
        around = (pc.field("first_offset") <= offset) & (pc.field("last_offset") >= offset)
        return filter_rows(self._deliveries, keys.expression()).filter(around)

    def cover(self) -> Sequence[StatePartitionCover]:
        """Of the first reading."""
        return self._cover


def with_traces(
    evidence: Evidence, cover: Sequence[StatePartitionCover], history: pa.Table, deliveries: pa.Table
) -> Evidence:
    """The evidence, with what traces need of the histories in memory."""
    return cast("Evidence", EvidenceWithTraces(evidence, cover, history, deliveries))
