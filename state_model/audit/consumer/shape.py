"""The declaration of a rule on consumer groups, and the form of its check."""

from typing import Any, TypeAlias

from state_model.audit.consumer.history import History
from state_model.audit.model_groups import shape
from state_model.audit.rule import CONSUMER, Rule

Check: TypeAlias = shape.Check[History]


def consumer_rule(number: int, *texts: str, source: str, **fields: Any) -> Rule:
    """Rule CG-`number` (model_groups.shape.group_rule). `source`: the class of Kafka 4.3.1."""
    return shape.group_rule(CONSUMER + number, *texts, source=f"KIP-848, {source}", **fields)
