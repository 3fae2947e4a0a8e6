"""What a lake costs as it grows: each stage alone, 1 % more, a rebuild of one state partition, questions, upkeep.

Each is a command of its own, on Spark unless it says otherwise; processor time is that of all its processes, without
the start of the session. What a shape leaves behind is removed before the next one.
"""

import json
import shutil
import statistics
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import dump_log_segments, generate
from bench.measure import Measured, sharelens
from jobs import books
from jobs.ingest.plan import rebuild_rows
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES
from state_model.topics import STATE_TOPIC
from tools.kept_jars import ToolUnavailableError

SHARE_PARTITIONS = {"hot": 20, "cool": 200_000, "failing": 1_000}
STAGES = ("ingest", "decode", "replay", "measure", "audit-log", "publish")
TIMED_AS = {"audit-log": "audit"}
ON_SPARK = {"SHARELENS_IN_PROCESS_BYTES": "0"}
MIB = 2**20
MOST_DUMPED = 10_000_000
"""Records up to which DumpLogSegments prints the log: its time grows with them alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """A command: seconds of wall clock and of processors without the start of the session, and its peak memory."""

    seconds: float
    processor_s: float
    peak_bytes: dict[str, int]

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, {self.processor_s:.1f} s of processors"

    @property
    def memory(self) -> str:
        """The highest memory of one process by role."""
        return ", ".join(f"{role} {size / MIB:.0f}" for role, size in self.peak_bytes.items() if size) + " MiB"


def lines(folder: Path, shape: str, records: int) -> Iterator[tuple[str, str, str]]:
    """Name, figure and note of each line for a shape."""
    log, lake = folder / f"log-scale-{shape}", folder / f"lake-scale-{shape}"
    shutil.rmtree(lake, ignore_errors=True)
    if not log.exists():
        count = SHARE_PARTITIONS[shape]
        generate.generate(log, shape=shape, records=records, share_partition_count=count)
    first = yield from _first_run(log, lake, records)
    yield from _later_runs(log, lake, first)
    yield from _questions(lake)
    upkeep = _cost(sharelens("maintain", "--lake", str(lake), "--execute"))
    yield "maintain", str(upkeep), f"{_files(lake)}; {upkeep.memory}"
    shutil.rmtree(lake)
    shutil.rmtree(log)
    log.with_name(f"{log.name}.generator.npz").unlink()


def _first_run(log: Path, lake: Path, records: int) -> Generator[tuple[str, str, str], None, float]:
    """The stages of a first run, between two runs of Kafka's tool; the generator's value is their processor time."""
    seconds = processor_s = 0.0
    is_dumped = records <= MOST_DUMPED
    dumps = [_dumped(log)] if is_dumped else []
    for stage in STAGES:
        source = ["--log-dir", str(log)] if stage == "ingest" else []
        cost = _cost(sharelens(stage, "--lake", str(lake), *source, variables=ON_SPARK))
        seconds, processor_s = seconds + cost.seconds, processor_s + cost.processor_s
        yield stage, str(cost), cost.memory
    dumps += [_dumped(log)] if is_dumped else []
    millions = records / 1e6
    size = sum(path.stat().st_size for path in log.glob(f"{STATE_TOPIC}-*/*.log"))
    rate = f"{processor_s / millions:.1f} s of processors a million records"
    yield (
        "all stages",
        f"{seconds:.1f} s, {processor_s:.1f} s of processors",
        f"{rate}; log {size / millions / 1e6:.0f} MB",
    )
    if is_dumped:
        yield _beside(dumps, seconds, processor_s)
    yield "files of the lake", _files(lake), f"{_size(lake) / millions / 1e6:.0f} MB a million records"
    return processor_s


def _dumped(log: Path) -> dump_log_segments.Dumped | str:
    """DumpLogSegments over the log; why it can't run."""
    try:
        return dump_log_segments.dump(log)
    except ToolUnavailableError as error:
        return str(error)


