"""gold.quality_result: one row an expectation of a check. Always read at its newest version; part of no cut."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.quality.rule import BLOCKING, VOLUME
from sharelens.lake.gates import RESULTS
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES

CHECK = "check"
REMEMBERED = 10
"""Earlier runs whose volumes are compared with."""


def next_check(lake: Lake) -> int:
    """The number of the next check."""
    return (lake.transaction(RESULTS, CHECK) or 0) + 1


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Results as rows of the table, without the times that are derived."""
    schema = TABLES[RESULTS].schema
    return pa.Table.from_pylist(
        list(rows), schema=pa.schema([field for field in schema if field.name != "checked_time"])
    )


def commit(lake: Lake, check_id: int, rows: pa.Table) -> None:
    """Appends the results of a check."""
    files = write_rows(lake, TABLES[RESULTS], rows, {})
    books.commit(lake, RESULTS, CHECK, check_id, files)


def earlier_volumes(lake: Lake, table: str, run: int) -> list[int]:
    """Rows of the table's slices in the last checks of earlier runs, one a run, newest first."""
    of_earlier_runs = (pc.field("table_name") == table) & (pc.field("kind") == VOLUME) & (pc.field("run_id") < run)
    columns = ["run_id", "check_id", "slice_rows"]
    rows = lake.snapshot(RESULTS).dataset().to_table(columns=columns, filter=of_earlier_runs).to_pylist()
    by_run: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: row["check_id"], reverse=True):
        by_run.setdefault(row["run_id"], row["slice_rows"])
    return [by_run[number] for number in sorted(by_run, reverse=True)[:REMEMBERED]]


def in_use(lake: Lake) -> pa.Table:
    """The checks (`check_id`) that gates and the comparison of volumes rest on: each table's newest ones."""
    columns = ["table_name", "run_id", "check_id", "level"]
    rows = lake.snapshot(RESULTS).dataset().to_table(columns=columns)
    newest = rows.filter(pc.field("level") == BLOCKING).group_by("table_name").aggregate([("check_id", "max")])
    checks = set(newest.column("check_id_max").to_pylist())
    runs = rows.group_by(["table_name", "run_id"]).aggregate([("check_id", "max")]).sort_by([("run_id", "descending")])
    run_counts: dict[str, int] = {}
    for row in runs.to_pylist():
        run_counts[row["table_name"]] = run_counts.get(row["table_name"], 0) + 1
        if run_counts[row["table_name"]] <= REMEMBERED + 1:
            checks.add(row["check_id_max"])
    return pa.table({"check_id": pa.array(sorted(checks), pa.int64())})


def cluster_of(lake: Lake) -> str:
    """The cluster when the lake holds one, else `unknown`: a result is about a table, whatever clusters are in it."""
    from state_model.topics import UNKNOWN_CLUSTER

    clusters = {row["cluster_id"] for row in books.extents(lake, pc.field("status") == "taken")}
    return str(next(iter(clusters))) if len(clusters) == 1 else UNKNOWN_CLUSTER
