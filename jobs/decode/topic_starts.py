"""The smallest start offset of each user partition in all share state of the lake.

It does not depend on when records were read, so neither do the rows of bronze.topic_batch: batches below it were never
delivered to a share group (start offsets only go up within a life, and each life of each group names its first one).
"""

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.lake import Lake
from sharelens.lake.table_schemas import TOPIC_START
from sharelens.measures.topics.extents import TopicPartition
from sharelens.measures.topics.headers import begins_of

STARTS = "silver.topic_start"
START = "start_offset"


def named_starts(records: pa.Table) -> pa.Table:
    """TOPIC_START rows of decoded records (SHARE_RECORD) of one state partition.

    -1 names none: the start offset is not determined yet (snapshot) or is what it was (update).
    """
    rows = records.select(TOPIC_START.names)
    return lowest(rows.filter(pc.greater_equal(rows.column(START), 0))).cast(TOPIC_START)


def lowest(starts: pa.Table) -> pa.Table:
    """Of rows that differ in their start offset alone the lowest one: what tasks return does not grow with records."""
    rows = starts.group_by([name for name in starts.column_names if name != START]).aggregate([(START, "min")])
    return rows.rename_columns({f"{START}_min": START}).select(starts.column_names).cast(starts.schema)


def lowest_offsets(lake: Lake, cluster_id: str) -> dict[TopicPartition, int]:
    """The smallest start offset of each user partition (topic id, partition) in decoded share state."""
    columns = ["topic_id", "partition", START]
    return begins_of(lake.snapshot(STARTS).rows(columns, pc.field("cluster_id") == cluster_id))
