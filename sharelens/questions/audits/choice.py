"""What is audited, as the parameters of `sharelens audit` say it."""

from collections.abc import Iterable

from sharelens.questions.audits.audit import AuditChoice
from sharelens.settings.suppressions import read_suppressions
from state_model.audit.severities import SEVERITIES
from state_model.audit.table import rules_named


def audit_choice(
    *,
    rule: Iterable[str],
    kafka_version: str | None,
    severity: str,
    suppressions: str | None,
    show_suppressed: bool,
    fail_on: str | None,
) -> AuditChoice:
    """The choice: the rules of codes or numbers (none: all), and the less of two severities.

    Raises:
        SharelensError: the file of suppressions can't be read.
        UsageError: no such rule, or the file is no list of suppressions.
    """
    return AuditChoice(
        rules=tuple(named_rule for text in rule for named_rule in rules_named(text)),
        version=kafka_version,
        severity=max(severity, fail_on or SEVERITIES[0], key=SEVERITIES.index),
        suppressions=read_suppressions(suppressions),
        shows_suppressed=show_suppressed,
    )
