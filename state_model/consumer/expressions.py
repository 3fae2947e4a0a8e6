"""When a coordinator resolves the regular expressions of a consumer group again (GroupMetadataManager of 4.3.1).

All expressions of a group are resolved together, so that an update costs one rebalance.
"""

from collections.abc import Collection, Mapping
from typing import Final

from state_model.consumer.group_values import ResolvedExpression

REFRESH_MIN_INTERVAL_MS: Final = 10_000
"""Within this time after a resolution there is no other one."""
REFRESH_INTERVAL_MS: Final = 600_000
"""group.consumer.regex.refresh.interval.ms: after this time there is another one."""


def expressions_to_resolve(
    resolved: Mapping[str, ResolvedExpression],
    before: Collection[str],
    after: frozenset[str],
    *,
    topics_version: int,
    refresh_interval_ms: int,
    now_ms: int,
) -> frozenset[str]:
    """The expressions to resolve after a heartbeat: all of `after`, or none while that isn't due.

    They are due when one of them isn't resolved or is no longer used, when topics were created since the last
    resolution, or when that is too old.

    Args:
        resolved: the group's expressions with their matches before the heartbeat.
        before, after: the expressions that members subscribe to, before the heartbeat and after it.
        topics_version: the version of the metadata with the newest topic; see ResolvedExpression.
    """
    if not after:
        return after
    is_due = len(after) != len(resolved) or not after.issubset(before)
    last = next(iter(resolved.values()), None)
    if last is not None:
        if now_ms <= last.timestamp_ms + REFRESH_MIN_INTERVAL_MS:
            return frozenset()
        is_due = is_due or last.version < topics_version or now_ms > last.timestamp_ms + refresh_interval_ms
    return after if is_due else frozenset()
