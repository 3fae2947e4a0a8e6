"""What the audit finds of the mutations on streams groups, as a part of the page of detection."""

from collections import Counter
from typing import Final

from state_model.audit.streams.table import RULES
from tests.audit.cases import Logs
from tests.audit.streams_case_tables import STREAMS
from tests.audit.streams_changes import basic, ended
from tests.audit.streams_log import GroupLog

HEAD: Final = """## Streams groups

Recorded logs of Kafka Streams applications, changed. *Found*: the audit names the rule; *placed*: at no record before
the first change. *Also named*: other rules of severity error or warning, with the number of logs. *False alarms*: near
logs, the smallest changes that stay legal, with any error or warning.

| rule | broken by | found | placed | also named | near | false alarms |
|---|---|---|---|---|---|---|"""


def section() -> str:
    """A row for each rule on streams groups."""
    cases = {rule: pair for table in STREAMS for rule, pair in table.items()}
    names = {rule.code: f"ST-{rule.number - 100} `{rule.code}`" for rule in RULES}
    return "\n".join([HEAD, *(_row(names[rule.code], rule.code, *cases[rule.code]) for rule in RULES), ""])


def _row(name: str, code: str, broken: Logs[GroupLog], near: Logs[GroupLog]) -> str:
    named = placed = 0
    others: Counter[str] = Counter()
    for make in broken.values():
        log = make()
        rows = log.audited()
        own = [row["first_log_offset"] for row in rows if row["rule"] == code]
        named += bool(own)
        placed += bool(own) and min(own) >= first_change(log)
        others.update({row["rule"] for row in rows} - {code})
    alarms = sum(bool(make().audited()) for make in near.values())
    also = ", ".join(
        f"`{rule}` {count}" for rule, count in sorted(others.items(), key=lambda item: (-item[1], item[0]))
    )
    counts = f"{named} of {len(broken)} | {placed} of {len(broken)} | {also or '-'}"
    return f"| {name} | {'; '.join(broken)} | {counts} | {'; '.join(near)} | {alarms} of {len(near)} |"


def first_change(log: GroupLog) -> int:
    """The place of the first record that is not that of the recorded log; 0 where no record differs."""
    source = basic() if log.group_id == basic().group_id else ended()
    pairs = zip(log.entries, source.entries, strict=False)
    common = min(len(log.entries), len(source.entries))
    place = next((place for place, (new, old) in enumerate(pairs) if new != old), common)
    return place if place < len(log.entries) else 0
