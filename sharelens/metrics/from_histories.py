"""What the gold tables hold, computed from the histories: for log directories, and lakes of earlier publications."""

import pyarrow as pa
import pyarrow.compute as pc

from measures import poison as poison_measure
from measures import redelivered as redelivered_measure
from measures import stalls as stall_measure
from measures.headers import begins_of
from measures.settings import GroupSettings
from sharelens.asked import CutAsked
from sharelens.filters import Wanted
from sharelens.questions import headers
from sharelens.questions import lag as lag_question
from sharelens.questions.evidence import Cut, Evidence
from sharelens.questions.measured import histories

NO_SETTINGS = GroupSettings()


class FromHistories:
    """The measures of all share partitions at the end of the evidence; both histories are read once, when needed."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._read: tuple[pa.Table, pa.Table] | None = None

    def _histories(self) -> tuple[pa.Table, pa.Table]:
        if self._read is None:
            read = histories(self._evidence, Wanted(), CutAsked())
            self._read = read.history, read.deliveries
        return self._read

    def lag(self) -> pa.Table:
        """LAG rows of what is live."""
        return lag_question.lag(self._evidence, Wanted(), CutAsked()).table

    def stalls(self) -> pa.Table:
        """STALL rows as if nothing were written any more, so that no row depends on a moment; without idle ones."""
        history, deliveries = self._histories()
        begins = begins_of(history)
        empty = headers.no_records(self._evidence, begins).ranges()
        found = stall_measure.intervals(history, deliveries, empty, NO_SETTINGS)
        found = stall_measure.long_enough(found, None, stall_measure.MIN_DURATION_MS)
        times = headers.offset_times(self._evidence, stall_measure.offsets_of(found))
        ends = headers.known_ends(self._evidence, begins, Cut())
        rows = stall_measure.stalls(found, times, ends, NO_SETTINGS, now_ms=None)
        return rows.filter(pc.not_equal(rows.column("kind"), stall_measure.IDLE))

    def poison(self) -> pa.Table:
        """POISON_RECORD rows."""
        history, deliveries = self._histories()
        read = headers.no_records(self._evidence, begins_of(history))
        return poison_measure.poison(history, deliveries, read.ranges(), read.held(), NO_SETTINGS)

    def dead_letters(self) -> pa.Table:
        """DLQ_RECONCILIATION rows."""
        from sharelens.questions.dlq import reconciled

        return reconciled(self._evidence, Wanted(), CutAsked(), NO_SETTINGS).rows

    def redelivered(self) -> pa.Table:
        """REDELIVERED rows."""
        return redelivered_measure.redelivered(*self._histories())
