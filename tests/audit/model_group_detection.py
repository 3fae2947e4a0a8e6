"""What the audit finds of the mutations on streams and consumer groups, as parts of the page of detection."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from state_model.audit.consumer.table import RULES as CONSUMER_RULES
from state_model.audit.rule import Rule
from state_model.audit.streams.table import RULES as STREAMS_RULES
from tests.audit.consumer_changes import SOURCES
from tests.audit.model_group_log import GroupLog
from tests.audit.rule_cases.cases import Case, Table, audited_once, cases_of
from tests.audit.rule_cases.consumer_case_tables import CONSUMER
from tests.audit.rule_cases.streams_case_tables import STREAMS
from tests.audit.streams_changes import basic, ended

STREAMS_HEAD: Final = """## Streams groups

Recorded logs of Kafka Streams applications, changed. *Found*: the audit names the rule; *placed*: at no record before
the first change. *Also named*: other rules of severity error or warning, with the number of logs. *False alarms*: near
logs, the smallest changes that stay legal, with any error or warning.

| rule | broken by | found | placed | also named | near | false alarms |
|---|---|---|---|---|---|---|"""
CONSUMER_HEAD: Final = """## Consumer groups

Recorded logs of consumer groups of Kafka 4.3.1, changed: members that come and go, static ones, regular expressions,
groups that were classic ones. The columns are those of streams groups.

| rule | broken by | found | placed | also named | near | false alarms |
|---|---|---|---|---|---|---|"""


def of_streams() -> str:
    """A row for each rule on streams groups."""
    return _section(STREAMS_HEAD, STREAMS_RULES, STREAMS)


def of_consumers() -> str:
    """A row for each rule on consumer groups."""
    return _section(CONSUMER_HEAD, CONSUMER_RULES, CONSUMER)


def _section(head: str, rules: Sequence[Rule], tables: Sequence[Table[GroupLog]]) -> str:
    cases = cases_of(*tables)
    rows = [_row(rule, [case for case in cases if case.rule == rule.code]) for rule in rules]
    return "\n".join([head, *rows, ""])


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
    sources = {source.group_id: source for source in (basic(), ended(), *(make() for make in SOURCES))}
    source = sources[log.group_id]
    pairs = zip(log.entries, source.entries, strict=False)
    common = min(len(log.entries), len(source.entries))
    place = next((place for place, (new, old) in enumerate(pairs) if new != old), common)
    return place if place < len(log.entries) else 0
