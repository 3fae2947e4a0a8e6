"""Checks of epochs that streams and consumer groups share: of the group, of its target assignment, of its members."""

from state_model.audit.group_steps import GroupDifference
from state_model.audit.model_groups.bounds import ASSIGNMENT_INTERVAL
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import AnyHistory, differs
from state_model.audit.rule import Field


def epoch_skips(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A group epoch that is not the one before plus 1."""
    before = history.life.metadata
    if not record.is_a(history.kind.metadata) or before is None:
        return None
    epoch, expected = record.number("epoch"), before.number("epoch") + 1
    return None if epoch == expected else differs(Field.GROUP_EPOCH, expected, epoch, before)


def assignment_epoch_order(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """An assignment epoch that does not rise."""
    last = history.life.assignment_epoch
    if not record.is_a(history.kind.target) or last is None:
        return None
    epoch = record.number("assignmentEpoch")
    return None if epoch > last else differs(Field.ASSIGNMENT_EPOCH, last, epoch, history.life.target)


def assignment_epoch_stale(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """An assignment epoch that is not the group epoch."""
    metadata = history.life.metadata
    if not record.is_a(history.kind.target) or metadata is None:
        return None
    epoch, expected = record.number("assignmentEpoch"), metadata.number("epoch")
    return None if epoch == expected else differs(Field.ASSIGNMENT_EPOCH, expected, epoch, metadata)


def assignment_time(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A target assignment without a time, or with one before that of the last, or sooner than the interval after it."""
    if not record.is_a(history.kind.target):
        return None
    last, timestamp_ms = history.life.target, record.number("assignmentTimestamp")
    least = 1 if last is None else max(1, last.number("assignmentTimestamp"))
    interval = None if least == 1 else history.setting(ASSIGNMENT_INTERVAL, least, record.timestamp_ms)
    least += 0 if interval is None else interval[0]
    return None if timestamp_ms >= least else differs(Field.ASSIGNMENT_TIMESTAMP_MS, least, timestamp_ms, last)


def member_epoch_ahead(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A member epoch above the assignment epoch."""
    assignment_epoch = history.life.assignment_epoch
    if not record.is_a(history.kind.assignment) or assignment_epoch is None:
        return None
    epoch = record.number("memberEpoch")
    if epoch <= assignment_epoch:
        return None
    return differs(Field.MEMBER_EPOCH, assignment_epoch, epoch, history.life.target)


def settled_epoch(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A member epoch other than the assignment epoch where the member has nothing to give up."""
    expected = history.life.assignment_epoch
    if not record.is_a(history.kind.assignment) or expected is None:
        return None
    epoch = record.number("memberEpoch")
    if record.number("state") not in history.kind.settled or epoch == expected:
        return None
    return differs(Field.MEMBER_EPOCH, expected, epoch, history.life.target)


def previous_epoch(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A previous member epoch above the member epoch, or not that of the member's record before."""
    if not record.is_a(history.kind.assignment):
        return None
    previous, epoch = record.number("previousMemberEpoch"), record.number("memberEpoch")
    last = history.life.assignments.get(record.name or "")
    if last is not None:
        expected = last.epoch
    else:
        expected = 0 if history.life.is_whole else previous
    if previous != expected:
        return differs(Field.PREVIOUS_MEMBER_EPOCH, expected, previous, None if last is None else last.record)
    return None if previous <= epoch else differs(Field.PREVIOUS_MEMBER_EPOCH, epoch, previous)


def epoch_falls(history: AnyHistory, record: ModelRecord) -> GroupDifference | None:
    """A member epoch below that of the member's record before."""
    last = history.life.assignments.get(record.name or "")
    if not record.is_a(history.kind.assignment) or last is None:
        return None
    epoch = record.number("memberEpoch")
    return None if epoch >= last.epoch else differs(Field.MEMBER_EPOCH, last.epoch, epoch, last.record)
