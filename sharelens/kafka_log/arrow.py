"""numpy arrays as Arrow arrays, without a copy where the layouts agree.

`pa.array` and `pa.scalar` import pandas when it is installed, which costs a
short command more than its answer does.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_KINDS = {np.dtype(np.int16): pa.int16(), np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}


def integers(values: npt.NDArray[np.int16] | npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> pa.Array:
    """An int16, int32 or int64 array without nulls."""
    packed = np.ascontiguousarray(values)
    return pa.Array.from_buffers(_KINDS[packed.dtype], len(packed), [None, pa.py_buffer(packed)], 0)


def booleans(values: npt.NDArray[np.bool_]) -> pa.Array:
    """A boolean array without nulls."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)], 0)


def repeated(text: str, count: int) -> pa.Array:
    """One text, `count` times, as a string array."""
    raw = np.frombuffer(text.encode(), dtype=np.uint8)
    offsets = (np.arange(count + 1, dtype=np.int64) * len(raw)).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(np.tile(raw, count))], 0
    )


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A record batch of length 0."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
