"""`run --every`: runs again and again, upkeep at intervals, and metrics of both."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from jobs.commands.ages import Ages
from jobs.commands.refusals import say_closed
from sharelens.cli.listening import address_text, ensure_client, listen_address
from sharelens.cli.options.common import Duration, Percent, Seconds
from sharelens.cli.repeating import Pace, repeat, until_sigterm
from sharelens.output import json_text, say, tell
from state_model.errors import SharelensError, UsageError

if TYPE_CHECKING:
    from jobs.run_metrics import RunFigures
    from jobs.summary import Summary
    from sharelens.lake.lake import Lake

SCHEDULE = [
    click.option(
        "--every",
        "every_s",
        type=Seconds(least_ms=100),
        metavar="DURATION",
        help="Run again and again, until SIGTERM: 5s, 1m; a number: seconds.",
    ),
    click.option(
        "--cpu-quota",
        type=Percent(),
        metavar="PERCENT",
        help="With --every: where this process would take more of one core, intervals grow, up to three times as long  "
        "[default: 25%]",
    ),
    click.option(
        "--maintain-every",
        "maintain_every_s",
        type=Seconds(least_ms=1000),
        metavar="DURATION",
        help="With --every: upkeep (as `maintain --execute`) behind the first run, and at this interval.",
    ),
    click.option(
        "--maintain-window",
        type=Duration(),
        metavar="DURATION",
        help="With --maintain-every: time for which old cuts stay readable  [default: 1h]",
    ),
    click.option(
        "--retain",
        type=Ages(),
        metavar="AGES",
        help="With --maintain-every: drop older rows, as `maintain --retain`  [default: none]",
    ),
    click.option(
        "--listen", metavar="HOST:PORT", help="With --every: serve metrics of the runs at http://HOST:PORT/metrics."
    ),
    click.option("--allow-remote", is_flag=True, help="With --listen: allow addresses that other machines can reach."),
]
PARAMETERS = {
    "every_s": "--every",
    "cpu_quota": "--cpu-quota",
    "maintain_every_s": "--maintain-every",
    "maintain_window": "--maintain-window",
    "retain": "--retain",
    "listen": "--listen",
    "allow_remote": "--allow-remote",
}
NEEDS = {
    "cpu_quota": "every_s",
    "maintain_every_s": "every_s",
    "maintain_window": "maintain_every_s",
    "retain": "maintain_every_s",
    "listen": "every_s",
    "allow_remote": "listen",
}
"""By parameter the one without which it has no effect."""
CPU_QUOTA = 0.25
WINDOW_MS = 3_600_000
"""Upkeep keeps the cuts of the last hour: with a run every few seconds those of a week would be too many files."""
TINY_BYTES, LEAST_COMMITS = 256 << 10, 100
"""Upkeep every few seconds neither writes large files again nor cuts a log for a few commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When to run and to maintain. `maintain_every_s`: null: no upkeep; `window_ms`: for how long it keeps old cuts.

    `cpu_quota`: the share of one core from which on runs begin less often (sharelens.cli.repeating.Pace).
    """

    every_s: float
    cpu_quota: float
    maintain_every_s: float | None
    window_ms: int
    retain: Mapping[str, int]
    listen: tuple[str, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What to do again and again: a run over a lake, and printing its summary with further fields; at last, `end`."""

    lake: "Lake"
    end: "Callable[[], None]"
    run: "Callable[[], Summary]"
    tell: "Callable[[Summary, Mapping[str, Any]], None]"
    lock_timeout_s: float


def schedule_of(
    *,
    every_s: float | None = None,
    cpu_quota: float | None = None,
    maintain_every_s: float | None = None,
    maintain_window: int | None = None,
    retain: Mapping[str, int] | None = None,
    listen: str | None = None,
    allow_remote: bool = False,
) -> Schedule | None:
    """The schedule that options of `run` name; None without --every.

    Raises:
        UsageError: an option that needs another one.
    """
    values: dict[str, object] = {
        "every_s": every_s,
        "cpu_quota": cpu_quota,
        "maintain_every_s": maintain_every_s,
        "maintain_window": maintain_window,
        "retain": retain,
        "listen": listen,
        "allow_remote": allow_remote,
    }
    for name, needed in NEEDS.items():
        if values[name] and values[needed] is None:
            raise UsageError(f"run: {PARAMETERS[name]} goes with {PARAMETERS[needed]}")
    if every_s is None:
        return None
    if listen is not None:
        ensure_client("run")
    return Schedule(
        every_s=every_s,
        cpu_quota=cpu_quota or CPU_QUOTA,
        maintain_every_s=maintain_every_s,
        window_ms=WINDOW_MS if maintain_window is None else maintain_window,
        retain=retain or {},
        listen=None if listen is None else listen_address("run", listen, allow_remote=allow_remote),
    )


