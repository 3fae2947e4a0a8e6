"""Findings without those that are known: suppressions with a reason and a last day, as the audit has them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from sharelens.findings.finding import Finding
from state_model.audit.suppression import Suppression


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressions:
    """The suppressions, and the day on which they are asked for."""

    entries: Sequence[Suppression]
    today: date

    def cover(self, row: Finding) -> bool:
        """Whether a suppression in force covers a finding."""
        return any(_covers(each, row) for each in self.entries if not each.is_expired(self.today))

    def warnings(self) -> tuple[str, ...]:
        """The suppressions that have expired."""
        return tuple(f"{each.text()} has expired" for each in self.entries if each.is_expired(self.today))


NO_SUPPRESSIONS = Suppressions(entries=(), today=date.min)


def without_kind(suppressions: Iterable[Suppression], kinds: Iterable[str]) -> Suppression | None:
    """The first suppression that names none of the kinds."""
    there = set(kinds)
    return next((each for each in suppressions if not there.issuperset(each.rules)), None)


def _covers(suppression: Suppression, row: Finding) -> bool:
    return (
        row.kind in suppression.rules
        and suppression.group in (None, row.group_id)
        and suppression.topic in (None, row.topic, row.topic_id)
        and suppression.partition in (None, row.partition)
    )
