"""The rules on streams groups in the order of the specification, and the checks of single records."""

from collections.abc import Mapping
from typing import Final

from state_model.audit.rule import Rule
from state_model.audit.streams import assignments, configurations, epochs, order, targets, topics
from state_model.audit.streams.shape import Check

MODULES: Final = (epochs, assignments, targets, configurations, order)
RULES: Final[tuple[Rule, ...]] = tuple(
    sorted((rule for module in (*MODULES, topics) for rule in module.RULES), key=lambda rule: rule.id)
)
CHECKS: Final[Mapping[int, Check]] = {
    rule: check for module in MODULES for rule, check in sorted(module.CHECKS.items())
}
"""Rules on single records, by rule id."""
CHECKS_OF_TOPICS: Final = topics.CHECKS
"""Rules that need topics, by rule id."""
