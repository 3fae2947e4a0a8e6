"""Questions to a lake and to the log that it was made from, each from a cold process, with time and memory."""

import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measure import sharelens

REPEATS = 3
RECORDS_BELOW_START = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCost:
    """A question: medians of wall clock in seconds and highest memory of its process."""

    name: str
    seconds: float
    peak_bytes: int


def costs(lake: Path, directory: Path) -> Iterator[QuestionCost]:
    """One share partition, one group, the first rows of the largest table, and the report."""
    share_partition, key = first_share_partition("--lake", str(lake))
    group = key[:2]
    offset = ["--offset", str(max(0, share_partition["start_offset"] - RECORDS_BELOW_START))]
    of_lake, of_log = ["--lake", str(lake)], ["--log-dir", str(directory)]
    for source, where in (("lake", of_lake), ("log-dir", of_log)):
        yield cost_of(f"state --{source}", "state", *where, *key)
        yield cost_of(f"trace --{source}", "trace", *where, *key, *offset)
        yield cost_of(f"records of a share partition --{source} --limit 20", "records", *where, *key, "--limit", "20")
    yield cost_of("records --lake --limit 10", "records", *of_lake, "--limit", "10")
    yield cost_of("lag --lake --group", "lag", *of_lake, *group)
    yield cost_of("sql, all columns of the records", "sql", *of_lake, "SELECT * FROM silver.share_record")
    with tempfile.TemporaryDirectory(prefix="sharelens-report-") as folder:
        page = Path(folder) / "report.html"
        yield cost_of("report", "report", *of_lake, "--out", str(page), repeats=1)


def first_share_partition(*source: str) -> tuple[Mapping[str, Any], list[str]]:
    """The first state row of a source, and the options that choose its share partition."""
    (row,) = json.loads(sharelens("state", *source, "--limit", "1", "--output", "json").output)
    return row, ["--group", row["group_id"], "--topic", row["topic_id"], "--partition", str(row["partition"])]


def cost_of(name: str, *arguments: str, repeats: int = REPEATS) -> QuestionCost:
    """The cost of a command, each time in a cold process."""
    runs = [sharelens(*arguments) for _ in range(repeats)]
    seconds = statistics.median(run.seconds for run in runs)
    return QuestionCost(name=name, seconds=seconds, peak_bytes=max(run.peak_bytes["driver"] for run in runs))
