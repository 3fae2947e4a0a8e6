"""Share partitions with new evidence since a run: the work of a measure stage.

A share partition has new evidence when a later run wrote a record of it or took headers of its user partition. It is
measured whole when its topic's name was learned, a setting of its group changed, its state partition starts over or has
a hole that was detected or filled, it moved to another state partition, another one is misplaced now, or the state
topic was created again.
"""

from collections.abc import Iterator, Sequence, Set
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.incarnations import changed_since
from jobs.lake_settings import stored_settings
from jobs.measure.bases import TEXTS, WHERE
from jobs.measure.inputs import PROGRESS
from jobs.measure.reading import HISTORY, STATE, by_cluster
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import coded_schema
from sharelens.lake.settings_rows import TABLE as SETTINGS
from sharelens.lake.tables import TABLES
from sharelens.measures.settings.over_time import SHARE_PARTITION_NAMES, changed_groups
from sharelens.measures.topics.kept_samples import changed_partitions
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY
from state_model.topics import STATE_TOPIC

NO_PLACES = pa.schema(
    [
        *(TABLES[HISTORY].schema.field(name).remove_metadata() for name in (*WHERE, *SHARE_PARTITION_KEY)),
        pa.field("whole", pa.bool_()),
        pa.field("rows", pa.int64()),
    ]
).empty_table()
NAME_KEY = ["cluster_id", "topic_id"]
KEY, PLACE = ["cluster_id", *SHARE_PARTITION_KEY], ["cluster_id", *PLACE_KEY]


def touched_since(
    lake: Lake, before: int, *, is_whole: bool = False, settings: Sequence[str] = SHARE_PARTITION_NAMES
) -> pa.Table:
    """The share partitions (NO_PLACES) that have news since run `before`, without repetition.

    `settings`: names of the settings that matter. `whole`: measured from its first record. `rows`: about the number of
    history records that this reads.
    """
    parts = [NO_PLACES, _with_records(lake, pc.field("run_id") > before, is_whole=is_whole or before == 0)]
    holes = _state_partitions_with_holes(lake, before)
    if holes is not None and before > 0:
        parts.append(_with_records(lake, holes, is_whole=True))
    parts += _with_another_state_topic(lake, before)
    measured = _places_in(lake, PROGRESS)
    parts += _with_changed_settings(lake, measured, before, settings)
    topics = books.changed(lake, before, ["topic_batch"])
    if topics:
        parts.append(_with_values(measured, ["cluster_id", "topic_id", "partition"], topics.keys()))
    named = lake.snapshot("silver.name").rows(NAME_KEY, pc.field("run_id") > before)
    if named.num_rows:
        parts.append(_from_the_start(_joined(measured, named, NAME_KEY)))
    live = _places_in(lake, STATE, "misplaced")
    touched = _unique(*parts, *_judged_otherwise(live, measured))
    known_places = pa.concat_tables([measured, live.select(NO_PLACES.column_names)])
    touched = _unique(touched, _joined(known_places, touched, KEY))
    # A share partition with rows in several state partitions, or state topics, is measured whole in all of them.
    touched = _unique(touched, _from_the_start(_joined(touched, _in_several_places(touched), KEY)))
    return touched if before == 0 else _unique(touched, *_counted(lake, touched))


def _with_another_state_topic(lake: Lake, before: int) -> Iterator[pa.Table]:
    """All share partitions of clusters whose state topic is another one than at run `before`.

    Those of the newest one are measured whole; those of earlier ones lose their rows.
    """
    for cluster_id, log_topic_id in changed_since(lake, before).items():
        is_of_cluster, is_newest = pc.field("cluster_id") == cluster_id, pc.field("log_topic_id") == log_topic_id
        yield _with_records(lake, is_of_cluster & is_newest, is_whole=True)
        earlier = _with_records(lake, is_of_cluster & ~is_newest, is_whole=False)
        nothing_to_read = pa.repeat(pa.scalar(0, pa.int64()), earlier.num_rows)
        yield earlier.set_column(earlier.column_names.index("rows"), NO_PLACES.schema.field("rows"), nothing_to_read)


def _with_changed_settings(lake: Lake, measured: pa.Table, before: int, names: Sequence[str]) -> Iterator[pa.Table]:
    """The measured share partitions whose settings changed since run `before`.

    They are measured whole; where only the end offset or the sampled batches of the topic partition changed, not.
    """
    if (lake.snapshot(SETTINGS).largest("run_id") or 0) <= before:
        return
    for cluster_id, cluster_places in by_cluster(measured):
        groups = pc.unique(cluster_places.column("group_id")).to_pylist()
        earlier, now = stored_settings(lake, cluster_id, before), stored_settings(lake, cluster_id)
        ends = {place for place, _ in earlier.end_offsets.items() ^ now.end_offsets.items()}
        named = cluster_places.join(lake.snapshot("silver.name").rows([*NAME_KEY, "topic"]), NAME_KEY)
        yield _with_values(named, ["topic", "partition"], ends)
        yield _with_values(cluster_places, ["topic_id", "partition"], changed_partitions(earlier.samples, now.samples))
        changed_ids = pa.array(sorted(changed_groups(earlier.groups, now.groups, groups, names)), pa.string())
        yield _from_the_start(cluster_places.filter(pc.field("group_id").isin(changed_ids)))


