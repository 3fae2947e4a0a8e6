"""The smallest start offset of each user partition in all share state of the lake.

It does not depend on when records were read, so neither do the rows of bronze.topic_batch: batches below it were never
delivered to a share group (start offsets only go up within a life, and each life of each group names its first one).
"""

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.lake import Lake
from sharelens.lake.table_schemas import TOPIC_START

STARTS = "silver.topic_start"
START = "start_offset"


def named_starts(records: pa.Table) -> pa.Table:
    """TOPIC_START rows of decoded records (SHARE_RECORD) of one state partition.

    -1 names none: the start offset is not determined yet (snapshot) or is what it was (update).
    """
    return lowest(records.select(TOPIC_START.names).filter(pc.field(START) >= 0)).cast(TOPIC_START)


def lowest(starts: pa.Table) -> pa.Table:
    """Of rows that differ in their start offset alone the lowest one: what tasks return does not grow with records."""
    rows = starts.group_by([name for name in starts.column_names if name != START]).aggregate([(START, "min")])
    return rows.rename_columns({f"{START}_min": START}).select(starts.column_names).cast(starts.schema)


def lowest_offsets(lake: Lake, cluster_id: str) -> dict[tuple[str, int], int]:
    """The smallest start offset of each user partition (topic id, partition) in decoded share state."""
    columns = ["topic_id", "partition", START]
    return lowest_of(lake.snapshot(STARTS).rows(columns, pc.field("cluster_id") == cluster_id))


def lowest_of(starts: pa.Table) -> dict[tuple[str, int], int]:
    """The smallest start offset of each user partition in TOPIC_START rows."""
    columns = lowest(starts.select(["topic_id", "partition", START])).to_pydict()
    return dict(zip(zip(columns["topic_id"], columns["partition"], strict=True), columns[START], strict=True))
