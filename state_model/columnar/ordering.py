"""The order of rows by integers, and rows as columns in that order."""

import numpy as np
import numpy.typing as npt

from state_model.columnar.kernels import is_ready, kernel

Ints = npt.NDArray[np.int64]
FEW_ROWS = 4096
"""Fewer rows are sorted without compiled code."""
LOADING_ROWS = FEW_ROWS << 7
"""As FEW_ROWS where numba is not loaded, which takes longer than it gains."""
DIGIT_BITS = 11


def order_by(*columns: Ints) -> Ints:
    """The stable order of rows by integer columns of one length, the first column before the others."""
    if len(columns[0]) < (FEW_ROWS if is_ready(_ordered) else LOADING_ROWS):
        return np.lexsort(columns[::-1])
    order = np.arange(len(columns[0]))
    for column in columns[::-1]:
        # A copy: arrays of Arrow can't be written, which is another type for numba: it would compile again.
        order = _ordered(column.astype(np.int64), order)
    return order


@kernel
def _ordered(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The rows `order` by their values; rows of equal values stay as they were. Changes `order`."""
    # Radix sort, a stable pass for each digit in which values differ: at most six, mostly one or two.
    low = values.min()
    is_sorted = True
    for i in range(1, order.shape[0]):
        is_sorted = is_sorted and values[order[i - 1]] <= values[order[i]]
    if is_sorted:
        return order
    # As numbers without a sign, differences of any two values fit.
    span = np.uint64(values.max()) - np.uint64(low)
    mask, shift = np.uint64((1 << DIGIT_BITS) - 1), np.uint64(0)
    spare = np.empty(order.shape[0], np.int64)
    while shift < 64 and span >> shift != 0:
        begins = np.zeros((1 << DIGIT_BITS) + 1, np.int64)
        for i in range(values.shape[0]):
            begins[((np.uint64(values[i]) - np.uint64(low)) >> shift & mask) + np.uint64(1)] += 1
        for digit in range(1 << DIGIT_BITS):
            begins[digit + 1] += begins[digit]
        for i in range(order.shape[0]):
            bucket = (np.uint64(values[order[i]]) - np.uint64(low)) >> shift & mask
            spare[begins[bucket]] = order[i]
            begins[bucket] += 1
        order, spare = spare, order
        shift += np.uint64(DIGIT_BITS)
    return order


@kernel
def by_column(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The matrix whose row c has column c of the rows in an order: the layout of Arrow."""
    columns = np.empty((rows.shape[1], order.shape[0]), rows.dtype)
    for i in range(order.shape[0]):
        for column in range(rows.shape[1]):
            columns[column, i] = rows[order[i], column]
    return columns
