"""Mutations by rule: for each error and warning rule logs that break it, and near ones that do not.

A case damages a small legal log or makes a coordinator append another legal one; what it expects is that the rule
speaks, or that no rule of severity error or warning does.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from state_model.audit.table import RULES
from tests.once import computed_once

FEWEST: Final = 3
"""Breaking and near cases that a rule needs, of each."""
NOT_BREAKABLE: Final = {
    "replay_disagrees": "no log breaks it: it compares two implementations of the state, which read the same bytes; "
    "unit tests change the state of the replay",
}
"""Rules that no log can break, with the reason."""
Rows = list[dict[str, Any]]
Log = TypeVar("Log")
Logs = Mapping[str, Callable[[], Log]]
Table = Mapping[str, tuple[Logs[Log], Logs[Log]]]
"""By rule the breaking logs and the near ones, by name."""


class Case(NamedTuple, Generic[Log]):
    """A log of a rule."""

    rule: str
    name: str
    breaks: bool
    make: Callable[[], Log]

    @property
    def title(self) -> str:
        """Rule, kind and name in a few words."""
        return f"{self.rule} {'breaks' if self.breaks else 'near'}: {self.name}"


def cases_of(*tables: Table[Log]) -> tuple[Case[Log], ...]:
    """The cases of some tables."""
    return tuple(
        Case(rule, name, breaks, make)
        for table in tables
        for rule, logs in table.items()
        for breaks, by_name in zip((True, False), logs, strict=True)
        for name, make in by_name.items()
    )


def audited_once(case: Case[Log], audit: Callable[[Log], Rows]) -> Rows:
    """What `audit` finds in the log of a case: several tests ask for it, and it is computed once a test run."""
    return computed_once(f"audited-cases/{case.title}", lambda: audit(case.make()))


def gaps(*tables: Table[Log]) -> dict[str, tuple[int, int]]:
    """By rule on share groups, error or warning, the numbers of breaking and near cases, where one is too small."""
    case_counts = {rule: (len(breaking), len(near)) for table in tables for rule, (breaking, near) in table.items()}
    counts = {
        rule.code: case_counts.get(rule.code, (0, 0))
        for rule in RULES
        if rule.severity in ("error", "warning") and rule.code not in NOT_BREAKABLE and not rule.is_of_model_groups
    }
    return {code: count for code, count in counts.items() if min(count) < FEWEST}
