"""numpy arrays as Arrow arrays, without a copy where the layouts agree.

`pa.array` on a numpy array imports pandas when it is installed, which costs a short command more than its answer does.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_KINDS = {np.dtype(np.int16): pa.int16(), np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}


def integers(values: npt.NDArray[np.int16] | npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> pa.Array:
    """An int16, int32 or int64 array without nulls."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(_KINDS[values.dtype], len(values), [None, pa.py_buffer(values)], 0)


def booleans(values: npt.NDArray[np.bool_]) -> pa.Array:
    """A boolean array without nulls."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)], 0)


def constant(value: str | int, kind: pa.DataType, count: int) -> pa.Array:
    """One value, `count` times."""
    return pa.repeat(pa.scalar(value, kind), count)
