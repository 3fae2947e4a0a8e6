"""From when on something is a finding: times that follow from Kafka's own, and what a caller sets."""

from dataclasses import dataclass

from sharelens.measures.settings.over_time import LOCK_DURATION, NO_SETTINGS, GroupSettings

SECOND_MS, MINUTE_MS, HOUR_MS = 1_000, 60_000, 3_600_000
DAY_MS = 24 * HOUR_MS
RECENT_MS = HOUR_MS
"""How long before now outcomes and life events are recent."""
LEAST_STALL_MS = 10 * SECOND_MS
LOCKS_OF_A_STALL = 3
STALL_WITHOUT_LOCK_MS = 3 * MINUTE_MS
"""A stall lasts three locks, LEAST_STALL_MS at least; where the lock is unknown, so long."""
UNSTABLE_MS = MINUTE_MS
"""How long a group may be not ready, rebalance, or have tasks without an owner, share partitions in initialization."""
CLOSED_MS, ABANDONED_MS, ACTIVE_MS = 5 * MINUTE_MS, 7 * DAY_MS, DAY_MS
"""A group has just closed; it is left for good; it finished records not long ago."""
SMALL_LAG = 2
UNASSIGNED_MS = 2 * MINUTE_MS
OLD_EVIDENCE_MS = 10 * MINUTE_MS
"""So long after the last record, the silence of the whole log is a finding."""
GROWTH_MS = 10 * MINUTE_MS
LEAST_GROWTH, LARGE_SHARE, GROWTH_SHARE = 10, 0.1, 0.02
"""Growth of less than LEAST_GROWTH records, or of a tenth of the lag, is none; nor is a smaller share of repeats.
Nor is growth of GROWTH_SHARE of what the group finishes in GROWTH_MS: what it has in hand goes up and down by as much.
"""
STREAMS_GROWTH_SHARE = 0.05
"""The same for streams groups, which commit every 30 s by default (`commit.interval.ms`)."""
BURST_MS, LEAST_BURST, BURST_SHARE, LARGE_BURST_SHARE = 5 * MINUTE_MS, 10, 0.05, 0.5
FILLING_SHARE, FILLING_LOCKS = 0.8, 3
LOOP_MS, EPOCHS_A_MINUTE = 5 * MINUTE_MS, 6
RETENTION_SHARE = 0.8
RECONCILIATION_MS, CONSUMER_SESSION_MS = 5 * MINUTE_MS, 45 * SECOND_MS
"""So long a member of a consumer group may wait for partitions at least, unless another one may keep them longer: for
its rebalance timeout, and its session (group.consumer.session.timeout.ms by default) if it is gone."""
REPEATS = 3
"""So often in the last hour a share partition comes into initialization when its coordinator can't end it."""
UNPRUNED_MS, UNPRUNED_BYTES = 15 * MINUTE_MS, 100 << 20
"""A state partition isn't pruned: the age of its oldest live snapshot (the coordinator writes one for a cold share
partition every 5 minutes), and how much was written since (a segment of the state topic by default)."""


@dataclass(frozen=True, slots=True)
class StallLimits:
    """From `possible_ms` on a stall may be one, from `sure_ms` on it is one, whatever the lock duration is."""

    possible_ms: int
    sure_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The thresholds of a question. `min_duration_ms`: what the caller takes for the shortest stall; None: by the lock
    duration that `settings` give."""

    settings: GroupSettings = NO_SETTINGS
    min_duration_ms: int | None = None

    def lock_ms(self, group_id: str) -> int | None:
        """The lock duration of a group; None: unknown."""
        return self.settings.of(group_id, LOCK_DURATION).number

    def stall(self, group_id: str) -> StallLimits:
        """How long the first incomplete offset of a group stands until it is stuck."""
        if self.min_duration_ms is not None:
            return StallLimits(self.min_duration_ms, self.min_duration_ms)
        lock_ms = self.lock_ms(group_id)
        if lock_ms is None:
            return StallLimits(LEAST_STALL_MS, STALL_WITHOUT_LOCK_MS)
        least_ms = max(LEAST_STALL_MS, LOCKS_OF_A_STALL * lock_ms)
        return StallLimits(least_ms, least_ms)

    def or_min_duration(self, threshold_ms: int) -> int:
        """A threshold of Kafka's times, unless the caller sets one."""
        return threshold_ms if self.min_duration_ms is None else self.min_duration_ms
