"""Metrics of a process that keeps a lake fresh: how old records were when they became visible, runs and upkeep."""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from enum import StrEnum

from jobs.freshness import Freshness
from sharelens import __version__
from sharelens.metrics import catalog
from sharelens.metrics.catalog import Kind, Metric, Scope
from sharelens.metrics.samples import Export, Sample

LAST_RUNS = 1000
"""Runs over which percentiles of freshness are made."""
QUANTILES = (0.5, 0.95, 0.99)
MS_PER_S = 1000


class Outcome(StrEnum):
    """How a run ended."""

    PUBLISHED = "published"
    NO_NEWS = "no_news"
    WITHHELD = "withheld"
    FAILED = "failed"


FRESHNESS = Metric(
    name="sharelens_run_freshness_seconds",
    twin="sharelens.run.freshness",
    scope=Scope.QUANTILE,
    unit="s",
    text="Time from the append of a state record to the publication that shows it first: of the oldest record of each "
    f"run, percentiles over the last {LAST_RUNS} runs that published records.",
    source="`run --every`",
    absent="no run has published a record",
)
PUBLISHED_LOG_TIME = Metric(
    name="sharelens_run_published_timestamp_seconds",
    twin="sharelens.run.published_timestamp",
    scope=Scope.PROCESS,
    unit="s",
    text="Log time of the newest state record that this process has published, as Unix time.",
    source="`run --every`",
    absent="no run has published a record",
)
RUNS = Metric(
    name="sharelens_runs_total",
    twin="sharelens.runs",
    scope=Scope.OUTCOME,
    unit="{run}",
    text="Runs by outcome: `published`, `no_news`, `withheld` (a closed gate), `failed` (the cluster did not answer, "
    "another process had the lake's lock).",
    source="`run --every`",
    kind=Kind.COUNTER,
)
RUN_UP = Metric(
    name="sharelens_run_up",
    twin="sharelens.run.up",
    scope=Scope.PROCESS,
    unit="1",
    text="1 if the last run got through, 0 if it failed.",
    source="`run --every`",
    absent="no run has ended",
)
RUN_SUCCESS = Metric(
    name="sharelens_run_last_success_timestamp_seconds",
    twin="sharelens.run.last_success_timestamp",
    scope=Scope.PROCESS,
    unit="s",
    text="End of the last run that got through, as Unix time.",
    source="`run --every`",
    absent="no run got through",
)
RUN_DURATION = Metric(
    name="sharelens_run_duration_seconds_total",
    twin="sharelens.run.duration",
    scope=Scope.PROCESS,
    unit="s",
    text="Time that runs took, failed ones included.",
    source="`run --every`",
    kind=Kind.COUNTER,
)
UPKEEPS = Metric(
    name="sharelens_upkeeps_total",
    twin="sharelens.upkeeps",
    scope=Scope.PROCESS,
    unit="{upkeep}",
    text="Upkeeps that were done.",
    source="`run --every --maintain-every`",
    kind=Kind.COUNTER,
)
UPKEEP_SUCCESS = Metric(
    name="sharelens_upkeep_last_success_timestamp_seconds",
    twin="sharelens.upkeep.last_success_timestamp",
    scope=Scope.PROCESS,
    unit="s",
    text="End of the last upkeep, as Unix time.",
    source="`run --every --maintain-every`",
    absent="there was none",
)
UPKEEP_DURATION = Metric(
    name="sharelens_upkeep_duration_seconds_total",
    twin="sharelens.upkeep.duration",
    scope=Scope.PROCESS,
    unit="s",
    text="Time that upkeeps took.",
    source="`run --every --maintain-every`",
    kind=Kind.COUNTER,
)
RUN_METRICS = (
    FRESHNESS, PUBLISHED_LOG_TIME, RUNS, RUN_UP, RUN_SUCCESS, RUN_DURATION, UPKEEPS, UPKEEP_SUCCESS, UPKEEP_DURATION,
    catalog.BUILD,
)  # fmt: skip
"""In the order in which they are written."""


class RunFigures:
    """The figures of a process that runs again and again: written by its runs, read by scrapes in another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._oldest_ms: deque[int] = deque(maxlen=LAST_RUNS)
        self._counts: Counter[Outcome] = Counter()
        self._values: dict[Metric, float] = {RUN_DURATION: 0.0, UPKEEPS: 0, UPKEEP_DURATION: 0.0}

    def ran(self, outcome: Outcome, seconds: float, freshness: Freshness | None = None) -> None:
        """Counts a run that has just ended, with what it published."""
        with self._lock:
            self._counts[outcome] += 1
            self._values[RUN_DURATION] += seconds
            self._values[RUN_UP] = int(outcome is not Outcome.FAILED)
            if outcome is not Outcome.FAILED:
                self._values[RUN_SUCCESS] = time.time()
            if freshness is not None:
                self._oldest_ms.append(freshness.oldest_ms)
                self._values[PUBLISHED_LOG_TIME] = freshness.log_time_ms / MS_PER_S

    def maintained(self, seconds: float) -> None:
        """Counts an upkeep that has just ended."""
        with self._lock:
            self._values[UPKEEPS] += 1
            self._values[UPKEEP_DURATION] += seconds
            self._values[UPKEEP_SUCCESS] = time.time()

    def freshness_ms(self) -> dict[float, int]:
        """Percentiles of the oldest record's age over the last runs that published records; empty without any."""
        with self._lock:
            return percentiles(list(self._oldest_ms), QUANTILES)

    def export(self) -> Export:
        """The samples, as of now."""
        samples = {metric: list(self._samples(metric)) for metric in RUN_METRICS}
        return Export(
            figures=(),
            samples={metric: metric_samples for metric, metric_samples in samples.items() if metric_samples},
            left_out=0,
        )

    def _samples(self, metric: Metric) -> Iterator[Sample]:
        match metric.scope:
            case Scope.QUANTILE:
                for quantile, age_ms in self.freshness_ms().items():
                    yield Sample(labels=(str(quantile),), value=age_ms / MS_PER_S, of=None)
            case Scope.OUTCOME:
                for outcome in Outcome:
                    yield Sample(labels=(outcome.value,), value=self._counts[outcome], of=None)
            case Scope.EXPORT:
                yield Sample(labels=(__version__,), value=1, of=None)
            case _ if metric in self._values:
                yield Sample(labels=(), value=self._values[metric], of=None)


def percentiles(values: Sequence[int], quantiles: Sequence[float]) -> dict[float, int]:
    """For each quantile the least value that so many of them do not exceed (nearest rank); empty for no values."""
    ordered = sorted(values)
    return {quantile: ordered[max(0, math.ceil(quantile * len(ordered)) - 1)] for quantile in quantiles if ordered}
