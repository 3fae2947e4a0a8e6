"""How many offsets ranges have; both ends of a range belong to it."""

import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.keys import SHARE_PARTITION_KEY


def offset_counts(ranges: pa.Table, first: str = "first_offset") -> pa.ChunkedArray:
    """The number of offsets of each range, from the column `first` to last_offset (int64)."""
    return pc.add(pc.subtract(ranges.column("last_offset"), ranges.column(first)), 1)


def by_share_partition(ranges: pa.Table, first: str = "first_offset") -> pa.Table:
    """A row a share partition (SHARE_PARTITION_KEY, `records`), in any order."""
    sized = ranges.select(SHARE_PARTITION_KEY).append_column("records", offset_counts(ranges, first))
    sums = sized.group_by(SHARE_PARTITION_KEY).aggregate([("records", "sum")])
    return sums.rename_columns([*SHARE_PARTITION_KEY, "records"])
