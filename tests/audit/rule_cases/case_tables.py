"""All cases of rules, and their part of the page of detection."""

from typing import Final

from state_model.audit.table import RULES
from tests.audit.rule_cases.assignment_cases import ASSIGNMENTS
from tests.audit.rule_cases.cases import NOT_BREAKABLE, Table
from tests.audit.rule_cases.delivery_cases import COUNTS, DELIVERY, OFFSETS, SNAPSHOTS
from tests.audit.rule_cases.group_cases import LIVES, RECORDS
from tests.audit.rule_cases.initialization_cases import INITIALIZATIONS
from tests.audit.rule_cases.state_cases import BYTES, EPOCHS, SEQUENCE
from tests.audit.rule_cases.world_cases import CONFIGURED, PLACES, TOPICS
from tests.audit.script import Script
from tests.audit.world import World

OF_STATE_LOG: Final[tuple[Table[Script], ...]] = (BYTES, SEQUENCE, EPOCHS, OFFSETS, DELIVERY, SNAPSHOTS, COUNTS)
BETWEEN: Final[tuple[Table[World], ...]] = (PLACES, CONFIGURED, TOPICS, LIVES, RECORDS, ASSIGNMENTS, INITIALIZATIONS)
HEAD: Final = """## Rule by rule

Small logs for each rule of severity error or warning: mutations that break it, and near ones, the smallest changes that
stay legal. The audit names the rule for each of the former, at a record that the judge calls illegal where it judges
the rule; for the latter it has no error and no warning, and the judge agrees. A test fails while a rule has fewer than
three of each.

| rule | broken by | near |
|---|---|---|"""


def section() -> str:
    """The part of the page of detection with the cases by rule, in the order of the rules."""
    names = {
        rule: tuple("; ".join(logs) for logs in pair)
        for table in (*OF_STATE_LOG, *BETWEEN)
        for rule, pair in table.items()
    }
    lines = [
        f"| {rule.number} `{rule.code}` | {' | '.join(names[rule.code])} |" for rule in RULES if rule.code in names
    ]
    lines += [f"| `{code}` | {why} | - |" for code, why in NOT_BREAKABLE.items()]
    return "\n".join([HEAD, *lines, ""])
