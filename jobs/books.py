"""The books of a lake: runs, stages and what each took. All of it lives in the tables themselves.

A run is a number. Every commit of a stage carries (stage, run) as its transaction, so a stage that is run again after
a kill skips what it had committed. The last commit of a stage marks it done.
"""

import getpass
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evidence.intervals import Interval, difference, union
from lake import commit as commits
from lake import durability, parquet, scan
from lake.lake import Lake
from lake.parquet import DataFile
from lake.slices import PartitionKey
from lake.tables import TABLES

EXTENT = "bronze.ingest_extent"
MARKER = {
    "ingest-plan": EXTENT,
    "ingest": EXTENT,
    "topics-plan": EXTENT,
    "topics": EXTENT,
    "decode": "silver.share_record",
    "replay": "gold.share_partition_state",
    "measure": "gold.dlq_reconciliation",
    "publish": scan.PUBLICATION,
}


def now_ms() -> int:
    """Wall clock, epoch milliseconds."""
    return time.time_ns() // 1_000_000


def done(lake: Lake, stage: str) -> int:
    """The newest run whose `stage` is complete; 0 when none is."""
    return lake.transaction(MARKER[stage], stage) or 0


def commit(
    lake: Lake, name: str, stage: str, run: int, adds: Sequence[DataFile] = (), removes: Sequence[str] = ()
) -> int:
    """One commit of a stage to one table; the new version. What a mark stands for is on the disk before it."""
    if MARKER.get(stage) == name:
        durability.sync(lake)
    return commits.commit(lake, name, stage=stage, run=run, adds=adds, removes=removes)


def is_committed(lake: Lake, name: str, stage: str, run: int) -> bool:
    """Whether the table holds the stage's commit of this run already."""
    return (lake.transaction(name, stage) or 0) >= run


def with_unfinished(lake: Lake, name: str, stage: str, run: int, drop: pc.Expression | None) -> pc.Expression | None:
    """`drop`, and the rows of runs in which the stage was killed after it wrote to this table.

    A later run that goes on from the last complete one derives those rows once more.
    """
    finished = done(lake, stage)
    written = lake.transaction(name, stage) or 0
    if not finished < written < run:
        return drop
    again = pc.field("run_id") > finished
    return again if drop is None else drop | again


def extents(lake: Lake, where: pc.Expression | None = None) -> list[dict[str, Any]]:
    """Rows of bronze.ingest_extent as they are now, published or not."""
    if not lake.is_lake():
        return []
    rows = lake.snapshot(EXTENT).all_rows
    return (rows if where is None else rows.filter(where)).to_pylist()  # type: ignore[no-any-return]


