"""Rows of the books (bronze.ingest_extent) joined: many runs over one log leave few rows.

    run 7 [100, 120)  run 8 [120, 150)  run 9 [150, 160)      ->      run 9 [100, 160)

The offsets that a source gave, their log times and counts stay as they are; the row has the number of the last run.
Rows that say more than an extent stay: gaps, what supersedes earlier rows, what makes tables start over. No rows are
joined across them, because the order of runs decides there.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from jobs import books
from jobs.upkeep.compaction import Keep, Rewritten, row_groups
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES

STAGES = ("decode", "replay", "measure", "audit")
"""The stages that look for the extents of runs after their last one."""
Row = dict[str, Any]


def rewrite(lake: Lake, paths: Sequence[str], keep: Keep) -> Rewritten:
    """The rows of files of the books that `keep` leaves, joined, in new files. `dropped`: rows that `keep` took out."""
    table = TABLES[books.EXTENT]
    groups = [keep(rows) for rows in row_groups(lake, table, paths, {})]
    count = sum(rows.num_rows for rows in row_groups(lake, table, paths, {}, ["run_id"]))
    rows = pa.concat_tables(groups).to_pylist()
    joined_table = books.rows_table(books.EXTENT, joined(rows, min(books.done(lake, stage) for stage in STAGES)))
    return Rewritten(files=tuple(write_rows(lake, table, joined_table, {})), dropped=count - len(rows))


def joined(rows: Iterable[Row], up_to_run: int) -> list[Row]:
    """The rows of runs up to `up_to_run` joined, and all later ones; each says of its log what the rows before said.

    By log, then by run.
    """
    of_logs = books.by_partition(list(rows)).values()
    return [row for of_log in of_logs for row in _in_order(_joined_of_log(_in_order(of_log), up_to_run))]


def _in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["run_id"]))


def _joined_of_log(rows: Sequence[Row], up_to_run: int) -> Iterator[Row]:
    pending: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if not _is_plain(row, up_to_run):
            yield from [*pending.values(), row]
            pending.clear()
            continue
        key = (row["source_id"], row["content"], row["log_start_known"], row["committed_end"] is None)
        before = pending.get(key)
        if before is not None and before["end_offset_exclusive"] != row["from_offset"]:
            yield before
            before = None
        pending[key] = row if before is None else _one_row(before, row)
    yield from pending.values()


def _is_plain(row: Mapping[str, Any], up_to_run: int) -> bool:
    """Whether a row says no more than that a run, with which all stages are done, took offsets."""
    is_whole = row["committed_end"] is None or row["committed_end"] >= row["end_offset_exclusive"]
    is_taken = row["status"] == "taken" and row["sha256"] is not None and row["run_id"] <= up_to_run
    return is_taken and is_whole and not row["gaps"] and not row["rebuild"] and row["superseded_from"] is None


def _one_row(before: Row, row: Row) -> Row:
    """A row, and the one of an earlier run before it, whose end is its beginning."""
    starts = before["log_start_offset"], row["log_start_offset"]
    return row | {
        "from_offset": before["from_offset"],
        "log_start_offset": max(starts) if row["log_start_known"] else min(starts),
        "leader_epochs": [*(before["leader_epochs"] or ()), *(row["leader_epochs"] or ())],
        "sha256": hashlib.sha256(f"{before['sha256']}{row['sha256']}".encode("ascii")).hexdigest(),
        **{name: before[name] + row[name] for name in ("record_count", "size_bytes")},
        **{
            name: max((value for value in (before[name], row[name]) if value is not None), default=None)
            for name in ("committed_end", "log_time_ms", "until_ms", "read_until_ms")
        },
    }
