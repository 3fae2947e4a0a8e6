"""Questions over a log directory, and the stages of a run, as shares of the time that DumpLogSegments takes over it.

Machines differ, the share of Kafka's own tool less so. The tool runs before and behind, so that other work weighs on
both.
"""

import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench import dump_log_segments
from bench.measure import sharelens
from bench.questions import cost_of, first_share_partition
from state_model.topics import STATE_TOPIC
from tools.kept_jars import ToolUnavailableError

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
    source = ["--log-dir", str(log)]
    costs = [cost_of(name, name, *source) for name in QUESTIONS]
    _, key = first_share_partition(*source)
    costs += [cost_of(name, name, *source, *key, *_window(name)) for name in OF_A_SHARE_PARTITION]
    shutil.rmtree(lake, ignore_errors=True)
    stages: dict[str, float] = sharelens("run", *source, "--lake", str(lake)).summary["seconds"]
    dumped_s = statistics.mean([before.seconds, dump_log_segments.dump(log).seconds])
    size = sum(path.stat().st_size for path in log.glob(f"{STATE_TOPIC}-*/*.log"))
    yield "DumpLogSegments", f"{dumped_s:.1f} s", f"{before.records:,} records, {size / 1e6:.0f} MB"
    for cost in costs:
        note = f"{cost.seconds:.2f} s, {cost.peak_bytes / MIB:.0f} MiB"
        yield f"{cost.name} --log-dir", f"{cost.seconds / dumped_s:.2f} of it", note
    without_session = {name: seconds for name, seconds in stages.items() if name != "session"}
    for name, seconds in (without_session | {"run": sum(without_session.values())}).items():
        yield f"stage {name}" if name != "run" else name, f"{seconds / dumped_s:.2f} of it", f"{seconds:.2f} s"


def _window(name: str) -> list[str]:
    return ["--offset", "0"] if name == "trace" else ["--limit", "20"]
