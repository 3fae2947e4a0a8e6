"""How many offsets ranges have; both ends of a range belong to it."""

import pyarrow as pa
import pyarrow.compute as pc


def offset_counts(ranges: pa.Table, first: str = "first_offset") -> pa.ChunkedArray:
    """The number of offsets of each range, from the column `first` to last_offset (int64)."""
    return pc.add(pc.subtract(ranges.column("last_offset"), ranges.column(first)), 1)
