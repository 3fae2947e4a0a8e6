"""Acknowledgements of clients (§5): validation against the window, and the changes to write."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from sharelens.broker.share.codes import ShareErrorCode
from sharelens.broker.share.transitions import Changes, Ending
from sharelens.broker.share.window import CachedBatch, Run, Window
from state_model.share_records import DeliveryState


class AcknowledgeType(IntEnum):
    """The type of an acknowledgement. GAP: the offset has no record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


# Looked up once: this is the work of every acknowledgement.
_NONE, _INVALID_STATE = ShareErrorCode.NONE, ShareErrorCode.INVALID_RECORD_STATE
_ACQUIRED, _ACKNOWLEDGED = DeliveryState.ACQUIRED, DeliveryState.ACKNOWLEDGED
_ACCEPT, _RELEASE, _REJECT, _RENEW = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)


class AcknowledgementBatch(NamedTuple):
    """A range of offsets, last inclusive, with one type for all or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


@dataclass(slots=True)
class Plan:
    """The changes of one request's acknowledgements to a share partition.

    After an error there are no changes. Rejected offsets are separate from those above the delivery count limit,
    because a dead letter has its cause.
    """

    changes: Changes
    error: ShareErrorCode = ShareErrorCode.NONE
    renewed: list[Run] = field(default_factory=list)
    rejected: set[int] = field(default_factory=set)


def validate(batches: Sequence[AcknowledgementBatch], *, last_type: int, may_renew: bool) -> ShareErrorCode:
    """The checks that need no state: INVALID_REQUEST, or NONE (ShareFetchRequest, ShareAcknowledgeRequest).

    Args:
        batches: of one partition, in the order of the request.
        last_type: the largest type of the request's version.
        may_renew: whether the request announced renewals and the group allows them.
    """
    previous_last = -1
    for batch in batches:
        types = batch.types
        if batch.first_offset > batch.last_offset or batch.first_offset < previous_last:
            return ShareErrorCode.INVALID_REQUEST
        previous_last = batch.last_offset
        if not types or (len(types) > 1 and len(types) != batch.last_offset - batch.first_offset + 1):
            return ShareErrorCode.INVALID_REQUEST
        kinds = set(types)
        if min(kinds) < AcknowledgeType.GAP or max(kinds) > last_type:
            return ShareErrorCode.INVALID_REQUEST
        if AcknowledgeType.RENEW in kinds and not may_renew:
            return ShareErrorCode.INVALID_REQUEST
    return ShareErrorCode.NONE


def plan(window: Window, member_id: str, batches: Sequence[AcknowledgementBatch], ending: Ending) -> Plan:
    """Start all changes of validated acknowledgements, or none of them."""
    change_plan = Plan(Changes(window))
    last = len(batches) - 1
    for index, batch in enumerate(batches):
        if batch.last_offset < window.start_offset:
            continue
        error = _find(window, batch, is_last=index == last)
        if error is _NONE:
            error = _plan_batch(window, member_id, batch, ending, change_plan)
        if error is not _NONE:
            change_plan.error = error
            change_plan.changes.abandon()
            change_plan.changes.tidy()
            return change_plan
    return change_plan


def _find(window: Window, batch: AcknowledgementBatch, *, is_last: bool) -> ShareErrorCode:
    """Whether the range was acquired; natural holes inside it are allowed."""
    lower = window.floor(batch.first_offset)
    if lower < 0 and batch.first_offset < window.start_offset:
        lower = window.floor(window.start_offset)
    if lower < 0:
        return _INVALID_STATE
    is_single = batch.first_offset == batch.last_offset
    last_known = window.batch_at(lower if is_single else window.floor(batch.last_offset)).last
    if last_known < batch.first_offset or (is_last and last_known < batch.last_offset):
        return ShareErrorCode.INVALID_REQUEST
    return _NONE


def _plan_batch(
    window: Window, member_id: str, batch: AcknowledgementBatch, ending: Ending, change_plan: Plan
) -> ShareErrorCode:
    by_offset = len(batch.types) > 1
    for first, last, kind in _segments(batch, window.start_offset):
        for cached in window.overlapping(first, last):
            if by_offset:
                cached.by_offset = True
            holder = cached.holder(first, last)
            for run in cached.touching(first, last) if holder < 0 else (cached.runs[holder],):
                if run.state is not _ACQUIRED or run.target is not None or run.member_id != member_id:
                    return _INVALID_STATE
            for run in cached.cover(first, last) if holder < 0 else (cached.cut_out(holder, first, last),):
                _plan_run(cached, run, kind, ending, change_plan)
    return _NONE


def _segments(batch: AcknowledgementBatch, start_offset: int) -> Iterable[tuple[int, int, int]]:
    """(first offset, last offset, type) of neighbours with one type, from the start offset on."""
    if len(batch.types) == 1:
        return ((max(batch.first_offset, start_offset), batch.last_offset, batch.types[0]),)
    return _neighbours(batch, start_offset)


def _neighbours(batch: AcknowledgementBatch, start_offset: int) -> Iterator[tuple[int, int, int]]:
    types = batch.types
    begin = max(0, start_offset - batch.first_offset)
    while begin < len(types):
        end = begin + 1
        while end < len(types) and types[end] == types[begin]:
            end += 1
        yield batch.first_offset + begin, batch.first_offset + end - 1, types[begin]
        begin = end


def _plan_run(cached: CachedBatch, run: Run, kind: int, ending: Ending, change_plan: Plan) -> None:
    if kind == _ACCEPT:
        change_plan.changes.start(cached, run, _ACKNOWLEDGED)
    elif kind == _RENEW:
        change_plan.renewed.append(run)
    elif kind == _RELEASE:
        change_plan.changes.start(cached, run, ending.released(run, run.first))
    elif kind == _REJECT:
        change_plan.rejected.add(run.first)
        change_plan.changes.start(cached, run, ending.given_up)
    else:
        change_plan.changes.start(cached, run, DeliveryState.ARCHIVED)
