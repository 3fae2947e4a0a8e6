"""The configuration of groups and brokers that rules on streams and consumer groups compare with, where it is known."""

from collections.abc import Callable
from typing import Final

ASSIGNMENT_INTERVAL: Final = "assignment.interval.ms"
HEARTBEAT_INTERVAL: Final = "heartbeat.interval.ms"
"""Settings of groups, behind the kind of group and a dot."""
INITIAL_DELAY: Final = "initial.rebalance.delay.ms"
MAX_STANDBY_REPLICAS: Final = "streams.max.standby.replicas"
"""A setting of brokers, with `group.` in front, as those of groups have it; groups have none of their own."""
Bounds = Callable[[str, int, int], tuple[int, int] | None]
"""The least and the largest number of a setting that were in force between two times; None: unknown at one of them."""
BoundsOf = Callable[[str], Bounds]
"""By group."""


def no_bounds(name: str, from_ms: int, to_ms: int) -> tuple[int, int] | None:
    """Bounds of no configuration: nothing to compare with."""
    return None
