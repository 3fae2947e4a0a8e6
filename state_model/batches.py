"""Interval algebra of state batches (share-group-state-log §9, PersisterStateBatchCombiner).

A batch gives each of its offsets a priority, (delivery count, delivery state) in lexicographic order. The state of an
offset is the maximum over all batches that cover it: commutative, associative and idempotent, so there is no "newer
beats older". Offsets are never enumerated: a batch may claim 2^62 of them, and all work is in the number of batches.

A batch whose last offset is below its first covers no offset. Combining drops it; Kafka's class does not handle it.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import TypeAlias

from state_model.rule_sets import RuleSet
from state_model.share_records import NOT_DETERMINED, DeliveryState, StateBatch
from state_model.tuples import maker

Batches: TypeAlias = tuple[StateBatch, ...]
Priority: TypeAlias = tuple[int, int]
Range: TypeAlias = tuple[int, int, int, int]
"""(first offset, last offset, delivery count, delivery state): sorts as Kafka sorts batches."""
LOWEST_OFFSET = -(1 << 63)
ARCHIVED = int(DeliveryState.ARCHIVED)
_state_batch = maker(StateBatch)
_FIRST = attrgetter("first_offset")
_LAST = attrgetter("last_offset")


class InOrder(tuple[StateBatch, ...]):
    """A tuple of batches that ascend, don't overlap, have no unknown tags and no equal neighbours that touch.

    Only this module creates it; it equals a plain tuple of the same batches.
    """

    __slots__ = ()


def priority(batch: StateBatch) -> Priority:
    """The priority of a state batch: (delivery count, delivery state); the larger one prevails on an offset."""
    return batch.delivery_count, batch.delivery_state


def has_unknown_state(batches: Iterable[StateBatch]) -> bool:
    """Whether a batch has a delivery state that this version does not know."""
    for batch in batches:  # noqa: SIM110 - any() takes twice as long, once for every record of a log
        if not 0 <= batch[2] <= ARCHIVED:
            return True
    return False


def combine(old: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int, *, rules: RuleSet) -> Batches:
    """The state batches of a share coordinator after `new` ones arrive on top of `old` ones; order does not matter.

    Batches below `start_offset` are dropped, the batch across it is cut, unless it is -1. A single remaining batch is
    returned unchanged; else the result is ascending and disjoint, and coalesced if the rules say so. The lists of both
    rule sets may differ, the state of each offset never does.
    """
    if isinstance(old, InOrder) or not old:
        in_window = _appended(old, new, start_offset) if len(new) == 1 else None
        if in_window is None:
            in_window = _combined_in_window(old, new, start_offset, rules)
        if in_window is not None:
            return in_window
    else:
        in_order = _joined((*old, *new), start_offset)
        if in_order is not None:
            return InOrder(in_order)
    pruned_batches = prune((*old, *new), start_offset)
    if len(pruned_batches) < 2:
        return pruned_batches
    return _marked(_general(pruned_batches, rules))


def _appended(old: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int) -> Batches | None:
    """The old batches with one new batch behind them, the most common case; None for any other case."""
    batch = new[0]
    first, last, state, count, tags = batch
    if tags or not start_offset <= first <= last:
        return None
    if not old:
        return InOrder(new)
    if old[-1].last_offset >= first:
        return None
    is_above = start_offset == NOT_DETERMINED or old[0].first_offset >= start_offset
    remaining_batches = old if is_above else _cut(old, start_offset)
    if not remaining_batches:
        return InOrder(new)
    its_first, its_last, its_state, its_count, _ = remaining_batches[-1]
    if its_last + 1 == first and its_count == count and its_state == state:
        return InOrder((*remaining_batches[:-1], _state_batch((its_first, last, state, count, ()))))
    return InOrder((*remaining_batches, batch))


def _combined_in_window(
    old: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int, rules: RuleSet
) -> Batches | None:
    """The combined batches, where only those old ones change that the new ones overlap or touch.

    old   |--a--|  |--b--||-c-|     |-d-|  |--e--|      new touches b, overlaps c; a, d and e are as they were
    new                  |---|

    A neighbour of the window can't become equal to the batch that it touches: that is a piece of an old batch with the
    same priority as before. None when a new batch has tags or covers no offset.
    """
    start = LOWEST_OFFSET if start_offset == NOT_DETERMINED else start_offset
    fresh: list[StateBatch] = []
    for batch in new:
        first, last, state, count, tags = batch
        if tags or last < first:
            return None
        if last >= start:
            fresh.append(batch if first >= start else _batch((start, last, count, state)))
    remaining_batches = _cut(old, start)
    if not fresh:
        return InOrder(remaining_batches)
    low, high = fresh[0].first_offset, fresh[0].last_offset
    for batch in fresh:
        low, high = min(low, batch.first_offset), max(high, batch.last_offset)
    left_index = bisect_left(remaining_batches, low - 1, key=_LAST)
    right_index = bisect_right(remaining_batches, high + 1, lo=left_index, key=_FIRST)
    middle = sorted((*remaining_batches[left_index:right_index], *fresh))
    joined = _joined(middle, NOT_DETERMINED)
    if joined is not None:
        return InOrder((*remaining_batches[:left_index], *joined, *remaining_batches[right_index:]))
    settled = _marked(_general(middle, rules))
    combined_batches = (*remaining_batches[:left_index], *settled, *remaining_batches[right_index:])
    return InOrder(combined_batches) if isinstance(settled, InOrder) else combined_batches


def _cut(old: Sequence[StateBatch], start: int) -> Sequence[StateBatch]:
    """Batches in order from an offset on, the one across it cut."""
    begin = bisect_left(old, start, key=_LAST)
    if begin == len(old):
        return ()
    first, last, state, count, _ = old[begin]
    if first < start:
        return (_batch((start, last, count, state)), *old[begin + 1 :])
    return old[begin:] if begin else old


def _general(batches: Iterable[StateBatch], rules: RuleSet) -> Batches:
    return pointwise_maximum(batches) if rules.coalesces_batches else combine_pairwise(batches)


def _marked(batches: Batches) -> Batches:
    """Disjoint batches in order, as InOrder if no equal neighbours touch each other."""
    for before, after in pairwise(batches):
        if before.last_offset + 1 == after.first_offset and before[2:] == after[2:]:
            return batches
    return InOrder(batches)


def _joined(batches: Sequence[StateBatch], start_offset: int) -> list[StateBatch] | None:
    """Ascending batches without overlap, in one pass: only equal neighbours are joined, as both rule sets do.

    None when the batches overlap, don't ascend or have tags.
    """
    start = LOWEST_OFFSET if start_offset == NOT_DETERMINED else start_offset
    out: list[StateBatch] = []
    end, count, state = LOWEST_OFFSET - 1, 0, 0
    for batch in batches:
        first, last, its_state, its_count, tags = batch
        if last < start:
            continue
        if first <= end or last < first or tags:
            return None
        if first == end + 1 and its_count == count and its_state == state and out:
            out[-1] = _batch((out[-1].first_offset, last, count, state))
        else:
            count, state = its_count, its_state
            out.append(batch if first >= start else _batch((start, last, count, state)))
        end = last
    return out


def prune(batches: Iterable[StateBatch], start_offset: int) -> Batches:
    """The batches at and above `start_offset`, the one across it cut; all of them if it is -1."""
    if start_offset == NOT_DETERMINED:
        return tuple(batches)
    return tuple(
        batch if batch.first_offset >= start_offset else _batch((start_offset, batch.last_offset, *priority(batch)))
        for batch in batches
        if batch.last_offset >= start_offset
    )


def pointwise_maximum(batches: Iterable[StateBatch]) -> Batches:
    """Each covered offset with its highest priority: ascending, disjoint, equal neighbours joined.

    One sweep over the boundaries: a heap holds the batches that began, the highest priority on top; those that ended
    leave it when they come to the top.
    """
    waiting = sorted(_ranges(batches))
    begun: list[tuple[int, int, int]] = []  # (-count, -state, last offset)
    out: list[Range] = []
    index = 0
    at = waiting[0][0] if waiting else 0
    while index < len(waiting) or begun:
        if not begun:
            at = max(at, waiting[index][0])
        while index < len(waiting) and waiting[index][0] <= at:
            _, last, count, state = waiting[index]
            heapq.heappush(begun, (-count, -state, last))
            index += 1
        while begun and begun[0][2] < at:
            heapq.heappop(begun)
        if begun:
            count, state, last = -begun[0][0], -begun[0][1], begun[0][2]
            if index < len(waiting):
                last = min(last, waiting[index][0] - 1)
            _append_joined(out, (at, last, count, state))
            at = last + 1
    return tuple(map(_batch, out))


def coalesce(batches: Iterable[StateBatch]) -> Batches:
    """The canonical form of a state: two lists give each offset the same state exactly if they coalesce to one list."""
    return pointwise_maximum(batches)


def combine_pairwise(batches: Iterable[StateBatch]) -> Batches:
    """The batches as Kafka 4.3 combines them: pair by pair, while two overlap, or touch with equal priority.

    Batches left of such a pair are final, so a piece that becomes equal to its final left neighbour stays apart.
    """
    waiting = sorted(set(_ranges(batches)))
    out: list[Range] = []
    while waiting:
        before = heapq.heappop(waiting)
        if not waiting:
            out.append(before)
            break
        after = waiting[0]
        equal = before[2:] == after[2:]
        if after[0] <= before[1] or (equal and after[0] == before[1] + 1):
            heapq.heappop(waiting)
            for piece in _settle(before, after):
                heapq.heappush(waiting, piece)
        else:
            out.append(before)
    return tuple(map(_batch, out))


def _settle(before: Range, after: Range) -> list[Range]:
    """The batches that replace two which overlap or touch, `before` sorting first (the table of §9).

    before  |-------|        before prevails:  |-------|----|   before, rest of after
    after       |--------|   after prevails:   |---|--------|   head of before, after, [tail of before]
    """
    first, last, *rank = before
    if rank == list(after[2:]):
        return [(first, max(last, after[1]), *before[2:])]
    if before[2:] > after[2:]:
        return [before, (last + 1, after[1], *after[2:])] if after[1] > last else [before]
    pieces = [after]
    if after[0] > first:
        pieces.append((first, after[0] - 1, *before[2:]))
    if after[1] < last:
        pieces.append((after[1] + 1, last, *before[2:]))
    return pieces


def _ranges(batches: Iterable[StateBatch]) -> Iterable[Range]:
    return (
        (batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
        for batch in batches
        if batch.first_offset <= batch.last_offset
    )


def _append_joined(out: list[Range], piece: Range) -> None:
    if out and out[-1][1] + 1 == piece[0] and out[-1][2:] == piece[2:]:
        out[-1] = (out[-1][0], *piece[1:])
    else:
        out.append(piece)


def _batch(piece: Range) -> StateBatch:
    first, last, count, state = piece
    return _state_batch((first, last, state, count, ()))
