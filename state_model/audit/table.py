"""The table of rules: all of them by number, and which of them a log and its evidence allow."""

from collections.abc import Iterable, Set
from typing import Final

from state_model.audit import (
    complete_count,
    delivery,
    epochs,
    group_coordinator,
    offsets,
    placement,
    sequencing,
    snapshots,
)
from state_model.audit.classic import rules as classic
from state_model.audit.consumer import table as consumer
from state_model.audit.rule import Need, Rule
from state_model.audit.streams import table as streams
from state_model.errors import UsageError

RULES: Final = (
    *placement.RULES,
    *sequencing.RULES,
    *epochs.RULES,
    *offsets.RULES,
    *delivery.RULES,
    *snapshots.RULES,
    *complete_count.RULES,
    *group_coordinator.RULES,
    *streams.RULES,
    *consumer.RULES,
    *classic.RULES,
)
"""In the order of the specification."""
BY_ID: Final = {rule.id: rule for rule in RULES}
BY_CODE: Final = {rule.code: rule for rule in RULES}
SECTIONS: Final = {
    "Decoding and placement": placement.RULES,
    "Snapshots, updates and tombstones": sequencing.RULES,
    "Epochs": epochs.RULES,
    "Offsets": offsets.RULES,
    "Delivery states": delivery.RULES,
    "Content of snapshots": snapshots.RULES,
    "Delivery complete count": complete_count.RULES,
    "The group coordinator's records": group_coordinator.RULES,
    "Streams groups": streams.RULES,
    "Consumer groups": consumer.RULES,
    "Classic groups": classic.RULES,
}


def rules_named(text: str, option: str = "--rule") -> tuple[Rule, ...]:
    """The rule of a code, or all rules of a number.

    `ST-4` is number 4 of the rules on streams groups, `CG-4` of those on consumer groups, `CL-1` number 1 of those on
    classic groups.

    `option` is named in the message of an error.

    Raises:
        UsageError: neither names a rule.
    """
    if text in BY_CODE:
        return (BY_CODE[text],)
    rules = tuple(rule for rule in RULES if text.upper() == rule.label)
    if not rules:
        raise UsageError(f"{option}: {text!r} is no rule; type a code or a number from docs/reference/audit-rules.md")
    return rules


def is_tested(rule: Rule, version: str | None, available: Set[Need]) -> bool:
    """Whether the evidence allows the rule for logs of a Kafka version (None: unknown)."""
    return rule.severity_for(version) is not None and not missing_needs(rule, version, available)


def missing_needs(rule: Rule, version: str | None, available: Set[Need]) -> tuple[Need, ...]:
    """The evidence that the rule needs and that is not available."""
    missing = [need for need in rule.needs if need not in available]
    if version is None and not rule.is_legal and rule.severity_for(None) is None:
        missing.append(Need.KAFKA_VERSION)
    return tuple(missing)


def untested_by_need(
    rules: Iterable[Rule], version: str | None, available: Set[Need]
) -> dict[tuple[Need, ...], list[Rule]]:
    """The rules that are not tested, by the evidence that they need."""
    untested: dict[tuple[Need, ...], list[Rule]] = {}
    for rule in rules:
        missing = missing_needs(rule, version, available)
        if missing:
            untested.setdefault(missing, []).append(rule)
    return untested
