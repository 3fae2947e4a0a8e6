"""A rule in words: for the command line and for the reference page."""

from collections.abc import Iterator

from state_model.audit.common_causes import EVENTS
from state_model.audit.rule import Need, Rule
from state_model.audit.severities import VERSIONS
from state_model.audit.table import rules_named


def explanation(rule: Rule) -> Iterator[str]:
    """Lines that explain a rule: why it holds, its severity, the evidence it needs, what to do, where it comes from."""
    yield f"{rule.code} (rule {rule.label}): {rule.title}."
    yield f"severity: {severity_text(rule)}"
    yield f"why: {rule.why}"
    yield f"needs: {needs_text(rule)}"
    yield f"impact: {impact_line(rule)}"
    yield f"what to do: {rule.remedy}"
    yield f"source: {rule.source}"


def explained(name: str) -> str:
    """The explanations of a rule, or of each rule of a number, or a cause of findings in one line.

    Raises:
        UsageError: neither a rule nor a cause has the name.
    """
    if name in EVENTS:
        return f"{name} (cause of findings): {EVENTS[name]}."
    return "\n\n".join("\n".join(explanation(rule)) for rule in rules_named(name, "--explain"))


def impact_line(rule: Rule) -> str:
    """The impact of a violation: `delivered_again: records may have been delivered again after their outcome`."""
    words = rule.impact.words
    return f"{rule.impact.value}: {f'records {words}' if rule.impact.is_about_records else words}"


def severity_text(rule: Rule) -> str:
    """`error`, or by version: `warning up to 4.3, error from 4.4 on`."""
    if rule.is_legal:
        return "none: a healthy broker does it, and it is never a finding"
    by_version = {version: rule.severity_for(version) for version in VERSIONS}
    runs: list[list[str]] = []
    for version in VERSIONS:
        if runs and by_version[runs[-1][0]] == by_version[version]:
            runs[-1].append(version)
        else:
            runs.append([version])
    if len(runs) == 1:
        text = str(by_version[VERSIONS[0]])
    else:
        text = ", ".join(_run_text(run, by_version[run[0]]) for run in runs)
    unknown = rule.if_version_unknown
    return text if unknown is None else f"{text}; {unknown} while the Kafka version is unknown"


def _run_text(run: list[str], severity: str | None) -> str:
    name = severity or "not tested"
    if run[0] == VERSIONS[0]:
        return f"{name} up to {run[-1]}"
    return f"{name} from {run[0]} on" if run[-1] == VERSIONS[-1] else f"{name} in {run[0]} to {run[-1]}"


def needs_text(rule: Rule) -> str:
    """The evidence that a rule needs."""
    needs = [*([Need.STATE_LOG.value] if rule.needs_state_log else []), *(need.value for need in rule.needs)]
    if not rule.is_legal and rule.if_version_unknown is None and rule.severity_for(None) is None:
        needs.append("the Kafka version (--kafka-version)")
    return "; ".join(needs)