def rewritten_without(
    lake: Lake, name: str, drop: pc.Expression | None, partition_values: dict[str, str] | None = None
) -> tuple[list[DataFile], list[str]]:
    """New files with the rows that stay, and the paths of the files that hold rows matching `drop`.

    Files whose statistics exclude a match are not touched. Of a partitioned table only files of the partition
    `partition_values` are looked at. Nothing happens when `drop` is None.
    """
    if drop is None:
        return [], []
    table = TABLES[name]
    values = partition_values or {}
    schema = pa.schema([field for field in table.schema if field.name not in values])
    folder = "".join(f"{key}={value}/" for key, value in values.items())
    adds: list[DataFile] = []
    removes: list[str] = []
    for fragment in lake.snapshot(name).dataset().get_fragments(filter=drop):
        path = fragment.path
        if not path.startswith(folder):
            continue
        rows = fragment.to_table(schema=schema)
        kept = rows.filter(~drop)
        if kept.num_rows == rows.num_rows:
            continue
        removes.append(path)
        with parquet.ParquetSink(lake, table, constants={}, partition_values=values) as sink:
            sink.write(kept)
        adds += sink.files
    return adds, removes


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the lake holds of one log partition, by its taken extents.

    `held`: offsets that need no second reading; `asked`: per source, what it was asked for; `log_time_ms`: running
    maximum of record timestamps so far (None: nothing held); `end`: first offset above everything asked for.
    `lost_ends`: per source, the gap at its end.
    """

    held: list[Interval]
    asked: dict[str, list[Interval]]
    log_time_ms: int | None
    end: int
    lost_ends: dict[str, Interval] = field(default_factory=dict)

    def wanted(self, source_id: str, available: Interval) -> list[Interval]:
        """What a source offers that it was not asked for before and that the lake lacks.

        The gap at its end is asked for again once the source ends elsewhere: a broker that recovers cuts off what it
        can't read there and appends, and a copy that was cut short is finished.
        """
        asked = self.asked.get(source_id, [])
        lost_end = self.lost_ends.get(source_id)
        if lost_end is not None and lost_end[1] != available[1]:
            asked = difference(asked, [lost_end])
        return difference([available], self.held + asked)

    def before(self, offset: int) -> "Coverage":
        """What is left when everything from `offset` on is set aside."""
        return Coverage(
            held=_below(self.held, offset),
            asked={source: _below(intervals, offset) for source, intervals in self.asked.items()},
            log_time_ms=self.log_time_ms,
            end=min(self.end, offset),
            lost_ends=self.lost_ends,
        )


def _below(intervals: Sequence[Interval], offset: int) -> list[Interval]:
    return union((first, min(end, offset)) for first, end in intervals)


def coverage(rows: Sequence[dict[str, Any]]) -> Coverage:
    """Coverage from the taken extents of one log partition.

    Offsets taken while uncommitted are read again, and a source that had vanished is asked again.
    """
    held: list[Interval] = []
    asked: dict[str, list[Interval]] = {}
    times: list[int] = []
    lost_ends: dict[str, Interval] = {}
    for row in sorted(rows, key=lambda r: r["run_id"]):
        if row["superseded_from"] is not None:
            held = _below(held, row["superseded_from"])
            asked = {source: _below(intervals, row["superseded_from"]) for source, intervals in asked.items()}
        end = row["end_offset_exclusive"]
        if row["committed_end"] is not None:
            end = min(end, row["committed_end"])
        here = (row["from_offset"], end)
        asked.setdefault(row["source_id"], []).extend(difference([here], _gaps(row, "vanished")))
        held = union([*held, *difference([here], _gaps(row))])
        if end >= lost_ends.get(row["source_id"], (0, 0))[1]:
            lost_ends.pop(row["source_id"], None)
        for gap in _gaps(row):
            if gap[1] == end:
                lost_ends[row["source_id"]] = gap
        if row["log_time_ms"] is not None:
            times.append(row["log_time_ms"])
    end = max((interval[1] for intervals in asked.values() for interval in intervals), default=0)
    return Coverage(held=held, asked=asked, log_time_ms=max(times, default=None), end=end, lost_ends=lost_ends)


def _gaps(row: dict[str, Any], reason: str | None = None) -> list[Interval]:
    """The gaps of an extent; those of one reason, if it is named."""
    gaps = [gap for gap in row["gaps"] if reason in (None, gap["reason"])]
    return [(gap["first_offset"], gap["last_offset"] + 1) for gap in gaps]


def by_partition(rows: Sequence[dict[str, Any]]) -> dict[PartitionKey, list[dict[str, Any]]]:
    """Extents grouped by log partition."""
    groups: dict[PartitionKey, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["cluster_id"], row["topic_id"], row["partition"]), []).append(row)
    return groups


@lru_cache(maxsize=1)
def software_version() -> str:
    """The version of sharelens that is at work."""
    return version("sharelens")


def stamp() -> dict[str, Any]:
    """The columns that say who wrote an extent."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return {
        "written_at_ms": now_ms(),
        "sharelens_version": software_version(),
        "user": user,
        "host": socket.gethostname(),
    }


def rows_table(name: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of a table from dictionaries."""
    return pa.Table.from_pylist(list(rows), schema=TABLES[name].schema)


def of_partitions(keys: set[PartitionKey], topic_id: str, partition: str) -> pc.Expression | None:
    """Rows of the given log partitions, by the names of their columns; None for no partition."""
    expression: pc.Expression | None = None
    for key in sorted(keys):
        this = (pc.field("cluster_id") == key[0]) & (pc.field(topic_id) == key[1]) & (pc.field(partition) == key[2])
        expression = this if expression is None else expression | this
    return expression


def of_cluster(rows: pa.Table, cluster_id: str) -> pa.Table:
    """`rows` with the cluster they belong to as a column."""
    return rows.append_column("cluster_id", pa.repeat(cluster_id, rows.num_rows))
