"""The declaration of a rule on streams groups, and the form of its check."""

from typing import Any, TypeAlias

from state_model.audit.model_groups import shape
from state_model.audit.rule import STREAMS, Rule
from state_model.audit.streams.history import History

Check: TypeAlias = shape.Check[History]


def streams_rule(number: int, *texts: str, **fields: Any) -> Rule:
    """Rule ST-`number` (model_groups.shape.group_rule)."""
    return shape.group_rule(STREAMS + number, *texts, source=f"streams-group §11 ST-{number}", **fields)
