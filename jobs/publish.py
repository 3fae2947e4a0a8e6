"""Publish: one row names the versions of the tables that form a cut. Questions read only cuts."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, retained
from jobs.errors import JobError
from sharelens.evidence.coverage import coverage
from sharelens.evidence.intervals import Interval
from sharelens.lake import durability, gates, scan
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, write_rows
from sharelens.lake.slices import EVERY_RUN, SILVER, PartitionKey, slices
from sharelens.lake.tables import TABLES
from sharelens.shell import lake_command
from state_model.topics import STATE_TOPIC

PUBLICATION = scan.PUBLICATION


def current_versions(lake: Lake) -> dict[str, int]:
    """The newest version of every table that a cut lists: all but the publications and the results of checks."""
    return {name: lake.version(name) for name in TABLES if name not in scan.UNLISTED}


def is_current(lake: Lake) -> bool:
    """Whether the newest publication has every table at its newest version."""
    return current_versions(lake) == published_versions(lake)


def published_versions(lake: Lake) -> dict[str, int]:
    """The versions of the newest publication; empty without a publication."""
    row = _newest(lake)
    return {} if row is None else scan.versions_of(row)


def published_run(lake: Lake) -> int:
    """The run of the newest publication; 0 without a publication."""
    row = _newest(lake)
    return 0 if row is None else int(row["run_id"])


def oldest_versions_since(lake: Lake, since_ms: int) -> dict[str, int]:
    """The oldest version of each table that one of these names: the newest publication, that of a moment, those since.

    A question that began just before the next publication still reads that of the moment, however old it is.
    """
    snapshot = lake.snapshot(PUBLICATION)
    published_at = pc.field("published_at_ms")
    of_the_moment = pc.max(snapshot.rows(["run_id"], published_at < since_ms).column("run_id")).as_py()
    runs = [run for run in (snapshot.largest("run_id"), of_the_moment) if run is not None]
    is_needed = pc.field("run_id").isin(pa.array(runs, pa.int64())) | (published_at >= since_ms)
    entries = pc.list_flatten(snapshot.rows(["tables"], is_needed).column("tables"))
    named = pa.table({name: pc.struct_field(entries, name) for name in ("table", "version")})
    oldest = named.group_by("table").aggregate([("version", "min")])
    return dict(zip(oldest.column("table").to_pylist(), oldest.column("version_min").to_pylist(), strict=True))


def published_cluster(lake: Lake) -> str | None:
    """The cluster that the newest publication names; None without a publication."""
    row = _newest(lake)
    return None if row is None else str(row["cluster_id"])


def unchecked(lake: Lake) -> list[str]:
    """Tables whose newest version no check has judged."""
    checked_versions = {name: gate.version for name, gate in gates.gates(lake).items()}
    return [name for name, version in current_versions(lake).items() if checked_versions.get(name) != version]


def ensure_checked(lake: Lake) -> None:
    """Refuses tables whose newest version no check has judged.

    Raises:
        JobError: a table has a newer version than its last check.
    """
    unchecked_tables = unchecked(lake)
    if unchecked_tables:
        others_text = f" and {len(unchecked_tables) - 1} more" if len(unchecked_tables) > 1 else ""
        raise JobError(
            f"{unchecked_tables[0]}{others_text} in {lake}: no check of the newest version; run "
            f"`{lake_command('check', lake)}`"
        )


def _newest(lake: Lake) -> dict[str, Any] | None:
    """The newest publication, whichever schema version it was written with."""
    if not lake.exists(PUBLICATION):
        return None
    snapshot = lake.snapshot(PUBLICATION, any_schema=True)
    newest_run = snapshot.largest("run_id")
    if newest_run is None:
        return None
    row: dict[str, Any] = snapshot.rows(where=pc.field("run_id") == newest_run).to_pylist()[0]  # of the newest file
    return row


def publish(lake: Lake, run: int, cluster_id: str, version: str) -> None:
    """Publishes the tables as they are."""
    books.commit(lake, PUBLICATION, "publish", run, cut_files(lake, run, cluster_id, version))
    durability.sync(lake)


def next_run(lake: Lake) -> int:
    """The run of the next publication: the newest one, unless it was published already; 0 when there was none."""
    newest = max(books.done(lake, stage) for stage in books.MARKER if stage != "publish")
    return 0 if newest == 0 else max(newest, books.done(lake, "publish") + 1)


def cut_files(lake: Lake, run: int, cluster_id: str, version: str) -> list[DataFile]:
    """The row of a publication of the tables as they are, in a file to be committed."""
    versions = current_versions(lake)
    row = {
        "cluster_id": cluster_id,
        "published_at_ms": books.now_ms(),
        "tables": [{"table": name, "version": number} for name, number in sorted(versions.items())],
        "contents": _contents(lake, versions),
        "evidence": evidence(lake),
        "sharelens_version": version,
        "run_id": run,
    }
    return write_rows(lake, TABLES[PUBLICATION], books.rows_table(PUBLICATION, [row]), {})


def _contents(lake: Lake, names: Iterable[str]) -> list[dict[str, Any]]:
    """The content of the newest version of each table; a table that was created again has version numbers again."""
    return [lake.snapshot(name).content for name in sorted(names)]


def evidence(lake: Lake) -> list[dict[str, Any]]:
    """The log range and the log time of every state partition in the lake; no times where no record is stored."""
    rows = books.extents(lake, (pc.field("topic") == STATE_TOPIC) & (pc.field("status") == "taken"))
    groups = books.by_partition([row for row in rows if row["content"] == "log_record"])
    before = _newest(lake)
    published_first_times = (
        {} if before is None else {_place(entry): entry["first_log_time_ms"] for entry in before["evidence"]}
    )
    published_run = 0 if before is None else before["run_id"]
    fresh = {
        key
        for key, group in groups.items()
        if published_first_times.get(key) is None or _starts_over(group, published_run)
    }
    first_times = published_first_times | _first_times(lake, fresh)
    cuts = retained.cuts(lake, retained.HISTORY)
    result = []
    for key, group in sorted(groups.items()):
        extent = coverage(group)
        ranges = extent.stored_ranges or _without_records(group)
        if ranges:
            first_offset, first_ms = ranges[0][0], first_times.get(key)
            if key in cuts:  # history that retention has dropped is no evidence any more
                first_offset = max(first_offset, cuts[key].offset)
                first_ms = max(first_ms or cuts[key].time_ms, cuts[key].time_ms)
            entry = {
                "cluster_id": key[0],
                "log_topic_id": key[1],
                "state_partition": key[2],
                "first_log_offset": first_offset,
                "end_log_offset_exclusive": ranges[-1][1],
                "first_log_time_ms": first_ms,
                "log_time_ms": extent.log_time_ms,
                "held_back": max(group, key=lambda row: row["run_id"])["held_back"],
            }
            result.append(entry)
    return result


def _without_records(extents: list[dict[str, Any]]) -> list[Interval]:
    """The range of a state partition none of whose records is stored: unreadable or held back; none of an empty one."""
    begin = max(min(row[name] for row in extents) for name in ("from_offset", "log_start_offset"))
    end = max(row["end_offset_exclusive"] for row in extents)
    return [(begin, end)] if end > begin or any(row["held_back"] for row in extents) else []


def _starts_over(extents: list[dict[str, Any]], published_run: int) -> bool:
    """Whether a run after the last publication filled in older offsets of the partition."""
    return any(row["rebuild"] and row["run_id"] > published_run for row in extents)


def _place(entry: dict[str, Any]) -> PartitionKey:
    return entry["cluster_id"], entry["log_topic_id"], entry["state_partition"]


def _first_times(lake: Lake, places: set[PartitionKey]) -> dict[PartitionKey, int]:
    """Log time of the first record of each of the given state partitions."""
    if not places:
        return {}
    pieces_by_partition = slices(lake.snapshot("silver.share_record"), SILVER, runs=EVERY_RUN, only=places)
    return {key: min(piece.oldest_ms for piece in pieces) for key, pieces in pieces_by_partition.items()}
