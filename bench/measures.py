"""The measure stage in this process, measure by measure, whole and over 1 % new records: seconds of CPU time.

Measures that are due together share their reads of the histories; here each one runs alone, so the lines add up to more
than the stage. Questions about all histories (`QUESTIONS`) read the log directory, each in a process of its own.
"""

import resource
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import generate
from bench.measure import children_s, sharelens
from jobs import books
from jobs.measure import stage as measure
from sharelens.lake.lake import Lake
from sharelens.measures.catalog import STAGED

ROW = ("--limit", "1")
QUESTIONS = (
    ("account", *ROW),
    ("attempts", *ROW),
    ("cost", *ROW),
    ("cost", "--state-partitions", *ROW),
    ("dlq", *ROW),
    ("latency", *ROW),
    ("report", "--out", "-"),
)
"""Commands with their own options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCost:
    """CPU seconds and peak memory of a question about everything."""

    name: str
    cpu_s: float
    peak_bytes: int


def questions(directory: Path) -> Iterator[QuestionCost]:
    """The cost of each question to the log directory."""
    for words in QUESTIONS:
        before_s = children_s()
        done = sharelens(*words, "--log-dir", str(directory), "--max-bytes", str(1 << 40))
        cpu_s = children_s() - before_s
        name = " ".join(word for word in words if word not in (*ROW, "--out", "-"))
        yield QuestionCost(name=name, cpu_s=cpu_s, peak_bytes=done.peak_bytes["driver"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """CPU seconds of one measure (None: all of them together), whole and over new records, and the peak so far."""

    name: str | None
    whole_s: float
    increment_s: float
    peak_bytes: int


def lakes(directory: Path, folder: Path) -> tuple[Path, Path]:
    """A lake with all stages but the last ones done for the first records, and the same one measured, with 1 % more."""
    first_lake, grown_lake = folder / "whole", folder / "more"
    stages = ("ingest", "decode", "replay")
    sharelens("ingest", "--log-dir", str(directory), "--lake", str(first_lake))
    for stage in stages[1:]:
        sharelens(stage, "--lake", str(first_lake))
    shutil.copytree(first_lake, grown_lake)
    sharelens("measure", "--lake", str(grown_lake))
    generate.append(directory, fraction=0.01)
    sharelens("ingest", "--log-dir", str(directory), "--lake", str(grown_lake))
    for stage in stages[1:]:
        sharelens(stage, "--lake", str(grown_lake))
    return first_lake, grown_lake


def costs(first_lake: Path, grown_lake: Path) -> Iterator[Cost]:
    """The cost of every measure and of all together, with kernels loaded."""
    _measured(grown_lake, tuple(STAGED))
    for names in (tuple(STAGED), *((name,) for name in STAGED)):
        whole_s, increment_s = _measured(first_lake, names), _measured(grown_lake, names)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        yield Cost(name=None if len(names) > 1 else names[0], whole_s=whole_s, increment_s=increment_s, peak_bytes=peak)


def _measured(folder: Path, names: tuple[str, ...]) -> float:
    """CPU seconds of the due measures, without their commit."""
    begun, lake = _cpu_s(), Lake(folder)
    before, run = books.done(lake, "measure"), books.done(lake, "replay")
    for tasks in measure.batches_of(lake, run, before):
        measure.measure_tasks(names, tasks)
    return _cpu_s() - begun


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
