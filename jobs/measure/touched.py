"""Share partitions with new evidence since a run: the work of a measure stage.

A share partition has new evidence when a later run wrote a record of it or took headers of its user partition. It is
measured whole when its topic's name was learned, a setting of its group changed, its state partition starts over or has
a hole that was detected or filled, it moved to another state partition, or another one is misplaced now.
"""

from collections.abc import Iterator, Sequence, Set

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.decode.stage import changed
from jobs.lake_settings import stored_settings
from jobs.measure.bases import TEXTS, WHERE
from jobs.measure.inputs import PROGRESS
from jobs.measure.reading import HISTORY, STATE
from lake.lake import Lake
from lake.parquet import coded_schema
from lake.settings_rows import TABLE as SETTINGS
from lake.tables import TABLES
from measures.kept_samples import changed_partitions
from measures.places import places_of
from measures.settings import SHARE_PARTITION_NAMES, changed_groups
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY, number_keys
from state_model.topics import STATE_TOPIC

NO_PLACES = pa.schema(
    [
        *(TABLES[HISTORY].schema.field(name).remove_metadata() for name in (*WHERE, *SHARE_PARTITION_KEY)),
        pa.field("whole", pa.bool_()),
        pa.field("rows", pa.int64()),
    ]
).empty_table()
NAME_KEY = ["cluster_id", "topic_id"]
Flags = npt.NDArray[np.bool_]


def touched_since(
    lake: Lake, before: int, *, whole: bool = False, settings: Sequence[str] = SHARE_PARTITION_NAMES
) -> pa.Table:
    """The share partitions (NO_PLACES) that have news since run `before`, without repetition.

    `settings`: names of the settings that matter. `whole`: measured from its first record. `rows`: about the number of
    history records that this reads.
    """
    parts = [NO_PLACES, _with_records(lake, pc.field("run_id") > before, whole=whole or before == 0)]
    holes = _state_partitions_with_holes(lake, before)
    if holes is not None and before > 0:
        parts.append(_with_records(lake, holes, whole=True))
    measured = _measured_before(lake)
    parts += _with_changed_settings(lake, measured, before, settings)
    topics = changed(lake, before, ["topic_batch"])
    later = lake.snapshot("silver.name").rows(["cluster_id", "topic_id"], pc.field("run_id") > before)
    named = set(zip(*(later.column(name).to_pylist() for name in later.column_names), strict=True))
    if topics or named:
        places = list(
            zip(*(measured.column(name).to_pylist() for name in ("cluster_id", "topic_id", "partition")), strict=True)
        )
        parts.append(measured.filter(pa.array([place in topics for place in places], pa.bool_())))
        parts.append(_from_the_start(measured.filter(pa.array([place[:2] in named for place in places], pa.bool_()))))
    touched = _unique(pa.concat_tables(parts))
    live = _places_in(lake, STATE, ["misplaced"])
    known = pa.concat_tables([measured, live.select(NO_PLACES.column_names)])
    touched = _unique(pa.concat_tables([touched, *_moved(touched, known), *_judged_otherwise(live, measured)]))
    touched = _unique(
        pa.concat_tables([touched, _from_the_start(_only_keys(measured, touched.filter(pc.field("whole"))))])
    )
    return touched if before == 0 else _unique(pa.concat_tables([touched, *_counted(lake, touched)]))


def _with_changed_settings(lake: Lake, measured: pa.Table, before: int, names: Sequence[str]) -> Iterator[pa.Table]:
    """The measured share partitions whose settings changed since run `before`.

    They are measured whole; where only the end offset or the sampled batches of the topic partition changed, not.
    """
    if (lake.snapshot(SETTINGS).largest("run_id") or 0) <= before:
        return
    for cluster_id in pc.unique(measured.column("cluster_id")).to_pylist():
        mine = measured.filter(pc.field("cluster_id") == cluster_id)
        groups = pc.unique(mine.column("group_id")).to_pylist()
        earlier, now = stored_settings(lake, cluster_id, before), stored_settings(lake, cluster_id)
        yield _with_changed_ends(lake, mine, earlier.end_offsets.items() ^ now.end_offsets.items())
        yield _on_partitions(mine, "topic_id", changed_partitions(earlier.samples, now.samples))
        changed_ids = pa.array(sorted(changed_groups(earlier.groups, now.groups, groups, names)), pa.string())
        yield _from_the_start(mine.filter(pc.field("group_id").isin(changed_ids)))


def _with_changed_ends(lake: Lake, measured: pa.Table, ends: Set[tuple[tuple[str, int], int]]) -> pa.Table:
    """The measured share partitions of one cluster whose topic partition is in `ends`, with an end offset."""
    rows = measured.join(lake.snapshot("silver.name").rows(["cluster_id", "topic_id", "topic"]), NAME_KEY)
    return _on_partitions(rows, "topic", {place for place, _ in ends})


def _on_partitions(rows: pa.Table, topic: str, places: Set[tuple[str, int]]) -> pa.Table:
    """The share partitions of one cluster on user partitions, whose topics the column `topic` has."""
    names = [topic, "partition"]
    chosen = pa.Table.from_pylist(
        [dict(zip(names, place, strict=True)) for place in places],
        schema=pa.schema([rows.schema.field(name) for name in names]),
    )
    return rows.join(chosen, names, join_type="left semi").select(NO_PLACES.column_names).cast(NO_PLACES.schema)


