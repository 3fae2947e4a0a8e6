"""Whether compaction has removed no record of a log partition of the group coordinator.

Each offset of a Kafka log has one record until compaction removes it. So a log with a record for every offset from 0 to
its end lacks none.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.schemas import column

IS_LOG_WHOLE = column(
    "is_log_whole", pa.bool_(), "the evidence has a record for every offset of the log partition, from 0 to its end"
)


def marked(rows: pa.Table, *, is_whole: bool) -> pa.Table:
    """Rows of one log partition with IS_LOG_WHOLE."""
    return rows.append_column(IS_LOG_WHOLE, pa.repeat(pa.scalar(is_whole), rows.num_rows))


def marked_each(rows: pa.Table, topic_id: str, whole_logs: Collection[tuple[str, int]]) -> pa.Table:
    """Rows of several log partitions with IS_LOG_WHOLE.

    `topic_id`: the column with the topic's id; `whole_logs`: the (topic id, partition) of the logs that are whole.
    """
    topics, partitions = rows.column(topic_id), rows.column("partition")
    is_whole = np.zeros(rows.num_rows, np.bool_)
    for topic, partition in whole_logs:
        is_whole |= pc.and_(pc.equal(topics, topic), pc.equal(partitions, partition)).to_numpy()
    return rows.append_column(IS_LOG_WHOLE, pa.array(is_whole))


def is_log_whole(rows: pa.Table) -> bool:
    """Whether all rows lie in whole logs; no where the column is missing."""
    return IS_LOG_WHOLE.name in rows.column_names and bool(pc.all(rows.column(IS_LOG_WHOLE.name)).as_py())


def whole_groups(records: pa.Table) -> frozenset[str]:
    """The groups in GROUP_RECORD rows whose log partition is whole; none where the column is missing."""
    if IS_LOG_WHOLE.name not in records.column_names:
        return frozenset()
    of_groups = records.group_by("group_id").aggregate([(IS_LOG_WHOLE.name, "all")])
    return frozenset(of_groups.filter(pc.field(f"{IS_LOG_WHOLE.name}_all")).column("group_id").to_pylist())
