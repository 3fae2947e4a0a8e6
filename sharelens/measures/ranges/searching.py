"""Kernels that search and sort offsets, most of which lie near each other. Other kernels contain their machine code."""

import numpy as np

from state_model.columnar.kernels import kernel, leaf

SPREAD = 8
"""Values that lie so many times as far apart as they are many are sorted by comparing them."""


@leaf
def position(values: np.ndarray, value: int, near: int) -> int:
    """The first position in an ascending array with at least a value (np.searchsorted), from a near one on.

    The steps away from `near` double, so that the work goes by the distance.
    """
    size = values.shape[0]
    # At most one of the two loops runs. It brackets the position in O(log distance): all values below `low` are
    # smaller, all from `high` on are at least `value`; the binary search keeps that.
    low, high, step = near, near, 1
    while low > 0 and values[low - 1] >= value:
        high, low, step = low - 1, max(0, low - step), 2 * step
    step = 1
    while high < size and values[high] < value:
        low, high, step = high + 1, min(size, high + step), 2 * step
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def distinct(values: np.ndarray) -> np.ndarray:
    """The different values, ascending: counting sort, O(n), where they lie near each other."""
    if values.shape[0] == 0:
        return values
    low, high = values.min(), values.max()
    if low < 0 or high - low >= SPREAD * values.shape[0]:
        return np.unique(values)
    # At most SPREAD flags a value: values that a hostile record spreads wide are compared instead. `low` is not
    # negative here, so the difference can't overflow.
    occurs = np.zeros(high - low + 1, np.bool_)
    for value in values:
        occurs[value - low] = True
    ascending: np.ndarray = low + np.flatnonzero(occurs)
    return ascending
