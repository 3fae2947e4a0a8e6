"""Which finding explains another one of the same share partition, as far as the records show it.

A record that violates a rule leaves a state behind that the next records are compared with: their findings then follow
from it. CAUSES says which rule's violation can lead to a violation of which others. A cause explains a finding if its
record lies in the state that the finding compares with: from that state's snapshot on, up to the finding's record.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from state_model.audit.severities import SEVERITIES

CONTENT: Final = frozenset(
    {
        "stale_write",
        "delivered_after_outcome",
        "cold_snapshot_changes_state",
        "write_snapshot_loses_state",
        "new_leader_writes_data",
        "complete_count_too_small",
    }
)
"""Rules that a wrong delivery state before a record leads to."""
PROGRESS: Final = frozenset({"start_offset_goes_back", "complete_count_falls"})
SNAPSHOTS: Final = frozenset({"update_of_other_snapshot", "snapshot_epoch_skips"})
STATE_EPOCHS: Final = frozenset({"state_epoch_goes_back", "init_with_state", "write_snapshot_changes_epochs"})
LEADER_EPOCHS: Final = frozenset({"leader_epoch_goes_back", "new_leader_writes_data", "write_snapshot_changes_epochs"})
COLD: Final = frozenset({"cold_snapshot_changes_state"})
CAUSES: Final[dict[str, frozenset[str]]] = {
    "life_begins_oddly": SNAPSHOTS | LEADER_EPOCHS | {"init_with_state"},
    "life_after_deletion": SNAPSHOTS | LEADER_EPOCHS | {"init_with_state"},
    "created_after_written": COLD | {"state_epoch_moves_without_init"},
    "negative_epoch": SNAPSHOTS | LEADER_EPOCHS | STATE_EPOCHS | COLD,
    "invalid_batch": CONTENT | {"batch_below_start"},
    "batches_out_of_order": CONTENT,
    "acquired_state_written": CONTENT,
    "never_delivered": CONTENT,
    "count_over_maximum": CONTENT,
    "batch_below_start": CONTENT | PROGRESS | {"state_below_start"},
    "negative_complete_count": CONTENT | PROGRESS,
    "invalid_start_offset": CONTENT | PROGRESS,
    "snapshot_epoch_skips": SNAPSHOTS | STATE_EPOCHS | CONTENT | PROGRESS,
    "update_of_other_snapshot": SNAPSHOTS | STATE_EPOCHS | CONTENT | PROGRESS,
    "state_epoch_moves_without_init": STATE_EPOCHS | COLD,
    "state_epoch_goes_back": STATE_EPOCHS | COLD,
    "new_leader_writes_data": LEADER_EPOCHS | COLD | {"init_with_state"},
    "leader_epoch_goes_back": LEADER_EPOCHS | COLD,
    "complete_count_falls": frozenset({"complete_count_too_small"}),
    "start_offset_goes_back": COLD | {"write_snapshot_loses_state", "complete_count_too_small"},
    "cold_snapshot_changes_state": CONTENT | PROGRESS,
}
"""By rule the rules whose violations follow from it; at one record the first of the table is the cause."""


class Sighting(NamedTuple):
    """The first violation of a rule by a share partition; a worse finding is never explained by a lesser one.

    `since`: log offset of the snapshot that begins the state the rule compares with; the violating record itself where
    the rule compares with none.
    """

    rule: str
    share_partition: int
    log_offset: int
    since: int
    severity: str


def inferred_causes(sightings: Sequence[Sighting]) -> list[str | None]:
    """For each sighting the rule that explains it, in the end; None: no other one does."""
    precedence = {rule: index for index, rule in enumerate(CAUSES)}
    order = sorted(
        range(len(sightings)),
        key=lambda index: (sightings[index].log_offset, precedence.get(sightings[index].rule, len(CAUSES))),
    )
    causes: list[str | None] = [None] * len(sightings)
    earlier: dict[int, list[int]] = {}
    for index in order:
        sighting = sightings[index]
        before = earlier.setdefault(sighting.share_partition, [])
        cause = next((other for other in before if _explains(sightings[other], sighting)), None)
        if cause is not None:
            causes[index] = causes[cause] or sightings[cause].rule
        if sighting.rule in CAUSES:
            before.append(index)
    return causes


def _explains(cause: Sighting, effect: Sighting) -> bool:
    """Whether a sighting, which is no later than the other one, explains it."""
    return (
        effect.rule in CAUSES[cause.rule]
        and cause.log_offset >= effect.since
        and SEVERITIES.index(cause.severity) <= SEVERITIES.index(effect.severity)
    )
