"""Kernels over ranges of offsets with a priority: canonical lists, their pointwise maximum, searches.

A range is (first, last, priority); the priority packs delivery count and state so that integer order is the order of
Kafka's PersisterStateBatchCombiner (share-group-state-log §9). Ranges are compared as step functions over their
boundaries, never enumerated, so the bytes of the log bound the work, for any offsets that it claims. A canonical
list is ascending and disjoint, neighbours of equal priority joined.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from state_model.columnar.kernels import kernel, leaf

Number = TypeVar("Number", int, npt.NDArray[np.int64])

NONE = -1
MAX_OFFSET = (1 << 63) - 1
MIN_OFFSET = -(1 << 63)

# Columns of a range in the pool and in the scratch lists (int64 matrix: one row a range).
FIRST, LAST, PRIORITY, FROM_AT, FROM_TIME = range(5)


def priority(count: Number, state: Number) -> Number:
    """(delivery count, delivery state) as one integer of the same order; numbers or arrays of them (int64)."""
    return count * 256 + state


@kernel
def grown(rows: np.ndarray, need: int) -> np.ndarray:
    """`rows` with room for at least `need` rows; contents kept."""
    if need <= rows.shape[0]:
        return rows
    # Doubling keeps the copies linear in the rows that a caller adds over all its calls.
    bigger = np.empty((max(need, rows.shape[0] * 2), rows.shape[1]), rows.dtype)
    bigger[: rows.shape[0]] = rows
    return bigger


@leaf
def push(out: np.ndarray, count: int, first: int, last: int, rank: int) -> int:
    """Appends a range to the canonical list `out`, joining it with an equal neighbour; the new length."""
    # The list ascends, so only its last range can touch the new one. LAST + 1 can't overflow in a comparison that
    # succeeds: no range follows one that ends at the largest offset.
    if count > 0 and out[count - 1, PRIORITY] == rank and out[count - 1, LAST] + 1 == first:
        out[count - 1, LAST] = last
        return count
    out[count, FIRST] = first
    out[count, LAST] = last
    out[count, PRIORITY] = rank
    return count + 1


@kernel
def paint(batches: np.ndarray, count: int, out: np.ndarray) -> int:
    """Canonical list of overlapping, unordered batches: from the highest priority down, each fills the free offsets."""
    # Cells are the stretches between two boundaries, so there are at most two a batch, however many offsets a record
    # claims. All batches and all gaps consist of whole cells.
    starts = np.empty(2 * count, np.int64)
    bounds = 0
    for i in range(count):
        starts[bounds] = batches[i, FIRST]
        bounds += 1
        if batches[i, LAST] < MAX_OFFSET:
            starts[bounds] = batches[i, LAST] + 1
            bounds += 1
    starts = np.unique(starts[:bounds])
    cells = starts.shape[0]
    ranks = np.full(cells, MIN_OFFSET, np.int64)
    # onward[cell] leads to the first cell from `cell` on that is free; the entry behind the last cell ends each search.
    # A cell is filled once, by the first batch in descending priority, and shortened paths keep searches
    # short: overlapping batches cost no more than the sort. Batches of equal priority may come in either order.
    onward = np.arange(cells + 1)
    order = np.argsort(batches[:count, PRIORITY])
    for n in range(count - 1, -1, -1):
        batch = order[n]
        cell = np.searchsorted(starts, batches[batch, FIRST])
        while True:
            while onward[cell] != cell:  # skip cells that are filled, and shorten the path
                onward[cell] = onward[onward[cell]]
                cell = onward[cell]
            if cell >= cells or starts[cell] > batches[batch, LAST]:
                break
            ranks[cell] = batches[batch, PRIORITY]
            onward[cell] = cell + 1
    length = 0
    for cell in range(cells):
        if ranks[cell] != MIN_OFFSET:
            last = starts[cell + 1] - 1 if cell + 1 < cells else MAX_OFFSET
            length = push(out, length, starts[cell], last, ranks[cell])
    return length


@leaf
def without_empty(batches: np.ndarray, count: int) -> tuple[int, bool]:
    """Moves the batches that cover an offset to the front; their number, and whether they ascend and are disjoint."""
    # In place: `kept` never exceeds `i`, so no batch is overwritten before it is read.
    kept_count = 0
    ordered = True
    for i in range(count):
        if batches[i, FIRST] > batches[i, LAST]:
            continue
        if kept_count > 0 and batches[i, FIRST] <= batches[kept_count - 1, LAST]:
            ordered = False
        batches[kept_count, FIRST] = batches[i, FIRST]
        batches[kept_count, LAST] = batches[i, LAST]
        batches[kept_count, PRIORITY] = batches[i, PRIORITY]
        kept_count += 1
    return kept_count, ordered


@leaf
def joined(batches: np.ndarray, count: int, out: np.ndarray) -> int:
    """Canonical list of ascending, disjoint batches; its length."""
    length = 0
    for i in range(count):
        length = push(out, length, batches[i, FIRST], batches[i, LAST], batches[i, PRIORITY])
    return length


@kernel
def canonical(batches: np.ndarray, count: int, out: np.ndarray) -> int:
    """Coalesced, ascending, disjoint form of `batches`; a batch with first offset > last offset covers no offset."""
    # Kafka's combiner writes ascending, disjoint batches: one pass. Only other input pays for the sort in `paint`.
    kept_count, ordered = without_empty(batches, count)
    return joined(batches, kept_count, out) if ordered else paint(batches, kept_count, out)


@leaf
def reaching(ranges: np.ndarray, i: int, count: int, at: int) -> int:
    """The first range from `i` on that does not end below `at`."""
    while i < count and ranges[i, LAST] < at:
        i += 1
    return i


@leaf
def begin_of(ranges: np.ndarray, i: int, count: int) -> int:
    """First offset of range `i`; the largest offset at the end of the list."""
    return int(ranges[i, FIRST]) if i < count else MAX_OFFSET


@leaf
def piece_end(ranges: np.ndarray, i: int, count: int, first: int) -> int:
    """The last offset from `first` on up to which the priority in the list is constant."""
    if i >= count:
        return MAX_OFFSET
    return int(ranges[i, LAST]) if ranges[i, FIRST] <= first else int(ranges[i, FIRST]) - 1


@leaf
def rank_at(ranges: np.ndarray, i: int, count: int, first: int) -> int:
    """The priority of the list at `first`; the lowest number where no range covers it."""
    return int(ranges[i, PRIORITY]) if i < count and ranges[i, FIRST] <= first else MIN_OFFSET


@leaf
def merged(old: np.ndarray, i: int, old_end: int, new: np.ndarray, new_count: int, start: int, out: np.ndarray) -> int:
    """Pointwise maximum of two canonical lists, old[i:old_end] and `new`, cut below `start` (-1: not cut).

    Walks from one change of either list to the next:

        old   |---2---|     |--1--|
        new       |----3------|
        out   |-2-|----3------|-1-|
    """
    # Invariant: `out` is the canonical maximum of all offsets below `at`; i and j only advance. A piece begins at an
    # offset that a list covers (gaps are skipped) and ends where a range of either list begins or ends, so `out` gets
    # at most two pieces for each range of both lists: the room that callers reserve.
    length = 0
    j = 0
    at = MIN_OFFSET if start == NONE else start
    while True:
        i = reaching(old, i, old_end, at)
        j = reaching(new, j, new_count, at)
        if i >= old_end and j >= new_count:
            return length
        first = max(at, min(begin_of(old, i, old_end), begin_of(new, j, new_count)))
        last = min(piece_end(old, i, old_end, first), piece_end(new, j, new_count, first))
        rank = max(rank_at(old, i, old_end, first), rank_at(new, j, new_count, first))
        length = push(out, length, first, last, rank)
        if last == MAX_OFFSET:
            return length
        at = last + 1


@leaf
def first_reaching(ranges: np.ndarray, low: int, high: int, at: int) -> int:
    """The first of the rows [low, high) of a canonical list that does not end below `at`; `high` if all do."""
    # A canonical list is disjoint and ascends by first offset, hence by last offset, too.
    while low < high:
        middle = (low + high) // 2
        if ranges[middle, LAST] < at:
            low = middle + 1
        else:
            high = middle
    return low


@leaf
def rows_touching(ranges: np.ndarray, low: int, high: int, first: int, last: int) -> tuple[int, int]:
    """The rows, from the first to the last (exclusive), of [low, high) that overlap or touch [first, last]."""
    # Neighbours that only touch belong to the window: a new range of equal priority joins them. At both ends of the
    # offsets there is no neighbour, and the sum would overflow.
    low = first_reaching(ranges, low, high, first - 1 if first > MIN_OFFSET else first)
    beyond = last + 1 if last < MAX_OFFSET else last
    # One by one: whoever asks goes through these rows, which mostly are few.
    end = low
    while end < high and ranges[end, FIRST] <= beyond:
        end += 1
    return low, end
