"""The rows that the figures come from, of all share partitions at the end of the evidence.

Questions give them: rows that a run stored where the publication has them, else the measures of the histories.
"""

from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.thresholds import Thresholds
from sharelens.findings.verdict import Verdict
from sharelens.measures.dlq.schemas import UNKNOWN
from sharelens.measures.figures import COUNT, of_sums
from sharelens.measures.ranges.offset_counts import offset_counts
from sharelens.measures.stalls.intervals import lasting_rows
from sharelens.parameters.filters import KeyFilter
from sharelens.questions import lag as lag_question
from sharelens.questions.answers.measured import Scope, kept_stream, scope, stream_of
from sharelens.questions.answers.shape import with_names
from sharelens.questions.answers.streaming import FirstOfEach, Sums, by_share_partition
from sharelens.questions.dead_letters.reconciled import given_up_with_dead_letter_causes, judged_stream
from sharelens.questions.findings.judged import judged
from sharelens.questions.findings.measured_signs import LAGS
from sharelens.questions.findings.signs import signs_of
from sharelens.questions.redelivered import redelivered_stream
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from state_model.columnar.keys import SHARE_PARTITION_KEY

LAG_COLUMNS = [*LAGS.names, "topic", "start_offset", "end_offset"]
STALL_COLUMNS = [*SHARE_PARTITION_KEY, "since_ms", "until_ms", "first_incomplete_offset", "window_used"]
POISON_COLUMNS = [*SHARE_PARTITION_KEY, "first_offset", "last_offset", "cause"]
REDELIVERED_COLUMNS = [*SHARE_PARTITION_KEY, "first_offset", "last_offset", "last_ms"]
NOW = CutChoice()


class Measured:
    """Rows of one cluster."""

    def __init__(self, evidence: Tables) -> None:
        self._evidence, self._settings = evidence, evidence.settings.groups

    @cached_property
    def lag(self) -> pa.Table:
        """One row a live share partition."""
        rows = kept_stream(self._scope, "lag", LAG_COLUMNS)
        if rows is None:
            return lag_question.lag(self._evidence, KeyFilter(), NOW).table.select(LAG_COLUMNS)
        table = pa.concat_tables(rows)
        return with_names(table, self._evidence.names(table.column("topic_id").unique().to_pylist()))

    @cached_property
    def stalls(self) -> pa.Table:
        """STALL_COLUMNS of what still stands, as if nothing were written any more: the first stall of each share
        partition."""
        rows = kept_stream(self._scope, "stall", STALL_COLUMNS)
        if rows is None:
            rows = stream_of(self._scope, lasting_rows, self._settings)
        first = FirstOfEach(SHARE_PARTITION_KEY, [("since_ms", "ascending")])
        for table in rows:
            first.add(table.select(STALL_COLUMNS).filter(pc.field("until_ms").is_null()))
        return first.table()

    def archived(self) -> pa.Table:
        """`records` given up a share partition; offsets without a record are none."""
        rows = kept_stream(self._scope, "poison_record", POISON_COLUMNS)
        if rows is None:
            rows = given_up_with_dead_letter_causes(self._scope, self._settings, None)
        return by_share_partition("archived_records", rows)

    def redelivered(self) -> pa.Table:
        """`records` delivered more than once a share partition."""
        return by_share_partition("redelivered_records", redelivered_stream(self._scope, columns=REDELIVERED_COLUMNS))

    def dead_letters_missing(self) -> tuple[frozenset[str], pa.Table]:
        """Groups of which a dead-letter topic is known, and the missing `records` of their share partitions."""
        sums = Sums([*SHARE_PARTITION_KEY, "status"], {COUNT: "sum"})
        for rows in judged_stream(self._scope, NOW, self._settings):
            sums.add(rows.append_column(COUNT, offset_counts(rows)))
        table = sums.table()
        judged = table.filter(pc.field("status") != UNKNOWN)
        return frozenset(judged.column("group_id").to_pylist()), of_sums("dead_letters_missing", table)

    def verdict(self) -> Verdict:
        """The verdict of the overview."""
        read = signs_of(self._scope, self.lag, KeyFilter(), NOW, self._settings, None)
        return judged(read, Thresholds(settings=self._settings))

    @cached_property
    def _scope(self) -> Scope:
        return scope(self._evidence, KeyFilter(), NOW)
