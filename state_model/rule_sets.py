"""Named rule sets: where writers of different Kafka versions append different records for the same request.

Replay has no versions: what a state means is the same for all. Differences between 4.3.1 and 4.4.0 are those marked
[4.4.0] in share-group-state-log §5 and §9; brokers of 4.1 and 4.2 combine as 4.3 does.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """Behaviour of the coordinators of one Kafka version.

    Attributes:
        name: the Kafka version whose behaviour it is.
        coalesces_batches: combined batches are always coalesced; else neighbours of equal state may stay apart.
        keeps_start_offset: a write never moves the start offset back, and an older write does not overwrite the
            delivery complete count; updates carry the resolved values. Otherwise the request's raw values are written.
        refuses_negative_epochs: a negative leader or state epoch is an invalid request; otherwise -1 skips its check.
        starts_added_partitions_at_zero: the group coordinator initializes partitions that are added to a topic it
            knows with start offset 0; otherwise all begin undetermined (consumer-offsets-records §6).
        writes_empty_assignment: when the last member of a share group leaves, the epoch of its target assignment is
            written too, without a time (type 12); else the old one stays until a member joins.
    """

    name: str
    coalesces_batches: bool
    keeps_start_offset: bool
    refuses_negative_epochs: bool
    starts_added_partitions_at_zero: bool
    writes_empty_assignment: bool


KAFKA_4_3 = RuleSet(
    name="4.3",
    coalesces_batches=False,
    keeps_start_offset=False,
    refuses_negative_epochs=False,
    starts_added_partitions_at_zero=False,
    writes_empty_assignment=False,
)
KAFKA_4_4 = RuleSet(
    name="4.4",
    coalesces_batches=True,
    keeps_start_offset=True,
    refuses_negative_epochs=True,
    starts_added_partitions_at_zero=True,
    writes_empty_assignment=True,
)
RULE_SETS = {rules.name: rules for rules in (KAFKA_4_3, KAFKA_4_4)}
