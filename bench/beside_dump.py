"""Questions over a log directory, and the stages of a run, as shares of the time that DumpLogSegments takes over it.

Machines differ, the share of Kafka's own tool less so. The tool runs before and behind, so that other work weighs on
both.
"""

import json
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench import dump_log_segments
from bench.measure import sharelens
from state_model.topics import STATE_TOPIC
from tools.kept_jars import ToolUnavailableError

REPEATS = 3
QUESTIONS = ("overview", "stalled", "poison", "dlq", "audit", "state", "lag")
OF_A_SHARE_PARTITION = ("trace", "records")
MIB = 2**20


def lines(log: Path, lake: Path) -> Iterator[tuple[str, str, str]]:
    """Name, figure and note of each line; a run fills the lake, which is removed first."""
    try:
        before = dump_log_segments.dump(log)
    except ToolUnavailableError as error:
        yield "DumpLogSegments", "skipped", str(error)
        return
    medians = {name: _median(name, "--log-dir", str(log)) for name in QUESTIONS}
    key = _a_share_partition(log)
    medians |= {name: _median(name, "--log-dir", str(log), *key, *_window(name)) for name in OF_A_SHARE_PARTITION}
    shutil.rmtree(lake, ignore_errors=True)
    stages: dict[str, float] = sharelens("run", "--log-dir", str(log), "--lake", str(lake)).summary["seconds"]
    dumped_s = statistics.mean([before.seconds, dump_log_segments.dump(log).seconds])
    size = sum(path.stat().st_size for path in log.glob(f"{STATE_TOPIC}-*/*.log"))
    yield "DumpLogSegments", f"{dumped_s:.1f} s", f"{before.records:,} records, {size / 1e6:.0f} MB"
    for name, (seconds, peak_bytes) in medians.items():
        yield f"{name} --log-dir", f"{seconds / dumped_s:.2f} of it", f"{seconds:.2f} s, {peak_bytes / MIB:.0f} MiB"
    without_session = {name: seconds for name, seconds in stages.items() if name != "session"}
    for name, seconds in (without_session | {"run": sum(without_session.values())}).items():
        yield f"stage {name}" if name != "run" else name, f"{seconds / dumped_s:.2f} of it", f"{seconds:.2f} s"


def _median(*arguments: str) -> tuple[float, int]:
    """The median time of cold processes in seconds, and the highest memory of one."""
    runs = [sharelens(*arguments) for _ in range(REPEATS)]
    return statistics.median(run.seconds for run in runs), max(run.peak_bytes["driver"] for run in runs)


def _a_share_partition(log: Path) -> list[str]:
    """The options that choose the first one."""
    (row,) = json.loads(sharelens("state", "--log-dir", str(log), "--limit", "1", "--output", "json").output)
    return ["--group", row["group_id"], "--topic", row["topic_id"], "--partition", str(row["partition"])]


def _window(name: str) -> list[str]:
    return ["--offset", "0"] if name == "trace" else ["--limit", "20"]
