"""The reference form of rules 60 to 64: the delivery complete count. Records without it (-1) are not tested."""

from state_model.audit.rule import Difference, Field
from state_model.share_records import UNKNOWN_COUNT
from tests.audit.reference import step_function
from tests.audit.reference.steps import Step


def negative_complete_count(step: Step) -> Difference | None:
    """A delivery complete count below -1."""
    value = step.written
    if value is None or value.delivery_complete_count >= UNKNOWN_COUNT:
        return None
    return Difference(Field.DELIVERY_COMPLETE_COUNT, 0, value.delivery_complete_count)


def complete_count_too_small(step: Step) -> Difference | None:
    """The delivery complete count is smaller than the number of terminal offsets."""
    count = _count(step)
    if count is None:
        return None
    terminal = step_function.terminal_offsets(step.after.content)
    return Difference(Field.DELIVERY_COMPLETE_COUNT, terminal, count) if count < terminal else None


def complete_count_too_large(step: Step) -> Difference | None:
    """The delivery complete count is larger than the number of terminal offsets."""
    count = _count(step)
    if count is None:
        return None
    terminal = step_function.terminal_offsets(step.after.content)
    return Difference(Field.DELIVERY_COMPLETE_COUNT, terminal, count) if count > terminal else None


def complete_count_falls(step: Step) -> Difference | None:
    """An update with the state's start offset has a smaller delivery complete count."""
    update, before = step.live_update, step.before
    if update is None or update.start_offset != before.start_offset:
        return None
    if not UNKNOWN_COUNT < update.delivery_complete_count < before.delivery_complete_count:
        return None
    return Difference(Field.DELIVERY_COMPLETE_COUNT, before.delivery_complete_count, update.delivery_complete_count)


def _count(step: Step) -> int | None:
    """The delivery complete count of a record whose state is known."""
    value = step.written
    if value is None or not step.after.is_live or value.delivery_complete_count <= UNKNOWN_COUNT:
        return None
    return value.delivery_complete_count
