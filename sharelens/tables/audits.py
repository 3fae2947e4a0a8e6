"""The audit of one evidence, as questions read it."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from state_model.audit.rule import Need, Rule


class AuditedEvidence(Protocol):
    """The findings of one evidence, and the rules that it does not allow to test."""

    @property
    def has_state_log(self) -> bool:
        """Whether there is a state log, which most rules are about."""

    @property
    def available(self) -> "frozenset[Need]":
        """The needs of rules that the evidence meets."""

    @property
    def proven(self) -> Set[int]:
        """Ids of rules with a violation that the evidence shows without what they need."""

    def counts(self, severities: Mapping[int, str], condition: pc.Expression | None) -> Counter[str]:
        """The number of findings by severity, of the rules with a severity, that meet a condition."""

    def rows(self, severities: Mapping[int, str], listed: Set[int]) -> pa.Table:
        """FINDING rows of the rules `listed`, the worst first."""

    def warnings(self, rules: "Sequence[Rule]") -> Sequence[str]:
        """What the evidence lacks for these rules; ask it last."""
