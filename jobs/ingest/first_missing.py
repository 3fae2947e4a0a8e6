"""Where a lake's copy of a cluster's logs goes on: the offset from which on each partition is still to be fetched."""

from collections.abc import Callable

import pyarrow.compute as pc

from evidence.coverage import Coverage, coverage
from jobs import books
from kafka_log.leader_epochs import LeaderEpoch, below
from lake.lake import Lake
from state_model.topics import RECORD_TOPICS

FirstMissing = Callable[[str, str, int, int], tuple[int, tuple[LeaderEpoch, ...]]]
"""(topic, topic id, partition, log start offset) -> (offset, at or above the log start offset, and the leader epochs of
the records below it).
"""


def first_missing(lake: Lake, cluster_id: str) -> FirstMissing:
    """For a partition of RECORD_TOPICS the first offset that the lake does not cover; for others its end in the lake.

    Of user topics a lake keeps headers from the lowest start offset of the groups on, so what it lacks below is not
    fetched.
    """
    is_read = (pc.field("status") == "taken") & (pc.field("cluster_id") == cluster_id)
    of_partition: dict[tuple[str, int], Coverage] = {
        (topic_id, partition): coverage(rows)
        for (_, topic_id, partition), rows in books.by_partition(books.extents(lake, is_read)).items()
    }

    def first(topic: str, topic_id: str, partition: int, log_start_offset: int) -> tuple[int, tuple[LeaderEpoch, ...]]:
        known = of_partition.get((topic_id, partition))
        if known is None:
            return log_start_offset, ()
        if topic in RECORD_TOPICS:
            covers = (end for begin, end in known.covered if begin <= log_start_offset < end)
            offset = next(covers, log_start_offset)
        else:
            offset = max(log_start_offset, known.end)
        return offset, below(known.leader_epochs, offset)

    return first
