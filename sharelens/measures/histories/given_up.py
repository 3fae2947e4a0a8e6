"""Offsets whose last state in a life is a selected one, as kernels over ranges of delivery history.

The last range that covers an offset in a life has its last state: each offset lies in one range at a time. The first
range has its first outcome; the first range with the last state has the time of that state.
"""

import numpy as np

from sharelens.measures.histories.numbers import RANGE_FIRST, RANGE_LAST, RANGE_STATE
from sharelens.measures.ranges.searching import distinct, position
from state_model.columnar.kernels import kernel
from state_model.columnar.ranges import MAX_OFFSET, grown

STATES = 5
NOWHERE = -1

# Columns of a piece of offsets; FINAL to ARCHIVING_AT are row numbers (NOWHERE: it never was ARCHIVING).
(FIRST, LAST, FINAL, EARLIEST, ENTERED, ARCHIVING_AT, PRESENCE) = range(7)
WIDTH = 7
ARCHIVING_STATE = 3

REACHED, SELECTED = 1, 2
"""Flags of a range: its state is a selected one; it also counts as the last one."""


@kernel
def _union(ranges: np.ndarray, flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last offsets of the union of the selected ranges, disjoint and ascending."""
    # Ranges sorted by first offset: each one either overlaps the last union range or begins a new one.
    chosen = np.flatnonzero(flags & SELECTED)
    chosen = chosen[np.argsort(ranges[chosen, RANGE_FIRST])]
    firsts, lasts = np.empty(chosen.shape[0], np.int64), np.empty(chosen.shape[0], np.int64)
    length = 0
    for i in range(chosen.shape[0]):
        first, last = ranges[chosen[i], RANGE_FIRST], ranges[chosen[i], RANGE_LAST]
        if length > 0 and first <= lasts[length - 1]:
            lasts[length - 1] = max(lasts[length - 1], last)
        else:
            firsts[length] = first
            lasts[length] = last
            length += 1
    return firsts[:length], lasts[:length]


@kernel
def _touching(ranges: np.ndarray, firsts: np.ndarray, lasts: np.ndarray) -> np.ndarray:
    """The rows whose range shares an offset with one of the disjoint ranges."""
    # The union is disjoint and ascends, so the first range that does not end below a row is the only one to compare.
    touching = np.empty(ranges.shape[0], np.int64)
    count, at = 0, 0
    for row in range(ranges.shape[0]):
        at = position(lasts, ranges[row, RANGE_FIRST], at)
        if at < lasts.shape[0] and firsts[at] <= ranges[row, RANGE_LAST]:
            touching[count] = row
            count += 1
    return touching[:count]


@kernel
def _bounds(ranges: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The boundaries of ranges, ascending: first offsets, and offsets behind last ones."""
    bounds = np.empty(2 * rows.shape[0], np.int64)
    count = 0
    for i in range(rows.shape[0]):
        bounds[count] = ranges[rows[i], RANGE_FIRST]
        count += 1
        if ranges[rows[i], RANGE_LAST] < MAX_OFFSET:
            bounds[count] = ranges[rows[i], RANGE_LAST] + 1
            count += 1
    return distinct(bounds[:count])


@kernel
def _painted(
    ranges: np.ndarray, flags: np.ndarray, rows: np.ndarray, bounds: np.ndarray, state: int, newest: bool
) -> np.ndarray:
    """For each cell the newest or the oldest of the rows that covers it; only reached ones of a state, if it is none
    of NOWHERE. `rows` by time."""
    # A cell is painted once, by the first row in the order of painting; onward[cell] leads past painted cells. So work
    # goes by rows and cells, not by how far ranges overlap.
    cells = bounds.shape[0]
    covering = np.full(cells, NOWHERE, np.int64)
    onward, near = np.arange(cells + 1), 0
    for n in range(rows.shape[0]):
        row = rows[rows.shape[0] - 1 - n] if newest else rows[n]
        if state != NOWHERE and (ranges[row, RANGE_STATE] != state or flags[row] & REACHED == 0):
            continue
        near = position(bounds, ranges[row, RANGE_FIRST], near)
        cell = near
        while True:
            while onward[cell] != cell:  # skip painted cells, shortening the way
                onward[cell] = onward[onward[cell]]
                cell = onward[cell]
            if cell >= cells or bounds[cell] > ranges[row, RANGE_LAST]:
                break
            covering[cell] = row
            onward[cell] = cell + 1
    return covering


@kernel
def _pieces_of(ranges: np.ndarray, flags: np.ndarray, out: np.ndarray, piece_count: int) -> tuple[np.ndarray, int]:
    """Adds the pieces of one life to `out`, which holds `piece_count`; row numbers count from its first range on."""
    firsts, lasts = _union(ranges, flags)
    if firsts.shape[0] == 0:
        return out, piece_count
    rows = _touching(ranges, firsts, lasts)
    bounds = _bounds(ranges, rows)
    final = _painted(ranges, flags, rows, bounds, NOWHERE, True)
    earliest = _painted(ranges, flags, rows, bounds, NOWHERE, False)
    ways = np.empty((STATES, bounds.shape[0]), np.int64)
    for state in range(STATES):
        ways[state] = _painted(ranges, flags, rows, bounds, state, False)
    before = NOWHERE
    for cell in range(bounds.shape[0]):
        if final[cell] == NOWHERE or flags[final[cell]] & SELECTED == 0:
            before = NOWHERE
            continue
        last = bounds[cell + 1] - 1 if cell + 1 < bounds.shape[0] else MAX_OFFSET
        same = before != NOWHERE and final[cell] == final[before] and earliest[cell] == earliest[before]
        for state in range(STATES):
            same = same and ways[state, cell] == ways[state, before]
        before = cell
        if same:
            out[piece_count - 1, LAST] = last
            continue
        out = grown(out, piece_count + 1)
        out[piece_count, FIRST] = bounds[cell]
        out[piece_count, LAST] = last
        out[piece_count, FINAL] = final[cell]
        out[piece_count, EARLIEST] = earliest[cell]
        out[piece_count, ENTERED] = ways[ranges[final[cell], RANGE_STATE], cell]
        out[piece_count, ARCHIVING_AT] = ways[ARCHIVING_STATE, cell]
        out[piece_count, PRESENCE] = 0
        piece_count += 1
    return out, piece_count


@kernel
def pieces_of(ranges: np.ndarray, flags: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """The selected offsets of all lives: pieces (FIRST to PRESENCE), cut where their ranges begin and end.

    `ranges`, `begins`: `ranges` and `life_begins` of Histories. `flags`: of each range.
    """
    out = np.empty((64, WIDTH), np.int64)
    piece_count = 0
    for life in range(begins.shape[0] - 1):
        begin, end, before = begins[life], begins[life + 1], piece_count
        out, piece_count = _pieces_of(ranges[begin:end], flags[begin:end], out, piece_count)
        for piece in range(before, piece_count):
            for column in (FINAL, EARLIEST, ENTERED, ARCHIVING_AT):
                out[piece, column] += begin if out[piece, column] != NOWHERE else 0
    return out[:piece_count]


@kernel
def near_selected(ranges: np.ndarray, flags: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Whether each range shares an offset with a selected one of its life; arguments as for `pieces_of`."""
    is_near = np.zeros(ranges.shape[0], np.bool_)
    for life in range(begins.shape[0] - 1):
        begin, end = begins[life], begins[life + 1]
        firsts, lasts = _union(ranges[begin:end], flags[begin:end])
        if firsts.shape[0] > 0:
            is_near[begin + _touching(ranges[begin:end], firsts, lasts)] = True
    return is_near
