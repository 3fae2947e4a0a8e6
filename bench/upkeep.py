"""A lake after a thousand small commits a table: the cost of a run, an answer and the files, before and after upkeep.

The commits are made here, from the rows of one run: each takes the next rows of every growing table in the order of
log time, as that many scheduled runs would, with a publication each. The runs that are measured are real ones.
"""

import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import generate
from bench.measure import children_s, sharelens
from jobs import books, publish
from jobs.upkeep.maintain import MaintainOptions, Upkeep, maintain
from sharelens.lake import scan
from sharelens.lake.commit import commit
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, ParquetSink, write_rows
from sharelens.lake.tables import TABLES

GROWING = {
    "bronze.log_record": "timestamp_ms",
    "bronze.topic_batch": "max_timestamp_ms",
    "silver.share_record": "log_time_ms",
    "gold.share_partition_history": "log_time_ms",
    "gold.delivery_history": "valid_to_ms",
}
"""Tables that every run adds rows to, with the column that orders these."""
STAGE = "bench"
IN_ONE_PROCESS = {"SHARELENS_IN_PROCESS_BYTES": str(1 << 40)}
"""Without Spark: its workers are no child processes, so their CPU time would be missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A lake's live files and files on disk; CPU seconds of the first and last runs and of `state`, medians."""

    live_files: int
    disk_files: int
    first_runs_s: float
    last_runs_s: float
    state_s: float


def scatter(lake: Lake, commits: int) -> None:
    """Puts the rows of a lake's growing tables into many commits, each with a publication."""
    cut = scan.open_lake(lake)
    run = int(str(cut.publication["run_id"]))
    parts = {name: _parts(lake, name, column, commits) for name, column in GROWING.items()}
    extent = books.extents(lake)[0]
    for number in range(commits):
        for name, (rows, values, removes) in parts.items():
            first, end = (len(rows) * edge // commits for edge in (number, number + 1))
            with ParquetSink(lake, TABLES[name], constants={}, partition_values=values) as sink:
                sink.write(rows.slice(first, end - first))
            _commit(lake, name, number, sink.files, removes if number == 0 else [])
        planned = {**extent, "status": "planned", "source_id": f"{STAGE} {number}"}
        rows = books.rows_table(books.EXTENT, [planned])
        _commit(lake, books.EXTENT, number, write_rows(lake, TABLES[books.EXTENT], rows, {}))
        versions = publish.current_versions(lake)
        row = {
            **cut.publication,
            "run_id": run + 1 + number,
            "tables": [{"table": name, "version": version} for name, version in sorted(versions.items())],
        }
        files = write_rows(lake, TABLES[scan.PUBLICATION], books.rows_table(scan.PUBLICATION, [row]), {})
        books.commit(lake, scan.PUBLICATION, "publish", run + 1 + number, files)


def _parts(lake: Lake, name: str, column: str, commits: int) -> tuple[pa.Table, dict[str, str], list[str]]:
    """Rows of a table in the order of a column, sorted by its clustering inside each part; the files they lie in."""
    values = {"is_open": "false"} if TABLES[name].partition_by else {}
    snapshot = lake.snapshot(name)
    paths = [path for path in snapshot.paths if not values or "is_open=false" in path]
    rows = snapshot.rows()
    rows = rows.filter(rows.column("is_open").cast(pa.int8()).to_numpy() == 0) if values else rows
    rows = rows.sort_by(column)
    places = pa.array((np.arange(rows.num_rows) + 1) * commits // max(1, rows.num_rows))
    order = [("_part", "ascending"), *((key, "ascending") for key in TABLES[name].clustering)]
    return rows.append_column("_part", places).sort_by(order).drop_columns(["_part"]), values, paths


def _commit(lake: Lake, name: str, number: int, files: list[DataFile], removes: list[str] | tuple[()] = ()) -> None:
    commit(lake, name, stage=STAGE, run=number + 1, adds=files, removes=removes)


def runs_s(directory: Path, lake: Path, count: int) -> Iterator[float]:
    """CPU seconds of real runs, each over a thousandth more records."""
    for _ in range(count):
        generate.append(directory, fraction=0.001)
        yield _cpu_s("run", "--log-dir", str(directory), "--lake", str(lake))


def _cpu_s(*arguments: str) -> float:
    """User and system seconds of a command, all in its own process, and its children."""
    before_s = children_s()
    sharelens(*arguments, variables=IN_ONE_PROCESS)
    return children_s() - before_s


def measured(directory: Path, lake: Path, count: int) -> State:
    """The cost of runs and `state`; the files after the runs."""
    seconds = list(runs_s(directory, lake, count))
    quarter = max(1, count // 4)
    return State(
        live_files=sum(len(Lake(lake).snapshot(name).files) for name in TABLES),
        disk_files=sum(len(names) for _, _, names in os.walk(lake)),
        first_runs_s=statistics.median(seconds[:quarter]),
        last_runs_s=statistics.median(seconds[-quarter:]),
        state_s=statistics.median(_cpu_s("state", "--lake", str(lake), "--limit", "1") for _ in range(3)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A lake's runs before and after upkeep; CPU seconds of the first run, and bytes of each table after upkeep."""

    first_run_s: float
    before: State
    done: Upkeep
    after: State
    size_bytes: dict[str, int]


def compare(directory: Path, lake: Path, commits: int, count: int) -> Compared:
    """Before, the upkeep, and after it. A day lies between, so that vacuum may remove what upkeep replaced."""
    first_run_s = _cpu_s("run", "--log-dir", str(directory), "--lake", str(lake))
    scatter(Lake(lake), commits)
    before = measured(directory, lake, count)
    tomorrow = books.now_ms() + 86_400_000
    done = maintain(MaintainOptions(lake=Lake(lake), dry_run=False))
    for _ in range(2):
        maintain(MaintainOptions(lake=Lake(lake), dry_run=False, window_ms=1, now_ms=tomorrow))
    return Compared(
        first_run_s=first_run_s,
        before=before,
        done=done,
        after=measured(directory, lake, count),
        size_bytes={table.table: table.bytes_after for table in done.tables},
    )


def lines(compared: Compared, commits: int, runs: int, records: int) -> Iterator[tuple[str, str, str]]:
    """(what, figure, note) of a comparison of `runs` runs before and after upkeep, over `records` records."""
    for when, state in (("before", compared.before), ("after", compared.after)):
        yield (
            f"{when}: run over 0.1 % new records",
            f"{state.first_runs_s:.1f} s of CPU, at the end {state.last_runs_s:.1f} s",
            (
                f"{runs} runs, medians of the first and of the last quarter; `state` {state.state_s:.2f} s; "
                f"{state.live_files} live files, {state.disk_files} on disk"
            ),
        )
    total = compared.done.as_dict()
    yield (
        f"maintain after {commits} commits a table",
        f"{sum(total['seconds'].values()):.1f} s",
        (
            f"{total['files_before']} files to {total['files_after']}, "
            f"{total['bytes_before'] / 2**20:.0f} to {total['bytes_after'] / 2**20:.0f} MiB"
        ),
    )
    millions = records / 1e6
    whole_mb = sum(compared.size_bytes.values()) / millions / 1e6
    largest = sorted(compared.size_bytes.items(), key=lambda item: -item[1])[:6]
    yield (
        "cost of a million records",
        f"{compared.first_run_s / millions:.0f} core-seconds, {whole_mb:.0f} MB",
        "; ".join(f"{name} {size / millions / 1e6:.1f} MB" for name, size in largest),
    )
