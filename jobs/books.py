"""The books of a lake: runs, stages and the extents that each took; the tables themselves keep them.

A run is a number. Every commit of a stage carries (stage, run) as its transaction, so a stage that is run again after
a kill skips what it had committed. The last commit of a stage marks it done.
"""

import getpass
import socket
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake import commit as commits
from sharelens.lake import durability, parquet, scan
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile
from sharelens.lake.settings_rows import TABLE as SETTINGS
from sharelens.lake.slices import PartitionKey
from sharelens.lake.tables import GOLD_AUDIT_STATE, TABLES

EXTENT = "bronze.ingest_extent"
MARKER = {
    "ingest-plan": EXTENT,
    "ingest": EXTENT,
    "topics-plan": EXTENT,
    "topics": EXTENT,
    "metadata": EXTENT,
    "settings": SETTINGS,
    "decode": "silver.share_record",
    "replay": "gold.share_partition_state",
    "measure": "gold.dlq_reconciliation",
    "audit": "gold.audit_finding",
    "groups": "gold.group_history",
    "publish": scan.PUBLICATION,
}

AUDITED = (GOLD_AUDIT_STATE, "gold.audit_record", "gold.audit_counter", MARKER["audit"])
"""The tables of the audit."""


def now_ms() -> int:
    """Wall clock, epoch milliseconds."""
    return time.time_ns() // 1_000_000


def done(lake: Lake, stage: str) -> int:
    """The newest run whose `stage` is complete; 0 when none is."""
    return lake.transaction(MARKER[stage], stage) or 0


def newest_to_measure(lake: Lake) -> int:
    """The newest run with news for the stages behind replay: records, headers or settings.

    Records that were not replayed yet come first: a measure of a later run would pass over them.
    """
    replayed = done(lake, "replay")
    if replayed < done(lake, "ingest-plan"):
        return replayed
    return max(replayed, done(lake, "topics"), done(lake, "settings"))


def newest_to_audit(lake: Lake) -> int:
    """The newest run with news for the audit: news for the stages behind replay, or records of the metadata log."""
    newest = newest_to_measure(lake)
    return newest if newest < done(lake, "ingest-plan") else max(newest, done(lake, "metadata"))


def commit(
    lake: Lake,
    name: str,
    stage: str,
    run: int,
    adds: Sequence[DataFile] = (),
    removes: Sequence[str] = (),
    *,
    marks: Mapping[str, int] = commits.NO_MARKS,
) -> int:
    """Commits a stage to one table, and returns the new version. Flushes all commits of a stage before its mark.

    A commit that changes nothing is left out, unless it is the mark or the stage's first one in the table, or there are
    `marks` of further applications.
    """
    if MARKER.get(stage) == name:
        durability.sync(lake)
    elif not adds and not removes and not marks and lake.transaction(name, stage) is not None:
        return lake.version(name)
    return commits.commit(lake, name, stage=stage, run=run, adds=adds, removes=removes, marks=marks)


def is_committed(lake: Lake, name: str, stage: str, run: int) -> bool:
    """Whether the table has the rows of the stage of this run already."""
    return newest_run(lake, name, stage) >= run


def newest_run(lake: Lake, name: str, stage: str) -> int:
    """The newest run whose `stage` the table has: that of its last commit, or a later one without changes; 0: none."""
    written = lake.transaction(name, stage)
    return 0 if written is None else max(written, done(lake, stage) if stage in MARKER else 0)


def with_unfinished(lake: Lake, name: str, stage: str, run: int, drop: pc.Expression | None) -> pc.Expression | None:
    """`drop`, and the rows of runs in which the stage was killed after it wrote to this table.

    A later run that resumes from the last complete one derives those rows again.
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
    return lake.extent_rows.select(lake.snapshot(EXTENT), where)


def rewritten_without(
    lake: Lake, name: str, drop: pc.Expression | None, partition_values: dict[str, str] | None = None
) -> tuple[list[DataFile], list[str]]:
    """New files with the rows that stay, and the paths of the files that hold rows matching `drop`.

    Files whose statistics exclude a match stay. Of a partitioned table only files of the partition
    `partition_values` are read. Both lists are empty when `drop` is None.
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
        kept_count = fragment.scanner(schema=schema, columns=[], filter=~drop).count_rows()
        if kept_count == fragment.count_rows():
            continue
        removes.append(path)
        with parquet.ParquetSink(lake, table, constants={}, partition_values=values) as sink:
            sink.write(fragment.to_table(schema=schema, filter=~drop) if kept_count else schema.empty_table())
        adds += sink.files
    return adds, removes


def changed(lake: Lake, after: int, contents: Sequence[str]) -> dict[PartitionKey, dict[str, Any]]:
    """Log partitions with extents of runs after `after`: the newest row of each, `rebuild` if any of them has it."""
    rows = extents(
        lake, (pc.field("run_id") > after) & (pc.field("status") == "taken") & pc.field("content").isin(list(contents))
    )
    result = {}
    for key, group in by_partition(rows).items():
        newest = max(group, key=lambda row: row["run_id"])
        result[key] = {**newest, "rebuild": any(row["rebuild"] for row in group)}
    return result


def by_partition(rows: Sequence[dict[str, Any]]) -> dict[PartitionKey, list[dict[str, Any]]]:
    """Extents grouped by log partition."""
    groups: dict[PartitionKey, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["cluster_id"], row["topic_id"], row["partition"]), []).append(row)
    return groups


@lru_cache(maxsize=1)
def software_version() -> str:
    """The version of sharelens that is running."""
    return version("sharelens")


def stamp() -> dict[str, Any]:
    """The columns about the writer of an extent."""
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
    numbers: dict[tuple[str, str], list[int]] = {}
    for key in sorted(keys):
        numbers.setdefault(key[:2], []).append(key[2])
    expression: pc.Expression | None = None
    for (cluster_id, topic), partition_numbers in numbers.items():
        this = (
            (pc.field("cluster_id") == cluster_id)
            & (pc.field(topic_id) == topic)
            & _is_one_of(partition, partition_numbers)
        )
        expression = this if expression is None else expression | this
    return expression


def _is_one_of(column: str, numbers: Sequence[int]) -> pc.Expression:
    """Rows with one of some numbers, ascending; their bounds let a scan skip files and row groups."""
    field = pc.field(column)
    if len(numbers) == 1:
        return field == numbers[0]
    return (field >= numbers[0]) & (field <= numbers[-1]) & field.isin(numbers)


def of_cluster(rows: pa.Table, cluster_id: str) -> pa.Table:
    """`rows` with the cluster they belong to as a column."""
    return rows.append_column("cluster_id", pa.repeat(cluster_id, rows.num_rows))
