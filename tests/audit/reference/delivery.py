"""The reference form of rules 40 to 49: delivery states and delivery counts."""

from collections.abc import Callable, Iterator

from state_model.audit.rule import Difference, Field
from state_model.share_records import NOT_DETERMINED, DeliveryState, StateBatch
from tests.audit.reference import step_function
from tests.audit.reference.step_function import TERMINAL, Value, offset_state_code
from tests.audit.reference.steps import Step

LARGEST_LIMIT = 25
"""Largest value of group.share.max.delivery.count.limit."""
Cell = tuple[int, Value | None, Value]
"""First offset, value before the update, value in the update."""


def never_persisted_state(step: Step) -> Difference | None:
    """A state batch in state ACQUIRED."""
    return _first(step, lambda batch: batch.delivery_state == DeliveryState.ACQUIRED, _state, 0)


def unknown_state(step: Step) -> Difference | None:
    """A state batch in a state that Kafka up to 4.4 does not have."""
    return _first(step, lambda batch: not 0 <= batch.delivery_state <= DeliveryState.ARCHIVED, _state, 0)


def archiving_state(step: Step) -> Difference | None:
    """A state batch in state ARCHIVING."""
    return _first(
        step, lambda batch: batch.delivery_state == DeliveryState.ARCHIVING, _state, int(DeliveryState.ARCHIVED)
    )


def never_delivered(step: Step) -> Difference | None:
    """A state batch with a delivery count below 1."""
    return _first(step, lambda batch: batch.delivery_count < 1, _count, 1)


def count_over_maximum(step: Step) -> Difference | None:
    """A state batch with a delivery count above every configuration."""
    return _first(step, lambda batch: batch.delivery_count > LARGEST_LIMIT, _count, LARGEST_LIMIT)


def count_over_limit(step: Step) -> Difference | None:
    """A state batch with a delivery count above the group's limit."""
    limit = step.delivery_count_limit
    return None if limit is None else _first(step, lambda batch: batch.delivery_count > limit, _count, limit)


def available_at_limit(step: Step) -> Difference | None:
    """An AVAILABLE batch whose delivery count has reached the group's limit."""
    limit = step.delivery_count_limit
    if limit is None:
        return None
    return _first(
        step,
        lambda batch: batch.delivery_state == DeliveryState.AVAILABLE and batch.delivery_count >= limit,
        _count,
        limit,
    )


def archived_below_limit(step: Step) -> Difference | None:
    """An ARCHIVED batch whose delivery count is below the group's limit."""
    limit = step.delivery_count_limit
    if limit is None:
        return None
    return _first(
        step,
        lambda batch: batch.delivery_state == DeliveryState.ARCHIVED and batch.delivery_count < limit,
        _count,
        limit,
    )


def _state(batch: StateBatch) -> tuple[Field, int]:
    return Field.DELIVERY_STATE, batch.delivery_state


def _count(batch: StateBatch) -> tuple[Field, int]:
    return Field.DELIVERY_COUNT, batch.delivery_count


def _first(
    step: Step,
    violates: Callable[[StateBatch], bool],
    field: Callable[[StateBatch], tuple[Field, int]],
    expected: int,
) -> Difference | None:
    """The difference of the first state batch that violates a rule."""
    for batch in step.written.state_batches if step.written is not None else ():
        if violates(batch):
            name, actual = field(batch)
            return Difference(name, expected, actual, batch.first_offset)
    return None


def stale_write(step: Step) -> Difference | None:
    """An update has a smaller (delivery count, delivery state) than the state at some offset."""
    for first, before, written in _cells(step):
        if before is not None and written < before:
            return Difference(Field.OFFSET_STATE, offset_state_code(before), offset_state_code(written), first)
    return None


def repeated_write(step: Step) -> Difference | None:
    """An update has batches, and repeats the state at each of their offsets."""
    cells = list(_cells(step))
    if not cells or any(before != written for _, before, written in cells):
        return None
    first, _, written = cells[0]
    return Difference(Field.OFFSET_STATE, offset_state_code(written), offset_state_code(written), first)


def delivered_after_outcome(step: Step) -> Difference | None:
    """An update raises the delivery count of an acknowledged or archived offset."""
    for first, before, written in _cells(step):
        if before is not None and before[1] in TERMINAL and written[0] > before[0]:
            return Difference(Field.OFFSET_STATE, offset_state_code(before), offset_state_code(written), first)
    return None


def _cells(step: Step) -> Iterator[Cell]:
    """The cells of an update's batches, on offsets from the start offset after it on."""
    update = step.live_update
    if update is None:
        return
    written = step_function.of_batches(update.state_batches)
    start = step.before.start_offset if update.start_offset == NOT_DETERMINED else update.start_offset
    if start != NOT_DETERMINED:
        written = step_function.cut_below(written, start)
    before = step_function.touching(step.before.content, written)
    for first, _, ours, theirs in step_function.cells(before, written):
        if theirs is not None:
            yield first, ours, theirs
