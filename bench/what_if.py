"""What-if questions over a log beside its replay: time and processor time in one process."""

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sharelens.parameters.filters import KeyFilter
from sharelens.questions import what_if
from sharelens.questions.answers.measured import scope
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_logs
from sharelens.tables.port import Tables

QUESTIONS = {
    "what-if --snapshot-update-records 100": lambda evidence: what_if.other_snapshot_interval(
        evidence, KeyFilter(), CutChoice(), 100
    ),
    "what-if --delivery-count-limit 3": lambda evidence: what_if.other_delivery_limit(
        evidence, KeyFilter(), CutChoice(), 3
    ),
    "what-if --lock-duration 20s": lambda evidence: what_if.other_lock_duration(
        evidence, KeyFilter(), CutChoice(), 20_000
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds on the clock and of the processor, from the segments on, with kernels loaded."""

    wall_s: float
    cpu_s: float


def lines(directory: Path) -> Iterator[tuple[str, str, str]]:
    """Name, value and note of each question over a log directory."""
    replay = cost_of(directory, _replay)
    note = f"replay alone, from segments to both histories: {replay.wall_s:.2f} s, {replay.cpu_s:.2f} s of CPU"
    for name, question in QUESTIONS.items():
        cost = cost_of(directory, question)
        times = f"{cost.wall_s / replay.wall_s:.2f} and {cost.cpu_s / replay.cpu_s:.2f} times the replay"
        yield f"{name} of the log", f"{cost.wall_s:.2f} s, {cost.cpu_s:.2f} s of CPU: {times}", note


def cost_of(directory: Path, work: Callable[[Tables], object]) -> Cost:
    """The cost of the second of two runs."""
    _cost_of_once(directory, work)
    return _cost_of_once(directory, work)


def _replay(evidence: Tables) -> None:
    scope(evidence, KeyFilter(), CutChoice()).parts.each(lambda part: None)


def _cost_of_once(directory: Path, work: Callable[[Tables], object]) -> Cost:
    before, begun_s = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    with open_logs(Source(log_dirs=(str(directory),), max_bytes=1 << 40)) as evidence:
        work(evidence)
    after, ended_s = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall_s=ended_s - begun_s, cpu_s=cpu_s)
