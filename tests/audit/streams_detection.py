"""What the audit finds of the mutations on streams groups, as a part of the page of detection."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from state_model.audit.rule import Rule
from state_model.audit.streams.table import RULES
from tests.audit.model_group_log import GroupLog
from tests.audit.rule_cases.cases import Case, audited_once, cases_of
from tests.audit.rule_cases.streams_case_tables import STREAMS
from tests.audit.streams_changes import basic, ended

HEAD: Final = """## Streams groups

Recorded logs of Kafka Streams applications, changed. *Found*: the audit names the rule; *placed*: at no record before
the first change. *Also named*: other rules of severity error or warning, with the number of logs. *False alarms*: near
logs, the smallest changes that stay legal, with any error or warning.

| rule | broken by | found | placed | also named | near | false alarms |
|---|---|---|---|---|---|---|"""


def section() -> str:
    """A row for each rule on streams groups."""
    cases = cases_of(*STREAMS)
    rows = [_row(rule, [case for case in cases if case.rule == rule.code]) for rule in RULES]
    return "\n".join([HEAD, *rows, ""])


def _row(rule: Rule, cases: Sequence[Case[GroupLog]]) -> str:
    named = placed = alarms = 0
    other_rules: Counter[str] = Counter()
    for case in cases:
        rows = audited_once(case, GroupLog.audited)
        if not case.breaks:
            alarms += bool(rows)
            continue
        rule_offsets = [row["first_log_offset"] for row in rows if row["rule"] == rule.code]
        named += bool(rule_offsets)
        placed += bool(rule_offsets) and min(rule_offsets) >= first_change(case.make())
        other_rules.update({row["rule"] for row in rows} - {rule.code})
    broken, near = ([case.name for case in cases if case.breaks is breaks] for breaks in (True, False))
    also = ", ".join(
        f"`{code}` {count}" for code, count in sorted(other_rules.items(), key=lambda item: (-item[1], item[0]))
    )
    counts = f"{named} of {len(broken)} | {placed} of {len(broken)} | {also or '-'}"
    near_ones = f"{'; '.join(near)} | {alarms} of {len(near)}"
    return f"| {rule.label} `{rule.code}` | {'; '.join(broken)} | {counts} | {near_ones} |"


def first_change(log: GroupLog) -> int:
    """The place of the first record that is not that of the recorded log; 0 where no record differs."""
    source = basic() if log.group_id == basic().group_id else ended()
    pairs = zip(log.entries, source.entries, strict=False)
    common = min(len(log.entries), len(source.entries))
    place = next((place for place, (new, old) in enumerate(pairs) if new != old), common)
    return place if place < len(log.entries) else 0
