"""What a run costs after many runs: the books of a small lake cut into as many extents as so many runs would leave.

Each run has an extent of each state partition, and every stage is marked as done up to the last run. The runs that are
measured are real ones, in one process.
"""

import json
import resource
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench import generate
from bench.measure import children_s, sharelens
from jobs import books
from sharelens.lake.commit import create_tables
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, write_rows
from sharelens.lake.tables import TABLES

RUNS = (1, 1_000, 10_000)
RECORDS, STATE_PARTITIONS = 50_000, 5
NEWS = 0.01
IN_ONE_PROCESS = {"SHARELENS_IN_PROCESS_BYTES": str(1 << 40)}
STAGES = (*books.MARKER, "measure-step")


def lines(folder: Path, runs: Sequence[int] = RUNS) -> Iterator[tuple[str, str, str]]:
    """Name, figure and note: a run without news and one over 1 % more after each number of runs, and after upkeep."""
    log, lake = folder / "log-many-runs", folder / "lake-many-runs"
    generate.generate(log, shape="hot", records=RECORDS, share_partition_count=20, state_partitions=STATE_PARTITIONS)
    run = ["run", "--lake", str(lake), "--log-dir", str(log)]
    _processor_s(*run)
    for number in runs:
        rows = cut_extents(Lake(lake), number)
        idle_s = _processor_s(*run)
        appended = generate.append(log, fraction=NEWS)
        news_s = _processor_s(*run)
        note = f"{rows:,} extents; a run over {appended.records} more records: {news_s:.1f} s of processors"
        yield f"after {number:,} runs, a run without news", f"{idle_s:.1f} s of processors", note
    upkeep_s = _processor_s("maintain", "--lake", str(lake), "--execute")
    rows = len(books.extents(Lake(lake)))
    idle_s = _processor_s(*run)
    appended = generate.append(log, fraction=NEWS)
    news_s = _processor_s(*run)
    note = f"{rows:,} extents; a run over {appended.records} more records: {news_s:.1f} s; upkeep took {upkeep_s:.1f} s"
    yield "after upkeep, a run without news", f"{idle_s:.1f} s of processors", note


def cut_extents(lake: Lake, runs: int) -> int:
    """Cuts the extents of a lake as if so many runs had taken equal parts; the number of extents then."""
    rows: pa.Table = lake.snapshot(books.EXTENT).rows()
    extents = rows.filter((pc.field("status") == "taken") & (pc.field("content") == "log_record"))
    first, end = (extents.column(name).to_numpy() for name in ("from_offset", "end_offset_exclusive"))
    pieces = np.minimum(end - first, runs)
    which = np.repeat(np.arange(extents.num_rows), pieces)
    place = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    edge = [first[which] + (place + shift) * (end - first)[which] // pieces[which] for shift in (0, 1)]
    newest = max(books.done(lake, stage) for stage in books.MARKER) + runs
    many = extents.take(pa.array(which))
    run_of = newest - pieces[which] + 1 + place
    for name, column in (("from_offset", edge[0]), ("end_offset_exclusive", edge[1]), ("run_id", run_of)):
        index = many.schema.get_field_index(name)
        many = many.set_column(index, many.schema.field(index), pa.array(column, many.schema.field(index).type))
    _commit(lake, many, newest)
    return int(many.num_rows)


def _commit(lake: Lake, extents: pa.Table, run: int) -> None:
    """Replaces the extents, and marks each stage as done up to the run in all tables that it has written to."""
    marks = [
        (name, stage) for name in TABLES for stage in STAGES if lake.exists(name) and lake.transaction(name, stage)
    ]
    old = lake.snapshot(books.EXTENT).paths
    files = write_rows(lake, TABLES[books.EXTENT], extents, {})
    books.commit(lake, books.EXTENT, "bench", run, files, old)
    for name, stage in marks:
        books.commit(lake, name, stage, run)


def _processor_s(*arguments: str) -> float:
    before_s = children_s()
    sharelens(*arguments, variables=IN_ONE_PROCESS)
    return children_s() - before_s


def files_lines(folder: Path, count: int = 50_000) -> Iterator[tuple[str, str, str]]:
    """Name, figure and note: opening a table of so many files, whose actions are all there is of them."""
    lake, name = Lake(folder / "lake-many-files"), "gold.delivery_history"
    create_tables(lake)
    lake.table_storage(name).folder("is_open=false").make()
    files_per_commit = 10_000
    for number in range(count // files_per_commit):
        adds = [_action(number * files_per_commit + place) for place in range(files_per_commit)]
        books.commit(lake, name, "bench", number + 1, adds)
    opened = json.loads(subprocess.check_output([sys.executable, "-c", OPEN, str(lake), name], text=True))
    yield (
        f"opening a table of {count:,} files",
        f"{opened['processor_s']:.1f} s of processors",
        f"{opened['bytes'] / count * 1e6 / 2**30:.1f} GiB a million files",
    )


OPEN = """
import json, sys, time
from bench.many_runs import resident_bytes
from sharelens.lake.lake import Lake
import jobs.run
before, begun = resident_bytes(), time.process_time()
lake = Lake(sys.argv[1])
files = lake.snapshot(sys.argv[2]).files
print(json.dumps({"processor_s": time.process_time() - begun, "bytes": resident_bytes() - before}))
"""


def resident_bytes() -> int:
    """The memory of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _action(number: int) -> DataFile:
    """A file of a table of histories as a commit has it."""
    low, high = number << 17, (number + 1) << 17
    bounds = [
        {"group_id": "orders-group-000", "topic_id": "A" * 22, "partition": place % 7, "cluster_id": "A" * 22}
        | {"first_offset": place, "last_offset": place, "valid_from_log_offset": place, "valid_to_log_offset": place}
        for place in (low, high)
    ]
    stats = {
        "numRecords": 1 << 17,
        "minValues": bounds[0],
        "maxValues": bounds[1],
        "nullCount": dict.fromkeys(bounds[0], 0),
    }
    path = f"is_open=false/part-{uuid.UUID(int=number)}.zstd.parquet"
    return DataFile(path=path, size_bytes=128 << 20, stats=stats, partition_values={"is_open": "false"})
