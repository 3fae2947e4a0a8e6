"""Where share partitions and groups lie, by the small tables of a lake, so that the larger ones stay unread."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import all_of
from sharelens.evidence.coverage import whole_logs
from sharelens.evidence.offset_commit_rows import COMMIT_COLUMNS, offset_commit_or_marker, without_other_markers
from sharelens.evidence.schemas import GROUP_RECORD, GROUP_RECORD_ORDER
from sharelens.groups.whole_logs import marked_each
from sharelens.tables.cover import GroupLogCover
from sharelens.tables.places import COUNTED, PLACED
from sharelens.tables.where import Keys
from state_model.columnar.keys import PLACE_KEY
from state_model.topics import OFFSETS_TOPIC

Scan = Callable[[str, list[str], pc.Expression | None], pa.Table]
"""Reads columns of the rows of a table that meet a condition."""
EXTENT_ENDS = ("end_offset_exclusive", "held_back")
WHOLE_READ = ("topic_id", "partition", "status", "content", "from_offset", "end_offset_exclusive", "record_count")
MOST_NAMES = 64
"""A condition lists so many names at most; more are bounded by the first and the last one alone."""


def newest_of_places(tables: Iterable[pa.Table]) -> pa.Table:
    """One row for each place, with the largest log_time_ms and start_offset of all its rows (COUNTED)."""
    columns = pa.schema([PLACED.field(name) for name in COUNTED])
    rows = pa.concat_tables([table.select(COUNTED).cast(columns) for table in tables])
    largest = rows.group_by(PLACE_KEY).aggregate([("log_time_ms", "max"), ("start_offset", "max")])
    return largest.rename_columns([name.removesuffix("_max") for name in largest.column_names])


def with_record_counts(places: pa.Table, every: pa.Table, rows_of_state_partition: Mapping[int, int]) -> pa.Table:
    """PLACED rows of some places: the records of a state partition are shared out among `every` place in it."""
    numbers = every.column("state_partition").to_numpy()
    largest = int(numbers.max(initial=0))
    rows = np.array([rows_of_state_partition.get(number, 0) for number in range(largest + 1)], np.int64)
    records = rows // np.maximum(np.bincount(numbers, minlength=largest + 1), 1)
    of_places = np.maximum(records[places.column("state_partition").to_numpy()], 1)
    return places.append_column("records", pa.array(of_places)).select(PLACED.names).cast(PLACED)


def near_places(places: pa.Table) -> pc.Expression:
    """A condition on PLACE_KEY that all rows of some places meet, and few others; that of no places holds for no row.

    The statistics of row groups decide it, so that row groups of other places are left out.
    """
    if places.num_rows == 0:
        return pc.scalar(False)
    condition = pc.scalar(True)
    for name in ("state_partition", "group_id", "topic_id"):
        values = pc.unique(places.column(name)).sort()
        condition &= (pc.field(name) >= values[0]) & (pc.field(name) <= values[-1])
        if len(values) <= MOST_NAMES or name == "state_partition":
            condition &= pc.field(name).isin(values)
    return condition


def log_partitions_of(scan: Scan, groups: frozenset[str] | None) -> pc.Expression | None:
    """The condition for the partitions of __consumer_offsets with a share group's records, by gold.group_history.

    None where it has none of the group, or there are several groups: files of silver.group_record go by partition.
    """
    if groups is None or len(groups) != 1:
        return None
    rows = scan("gold.group_history", ["log_partition"], pc.field("group_id").isin(pa.array(groups, pa.string())))
    numbers = pc.unique(rows.column("log_partition")).sort()
    if len(numbers) == 0:
        return None
    column = pc.field("partition")
    within: pc.Expression = (column >= numbers[0]) & (column <= numbers[-1]) & column.isin(numbers)
    return within


def group_records(scan: Scan, groups: frozenset[str] | None) -> pa.Table:
    """GROUP_RECORD rows of these groups (None: all) with IS_LOG_WHOLE, by (partition, log offset)."""
    table = "silver.group_record"
    where = all_of(Keys(groups=groups).expression(), log_partitions_of(scan, groups))
    rows = scan(table, GROUP_RECORD.names, where).sort_by(GROUP_RECORD_ORDER).cast(GROUP_RECORD)
    return marked_each(rows, "log_topic_id", _whole_logs(scan, table))


def _whole_logs(scan: Scan, table: str) -> set[tuple[str, int]]:
    """The (topic id, partition) of the logs of __consumer_offsets of which a table lacks no record."""
    rows = scan("bronze.ingest_extent", list(WHOLE_READ), pc.field("topic") == OFFSETS_TOPIC)
    return whole_logs(rows.to_pylist(), table)


def group_log_covers(scan: Scan) -> dict[int, GroupLogCover]:
    """The least and the largest time of the records of each partition of __consumer_offsets; the offsets left out."""
    of_topic = pc.field("topic") == OFFSETS_TOPIC
    rows = scan("bronze.log_record", ["partition", "timestamp_ms"], of_topic)
    times = rows.group_by("partition").aggregate([("timestamp_ms", "min"), ("timestamp_ms", "max")])
    held_back = _held_back(scan("bronze.ingest_extent", ["topic_id", "partition", *EXTENT_ENDS], of_topic))
    return {
        row["partition"]: GroupLogCover(
            row["timestamp_ms_min"], row["timestamp_ms_max"], held_back.get(row["partition"], 0)
        )
        for row in times.to_pylist()
    }


def _held_back(extents: pa.Table) -> dict[int, int]:
    """By partition the offsets behind the last extent that a run saw, in all incarnations of the topic."""
    ends: dict[tuple[str, int], tuple[int, int]] = {}
    for row in extents.to_pylist():
        place, end = (row["topic_id"], row["partition"]), row["end_offset_exclusive"]
        extent_end, seen_end = ends.get(place, (0, 0))
        ends[place] = max(extent_end, end), max(seen_end, end + row["held_back"])
    held_back: dict[int, int] = {}
    for (_, partition), (extent_end, seen_end) in ends.items():
        held_back[partition] = held_back.get(partition, 0) + seen_end - extent_end
    return held_back


def offset_commits(scan: Scan, groups: frozenset[str]) -> pa.Table:
    """COMMIT_COLUMNS of the groups' offset commits and of transaction markers with IS_LOG_WHOLE, in log order."""
    of_topic = pc.field("topic") == OFFSETS_TOPIC
    within = log_partitions_of(scan, groups)
    where = of_topic if within is None else of_topic & within
    table = "bronze.log_record"
    rows = scan(table, ["topic_id", *COMMIT_COLUMNS], where & offset_commit_or_marker(groups))
    marked = marked_each(rows, "topic_id", _whole_logs(scan, table))
    return without_other_markers(marked.drop_columns("topic_id"))
