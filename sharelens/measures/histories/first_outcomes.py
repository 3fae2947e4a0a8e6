"""The first outcome of offsets and the largest delivery count of each, life by life, as kernels.

Each offset lies in one range of delivery history at a time, so the oldest ACKNOWLEDGED or ARCHIVED range over it tells
its first outcome. Ranges are cut into cells at their ends; a value for many cells goes to two overlapping pieces whose
length is a power of two, which are halved level by level: work goes by the number of ranges, in whatever order.
"""

import numpy as np

from sharelens.measures.histories.numbers import RANGE_COUNT, RANGE_FIRST, RANGE_FROM, RANGE_LAST, RANGE_STATE
from sharelens.measures.ranges.searching import distinct, position
from sharelens.measures.ranges.steps import LAST_OFFSET
from state_model.columnar.kernels import kernel, leaf
from state_model.columnar.ranges import grown

NOWHERE = -1
ACKNOWLEDGED_STATE, ARCHIVED_STATE = 2, 4

# Columns of a piece; ROW: the range with the outcome.
(FIRST, LAST, ROW, COUNT) = range(4)
WIDTH = 4


@leaf
def _begin(ranges: np.ndarray, row: int) -> int:
    # A record may claim any int64: offsets are clipped to those that Kafka can assign.
    return int(min(max(ranges[row, RANGE_FIRST], 0), LAST_OFFSET))


@leaf
def _end(ranges: np.ndarray, row: int) -> int:
    """The offset behind a range, which does not end before it begins."""
    return int(max(_begin(ranges, row), min(max(ranges[row, RANGE_LAST], -1), LAST_OFFSET) + 1))


@kernel
def _bounds(ranges: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The boundaries of ranges, ascending: first offsets, and offsets behind last ones."""
    # Two bounds a range: cells are bounded by ranges, not by offsets.
    bounds = np.empty(2 * rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        bounds[2 * i] = _begin(ranges, rows[i])
        bounds[2 * i + 1] = _end(ranges, rows[i])
    return distinct(bounds)


@leaf
def _note(ranges: np.ndarray, row: int, cell: int, oldest: np.ndarray, largest: np.ndarray) -> None:
    """Counts a range for the piece of cells that begins at `cell` and has the length of the level."""
    largest[cell] = max(largest[cell], ranges[row, RANGE_COUNT])
    if ranges[row, RANGE_STATE] == ACKNOWLEDGED_STATE or ranges[row, RANGE_STATE] == ARCHIVED_STATE:
        before = oldest[cell]
        if before == NOWHERE or ranges[row, RANGE_FROM] < ranges[before, RANGE_FROM]:
            oldest[cell] = row


@leaf
def _halve(ranges: np.ndarray, half: int, oldest: np.ndarray, largest: np.ndarray) -> None:
    """Splits each piece of cells of a level into two pieces of half its length."""
    # Descending, so that `cell - half` still has what counts for the larger level.
    for cell in range(oldest.shape[0] - 1, half - 1, -1):
        largest[cell] = max(largest[cell], largest[cell - half])
        row, other = oldest[cell], oldest[cell - half]
        if other != NOWHERE and (row == NOWHERE or ranges[other, RANGE_FROM] < ranges[row, RANGE_FROM]):
            oldest[cell] = other


@kernel
def _by_level(
    ranges: np.ndarray, rows: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The first cell of each row and the cell behind its last; rows sorted by level, and where each level begins.

    The level says how many cells a row covers, as a power of two rounded down; rows that cover none are left out.
    """
    count = rows.shape[0]
    low, high, level = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    highest_level, near = -1, 0
    # Ranges that one record began ascend, so each search starts at the place of the last one. Every begin and end is in
    # `bounds`, so the cells of a row are exact.
    for i in range(count):
        near = position(bounds, _begin(ranges, rows[i]), near)
        low[i], high[i] = near, position(bounds, _end(ranges, rows[i]), near)
        level[i] = -1
        while (1 << (level[i] + 1)) <= high[i] - low[i]:
            level[i] += 1
        highest_level = max(highest_level, level[i])
    # Counting sort: there are few levels (log2 of the cells).
    begins = np.zeros(highest_level + 2, np.int64)
    for i in range(count):
        if level[i] >= 0:
            begins[level[i] + 1] += 1
    for power in range(highest_level + 1):
        begins[power + 1] += begins[power]
    filled, order = begins.copy(), np.empty(count, np.int64)
    for i in range(count):
        if level[i] >= 0:
            order[filled[level[i]]] = i
            filled[level[i]] += 1
    return low, high, order, begins


@kernel
def _first_outcomes(ranges: np.ndarray, rows: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each cell the range with the first outcome (NOWHERE: none), and the largest delivery count."""
    oldest, largest = np.full(bounds.shape[0], NOWHERE, np.int64), np.full(bounds.shape[0], NOWHERE, np.int64)
    low, high, order, begins = _by_level(ranges, rows, bounds)
    # Invariant: at level p an entry counts for 2^p cells from its own on. Two such pieces, one from the first cell and
    # one up to the last, cover a row; that they overlap is harmless for a minimum and a maximum. Halving costs O(cells)
    # a level, so work is O(ranges + cells * log cells), however far ranges overlap.
    for power in range(begins.shape[0] - 2, -1, -1):
        for n in range(begins[power], begins[power + 1]):
            i = order[n]
            _note(ranges, rows[i], low[i], oldest, largest)
            _note(ranges, rows[i], high[i] - (1 << power), oldest, largest)
        if power:
            _halve(ranges, 1 << (power - 1), oldest, largest)
    return oldest, largest


@leaf
def _same(ranges: np.ndarray, row: int, other: int) -> bool:
    return bool(
        ranges[row, RANGE_FROM] == ranges[other, RANGE_FROM] and ranges[row, RANGE_STATE] == ranges[other, RANGE_STATE]
    )


@kernel
def pieces_of(ranges: np.ndarray, chosen: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """The settled offsets of all lives: pieces (FIRST to COUNT), cut wherever the outcome or the count changes.

    `ranges`, `begins`: `ranges` and `life_begins` of Histories. `chosen`: the ranges that count.
    """
    out = np.empty((64, WIDTH), np.int64)
    piece_count = 0
    for life in range(begins.shape[0] - 1):
        life_rows = begins[life] + np.flatnonzero(chosen[begins[life] : begins[life + 1]])
        bounds = _bounds(ranges, life_rows)
        oldest, largest = _first_outcomes(ranges, life_rows, bounds)
        # Neighbouring cells with the same outcome and count become one piece. Arrays of cells exist for one life at a
        # time.
        for cell in range(bounds.shape[0] - 1):
            row = oldest[cell]
            if row == NOWHERE:
                continue
            before = oldest[cell - 1] if cell > 0 else NOWHERE
            if before != NOWHERE and largest[cell] == largest[cell - 1] and _same(ranges, row, before):
                out[piece_count - 1, LAST] = bounds[cell + 1] - 1
                continue
            out = grown(out, piece_count + 1)
            out[piece_count, FIRST] = bounds[cell]
            out[piece_count, LAST] = bounds[cell + 1] - 1
            out[piece_count, ROW] = row
            out[piece_count, COUNT] = largest[cell]
            piece_count += 1
    return out[:piece_count]
