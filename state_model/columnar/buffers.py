"""Converts between Arrow arrays and the numpy views that kernels read and fill, without copies where possible."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.signedinteger]


class BinaryView(NamedTuple):
    """A binary array, which kernels take as it is: row i is data[at[i]:at[i + 1]]; `there` is false for null.

    `at` ascends and has one entry more than there are rows, `there` one for each. A slice begins behind data[0], and a
    null may have bytes.
    """

    data: Bytes
    at: Int32s
    there: Bools


def binary_view(array: pa.Array) -> BinaryView:
    """View of a binary or string array, slices included; other binary layouts are cast to 32-bit offsets first."""
    if array.type not in (pa.binary(), pa.string()):
        array = array.cast(pa.binary())
    _, at, data = array.buffers()
    # Without rows or bytes Arrow may leave the buffers out. Views are read-only in any case: one type, one kernel.
    at = at if len(array) else bytes(4)
    return BinaryView(
        data=np.frombuffer(data if data is not None else b"", np.uint8),
        at=np.frombuffer(at, np.int32, len(array) + 1, array.offset * 4 if len(array) else 0),
        there=booleans(array.is_valid()),
    )


def booleans(array: pa.Array) -> Bools:
    """A boolean array without nulls as numpy."""
    values: Bools = array.to_numpy(zero_copy_only=False)
    return values


def bitmap(there: Bools | None) -> pa.Buffer | None:
    """The validity bitmap of `there`; None when all are there."""
    if there is None or there.all():
        return None
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def numbers(kind: pa.DataType, values: npt.NDArray[np.generic], there: Bools | None = None) -> pa.Array:
    """An array of a fixed-width integer type over `values` (of the same width), null where `there` is false."""
    if values.dtype.itemsize * 8 != kind.bit_width:
        values = values.astype(kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(values), [bitmap(there), pa.py_buffer(np.ascontiguousarray(values))])


def texts(kind: pa.DataType, ends: Int32s, data: Bytes, there: Bools | None = None) -> pa.Array:
    """A string or binary array over `data`; `ends` has one entry more than there are rows."""
    return pa.Array.from_buffers(kind, len(ends) - 1, [bitmap(there), pa.py_buffer(ends), pa.py_buffer(data)])


def lists(kind: pa.ListType, ends: Int32s, fields: list[pa.Array], there: Bools | None = None) -> pa.Array:
    """An array of lists of structs whose fields are `fields`; `ends` has one entry more than there are rows."""
    count = len(fields[0])
    # Structs of null lists have no entry, so that no struct is null.
    structs = pa.Array.from_buffers(kind.value_type, count, [None], children=fields)
    return pa.Array.from_buffers(kind, len(ends) - 1, [bitmap(there), pa.py_buffer(ends)], children=[structs])


def ends_of(sizes: Numbers) -> Int32s:
    """List or text boundaries from sizes: 0 and the running sums.

    Raises:
        OverflowError: more than 2^31 - 1 in all, which 32-bit offsets cannot hold.
    """
    # Summed in 64 bits: sums of 32 bits would wrap, and boundaries that go back make kernels read where nothing is.
    sums = np.cumsum(sizes, dtype=np.int64)
    if len(sums) and sums[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{sums[-1]} entries in one batch of rows: split it")
    return np.concatenate([[0], sums]).astype(np.int32)
