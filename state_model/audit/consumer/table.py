"""The rules on consumer groups in the order of their numbers, and the checks of single records."""

from collections.abc import Mapping
from typing import Final

from state_model.audit.consumer import assignments, epochs, order, targets
from state_model.audit.consumer.shape import Check
from state_model.audit.rule import Rule

MODULES: Final = (epochs, assignments, targets, order)
RULES: Final[tuple[Rule, ...]] = tuple(
    sorted((rule for module in MODULES for rule in module.RULES), key=lambda rule: rule.id)
)
CHECKS: Final[Mapping[int, Check]] = {
    rule: check for module in MODULES for rule, check in sorted(module.CHECKS.items())
}
"""Rules on single records, by rule id."""
CHECKS_OF_TOPICS: Final = targets.CHECKS_OF_TOPICS
"""Rules that need topics, by rule id."""
