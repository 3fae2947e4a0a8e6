"""Where a lake's copy of a cluster's logs goes on: the offset from which on each partition is still to be fetched."""

from collections.abc import Callable

import pyarrow.compute as pc

from jobs import books
from sharelens.evidence.coverage import Coverage, coverage
from sharelens.kafka_log.leader_epochs import LeaderEpoch, below
from sharelens.lake.lake import Lake
from state_model.errors import SharelensError
from state_model.topics import RECORD_TOPICS

FirstMissing = Callable[[str, str, int, int], tuple[int, tuple[LeaderEpoch, ...], int | None]]
"""(topic, topic id, partition, log start offset) -> (offset, the leader epochs of the records below it, the log time of
the newest of them). An offset below the log start offset is the end of what the lake has: there is a gap.
"""


def first_missing(lake: Lake, cluster_id: str, *, is_named: bool) -> FirstMissing:
    """For a partition of RECORD_TOPICS the first offset that the lake does not cover; for others its end in the lake.

    The log time is that of the lake's newest record of the partition. `is_named`: the user chose the cluster by its id.

    Of user topics a lake keeps headers from the lowest start offset of the groups on, so what it lacks below is not
    fetched.

    Raises:
        SharelensError: the lake is of other clusters, and the user did not name this one.
    """
    is_read = (pc.field("status") == "taken") & (pc.field("cluster_id") == cluster_id)
    extents = books.extents(lake, is_read)
    if not extents and not is_named:
        _ensure_no_other(lake, cluster_id)
    of_partition: dict[tuple[str, int], Coverage] = {
        (topic_id, partition): coverage(rows) for (_, topic_id, partition), rows in books.by_partition(extents).items()
    }

    def first(
        topic: str, topic_id: str, partition: int, log_start_offset: int
    ) -> tuple[int, tuple[LeaderEpoch, ...], int | None]:
        lake_coverage = of_partition.get((topic_id, partition))
        if lake_coverage is None:
            return log_start_offset, (), None
        if topic in RECORD_TOPICS:
            covers = (end for begin, end in lake_coverage.covered if begin <= log_start_offset < end)
            offset = next(covers, min(log_start_offset, lake_coverage.end))
        else:
            offset = max(log_start_offset, lake_coverage.end)
        return offset, below(lake_coverage.leader_epochs, offset), lake_coverage.log_time_ms

    return first


def _ensure_no_other(lake: Lake, cluster_id: str) -> None:
    other_clusters = sorted({row["cluster_id"] for row in books.extents(lake, pc.field("status") == "taken")})
    if other_clusters:
        raise SharelensError(
            f"{lake}: the lake is of cluster {', '.join(other_clusters)}, the running one is {cluster_id}; give "
            f"another "
            f"--lake, or --cluster-id {cluster_id} to keep both in this one"
        )
