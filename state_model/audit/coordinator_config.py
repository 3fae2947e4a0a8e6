"""The configuration of the share coordinator that rules need."""

from typing import NamedTuple


class CoordinatorConfig(NamedTuple):
    """The smallest and the largest value that each setting of the share coordinator had from a time on.

    `least_updates`, `most_updates`: share.coordinator.snapshot.update.records.per.snapshot. `interval_ms`: the smallest
    share.coordinator.cold.partition.snapshot.interval.ms.
    """

    least_updates: int
    most_updates: int
    interval_ms: int
    from_ms: int