def _counted(lake: Lake, touched: pa.Table) -> Iterator[pa.Table]:
    """The share partitions that are measured whole, with the number of their rows in the history."""
    whole = touched.filter(pc.field("whole"))
    if whole.num_rows:
        there = pc.field("state_partition").isin(pc.unique(whole.column("state_partition")))
        rows = _with_records(lake, there, whole=True)
        yield rows.filter(pa.array(_among(rows, whole, ["cluster_id", *PLACE_KEY])))


def _with_records(lake: Lake, where: pc.Expression, *, whole: bool) -> pa.Table:
    """The share partitions that have rows in the history, and how many."""
    parts = [NO_PLACES]
    columns = [*WHERE, *SHARE_PARTITION_KEY]
    schema = coded_schema(TABLES[HISTORY].schema, TEXTS)
    for fragment in lake.snapshot(HISTORY).dataset(TEXTS).get_fragments(filter=where):
        rows = fragment.to_table(schema=schema, columns=columns, filter=where).unify_dictionaries()
        counted = rows.group_by(columns).aggregate([([], "count_all")]).rename_columns([*columns, "rows"])
        counted = counted.append_column("whole", pa.repeat(whole, counted.num_rows))
        parts.append(counted.select(NO_PLACES.column_names).cast(NO_PLACES.schema))
    summed = pa.concat_tables(parts).group_by([*columns, "whole"]).aggregate([("rows", "sum")])
    return summed.rename_columns([*columns, "whole", "rows"]).select(NO_PLACES.column_names)


def _measured_before(lake: Lake) -> pa.Table:
    """The share partitions that were measured before, as rows of NO_PLACES."""
    return _places_in(lake, PROGRESS, [])


def _places_in(lake: Lake, table: str, more: list[str]) -> pa.Table:
    """The share partitions in a table, as rows of NO_PLACES, with some more of its columns."""
    rows = lake.snapshot(table).rows([*WHERE, *SHARE_PARTITION_KEY, *more])
    rows = rows.append_column("whole", pa.repeat(False, rows.num_rows))
    rows = rows.append_column("rows", pa.repeat(0, rows.num_rows)).select([*NO_PLACES.column_names, *more])
    return rows.cast(pa.schema([*NO_PLACES.schema, *(TABLES[table].schema.field(name) for name in more)]))


def _judged_otherwise(live: pa.Table, measured: pa.Table) -> Iterator[pa.Table]:
    """Places to measure whole because records of other places changed whether they are misplaced."""
    names = ["cluster_id", *SHARE_PARTITION_KEY]
    counted = live.group_by(names).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    if counted.num_rows:
        several = _only_keys(live, counted)
        is_held = _among(several, measured, ["cluster_id", *PLACE_KEY])
        misplaced = several.column("misplaced").to_numpy(zero_copy_only=False)
        yield _from_the_start(several.select(NO_PLACES.column_names).filter(pa.array(is_held == misplaced)))


def _from_the_start(rows: pa.Table) -> pa.Table:
    at = NO_PLACES.schema.get_field_index("whole")
    return rows.set_column(at, NO_PLACES.schema.field(at), pa.repeat(True, rows.num_rows))


def _unique(rows: pa.Table) -> pa.Table:
    grouped = rows.group_by([*WHERE, *SHARE_PARTITION_KEY]).aggregate([("whole", "any"), ("rows", "max")])
    return grouped.rename_columns([*WHERE, *SHARE_PARTITION_KEY, "whole", "rows"]).select(NO_PLACES.column_names)


def _only_keys(rows: pa.Table, keys: pa.Table) -> pa.Table:
    return rows.filter(pa.array(_among(rows, keys, ["cluster_id", *SHARE_PARTITION_KEY])))


def _moved(touched: pa.Table, measured: pa.Table) -> list[pa.Table]:
    """All places of share partitions that lie in several state partitions or state topics, to measure whole."""
    both = _unique(pa.concat_tables([touched, _only_keys(measured, touched)]))
    names = ["cluster_id", *SHARE_PARTITION_KEY]
    several = both.group_by(names).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    return [_from_the_start(_only_keys(both, several))]


def _among(rows: pa.Table, others: pa.Table, names: Sequence[str]) -> Flags:
    """Whether each row's values of the columns are those of one of the others."""
    result = np.zeros(rows.num_rows, np.bool_)
    clusters = rows.column("cluster_id")
    for cluster_id in pc.unique(clusters).to_pylist():
        here = pc.equal(clusters, cluster_id)
        mine, candidates = rows.filter(here), others.filter(pc.field("cluster_id") == cluster_id)
        if "state_partition" in names:
            (ours, theirs), _ = places_of(mine, candidates)
        else:
            (ours, theirs), _ = number_keys(mine, candidates)
        result[here.to_numpy(zero_copy_only=False)] = np.isin(ours, theirs)
    return result


def _state_partitions_with_holes(lake: Lake, before: int) -> pc.Expression | None:
    """State partitions that start over, or in which a run since then found or filled a hole."""
    later = (pc.field("run_id") > before) & (pc.field("status") == "taken") & (pc.field("topic") == STATE_TOPIC)
    rows = [row for row in books.extents(lake, later) if row["rebuild"] or row["gaps"]]
    return books.of_partitions(set(books.by_partition(rows)), "log_topic_id", "state_partition")
