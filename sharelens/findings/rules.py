"""All rules, and the order of kinds within a severity."""

from collections.abc import Iterator, Mapping, Sequence

from sharelens.findings import audits, consumers, coordination, evidence, lives, members, outcomes, stalls, streams
from sharelens.findings.finding import ERROR, INFO, IS_FOUND, NOT_JUDGED, WARNING
from sharelens.findings.rule import About, Rule

RULES: Sequence[Rule] = [
    rule
    for rules in (
        coordination.RULES,
        lives.RULES,
        outcomes.RULES,
        members.RULES,
        stalls.RULES,
        streams.RULES,
        consumers.RULES,
        audits.RULES,
        evidence.RULES,
    )
    for rule in rules.values()
]
NO_VERDICT = ("no_state_log", "state_log_unreadable")
"""Kinds without which nothing about share groups can be said."""
ORDER: Mapping[str, Sequence[Sequence[str]]] = {
    ERROR: (
        ("state_log_partial",),
        ("coordination_unwritable",),
        ("state_lost",),
        ("records_skipped",),
        ("dead_letters_missing",),
        ("initialising_stuck",),
        ("stuck",),
        ("unassigned", "not_ready", "tasks_without_owner", "reconciliation_stuck"),
        ("limit_burst",),
        ("no_members",),
        ("audit_error",),
    ),
    WARNING: (
        ("evidence_old",),
        ("records_skipped",),
        ("retention_near",),
        ("window_filling",),
        ("not_started",),
        ("lag_growing",),
        ("epoch_loop", "rebalancing"),
        ("unassigned",),
        ("no_members",),
        ("limit_burst",),
        ("start_offset_reset",),
        ("deleted_and_created", "state_deleted"),
        ("state_not_pruned",),
        ("evidence_gap",),
        ("redelivery_burst",),
        ("records_archived",),
        ("audit_warning",),
    ),
    INFO: (("stuck",), ("no_members",), ("not_started",), ("state_deleted",), ("unassigned",)),
}
"""The kinds of each severity, the worst first; those of a row are equal."""


def rank(severity: str, kind: str) -> int:
    """The place of a kind among those of its severity."""
    return next((place for place, kinds in enumerate(ORDER[severity]) if kind in kinds), len(ORDER[severity]))


def possible_results() -> Iterator[tuple[str, str, str]]:
    """Severity, kind and result of each finding that a rule can give; information is not given unless it is found."""
    for rule in RULES:
        for severity in rule.severities:
            for result in (IS_FOUND,) if severity == INFO else (IS_FOUND, NOT_JUDGED):
                yield severity, rule.kind, result


def rules_for(*, all_groups: bool) -> list[Rule]:
    """The rules of a verdict; those on consumer groups where somebody asks for all groups."""
    return [rule for rule in RULES if all_groups or rule.subject != consumers.SUBJECT]


def about_trouble(*, all_groups: bool = False) -> list[Rule]:
    """The rules of a verdict about trouble that can find an error."""
    rules = rules_for(all_groups=all_groups)
    return [rule for rule in rules if rule.about is About.TROUBLE and ERROR in rule.severities]
