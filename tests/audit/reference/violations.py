"""The audit in its reference form: every rule on single steps of a state partition; whole_log has those on more."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from state_model.audit.rule import Difference
from state_model.audit.table import RULES
from state_model.share_records import SharePartitionKey
from tests.audit.reference.checks import CHECKS
from tests.audit.reference.steps import Step

CHECKED = tuple(rule for rule in RULES if rule.code in CHECKS)


class Violation(NamedTuple):
    """A record that violates a rule. `previous`, `snapshot`: log offsets of the state's newest records, or -1."""

    rule_id: int
    key: SharePartitionKey
    log_offset: int
    difference: Difference
    snapshot: int
    previous: int


def violations(log: Iterable[Step]) -> Iterator[Violation]:
    """The violations of each step, in the order of rules; every rule, whichever severity it has."""
    for step in log:
        for rule in CHECKED:
            difference = CHECKS[rule.code](step)
            if difference is not None:
                before = step.before
                yield Violation(
                    rule.id, step.record.key, step.log_offset, difference, before.snapshot_log_offset, before.log_offset
                )
