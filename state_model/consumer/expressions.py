"""When a coordinator resolves the regular expressions of a consumer group again (GroupMetadataManager of 4.3.1).

All expressions of a group are resolved together, so that an update costs one rebalance.
"""

from typing import Final

from state_model.consumer.group_values import ConsumerGroup

REFRESH_MIN_INTERVAL_MS: Final = 10_000
"""Within this time after a resolution there is no other one."""
REFRESH_INTERVAL_MS: Final = 600_000
"""group.consumer.regex.refresh.interval.ms: after this time there is another one."""


def expressions_to_resolve(
    before: ConsumerGroup | None, after: ConsumerGroup, topics_version: int, refresh_interval_ms: int, now_ms: int
) -> frozenset[str]:
    """The expressions to resolve after a heartbeat; none while that isn't due.

    They are due when one of them isn't resolved or is no longer used, when topics were created since the last
    resolution, or when that is too old.

    Args:
        before, after: the group; times and versions count as they were before the heartbeat.
        topics_version: the version of the metadata with the newest topic; see ResolvedExpression.
    """
    before = before or ConsumerGroup()
    subscribed = frozenset(after.regex_subscribers)
    if not subscribed:
        return subscribed
    is_due = len(subscribed) != len(before.resolved) or not subscribed <= before.regex_subscribers.keys()
    last = next(iter(before.resolved.values()), None)
    if last is not None:
        if now_ms <= last.timestamp_ms + REFRESH_MIN_INTERVAL_MS:
            return frozenset()
        is_due = is_due or last.version < topics_version or now_ms > last.timestamp_ms + refresh_interval_ms
    return subscribed if is_due else frozenset()
