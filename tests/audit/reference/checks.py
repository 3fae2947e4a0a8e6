"""The reference form of the rules on single steps of a share partition: a function for each."""

from collections.abc import Callable, Mapping

from state_model.audit.rule import Difference
from tests.audit.reference import complete_count, delivery, epochs, offsets, placement, sequencing, snapshots
from tests.audit.reference.steps import Step

Check = Callable[[Step], Difference | None]
"""The difference between what a rule expects of a step and what its record has; None: the step keeps to the rule."""
CHECKS: Mapping[str, Check] = {
    "trailing_bytes": placement.trailing_bytes,
    "unknown_tagged_field": placement.unknown_tags,
    "life_begins_oddly": sequencing.life_begins_oddly,
    "life_after_deletion": sequencing.life_after_deletion,
    "snapshot_epoch_skips": sequencing.snapshot_epoch_skips,
    "update_of_other_snapshot": sequencing.update_of_other_snapshot,
    "too_many_updates": sequencing.too_many_updates,
    "deleted_twice": sequencing.deleted_twice,
    "update_after_deletion": sequencing.update_after_deletion,
    "state_epoch_goes_back": epochs.state_epoch_goes_back,
    "state_epoch_moves_without_init": epochs.state_epoch_moves_without_init,
    "leader_epoch_goes_back": epochs.leader_epoch_goes_back,
    "new_leader_writes_data": epochs.new_leader_writes_data,
    "negative_epoch": epochs.negative_epoch,
    "invalid_start_offset": offsets.invalid_start_offset,
    "start_offset_goes_back": offsets.start_offset_goes_back,
    "batches_out_of_order": offsets.batches_out_of_order,
    "invalid_batch": offsets.invalid_batch,
    "batch_below_start": offsets.batch_below_start,
    "state_below_start": offsets.state_below_start,
    "batches_not_joined": offsets.batches_not_joined,
    "empty_update": offsets.empty_update,
    "acquired_state_written": delivery.never_persisted_state,
    "unknown_delivery_state": delivery.unknown_state,
    "archiving_before_4_4": delivery.archiving_state,
    "never_delivered": delivery.never_delivered,
    "count_over_maximum": delivery.count_over_maximum,
    "count_over_limit": delivery.count_over_limit,
    "available_at_limit": delivery.available_at_limit,
    "archived_below_limit": delivery.archived_below_limit,
    "stale_write": delivery.stale_write,
    "repeated_write": delivery.repeated_write,
    "delivered_after_outcome": delivery.delivered_after_outcome,
    "cold_snapshot_changes_state": snapshots.cold_snapshot_changes_state,
    "write_snapshot_loses_state": snapshots.write_snapshot_loses_state,
    "write_snapshot_changes_epochs": snapshots.write_snapshot_changes_epochs,
    "init_with_state": snapshots.init_with_state,
    "created_after_written": snapshots.created_after_written,
    "written_at_other_time": snapshots.written_at_other_time,
    "cold_snapshots_apart": snapshots.cold_snapshots_apart,
    "negative_complete_count": complete_count.negative_complete_count,
    "complete_count_too_small": complete_count.complete_count_too_small,
    "complete_count_too_large": complete_count.complete_count_too_large,
    "complete_count_falls": complete_count.complete_count_falls,
}
"""By the code of a rule, in the order of the rules."""
