"""Work cut into parts of about one size, without kernels, so that a question to a lake starts fast."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


def stretches(places: pa.Table, weights: Ints, target_weight: int) -> Iterator[pa.Table]:
    """The rows cut into tables that weigh about `target_weight` each, one row at least; neighbours stay together.

    Each has buffers of its own: a slice is pickled with those of the whole table.
    """
    numbers = (2 * np.cumsum(weights) - weights) // (2 * target_weight)
    for number in np.unique(numbers).tolist():
        begin, end = np.searchsorted(numbers, [number, number + 1]).tolist()
        yield places.take(pa.array(np.arange(begin, end))).combine_chunks()
