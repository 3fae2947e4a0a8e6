"""Changes of state that are persisted before they are committed (§5, §6, §8).

A started change sets the target of a run, which blocks the start offset and every other change; the delivery complete
count includes it. Then it is written, and committed or rolled back.
"""

from dataclasses import dataclass

from sharelens.broker.share.window import CachedBatch, Run, Window, is_final
from state_model.batches import Batches
from state_model.share_records import DeliveryState, StateBatch
from state_model.tuples import maker

# Looked up once: this is the work of every acknowledgement.
_AVAILABLE = DeliveryState.AVAILABLE
_state_batch = maker(StateBatch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The rules for records that are given up: the delivery count limit, and whether the group has dead letters."""

    delivery_count_limit: int
    has_dead_letters: bool

    @property
    def given_up(self) -> DeliveryState:
        """The state of a record that is rejected, or was delivered too often."""
        return DeliveryState.ARCHIVING if self.has_dead_letters else DeliveryState.ARCHIVED

    def released(self, run: Run, start_offset: int) -> DeliveryState:
        """The state of a run after its lock was released or timed out; it lies on one side of the start offset."""
        if run.last < start_offset:
            return DeliveryState.ARCHIVED
        return DeliveryState.AVAILABLE if run.count < self.delivery_count_limit else self.given_up


class Changes:
    """The started changes of one write, in the order of offsets as they were started."""

    __slots__ = ("_touched", "_window", "runs")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._touched: list[tuple[CachedBatch, int, int]] = []
        self.runs: list[Run] = []

    def start(self, batch: CachedBatch, run: Run, target: DeliveryState) -> None:
        """Begin the change of a run of a batch."""
        run.target = target
        if is_final(target):
            self._window.delivery_complete_count += self._window.counted(run)
        self.runs.append(run)
        first, last = run.first, run.last
        if self._touched and self._touched[-1][0] is batch:
            _, before, after = self._touched[-1]
            self._touched[-1] = (batch, min(first, before), max(last, after))
        else:
            self._touched.append((batch, first, last))

    def state_batches(self) -> Batches:
        """Their state batches for WriteShareGroupState."""
        return tuple(
            [
                _state_batch((run.first, run.last, run.state if run.target is None else run.target, run.count, ()))
                for run in self.runs
            ]
        )

    def commit(self) -> None:
        """Commit the changes; their locks end."""
        for run in self.runs:
            assert run.target is not None
            if run.target is _AVAILABLE:
                self._window.may_have_available = True
            run.settle(run.target)

    def roll_back(self, now_ms: int, ending: Ending) -> bool:
        """Undo the changes: records are acquired as before.

        Where the lock timed out during the write, the record is released in memory alone. Returns whether
        that happened.
        """
        ended = False
        for run in self.runs:
            self._undo(run)
            if run.deadline_ms > now_ms:
                continue
            ended = True
            target = ending.released(run, self._window.start_offset)
            # Only a persisted state passes the record on to the dead letters.
            run.settle(DeliveryState.ARCHIVED if target is DeliveryState.ARCHIVING else target)
            if is_final(run.state):
                self._window.delivery_complete_count += self._window.counted(run)
            else:
                self._window.may_have_available = True
        return ended

    def abandon(self) -> None:
        """Undo changes that were not written, because a later part of the request was refused."""
        for run in self.runs:
            self._undo(run)

    def _undo(self, run: Run) -> None:
        if is_final(run.target):
            self._window.delivery_complete_count -= self._window.counted(run)
        run.target = None

    def tidy(self) -> None:
        """Join equal neighbours in the changed batches; the runs of these changes are invalid afterwards."""
        for batch, first, last in self._touched:
            batch.coalesce_around(first, last)


def start_release(window: Window, batch: CachedBatch, run: Run, ending: Ending, changes: Changes) -> None:
    """Start to release an acquired run; a run across the start offset is cut there."""
    pieces = [run]
    if run.first < window.start_offset <= run.last:
        last = run.last
        pieces = batch.cover(run.first, window.start_offset - 1) + batch.cover(window.start_offset, last)
    for piece in pieces:
        changes.start(batch, piece, ending.released(piece, window.start_offset))
