"""The state of a group in a partition from the early design's control records, and how a leader recovers it.

    130 CHECKPOINT  <-  131 DELTA  <-  132 DELTA        back offsets
    recovery: from the newest record back to its checkpoint, then forward again

The draft has no text on recovery. Assumed: the leader knows the newest record of the group, follows back offsets to the
checkpoint, and applies the deltas in log order, later states in place of earlier ones; the start offset then passes
what is acknowledged or archived, as in memory. The draft also leaves open what a delta of an unknown checkpoint means:
it is refused.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from state_model.batches import coalesce
from state_model.early_draft.records import Checkpoint, Delta, DraftRecord
from state_model.errors import SharelensError
from state_model.share_records import DeliveryState, StateBatch

TERMINAL = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)
NEVER_DELIVERED = (int(DeliveryState.AVAILABLE), 0)
"""State and delivery count of an offset whose first delivery has no outcome; the same as no state at all."""


class BrokenChainError(SharelensError):
    """Raised when back offsets do not lead to the checkpoint of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftState:
    """A group's state in a partition: offsets from `start_offset` (SPSO) to `end_offset` (SPEO, exclusive).

    `states`: ascending, disjoint, equal neighbours joined. `newest_offset`: log offset of the last record applied.
    """

    checkpoint_epoch: int
    start_offset: int
    end_offset: int
    states: tuple[StateBatch, ...]
    newest_offset: int

    def delivered(self) -> tuple[StateBatch, ...]:
        """The states of offsets that were delivered: without NEVER_DELIVERED."""
        return tuple(batch for batch in self.states if (batch.delivery_state, batch.delivery_count) != NEVER_DELIVERED)


def apply(state: DraftState | None, log_offset: int, record: DraftRecord) -> DraftState:
    """The group's state in the partition after a control record.

    Raises:
        BrokenChainError: a delta does not follow the state's newest record, or belongs to another checkpoint.
    """
    if isinstance(record, Checkpoint):
        return DraftState(
            checkpoint_epoch=record.checkpoint_epoch,
            start_offset=record.start_offset,
            end_offset=record.end_offset,
            states=coalesce(record.states),
            newest_offset=log_offset,
        )
    _check_chain(state, log_offset, record)
    assert state is not None
    end = max([state.end_offset, *(batch.last_offset + 1 for batch in record.states)])
    states, start = _passed(overlaid(state.states, record.states), state.start_offset)
    return replace(state, states=states, start_offset=start, end_offset=max(end, start), newest_offset=log_offset)


def _check_chain(state: DraftState | None, log_offset: int, delta: Delta) -> None:
    at = f"SHARE_DELTA of group {delta.group_id!r} at offset {log_offset}"
    if state is None:
        raise BrokenChainError(f"{at}: no SHARE_CHECKPOINT comes before it; read the log from an earlier offset")
    if delta.back_offset != state.newest_offset:
        raise BrokenChainError(
            f"{at}: goes back to offset {delta.back_offset}, the record before it is at {state.newest_offset}"
        )
    if delta.checkpoint_epoch != state.checkpoint_epoch:
        raise BrokenChainError(
            f"{at}: belongs to checkpoint epoch {delta.checkpoint_epoch}, the state to {state.checkpoint_epoch}"
        )


def overlaid(old: Iterable[StateBatch], new: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    """The old states with the new ones in their place: ascending, disjoint, equal neighbours joined."""
    pieces = list(old)
    for batch in new:
        left_pieces = [piece._replace(last_offset=min(piece.last_offset, batch.first_offset - 1)) for piece in pieces]
        right_pieces = [piece._replace(first_offset=max(piece.first_offset, batch.last_offset + 1)) for piece in pieces]
        old_pieces = {piece for piece in (*left_pieces, *right_pieces) if piece.first_offset <= piece.last_offset}
        pieces = [*old_pieces, batch]
    return coalesce(pieces)


def _passed(states: tuple[StateBatch, ...], start: int) -> tuple[tuple[StateBatch, ...], int]:
    """The states from the new start offset on, and that offset: terminal states at the start are passed."""
    for position, batch in enumerate(states):
        if batch.last_offset < start:
            continue
        if batch.first_offset > start or batch.delivery_state not in TERMINAL:
            return states[position:], start
        start = batch.last_offset + 1
    return (), start


def recover(
    record_at: Callable[[int], DraftRecord | None], group_id: str, newest_offset: int
) -> tuple[DraftState, int]:
    """The state that a new leader recovers, and the number of records that it reads.

    Args:
        record_at: the record at a log offset; None for none of this design.
        group_id: the group.
        newest_offset: log offset of its newest record.

    Raises:
        BrokenChainError: a back offset leads to no record of the group, or forward in the log.
    """
    chain: list[tuple[int, DraftRecord]] = []
    at = newest_offset
    while True:
        record = record_at(at)
        if record is None or record.group_id != group_id:
            raise BrokenChainError(f"offset {at} has no control record of group {group_id!r}")
        chain.append((at, record))
        if isinstance(record, Checkpoint):
            break
        if record.back_offset >= at:
            raise BrokenChainError(f"SHARE_DELTA at offset {at} goes back to offset {record.back_offset}")
        at = record.back_offset
    state: DraftState | None = None
    for offset, record in reversed(chain):
        state = apply(state, offset, record)
    assert state is not None
    return state, len(chain)
