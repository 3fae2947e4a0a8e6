"""What the gold tables hold, computed from the histories: for log directories, and lakes of earlier publications."""

from functools import cached_property

import pyarrow as pa

from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.stalls import intervals as stalls
from sharelens.parameters.filters import KeyFilter
from sharelens.questions import lag as lag_question
from sharelens.questions.answers.measured import Scope, rows_of, scope
from sharelens.questions.redelivered import redelivered_rows
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables


class FromHistories:
    """The measures of all share partitions at the end of the evidence."""

    def __init__(self, evidence: Tables) -> None:
        self._evidence = evidence

    @property
    def _settings(self) -> GroupSettings:
        return self._evidence.settings.groups

    @cached_property
    def _scope(self) -> Scope:
        return scope(self._evidence, KeyFilter(), CutChoice())

    def lag(self) -> pa.Table:
        """LAG rows of live share partitions."""
        return lag_question.lag(self._evidence, KeyFilter(), CutChoice()).table

    def stalls(self) -> pa.Table:
        """STALL rows as if nothing were written any more, so that no row depends on a moment; without idle ones."""
        return rows_of(self._scope, stalls.lasting_rows, self._settings)

    def poison(self) -> pa.Table:
        """POISON_RECORD rows with the causes of their dead letters."""
        from sharelens.questions.dead_letters.dlq import given_up_with_dead_letter_causes

        return pa.concat_tables(list(given_up_with_dead_letter_causes(self._scope, self._settings, None)))

    def dead_letters(self) -> pa.Table:
        """DLQ_RECONCILIATION rows."""
        from sharelens.questions.dead_letters.dlq import reconciled

        return reconciled(self._evidence, KeyFilter(), CutChoice(), self._settings).rows

    def redelivered(self) -> pa.Table:
        """REDELIVERED rows."""
        return redelivered_rows(self._scope)