def _beside(dumps: list[dump_log_segments.Dumped | str], seconds: float, processor_s: float) -> tuple[str, str, str]:
    """All stages beside the mean of the tool's runs before and behind them, so that other work weighs on both."""
    name, done = "DumpLogSegments", [dumped for dumped in dumps if not isinstance(dumped, str)]
    if len(done) < len(dumps):
        return name, "skipped", next(dumped for dumped in dumps if isinstance(dumped, str))
    tool_s, tool_processor_s = (
        statistics.mean(getattr(dumped, field) for dumped in done) for field in ("seconds", "processor_s")
    )
    times = f"{seconds / tool_s:.2f} x its time, {processor_s / tool_processor_s:.2f} x its processor time"
    each = " and ".join(f"{dumped.seconds:.1f} s, {dumped.processor_s:.1f} s of processors" for dumped in done)
    return name, each, f"all stages take {times}"


def _later_runs(log: Path, lake: Path, first_s: float) -> Iterator[tuple[str, str, str]]:
    """A run over 1 % more, one without news, one that rebuilds a state partition; `first_s`: processor time before."""
    appended = generate.append(log, fraction=0.01)
    run = ["run", "--lake", str(lake), "--log-dir", str(log)]
    later_run = _cost(sharelens(*run))
    share = f"{100 * later_run.processor_s / first_s:.1f} % of the first run's processor time"
    yield f"run over {appended.records} more", str(later_run), f"{share}; {later_run.memory}"
    idle = _cost(sharelens(*run))
    yield "run without news", str(idle), idle.memory
    plan_rebuild(Lake(lake))
    rebuilt = _cost(sharelens(*run))
    share = f"{100 * rebuilt.processor_s / first_s:.1f} % of the first run's processor time"
    yield "replay of one state partition from its beginning", str(rebuilt), f"{share}; {rebuilt.memory}"


def _questions(lake: Path) -> Iterator[tuple[str, str, str]]:
    """Questions about one share partition, from cold processes."""
    where = ["--lake", str(lake)]
    row = json.loads(sharelens("state", *where, "--limit", "1", "--output", "json").output)[0]
    group = ["--group", row["group_id"]]
    key = [*group, "--topic", row["topic_id"], "--partition", str(row["partition"])]
    offset = ["--offset", str(max(0, row["start_offset"] - 1))]
    questions = {"state": key, "trace": [*key, *offset], "lag": group, "records": [*key, "--limit", "20"]}
    for name, words in questions.items():
        cost = _cost(sharelens(name, *where, *words))
        yield f"{name} {' '.join(word for word in words if word.startswith('--'))}", str(cost), cost.memory


def plan_rebuild(lake: Lake) -> None:
    """Plans the replay of the state partition with the most records, as a run does that is killed behind its plan."""
    rows = [row for row in books.extents(lake) if row["topic"] == STATE_TOPIC and row["status"] == "taken"]
    largest = max(
        books.by_partition(rows).values(), key=lambda partition_rows: sum(row["record_count"] for row in partition_rows)
    )
    run = max(books.done(lake, stage) for stage in books.MARKER) + 1
    table = books.rows_table(books.EXTENT, rebuild_rows(largest, "replay", run=run, until_ms=None))
    books.commit(lake, books.EXTENT, "ingest-plan", run, write_rows(lake, TABLES[books.EXTENT], table, {}))


def _cost(done: Measured) -> Cost:
    """The cost of a command. Of a job that started a session: of its stages."""
    seconds = done.seconds
    if done.output.startswith('{"command"') and "session" in done.summary.get("seconds", {}):
        seconds = sum(value for name, value in done.summary["seconds"].items() if name != "session")
    return Cost(seconds=seconds, processor_s=done.last_processor_s(seconds), peak_bytes=done.peak_bytes)


def _files(lake: Path) -> str:
    live = sum(len(Lake(lake).snapshot(name).files) for name in TABLES if Lake(lake).exists(name))
    return f"{live} live files, {_size(lake) / MIB:.0f} MiB"


def _size(lake: Path) -> int:
    """Bytes of the live data files."""
    tables = (name for name in TABLES if Lake(lake).exists(name))
    return sum(int(str(file["size_bytes"])) for name in tables for file in Lake(lake).snapshot(name).files)
