"""From which offset on the copies of a partition supersede the rows of the lake.

Kafka truncates a log whose leader lost its tail, and the next leader epoch starts there (KIP-101).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sharelens.evidence.coverage import Coverage
from sharelens.evidence.intervals import Interval, intersection
from sharelens.kafka_log.layout import PartitionDirectory
from sharelens.kafka_log.leader_epochs import latest
from sharelens.kafka_log.union import LogPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """From `offset` on, a copy and the lake hold different logs; `copy_wins` by its higher leader epoch."""

    offset: int
    copy_wins: bool


Compare = Callable[[LogPartition, PartitionDirectory, Sequence[Interval]], Divergence | None]
"""Compares a copy with the lake over some offsets."""


def supersede(
    partition: LogPartition,
    lake_coverage: Coverage,
    unread: Sequence[PartitionDirectory],
    offered: Mapping[str, Interval],
    compare: Compare | None,
) -> tuple[int | None, dict[str, Interval]]:
    """(The offset from which copies supersede the lake's rows, null: none; the offsets that copies can give, by URI).

    A copy in `unread` is compared by content, and gives no offsets behind the place where it loses. Of a source that
    was read before, the leader epochs say whether it was truncated since.
    """
    begins: list[int] = []
    remaining = dict(offered)
    for copy in partition.copies:
        if copy not in unread:
            begins += _truncated_at(copy, lake_coverage, offered[copy.uri])
            continue
        shared_ranges = intersection([offered[copy.uri]], lake_coverage.covered)
        divergence = None if compare is None else compare(partition, copy, shared_ranges)
        if divergence is not None and divergence.copy_wins:
            begins.append(divergence.offset)
        elif divergence is not None:
            first, last = offered[copy.uri]
            remaining[copy.uri] = (first, min(last, divergence.offset))
    return min(begins, default=None), remaining


def _truncated_at(copy: PartitionDirectory, lake_coverage: Coverage, offered: Interval) -> list[int]:
    """Start offsets, below what was read, of leader epochs above all known ones; of those that have records."""
    if not lake_coverage.leader_epochs:
        return []
    newest, end = latest(lake_coverage.leader_epochs), min(lake_coverage.end, offered[1])
    return [start for epoch, start in copy.leader_epochs if epoch > newest and start < end]
