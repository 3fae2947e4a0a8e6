"""The verdict of a question: of all rules, without the findings that the configuration says are known."""

from datetime import UTC, datetime

from sharelens.findings.rules import RULES
from sharelens.findings.signs import Signs
from sharelens.findings.suppressed import Suppressions, without_kind
from sharelens.findings.thresholds import Thresholds
from sharelens.findings.verdict import Verdict, judge
from sharelens.output import name_cell
from state_model.errors import UsageError


def judged(signs: Signs, thresholds: Thresholds, *, all_groups: bool = False) -> Verdict:
    """The verdict about signs; `all_groups`: consumer groups count, too.

    Raises:
        UsageError: the setting `findings` names a kind that there is not.
    """
    return judge(signs, thresholds, _suppressions(), all_groups=all_groups)


def _suppressions() -> Suppressions:
    from sharelens.configuration.settings import load_settings

    suppressions = load_settings().findings.suppressions
    wrong = without_kind(suppressions, (rule.kind for rule in RULES))
    if wrong is not None:
        raise UsageError(
            f"conf: findings: entry {wrong.number}: {name_cell(wrong.rules[0])} is no kind of finding; "
            "docs/reference/findings.md lists them"
        )
    return Suppressions(entries=suppressions, today=datetime.now(UTC).date())
