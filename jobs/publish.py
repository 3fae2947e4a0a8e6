"""Publish: one row says at which versions the tables form a cut. Questions read nothing else."""

from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from jobs import books
from jobs.plan import STATE_TOPIC
from lake import delta, scan
from lake.parquet import write_rows
from lake.tables import TABLES

PUBLICATION = scan.PUBLICATION


def current_versions(lake: Path) -> dict[str, int]:
    """The newest version of every table but the publications."""
    return {name: delta.latest_version(delta.table_path(lake, name)) for name in TABLES if name != PUBLICATION}


def published_versions(lake: Path) -> dict[str, int]:
    """The versions of the newest publication; empty when nothing was published."""
    row = _newest(lake)
    return {} if row is None else {entry["table"]: entry["version"] for entry in row["tables"]}


def _newest(lake: Path) -> dict[str, Any] | None:
    rows = scan.dataset_at(lake, PUBLICATION).to_table().to_pylist()
    return max(rows, key=lambda row: row["run_id"], default=None)


def publish(lake: Path, run: int, cluster_id: str, version: str) -> None:
    """Publishes the tables as they are."""
    row = {
        "cluster_id": cluster_id,
        "published_at_ms": books.now_ms(),
        "tables": [{"table": name, "version": number} for name, number in sorted(current_versions(lake).items())],
        "evidence": evidence(lake),
        "sharelens_version": version,
        "run_id": run,
    }
    files = write_rows(lake, TABLES[PUBLICATION], books.rows_table(PUBLICATION, [row]), {})
    books.commit(lake, PUBLICATION, "publish", run, files)


def evidence(lake: Path) -> list[dict[str, Any]]:
    """What the lake holds of every state partition: log range and log time."""
    rows = books.extents(lake, (pc.field("topic") == STATE_TOPIC) & (pc.field("status") == "taken"))
    rows = [row for row in rows if row["content"] == "log_record"]
    before = _newest(lake)
    known = {} if before is None else {_place(entry): entry["first_log_time_ms"] for entry in before["evidence"]}
    changed = {_place_of(row) for row in rows if before is None or row["run_id"] > before["run_id"]}
    late = {_place_of(row) for row in rows if row["rebuild"]}
    groups = books.by_partition(rows)
    fresh = {key for key, group in groups.items() if _is_fresh(_place_of(group[0]), known, late & changed)}
    first_times = _first_times(lake, fresh)
    result = []
    for (topic_id, partition), group in sorted(groups.items()):
        held = books.coverage(group)
        if not held.held:
            continue
        place = _place_of(group[0])
        result.append(
            {
                "cluster_id": group[0]["cluster_id"],
                "log_topic_id": topic_id,
                "state_partition": partition,
                "first_log_offset": held.held[0][0],
                "end_log_offset_exclusive": held.held[-1][1],
                "first_log_time_ms": first_times.get((topic_id, partition), known.get(place)),
                "log_time_ms": held.log_time_ms,
                "held_back": max(group, key=lambda row: row["run_id"])["held_back"],
            }
        )
    return result


def _is_fresh(
    place: tuple[str, str, int], known: dict[tuple[str, str, int], Any], again: set[tuple[str, str, int]]
) -> bool:
    """Whether the first log time of a state partition has to be looked up."""
    return known.get(place) is None or place in again


def _place(entry: dict[str, Any]) -> tuple[str, str, int]:
    return entry["cluster_id"], entry["log_topic_id"], entry["state_partition"]


def _place_of(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["cluster_id"], row["topic_id"], row["partition"]


def _first_times(lake: Path, places: set[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Log time of the first record of each of the given state partitions."""
    if not places:
        return {}
    columns = ["log_topic_id", "state_partition", "log_time_ms"]
    mine = pc.field("log_topic_id").isin(sorted({topic_id for topic_id, _ in places}))
    mine = mine & pc.field("state_partition").isin(sorted({partition for _, partition in places}))
    rows = scan.dataset_at(lake, "silver.share_record").to_table(columns=columns, filter=mine)
    found = rows.group_by(columns[:2]).aggregate([("log_time_ms", "min")]).to_pylist()
    return {(row["log_topic_id"], row["state_partition"]): row["log_time_ms_min"] for row in found}