def keep_fresh(schedule: Schedule, work: "Work") -> None:
    """Runs until SIGTERM, which ends them behind the run or upkeep under way.

    A cluster that does not answer, and a lake that another process has locked, are tried again. A closed gate is said;
    the next cut may open it.
    """
    from jobs.run_metrics import RunFigures
    from sharelens.kafka_live.errors import ClusterError
    from sharelens.lake.errors import LakeLockedError

    figures = RunFigures()
    upkeep = _Upkeep(schedule, work, figures)
    pace = Pace(schedule.every_s, schedule.cpu_quota)

    def once() -> None:
        begun_s = time.process_time()
        try:
            _run(work, figures)
            upkeep.go_if_due()
        finally:
            release_unused_memory()
            pace.spent(time.process_time() - begun_s)

    with ExitStack() as stack:
        stack.callback(work.end)
        if schedule.listen is not None:
            stack.enter_context(_endpoint(figures, *schedule.listen))
        wait = stack.enter_context(until_sigterm())
        transient = (ClusterError, LakeLockedError)
        repeat(once, pace.interval_s, wait, transient=transient, say=lambda text: say(f"sharelens: {text}"))


def release_unused_memory() -> None:
    """Gives free memory back to the system: a heap that many threads use in turn grows by its gaps from run to run."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _run(work: "Work", figures: "RunFigures") -> None:
    """One run, counted, with its summary where it has news."""
    from jobs.run_metrics import Outcome

    begun_s = time.monotonic()
    try:
        summary = work.run()
    except SharelensError:
        figures.ran(Outcome.FAILED, time.monotonic() - begun_s)
        raise
    if summary.withheld:
        outcome = Outcome.WITHHELD
    else:
        outcome = Outcome.NO_NEWS if summary.run_id is None else Outcome.PUBLISHED
    figures.ran(outcome, time.monotonic() - begun_s, summary.freshness)
    if summary.run_id is not None:
        ages = {f"p{quantile * 100:g}": age_ms for quantile, age_ms in figures.freshness_ms().items()}
        work.tell(summary, {"freshness_of_runs_ms": ages})
    if summary.withheld:
        say_closed(summary.gates)


class _Upkeep:
    """Upkeep behind the first run of the process, and then at intervals."""

    def __init__(self, schedule: Schedule, work: "Work", figures: "RunFigures") -> None:
        self._schedule = schedule
        self._work = work
        self._figures = figures
        self._due_s = time.monotonic() if schedule.maintain_every_s is not None else math.inf

    def go_if_due(self) -> None:
        """Maintains the lake where the interval has passed since the last upkeep began. A closed gate leaves it out."""
        begun_s = time.monotonic()
        if begun_s < self._due_s:
            return
        from jobs.upkeep.maintain import MaintainOptions, maintain

        assert self._schedule.maintain_every_s is not None
        options = MaintainOptions(
            lake=self._work.lake,
            dry_run=False,
            retain=self._schedule.retain,
            window_ms=self._schedule.window_ms,
            tiny_bytes=TINY_BYTES,
            least_commits=LEAST_COMMITS,
            lock_timeout_s=self._work.lock_timeout_s,
        )
        done = maintain(options)
        self._due_s = begun_s + self._schedule.maintain_every_s
        if not done.closed:
            self._figures.maintained(time.monotonic() - begun_s)
            tell(json_text({"command": "maintain", "lake": str(self._work.lake), **done.as_dict()}))


@contextmanager
def _endpoint(figures: "RunFigures", host: str, port: int) -> Iterator[None]:
    """Serves the figures beside the runs; the address goes to stderr, because stdout has summaries alone."""
    from sharelens.metrics.prometheus import CONTENT_TYPE, prometheus_text
    from sharelens.metrics.serving import serving

    with serving(lambda: prometheus_text(figures.export(), with_process=True), CONTENT_TYPE, host, port) as bound:
        say(f"ready: {address_text(host, bound)}")
        yield
