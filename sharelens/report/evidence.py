"""Evidence that was read once: the histories of everything a report is about, up to its cut."""

from collections.abc import Sequence
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.questions.evidence import Cut, Evidence, Keys, StatePartitionCover, kept


class HeldEvidence:
    """Answers questions about `keys` up to `cut` from histories in memory; all else is passed on.

    Questions about one record of it read nothing again. They see nothing behind the cut.
    """

    def __init__(self, evidence: Evidence, keys: Keys, cut: Cut) -> None:
        self._evidence = evidence
        self._cut = cut
        self._history = kept(evidence.history(keys), cut.expression())
        self._deliveries = evidence.deliveries(keys, cut)
        self._cover: Sequence[StatePartitionCover] = evidence.cover()

    def __getattr__(self, name: str) -> object:
        return getattr(self._evidence, name)

    def history(self, keys: Keys) -> pa.Table:
        """Of the cut alone."""
        return kept(self._history, keys.expression())

    def deliveries(self, keys: Keys, cut: Cut) -> pa.Table:
        """As they stood at the cut that was read; `cut` is that one."""
        return kept(self._deliveries, keys.expression())

    def delivery(self, keys: Keys, offset: int) -> pa.Table:
        """As they stood at the cut."""
        around = (pc.field("first_offset") <= offset) & (pc.field("last_offset") >= offset)
        return kept(self.deliveries(keys, self._cut), around)

    def cover(self) -> Sequence[StatePartitionCover]:
        """Of the first reading: later ones read parts of a log only."""
        return self._cover


def held(evidence: Evidence, keys: Keys, cut: Cut) -> Evidence:
    """The evidence with its histories in memory."""
    return cast("Evidence", HeldEvidence(evidence, keys, cut))
