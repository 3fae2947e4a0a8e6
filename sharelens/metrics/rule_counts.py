"""Findings of the audit by rule: those that a lake keeps, or of a running cluster, whose logs are audited for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sharelens.parameters.filters import KeyFilter
from sharelens.questions.audits.published import audited_findings, by_rule
from sharelens.tables.port import Tables
from sharelens.tables.where import Span

NO_WARNINGS: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCounts:
    """`findings`: by severity and rule, 0 for rules without one; empty where nobody has audited the evidence."""

    findings: Mapping[tuple[str, str], int] = field(default_factory=dict)
    warnings: tuple[str, ...] = NO_WARNINGS


def rule_counts(evidence: Tables) -> RuleCounts:
    """The findings that stand, errors and warnings that no suppression covers."""
    if evidence.cluster is not None:
        return _of_cluster(evidence) if evidence.cover() else RuleCounts()
    audited = audited_findings(evidence)
    if audited is None:
        return RuleCounts()
    return RuleCounts(findings=by_rule(audited.rows), warnings=audited.warnings)


def _of_cluster(evidence: Tables) -> RuleCounts:
    from sharelens.questions.audits.audit import AuditChoice, audit
    from sharelens.settings.suppressions import read_suppressions

    answer = audit(evidence, KeyFilter(), Span(), AuditChoice(suppressions=read_suppressions(None)))
    return RuleCounts(findings=by_rule(answer.parts["findings"].table), warnings=answer.warnings)
