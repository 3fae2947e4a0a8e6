"""The stage audit beside the stage replay, in this process with kernels loaded: all records, and 1 % more."""

import resource
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bench import generate
from bench.measure import children_s, sharelens
from jobs import books
from jobs.audit import stage as audit
from jobs.options import RunOptions
from jobs.progress import Progress
from jobs.replay import stage as replay
from jobs.spark.executors import Engine
from sharelens.lake.lake import Lake

EVERYTHING_BYTES = 1 << 60
FEW_RECORDS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU seconds of both stages, over all records and over 1 % more; the records of both."""

    replay_s: float
    audit_s: float
    more_replay_s: float
    more_audit_s: float
    records: int
    more_records: int


def lines(directory: Path, folder: Path, *, shape: str) -> Iterator[tuple[str, str, str]]:
    """What was measured, figure and note. The log directory gets 1 % more records; `folder`: for lakes."""
    few = folder / "log-few"
    generate.generate(few, shape=shape, records=FEW_RECORDS)
    _whole_and_more(few, folder / "few")  # loads the kernels
    cost = _whole_and_more(directory, folder / "all")
    of_replay = f"% of the {cost.replay_s:.2f} s that the replay of all takes"
    yield (
        "the stage audit",
        f"{cost.audit_s:.2f} s of CPU, {cost.records / cost.audit_s:,.0f} records/s",
        f"{100 * cost.audit_s / cost.replay_s:.0f} {of_replay}",
    )
    yield (
        f"the stage audit over {cost.more_records} new records",
        f"{cost.more_audit_s:.2f} s of CPU",
        f"{100 * cost.more_audit_s / cost.replay_s:.0f} {of_replay}; replay of the new ones {cost.more_replay_s:.2f} s",
    )
    before_s = children_s()
    log = sharelens("audit", "--log-dir", str(directory))
    cpu_s = children_s() - before_s
    size = sum(path.stat().st_size for path in directory.glob("*/*.log"))
    peak = log.peak_bytes["driver"] / 2**20
    yield (
        "audit --log-dir, no JVM",
        f"{log.seconds:.2f} s, {cpu_s:.2f} s of CPU",
        f"{size / 1e6:.0f} MB of log, {peak:.0f} MiB",
    )


def _whole_and_more(directory: Path, folder: Path) -> Costs:
    records, replay_s, audit_s = _stages(directory, folder)
    generate.append(directory, fraction=0.01)
    more_records, more_replay_s, more_audit_s = _stages(directory, folder)
    return Costs(
        replay_s=replay_s,
        audit_s=audit_s,
        more_replay_s=more_replay_s,
        more_audit_s=more_audit_s,
        records=records,
        more_records=more_records,
    )


def _stages(directory: Path, folder: Path) -> tuple[int, float, float]:
    """The new records of a log directory, and the CPU seconds of replay and audit over them."""
    sharelens("ingest", "--log-dir", str(directory), "--lake", str(folder))
    sharelens("decode", "--lake", str(folder))
    lake, engine, progress = Lake(folder), Engine(_no_session, EVERYTHING_BYTES), Progress()
    run, limit = books.done(lake, "decode"), RunOptions(lake=lake).update_limit
    _, replay_s = _timed(lambda: replay.run_replay(engine, lake, run, progress, update_limit=limit))
    counts, audit_s = _timed(lambda: audit.run_audit(engine, lake, books.newest_to_measure(lake), progress))
    return counts["audited_records"], replay_s, audit_s


def _no_session() -> NoReturn:
    raise AssertionError("the bench measures both stages in this process")


def _timed(stage: Callable[[], Mapping[str, int]]) -> tuple[Mapping[str, int], float]:
    begun = _cpu_s()
    counts = stage()
    return counts, _cpu_s() - begun


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
