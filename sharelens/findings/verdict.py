"""The verdict of all rules: findings in order, and the first line that somebody reads at night."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sharelens.findings.finding import ERROR, INFO, IS_FOUND, NOT_JUDGED, WARNING, Finding
from sharelens.findings.rule import Need, Rule
from sharelens.findings.rules import NO_VERDICT, about_trouble, possible_results, rank, rules_for
from sharelens.findings.signs import Signs
from sharelens.findings.suppressed import NO_SUPPRESSIONS, Suppressions
from sharelens.findings.thresholds import Thresholds
from sharelens.output.wording import counted, moment, name


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The findings, the worst first.

    Errors found come before what stands in the way of every verdict, errors that can't be judged, warnings found,
    warnings that can't be judged, and information; within each the kinds in their order, then by size and age.
    `unjudged_rules`: how many rules that can find an error could not judge a subject. `suppressed`: how many findings
    suppressions cover; `warnings`: those that have expired. `all_groups`: consumer groups count, too.
    """

    findings: Sequence[Finding]
    unjudged_rules: int
    suppressed: int = 0
    warnings: tuple[str, ...] = ()
    all_groups: bool = False

    def count(self, severity: str, result: str = IS_FOUND) -> int:
        """How many findings have a severity and a result."""
        return sum(row.severity == severity and row.result == result for row in self.findings)

    def counts(self) -> dict[tuple[str, str, str], int]:
        """How many findings have a severity, kind and result; 0 for those that rules can give and have not given."""
        counts = Counter((row.severity, row.kind, row.result) for row in self.findings)
        return dict.fromkeys(possible_results(), 0) | counts

    @property
    def unjudged(self) -> list[Finding]:
        """What can't be judged."""
        return [row for row in self.findings if row.result == NOT_JUDGED]


def judge(
    signs: Signs, thresholds: Thresholds, suppressions: Suppressions = NO_SUPPRESSIONS, *, all_groups: bool = False
) -> Verdict:
    """What all rules find, and what they can't judge: one line for each rule and remedy.

    What would be information, if it were so, is left out where it is not judged.
    """
    findings: list[Finding] = []
    unjudged_kinds, suppressed = set(), 0
    errors = {rule.kind for rule in about_trouble(all_groups=all_groups)}
    for rule in rules_for(all_groups=all_groups):
        judged = list(rule.judge(signs, thresholds))
        rows = [row for row in judged if not suppressions.cover(row)]
        suppressed += len(judged) - len(rows)
        findings += [row for row in rows if row.remedy is None]
        findings += _by_remedy(rule, [row for row in rows if row.remedy is not None and row.severity != INFO])
        unjudged_kinds |= {row.kind for row in rows if row.remedy is not None and row.severity == ERROR}
    return Verdict(
        findings=sorted(findings, key=_worst_first),
        unjudged_rules=len(unjudged_kinds & errors),
        suppressed=suppressed,
        warnings=suppressions.warnings(),
        all_groups=all_groups,
    )


def _by_remedy(rule: Rule, rows: Iterable[Finding]) -> list[Finding]:
    """One finding for each remedy; of several groups it says how many."""
    by_remedy: dict[str, list[Finding]] = {}
    for row in rows:
        by_remedy.setdefault(str(row.remedy), []).append(row)
    return [_of_groups(rule, of_remedy) for of_remedy in by_remedy.values()]


def _of_groups(rule: Rule, rows: Sequence[Finding]) -> Finding:
    if len(rows) == 1:
        return rows[0]
    worst = min(rows, key=_worst_first)
    sizes = [row.size for row in rows if row.size is not None]
    about = f"{name(worst.group_id)}: {worst.text}"
    return replace(
        worst,
        text=f"{rule.unjudged} of {counted(len(rows), 'group')} not judged; {about}",
        group_id=None,
        options=(),
        share_partitions=sum(row.share_partitions for row in rows),
        size=sum(sizes) if sizes else None,
    )


def _worst_first(row: Finding) -> tuple[int, int, int, int, str]:
    return _category(row), rank(row.severity, row.kind), -(row.size or 0), row.since_ms or 0, row.group_id or ""


def _category(row: Finding) -> int:
    """The place of a finding: by result and severity."""
    if row.kind in NO_VERDICT:
        return 1
    by_result = {
        IS_FOUND: {ERROR: 0, WARNING: 3, INFO: 5},
        NOT_JUDGED: {ERROR: 2, WARNING: 4, INFO: 5},
    }
    return by_result[row.result][row.severity]


def first_line(verdict: Verdict, signs: Signs) -> str:
    """The verdict in one line."""
    worst = verdict.findings[0] if verdict.findings else None
    if worst is None or worst.severity == INFO:
        return f"nothing is wrong: {_contents(signs, all_groups=verdict.all_groups)}"
    if worst.kind in NO_VERDICT:
        return f"NO VERDICT: {worst.text}; {worst.remedy}"
    if worst.result == IS_FOUND:
        return f"{worst.severity.upper()}: {sentence(worst)}{_others_text(verdict, worst.severity)}"
    rules = len(about_trouble(all_groups=verdict.all_groups))
    judged = f"no error found by {rules - verdict.unjudged_rules} of {rules} rules"
    unjudged = "; ".join(f"{sentence(row)} ({row.remedy})" for row in verdict.unjudged)
    warnings = verdict.count(WARNING)
    also = f"; {counted(warnings, 'warning')}" if warnings else ""
    return f"{judged}; {unjudged}{also}"


def _contents(signs: Signs, *, all_groups: bool) -> str:
    """What there is; where now is unknown, until when that is so."""
    consumers = len(signs.consumers) if all_groups else 0
    groups = counted(len(signs.share_groups) + len(signs.streams) + consumers, "group")
    tasks = sum(sign.tasks for sign in signs.streams)
    of_streams = f", {counted(tasks, 'active task')}" if signs.streams else ""
    by = (
        ""
        if signs.now.is_known
        else f", by the last record at {moment(signs.now_ms)}; what came later: {Need.NOW.remedy}"
    )
    return f"{groups}, {counted(signs.lag.num_rows, 'share partition')}{of_streams}{by}"


def sentence(row: Finding) -> str:
    """A finding as a sentence about its group."""
    return row.text if row.group_id is None else f"{name(row.group_id)}: {row.text}"


def _others_text(verdict: Verdict, severity: str) -> str:
    rest = verdict.count(severity) - 1
    return f"; {counted(rest, f'more {severity}')}" if rest else ""
