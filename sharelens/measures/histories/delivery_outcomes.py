"""Outcomes of deliveries: the new ranges of delivery history, without the results of splits and joins.

record 5   0-9 AVAILABLE/1                        new: 0-9 AVAILABLE/1
record 6   0-2 AVAILABLE/1   3-9 ACKNOWLEDGED/1   new: 3-9 ACKNOWLEDGED/1; 0-2 is a part of what ended there
"""

from dataclasses import dataclass

import numpy as np

from sharelens.measures.histories.numbers import (
    RANGE_COUNT,
    RANGE_FIRST,
    RANGE_FROM,
    RANGE_LAST,
    RANGE_MS,
    RANGE_STATE,
    RANGE_TO,
    Histories,
)
from sharelens.measures.ranges.steps import LAST_OFFSET, Flags, Ints
from state_model.columnar.kernels import kernel, leaf
from state_model.columnar.ranges import grown

NEVER = -1
# Columns of the pieces that the kernel writes; ROW: the range.
(PIECE_FIRST, PIECE_LAST, ROW) = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Outcomes of deliveries: one entry for each range that newly came to a state; splits and joins are left out.

    By life, record and first offset. `at`: log offset of the record; `at_ms`: its log time.
    """

    life: Ints
    first: Ints
    last: Ints
    state: Ints
    count: Ints
    at: Ints
    at_ms: Ints


@leaf
def _order(ranges: np.ndarray, life: np.ndarray, ended: int, began: int) -> int:
    """Compares the end of a range with the begin of another: below 0 for an earlier life or record, 0 for the same."""
    if life[ended] != life[began]:
        return -1 if life[ended] < life[began] else 1
    return int(np.sign(ranges[ended, RANGE_TO] - ranges[began, RANGE_FROM]))


@kernel
def _news(ranges: np.ndarray, life: np.ndarray, began: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """The parts of ranges that began, less ranges that ended at the same record in the same state and count.

    `began`, `ended`: rows of `ranges` by life, record and first offset; those of one life and record are disjoint.
    """
    # Both lists have the same order, so `low` only grows: what it passes ended at an earlier record, or below this
    # range and so below the later ones of the record. A range that ended may reach over several that began, so each of
    # them looks at it again from `low` on. The ends cut a range into pieces, hence the output grows.
    out = np.empty((began.shape[0] + 1, 3), np.int64)
    piece_count, low = 0, 0
    for row in began:
        at, last = max(0, ranges[row, RANGE_FIRST]), min(ranges[row, RANGE_LAST], LAST_OFFSET)
        while low < ended.shape[0]:
            order = _order(ranges, life, ended[low], row)
            if order > 0 or (order == 0 and ranges[ended[low], RANGE_LAST] >= at):
                break
            low += 1
        # All of the range below `at` is written or left out.
        for against in ended[low:]:
            if _order(ranges, life, against, row) != 0 or ranges[against, RANGE_FIRST] > last:
                break
            same = ranges[against, RANGE_STATE] == ranges[row, RANGE_STATE]
            if same and ranges[against, RANGE_COUNT] == ranges[row, RANGE_COUNT]:
                before = ranges[against, RANGE_FIRST] - 1
                if before >= at:
                    out = grown(out, piece_count + 1)
                    out[piece_count, PIECE_FIRST], out[piece_count, PIECE_LAST], out[piece_count, ROW] = at, before, row
                    piece_count += 1
                at = max(at, min(ranges[against, RANGE_LAST], LAST_OFFSET) + 1)
        if at <= last:
            out = grown(out, piece_count + 1)
            out[piece_count, PIECE_FIRST], out[piece_count, PIECE_LAST], out[piece_count, ROW] = at, last, row
            piece_count += 1
    return out[:piece_count]


def outcomes_of(histories: Histories, life: Ints, chosen: Flags) -> Outcomes:
    """The outcomes in the chosen ranges of the delivery history; `life`: the life of each range.

    A range splits or joins when a neighbour changes. Offsets are new to a state only where no range of the same state
    and count ended at the record at which the range began.
    """
    ranges, number = histories.ranges, histories.life_number
    chosen = chosen & (np.maximum(ranges[:, RANGE_FIRST], 0) <= np.minimum(ranges[:, RANGE_LAST], LAST_OFFSET))
    began = np.flatnonzero(chosen)
    ended = histories.ended[chosen[histories.ended]]
    news = _news(ranges, number, began, ended)
    rows = news[:, ROW]
    return Outcomes(
        life=life[rows],
        first=news[:, PIECE_FIRST],
        last=news[:, PIECE_LAST],
        state=ranges[rows, RANGE_STATE],
        count=ranges[rows, RANGE_COUNT],
        at=ranges[rows, RANGE_FROM],
        at_ms=ranges[rows, RANGE_MS],
    )
