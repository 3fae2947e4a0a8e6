"""Infers which finding of a share partition explains another one there, as far as the records show it.

Of one share partition: a record that violates a rule leaves a state behind that the next records are compared with;
their findings then follow from it. CAUSES says which rule's violation can lead to a violation of which others. A cause
explains a finding if its record lies in the state that the finding compares with: from that state's snapshot on, up to
the finding's record. What explains findings of many share partitions is in common_causes.
"""

from collections.abc import Sequence
from typing import Final

from state_model.audit.common_causes import events, wide_cause
from state_model.audit.severities import SEVERITIES
from state_model.audit.sightings import Sighting

CONTENT: Final = frozenset(
    {
        "stale_write",
        "delivered_after_outcome",
        "cold_snapshot_changes_state",
        "write_snapshot_loses_state",
        "new_leader_writes_data",
        "complete_count_too_small",
        "start_offset_passes_record",
    }
)
"""Rules that a wrong delivery state before a record leads to."""
PROGRESS: Final = frozenset({"start_offset_goes_back", "complete_count_falls"})
SNAPSHOTS: Final = frozenset({"update_of_other_snapshot", "snapshot_epoch_skips"})
STATE_EPOCHS: Final = frozenset({"state_epoch_goes_back", "init_with_state", "write_snapshot_changes_epochs"})
LEADER_EPOCHS: Final = frozenset({"leader_epoch_goes_back", "new_leader_writes_data", "write_snapshot_changes_epochs"})
COLD: Final = frozenset({"cold_snapshot_changes_state"})
LOST: Final = SNAPSHOTS | STATE_EPOCHS | LEADER_EPOCHS | CONTENT | PROGRESS | {"state_epoch_moves_without_init"}
"""Rules that the loss of a snapshot leads to."""
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
    "snapshot_epoch_skips": LOST,
    "update_of_other_snapshot": LOST,
    "state_epoch_moves_without_init": STATE_EPOCHS | COLD,
    "state_epoch_goes_back": STATE_EPOCHS | COLD,
    "new_leader_writes_data": LEADER_EPOCHS | COLD | {"init_with_state"},
    "leader_epoch_goes_back": LEADER_EPOCHS | COLD,
    "complete_count_falls": frozenset({"complete_count_too_small"}),
    "start_offset_goes_back": COLD | {"write_snapshot_loses_state", "complete_count_too_small"},
    "cold_snapshot_changes_state": CONTENT | PROGRESS,
    "batch_beyond_end": frozenset({"complete_count_beyond_end", "negative_lag"}),
    "batch_beyond_cut_end": frozenset({"start_offset_beyond_end", "negative_lag"}),
    "complete_count_beyond_end": frozenset({"negative_lag"}),
    "start_offset_beyond_end": frozenset({"negative_lag"}),
}
"""By rule the rules whose violations follow from it; at one record the first of the table is the cause."""


def inferred_causes(sightings: Sequence[Sighting]) -> list[str | None]:
    """For each sighting the rule or the event that explains it, in the end; None: nothing does.

    The order of sightings is free.
    """
    own_causes, wide, shown = _own_cause(sightings), wide_cause(sightings), events(sightings)
    causes = [wide[index] if cause is None else cause for index, cause in enumerate(own_causes)]
    return [_in_the_end(index, sightings, causes, shown) for index in range(len(sightings))]


def _in_the_end(
    index: int, sightings: Sequence[Sighting], causes: Sequence[int | None], shown: Sequence[str | None]
) -> str | None:
    """The event of the sighting, or of the first of its causes that has one, or the rule of the last of its causes."""
    code = shown[index]
    while code is None and (cause := causes[index]) is not None:
        index = cause
        code = shown[index] or (sightings[index].rule if causes[index] is None else None)
    return code


def _own_cause(sightings: Sequence[Sighting]) -> list[int | None]:
    """For each sighting the index of the first one at the same place that explains it; None: no such one does."""
    precedence = {rule: number for number, rule in enumerate(CAUSES)}
    order = sorted(
        range(len(sightings)),
        key=lambda index: (sightings[index].log_offset, precedence.get(sightings[index].rule, len(CAUSES))),
    )
    causes: list[int | None] = [None] * len(sightings)
    earlier: dict[object, list[int]] = {}
    for index in order:
        sighting = sightings[index]
        before = earlier.setdefault(sighting.place, [])
        causes[index] = next((other for other in before if _explains(sightings[other], sighting)), None)
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