def _counted(lake: Lake, touched: pa.Table) -> Iterator[pa.Table]:
    """The share partitions that are measured whole, with the number of their rows in the history."""
    whole_places = touched.filter(pc.field("whole"))
    if whole_places.num_rows:
        there = pc.field("state_partition").isin(pc.unique(whole_places.column("state_partition")))
        rows = _with_records(lake, there, is_whole=True)
        yield _joined(rows, whole_places, PLACE)


def _with_records(lake: Lake, where: pc.Expression, *, is_whole: bool) -> pa.Table:
    """The share partitions that have rows in the history, and how many."""
    parts = [NO_PLACES]
    columns = [*WHERE, *SHARE_PARTITION_KEY]
    schema = coded_schema(TABLES[HISTORY].schema, TEXTS)
    for fragment in lake.snapshot(HISTORY).dataset(TEXTS).get_fragments(filter=where):
        rows = fragment.to_table(schema=schema, columns=columns, filter=where).unify_dictionaries()
        counted = rows.group_by(columns).aggregate([([], "count_all")]).rename_columns([*columns, "rows"])
        counted = counted.append_column("whole", pa.repeat(is_whole, counted.num_rows))
        parts.append(counted.select(NO_PLACES.column_names).cast(NO_PLACES.schema))
    summed = pa.concat_tables(parts).group_by([*columns, "whole"]).aggregate([("rows", "sum")])
    return summed.rename_columns([*columns, "whole", "rows"]).select(NO_PLACES.column_names)


def _places_in(lake: Lake, table: str, *extra_columns: str) -> pa.Table:
    """The share partitions in a table, as rows of NO_PLACES, with some more of its columns."""
    rows = lake.snapshot(table).rows([*WHERE, *SHARE_PARTITION_KEY, *extra_columns])
    rows = rows.append_column("whole", pa.repeat(False, rows.num_rows))
    rows = rows.append_column("rows", pa.repeat(0, rows.num_rows)).select([*NO_PLACES.column_names, *extra_columns])
    return rows.cast(pa.schema([*NO_PLACES.schema, *(TABLES[table].schema.field(name) for name in extra_columns)]))


def _judged_otherwise(live: pa.Table, measured: pa.Table) -> Iterator[pa.Table]:
    """Places to measure whole because records of other places changed whether they are misplaced."""
    several = _joined(live, _in_several_places(live), KEY)
    for misplaced, join_type in ((True, "left semi"), (False, "left anti")):
        rows = several.filter(pc.field("misplaced") == misplaced).select(NO_PLACES.column_names)
        yield _from_the_start(_joined(rows, measured, PLACE, join_type))


def _from_the_start(rows: pa.Table) -> pa.Table:
    at = NO_PLACES.schema.get_field_index("whole")
    return rows.set_column(at, NO_PLACES.schema.field(at), pa.repeat(True, rows.num_rows))


def _unique(*tables: pa.Table) -> pa.Table:
    names = [*WHERE, *SHARE_PARTITION_KEY]
    grouped = pa.concat_tables(tables).group_by(names).aggregate([("whole", "any"), ("rows", "max")])
    return grouped.rename_columns([*names, "whole", "rows"]).select(NO_PLACES.column_names)


def _in_several_places(rows: pa.Table) -> pa.Table:
    """The share partitions with more than one row; no place has two."""
    return rows.group_by(KEY).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)


def _joined(rows: pa.Table, other_rows: pa.Table, names: Sequence[str], join_type: str = "left semi") -> pa.Table:
    """The rows whose values of some columns the others have, too ("left anti": have not), in any order."""
    if rows.num_rows == 0 or (other_rows.num_rows == 0 and join_type == "left semi"):
        return rows.slice(0, 0)
    return rows.join(other_rows.select(names), names, join_type=join_type, use_threads=False).cast(rows.schema)


def _with_values(rows: pa.Table, names: Sequence[str], values: Set[tuple[Any, ...]]) -> pa.Table:
    """Rows of NO_PLACES: those whose values of some columns together are among `values`."""
    schema = pa.schema([rows.schema.field(name) for name in names])
    value_rows = pa.Table.from_pylist(
        [dict(zip(names, row_values, strict=True)) for row_values in values], schema=schema
    )
    return _joined(rows, value_rows, names).select(NO_PLACES.column_names).cast(NO_PLACES.schema)


def _state_partitions_with_holes(lake: Lake, before: int) -> pc.Expression | None:
    """State partitions that start over, or in which a run since then found or filled a hole."""
    later = (pc.field("run_id") > before) & (pc.field("status") == "taken") & (pc.field("topic") == STATE_TOPIC)
    rows = [row for row in books.extents(lake, later) if row["rebuild"] or row["gaps"]]
    return books.of_partitions(set(books.by_partition(rows)), "log_topic_id", "state_partition")
