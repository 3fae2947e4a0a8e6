"""The records that a leader of the early design writes for changed states.

A delta carries the changed states; offsets before them that were never recorded are recorded as available without a
delivery, as in the draft's example. The draft leaves open when a checkpoint is due ("any SHARE_DELTA could be replaced
with a SHARE_CHECKPOINT"). Assumed: after as many deltas as the shipped design writes updates between snapshots.
"""

from collections.abc import Iterable

from state_model.batches import coalesce, prune
from state_model.early_draft.records import Checkpoint, Delta, DraftRecord
from state_model.early_draft.replay import NEVER_DELIVERED, apply
from state_model.machine import SNAPSHOT_UPDATE_LIMIT
from state_model.share_records import StateBatch


class DraftLog:
    """A group's records in one partition, in the order in which its leader writes them.

    Args:
        group_id: the group.
        start_offset: where it begins; the first checkpoint says so.
        deltas_per_checkpoint: deltas after which the next record is a checkpoint.
        log_offset: of the first record; each later one lies one above, as if nothing else were written.
    """

    def __init__(
        self,
        group_id: str,
        start_offset: int,
        *,
        deltas_per_checkpoint: int = SNAPSHOT_UPDATE_LIMIT,
        log_offset: int = 0,
    ) -> None:
        self._group_id, self._limit, self._deltas = group_id, deltas_per_checkpoint, 0
        self.first = Checkpoint(group_id, 1, start_offset, start_offset, ())
        self.state = apply(None, log_offset, self.first)

    def reset(self, start_offset: int) -> DraftRecord:
        """The checkpoint of a start offset that was set: no state is left."""
        return self._checkpoint(start_offset, start_offset, ())

    def skip_to(self, start_offset: int) -> DraftRecord:
        """The checkpoint of a start offset that passed offsets without an outcome; the state above it stays."""
        states = prune(self.state.states, start_offset)
        return self._checkpoint(start_offset, max(start_offset, self.state.end_offset), states)

    def write(self, changes: Iterable[StateBatch]) -> DraftRecord:
        """The control record of changed states: a delta, or the checkpoint that is due."""
        states = self._filled(coalesce(changes))
        delta = Delta(self._group_id, self.state.checkpoint_epoch, self.state.newest_offset, states)
        if self._deltas < self._limit:
            return self._append(delta)
        after = apply(self.state, self.state.newest_offset + 1, delta)
        return self._checkpoint(after.start_offset, after.end_offset, after.states)

    def _checkpoint(self, start_offset: int, end_offset: int, states: tuple[StateBatch, ...]) -> DraftRecord:
        epoch = self.state.checkpoint_epoch + 1
        return self._append(Checkpoint(self._group_id, epoch, start_offset, end_offset, states))

    def _append(self, record: DraftRecord) -> DraftRecord:
        self._deltas = 0 if isinstance(record, Checkpoint) else self._deltas + 1
        self.state = apply(self.state, self.state.newest_offset + 1, record)
        return record

    def _filled(self, changes: tuple[StateBatch, ...]) -> tuple[StateBatch, ...]:
        """The changes, and the offsets between the end offset and each of them that no record had."""
        filled: list[StateBatch] = []
        end = self.state.end_offset
        for batch in changes:
            if batch.first_offset > end:
                filled.append(StateBatch(end, batch.first_offset - 1, *NEVER_DELIVERED))
            filled.append(batch)
            end = max(end, batch.last_offset + 1)
        return tuple(filled)
