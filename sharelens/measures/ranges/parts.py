"""Work cut into parts of about one size, without kernels, so that a question to a lake starts fast."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


def stretches(places: pa.Table, weights: Ints, target_weight: int, groups: Ints | None = None) -> Iterator[pa.Table]:
    """The rows cut into tables that weigh about `target_weight` each, one row at least; neighbours stay together.

    Rows of one of `groups`, which ascend, are cut only where they weigh more than that. Each table has buffers of its
    own: a slice is pickled with those of the whole table.
    """
    unit = np.arange(len(weights)) if groups is None else _units(weights, target_weight, groups)
    totals = np.bincount(unit, weights).astype(np.int64)
    numbers = ((2 * np.cumsum(totals) - totals) // (2 * target_weight))[unit]
    for number in np.unique(numbers).tolist():
        begin, end = np.searchsorted(numbers, [number, number + 1]).tolist()
        yield places.take(pa.array(np.arange(begin, end))).combine_chunks()


def _units(weights: Ints, target_weight: int, groups: Ints) -> Ints:
    """The number of what must not be cut, for each row: a group, or a row of a group that is too large."""
    is_first = np.append(True, np.diff(groups) != 0)[: len(groups)]
    group = np.cumsum(is_first) - 1
    is_large = np.bincount(group, weights)[group] > target_weight
    units: Ints = np.cumsum(is_first | is_large) - 1
    return units
