"""Finds neighbouring ranges of one state that a writer may have left unjoined, as a kernel."""

import numpy as np

from sharelens.measures.histories.numbers import RANGE_FIRST, RANGE_FROM, RANGE_LAST, RANGE_TO
from state_model.columnar.kernels import kernel, leaf


@leaf
def _begins_before(ranges: np.ndarray, life: np.ndarray, began: int, ended: int) -> bool:
    """Whether a range began at an earlier record than another one ended, or at the same one and a lower offset."""
    if life[began] != life[ended]:
        return bool(life[began] < life[ended])
    if ranges[began, RANGE_FROM] != ranges[ended, RANGE_TO]:
        return bool(ranges[began, RANGE_FROM] < ranges[ended, RANGE_TO])
    return bool(ranges[began, RANGE_FIRST] < ranges[ended, RANGE_FIRST])


@kernel
def unjoined(ranges: np.ndarray, life: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """The ranges that ended where a range over their first offset, from further left, began at the same record.

    `ranges` by life, RANGE_FROM and RANGE_FIRST; `ended`: rows of it by life, RANGE_TO and RANGE_FIRST.
    """
    out, unjoined_count, behind = np.empty(ended.shape[0], np.int64), 0, 0
    # Merge join: both lists are in the same order, so `behind` only advances. The last range that began before a row's
    # offset is the only one that can cover it from the left: ranges of one record are disjoint.
    for row in ended:
        while behind < ranges.shape[0] and _begins_before(ranges, life, behind, row):
            behind += 1
        left_row = behind - 1
        if left_row < 0 or life[left_row] != life[row] or ranges[left_row, RANGE_FROM] != ranges[row, RANGE_TO]:
            continue
        if ranges[row, RANGE_FIRST] <= ranges[left_row, RANGE_LAST]:
            out[unjoined_count] = row
            unjoined_count += 1
    return out[:unjoined_count]
