"""The broker's metrics that KIP-932, KIP-848 and KIP-1071 list, as plain numbers.

Counting costs an addition and imports nothing; sharelens/broker/metrics_endpoint.py serves them. None has a
label that a client can choose, so their number is fixed.
"""

import selectors
import time
from collections import Counter, deque
from collections.abc import Sequence

from sharelens.broker.share.acknowledgement import AcknowledgementBatch, AcknowledgeType
from state_model.group_schemas import GroupKind

IDLE_WINDOW_S = 10.0
IDLE_WINDOWS = 6
"""The idle ratio covers about the last minute."""


class Timing:
    """Count, total duration and longest duration of an operation, in seconds."""

    __slots__ = ("clock", "count", "max_s", "sum_s")

    def __init__(self) -> None:
        self.clock = time.perf_counter
        self.count = 0
        self.sum_s = 0.0
        self.max_s = 0.0

    def took(self, begun_s: float) -> None:
        """Record one operation that began at `begun_s` by `clock()`."""
        seconds = self.clock() - begun_s
        self.count += 1
        self.sum_s += seconds
        if seconds > self.max_s:
            self.max_s = seconds


class BrokerMetrics:
    """All numbers.

    Attributes:
        requests: requests of a supported version, by API key.
        share_acknowledgements: requests with acknowledgements, alone or with a fetch.
        acknowledged_records: records of accepted acknowledgements, by type.
        share_partition_load: from the first fetch of a share partition to its state.
        state_partition_load: of a partition of `__share_group_state` from its log.
        state_write: WriteShareGroupState, its append included.
        group_rebalances: heartbeats that raised a group's epoch, by kind; of consumer groups also resolutions that did.
    """

    __slots__ = (
        "acknowledged_records",
        "group_rebalances",
        "requests",
        "share_acknowledgements",
        "share_partition_load",
        "state_partition_load",
        "state_write",
    )

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self.share_acknowledgements = 0
        self.acknowledged_records = [0] * len(AcknowledgeType)
        self.group_rebalances: Counter[GroupKind] = Counter()
        self.share_partition_load = Timing()
        self.state_partition_load = Timing()
        self.state_write = Timing()

    def acknowledged(self, batches: Sequence[AcknowledgementBatch]) -> None:
        """Count the records of accepted acknowledgements, which have passed `acknowledgement.validate`."""
        counts = self.acknowledged_records
        for first, last, types in batches:
            if len(types) == 1:
                counts[types[0]] += last - first + 1
                continue
            for kind in set(types):
                counts[kind] += types.count(kind)


class IdleSelector(selectors.DefaultSelector):
    """The event loop's selector, which measures the loop's idle time."""

    def __init__(self) -> None:
        super().__init__()
        self._window_s = time.monotonic()
        self._idle_s = 0.0
        self._ratios: deque[float] = deque(maxlen=IDLE_WINDOWS)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for sockets or timers."""
        begun_s = time.monotonic()
        ready = super().select(timeout)
        now_s = time.monotonic()
        self._idle_s += now_s - begun_s
        if now_s - self._window_s >= IDLE_WINDOW_S:
            self._ratios.append(self._idle_s / (now_s - self._window_s))
            self._window_s, self._idle_s = now_s, 0.0
        return ready

    def ratios(self) -> list[float]:
        """The idle part, 0 to 1, of the last windows, the open one last."""
        open_s = time.monotonic() - self._window_s
        return [*self._ratios, min(1.0, self._idle_s / open_s) if open_s > 0 else 1.0]
