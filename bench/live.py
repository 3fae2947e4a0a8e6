"""A running cluster as the source: how fresh a lake is kept and at what cost, how fast it catches up, one question.

The broker is the light one, in a process of its own. Freshness is that of each record: from its append to the
publication of the first cut that has it, both by the clock of this machine.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.brokers import SHARE_SETTINGS, Started, light_broker
from bench.measure import COMMAND, Measured, children_s, processor_s_of, sharelens
from bench.state_load import REQUEST_RECORDS, write
from bench.upkeep import IN_ONE_PROCESS
from sharelens.lake.scan import PUBLICATION, open_lake
from state_model.topics import STATE_TOPIC

Line = tuple[str, str, str]
"""Name, value and note of a figure."""
RATE, LOAD_S, EVERY, MAINTAIN_EVERY = 1000, 60, "2s", "20s"
STATE_LOG_RECORDS = 140_000
"""About 20 MB of the state log."""
CATCH_UP_RECORDS = 1_000_000
"""At most: the broker has to take them first."""
KEEPS_ALL = {**SHARE_SETTINGS, "share.coordinator.state.topic.prune.interval.ms": str(24 * 3_600_000)}
"""Without it the broker prunes the log while it is written."""
WARM_UP_S = 5
WARM_UP_LOAD_S = 30
"""A process loads its kernels at the first records, and paces itself by the runs behind them."""


def lines(folder: Path, records: int) -> Iterator[Line]:
    """The figures; `records`: of the log to catch up with."""
    yield from freshness(folder / "live-freshness")
    yield from catch_up(folder / "live-catch-up", min(records, CATCH_UP_RECORDS))
    yield from question(folder / "live-question")


def freshness(folder: Path) -> Iterator[Line]:
    """RATE state records a second beside `run --every EVERY` with upkeep, for LOAD_S seconds."""
    lake = folder / "lake"
    with light_broker(folder / "broker") as broker, _keeping(lake, broker, folder / "runs.txt") as pid:
        time.sleep(WARM_UP_S)
        words = [broker.bootstrap, "--rate", str(RATE), "--seconds", str(WARM_UP_LOAD_S + LOAD_S)]
        load = subprocess.Popen([sys.executable, "-m", "bench.state_load", *words], stdout=subprocess.PIPE, text=True)
        time.sleep(WARM_UP_LOAD_S)
        before_s, begun_s, begun_ms = processor_s_of(pid), time.monotonic(), time.time_ns() // 1_000_000
        done = json.loads(load.communicate()[0])
        used_s, seconds = processor_s_of(pid) - before_s, time.monotonic() - begun_s
        time.sleep(WARM_UP_S)
    ages_ms = record_ages_ms(lake, begun_ms)
    p50, p95, p99 = (f"{age / 1000:.1f} s" for age in np.percentile(ages_ms, (50, 95, 99)))
    rate = done["records"] / done["seconds"]
    note = f"{len(ages_ms):,} records at {rate:,.0f} a second, `run --every {EVERY} --maintain-every {MAINTAIN_EVERY}`"
    yield "freshness of a record: p50, p95, p99", f"{p50}, {p95}, {p99}", note
    share = f"{100 * used_s / seconds:.0f} % of a core"
    yield "processor time of the runs", share, f"{used_s:.1f} s in {seconds:.0f} s, upkeep included"


def record_ages_ms(lake: Path, since_ms: int) -> npt.NDArray[np.int64]:
    """Of each state record that was appended at or after a moment, the time until its publication."""
    cut = open_lake(lake)
    records = cut.scan("silver.share_record", ["log_time_ms", "run_id"])
    published = cut.lake.snapshot(PUBLICATION).rows(["run_id", "published_at_ms"]).sort_by("run_id")
    runs, moments = (column.to_numpy() for column in published.columns)
    times, of_run = (column.to_numpy() for column in records.columns)
    first = np.searchsorted(runs, of_run)
    ages = moments[first] - times
    return np.asarray(ages[times >= since_ms], np.int64)


def catch_up(folder: Path, records: int) -> Iterator[Line]:
    """The first run over a log that a broker has: fetching it, and all stages."""
    with _broker_with_log(folder, records) as broker:
        run, cpu_s = _with_cpu("run", "--lake", str(folder / "lake"), "--bootstrap-server", broker.bootstrap)
    seconds = run.summary["seconds"]
    count = run.summary["rows"]["bronze.log_record"]
    yield (
        "fetching a log",
        f"{count / seconds['fetch']:,.0f} records/s",
        f"{count:,} records in {seconds['fetch']:.1f} s",
    )
    work_s = sum(value for name, value in seconds.items() if name != "session")
    yield (
        "the first run over it, all stages",
        f"{count / work_s:,.0f} records/s",
        f"{work_s:.1f} s, {cpu_s:.1f} s of processor time",
    )


def question(folder: Path) -> Iterator[Line]:
    """`state` of one group, straight from the broker."""
    with _broker_with_log(folder, STATE_LOG_RECORDS) as broker:
        size = sum(path.stat().st_size for path in folder.glob(f"broker/log/{STATE_TOPIC}-*/*.log"))
        words = ("state", "--bootstrap-server", broker.bootstrap, "--output", "json")
        groups = {row["group_id"] for row in json.loads(sharelens(*words, variables=IN_ONE_PROCESS).output)}
        runs = [_with_cpu(*words, "--group", min(groups)) for _ in range(3)]
    seconds, cpu_s = min(run.seconds for run, _ in runs), min(cpu_s for _, cpu_s in runs)
    note = f"{cpu_s:.1f} s of processor time; {size / 2**20:.0f} MiB of state log"
    yield "`state --bootstrap-server` of one group", f"{seconds:.2f} s", note


@contextmanager
def _broker_with_log(folder: Path, records: int) -> Iterator[Started]:
    """A light broker with so many state records, written as fast as it takes them."""
    with light_broker(folder / "broker", KEEPS_ALL) as broker:
        write(broker.bootstrap, -(-records // REQUEST_RECORDS))
        yield broker


@contextmanager
def _keeping(lake: Path, broker: Started, output: Path) -> Iterator[int]:
    """A process that keeps a lake fresh; its id. Raises RuntimeError if it does not end in order."""
    words = ["run", "--lake", str(lake), "--bootstrap-server", broker.bootstrap, "--every", EVERY]
    with output.open("wb") as file:
        process = subprocess.Popen([str(COMMAND), *words, "--maintain-every", MAINTAIN_EVERY], stdout=file, stderr=file)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        if process.wait() != 0:
            raise RuntimeError(output.read_text(encoding="utf-8").strip()[-500:])


def _with_cpu(*words: str) -> tuple[Measured, float]:
    """A command without Spark that has ended, and its user and system seconds."""
    before_s = children_s()
    run = sharelens(*words, variables=IN_ONE_PROCESS)
    return run, children_s() - before_s
