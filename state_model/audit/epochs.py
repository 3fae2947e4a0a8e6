"""State epochs and leader epochs: rules 18 to 25."""

from collections.abc import Iterable, Sequence

from state_model.audit.impact import Affected, Impact
from state_model.audit.periods import Period, lasting
from state_model.audit.rule import LEGAL, REPORT_BUG, Difference, Field, Need, Rule, until
from state_model.audit.severities import ERROR, WARNING


def state_epoch_beyond_group(
    state_epoch: int, live: Sequence[Period], group_epochs: Iterable[tuple[int, Period]], evidence: Period
) -> Period | None:
    """When a share partition lives with a larger state epoch than its group's epoch; `group_epochs`: over time."""
    smaller = [period for group_epoch, period in group_epochs if group_epoch < state_epoch]
    return lasting(live, smaller, evidence)


def state_epoch_below_group(
    state_epoch: int, live: Sequence[Period], initialized_with: Iterable[tuple[int, Period]], evidence: Period
) -> Period | None:
    """When a share partition lives with a smaller state epoch than the group epoch of its initialization.

    `initialized_with`: these group epochs, each from the end of its initialization on.
    """
    larger = [period for group_epoch, period in initialized_with if group_epoch > state_epoch]
    return lasting(live, larger, evidence)


def leader_epoch_beyond_topic(leader_epoch: int, topic_epoch: int) -> Difference | None:
    """A leader epoch larger than that of the user topic's partition, a minute later at the latest."""
    return Difference(Field.LEADER_EPOCH, topic_epoch, leader_epoch) if leader_epoch > topic_epoch else None


RULES = (
    Rule(
        number=18,
        code="state_epoch_goes_back",
        title="The state epoch never falls while a share partition lives",
        severity=ERROR,
        relation=">=",
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="Initialize with a smaller state epoch is refused (FENCED_STATE_EPOCH).",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard",
    ),
    Rule(
        number=19,
        code="state_epoch_moves_without_init",
        title="Only a snapshot of Initialize changes the state epoch",
        severity=ERROR,
        impact=Impact.STUCK,
        why="Initialize alone sets the state epoch, and writes an empty state with leader epoch 0.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard",
    ),
    Rule(
        number=20,
        code="state_epoch_beyond_group",
        title="The state epoch is at most the group's epoch",
        severity=ERROR,
        relation="<=",
        impact=Impact.STUCK,
        why="The group coordinator initializes with its group epoch. Tested for initialized partitions; a mismatch "
        "counts when it outlasts 60 s in both logs.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records, GroupMetadataManager",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=20,
        part=1,
        code="left_state_fences_group",
        title="The state epoch of state that the group does not list as initialized is at most the group's epoch",
        severity=WARNING,
        relation="<=",
        impact=Impact.STUCK,
        why="A deleted group of the same name left the state. Its larger epoch fences the new group, which can't "
        "initialize the partition (FENCED_STATE_EPOCH).",
        remedy="Use another group name, or let members join and leave until the group epoch is larger.",
        source="consumer-offsets-records, GroupMetadataManager",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=20,
        part=2,
        code="state_epoch_below_group",
        title="The state epoch is at least the group's epoch when the initialization began",
        severity=ERROR,
        relation=">=",
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="The group lists a partition as initializing and initializes it with its epoch of then or a later one; a "
        "smaller one is refused afterwards (FENCED_STATE_EPOCH). A smaller state epoch is that of an older state. "
        "Tested where the record that begins the initialization is there; a mismatch counts when it outlasts 60 s in "
        "both logs.",
        remedy=REPORT_BUG,
        source="consumer-offsets-records §6, GroupMetadataManager, ShareCoordinatorShard",
        needs=(Need.GROUP_COORDINATOR,),
    ),
    Rule(
        number=21,
        code="leader_epoch_goes_back",
        title="The leader epoch never falls between two resets",
        severity=ERROR,
        relation=">=",
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        why="An update has the state's leader epoch, which only a Read of a newer leader raises.",
        remedy=REPORT_BUG,
        source="share-group-state-log §4-5, ShareCoordinatorShard",
    ),
    Rule(
        number=22,
        code="leader_epoch_zero_after_init",
        title="The leader epoch may fall to 0 at a reset",
        severity=None,
        exceptions=LEGAL,
        impact=Impact.NONE,
        why="Initialize stores 0 over a live state; the coordinator keeps the maximum in memory.",
        remedy="Nothing to do.",
        source="share-group-state-log §5",
    ),
    Rule(
        number=23,
        code="new_leader_writes_data",
        title="A record that raises the leader epoch changes nothing else",
        severity=ERROR,
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        affected=Affected.FROM,
        why="Only a Read raises the leader epoch, and it repeats the state.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard.readStateAndMaybeUpdateLeaderEpoch",
    ),
    Rule(
        number=24,
        code="leader_epoch_beyond_topic",
        title="The leader epoch is at most that of the user topic's partition",
        severity=ERROR,
        relation="<=",
        impact=Impact.STUCK,
        why="Leaders read and write with their own epoch. Counts where the metadata log has no such epoch 60 s later.",
        remedy=REPORT_BUG,
        source="share-partition §2, SharePartition",
        needs=(Need.METADATA,),
    ),
    Rule(
        number=25,
        code="negative_epoch",
        title="Epochs are not negative",
        severity=ERROR,
        exceptions=until("4.3", WARNING),
        relation=">=",
        impact=Impact.NONE,
        why="Kafka 4.4 refuses requests with negative epochs; up to 4.3 -1 skips the check and is stored.",
        remedy="Find the client that writes share state: no Kafka broker sends a negative epoch.",
        source="share-group-state-log §5",
        compares_state=False,
    ),
)
