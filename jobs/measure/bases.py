"""Where the histories are whole after a cut of retention, and the rows that measures therefore never recompute.

    log of a share partition    [ dropped, but for what still counts | whole ... ]
    events, stalls, hours       rows from before the cut stay        ^ recomputed from here on
    record offsets              rows below the start offset at the cut stay, in the lives up to the cut

No later record of the same life can change the rows that retention drops. For each share partition that retention has
cut, gold.measure_base has the bound of each kind of row: rows before it are never recomputed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.retained import joined
from jobs.upkeep.compaction import row_groups
from sharelens.lake.lake import Lake, LakeReader
from sharelens.lake.parquet import conform, write_rows
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import STAGED, Measure, Rule
from sharelens.measures.ranges.places import Places, places_of
from state_model.columnar.codes import ABOVE_ALL, BELOW_ALL, ints
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY

BASE, HISTORY, PROGRESS = "gold.measure_base", "gold.share_partition_history", "gold.progress"
WHERE = ["cluster_id", "log_topic_id", "state_partition"]
TEXTS = [*WHERE[:2], *SHARE_PARTITION_KEY[:2]]
"""Text that is read as dictionaries: few values in many rows."""
RANGES = [measure for measure in STAGED.values() if measure.rule is Rule.BY_RECORD_OFFSET]
"""Measures whose rows are ranges of record offsets."""
LOG_OFFSET_EDGES = {Rule.BY_INTERVAL: "stalls_from_log_offset", Rule.BY_LOG_OFFSET: "events_from_log_offset"}
EDGES = (*LOG_OFFSET_EDGES.values(), "hours_from_ms", "whole_from_offset", "lives_to_log_offset")
RANGE_COLUMNS = (*WHERE[1:], *SHARE_PARTITION_KEY, "last_offset", "valid_to_log_offset")
"""Columns that decide whether the start offset passed a range of the delivery history."""
READ_FROM = "read_from_log_offset"
UNREAD = -1
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """Rows of gold.measure_base of one state topic, in layers with at most one row for each share partition."""

    layers: tuple[pa.Table, ...]

    def stays(self, measure: Measure, rows: pa.Table) -> Flags:
        """Whether each row of a measure (with PLACE_KEY columns) is one that is never recomputed."""
        result = np.zeros(rows.num_rows, np.bool_)
        for layer in self.layers:
            result |= _Edge(layer, rows).stays(measure)
        return result

    def clipped(self, measure: Measure, rows: pa.Table) -> pa.Table:
        """The recomputed rows, without their parts that are never recomputed."""
        for layer in self.layers:
            edge = _Edge(layer, rows)
            if measure.rule is Rule.BY_RECORD_OFFSET:
                rows = from_offsets(rows, edge.first_offsets())
            else:
                rows = rows.filter(pa.array(~edge.stays(measure)))
        return rows


class _Edge:
    """The values of one layer for the share partition of each row."""

    def __init__(self, layer: pa.Table, rows: pa.Table) -> None:
        self._layer = layer
        self._rows = rows
        self._at = Places(keys=layer.select(PLACE_KEY).combine_chunks()).of(rows)

    def passed(self) -> Flags:
        """Whether each range of the delivery history was passed and ended before the first recomputed event."""
        ends = ints(self._rows, "valid_to_log_offset", ABOVE_ALL) < self._of("events_from_log_offset")
        return ends & (ints(self._rows, "last_offset", ABOVE_ALL) < self._of("whole_from_offset"))

    def _of(self, name: str) -> Ints:
        """The value of a column for each row; BELOW_ALL where the layer lacks the share partition."""
        values: Ints = np.append(self._layer.column(name).to_numpy(), BELOW_ALL)[self._at]
        return values

    def first_offsets(self) -> Ints:
        """The offset at which each row of a life that was there begins at least; BELOW_ALL for others."""
        old = ints(self._rows, "life_log_offset", BELOW_ALL) <= self._of("lives_to_log_offset")
        return np.where(old, self._of("whole_from_offset"), BELOW_ALL)

    def stays(self, measure: Measure) -> Flags:
        """Whether each row is one that is never recomputed."""
        if measure.rule is Rule.BY_RECORD_OFFSET:
            return ints(self._rows, "last_offset", ABOVE_ALL) < self.first_offsets()
        if measure.rule is Rule.BY_BLOCK:
            return ints(self._rows, "hour_ms", ABOVE_ALL) < self._of("hours_from_ms")
        if measure.rule is Rule.BY_MOMENT:
            return ints(self._rows, str(measure.order), ABOVE_ALL) < self._of("hours_from_ms")
        return ints(self._rows, "log_offset", ABOVE_ALL) < self._of(LOG_OFFSET_EDGES[measure.rule])


def from_offsets(rows: pa.Table, least: Ints) -> pa.Table:
    """Rows of a measure by record offset, each without its part below an offset; rows that lie below it are left out.

    `least`: the offset of each row.
    """
    at = rows.schema.get_field_index("first_offset")
    first = np.maximum(rows.column(at).to_numpy(), least)
    reaches = rows.column("last_offset").to_numpy() >= least
    return rows.set_column(at, rows.schema.field(at), pa.array(first)).filter(pa.array(reaches))


def not_across(edges: Ints, rows: pa.Table, places: Places) -> Ints:
    """Record offsets by place, each moved down to the first offset of the lowest row of a measure that lies across it.

    A row moved an offset may have rows of other lives across it in turn.
    """
    at = places.of(rows)
    first, last = (rows.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    across = (at >= 0) & (last >= edges[at])
    return np.minimum(edges, places.lowest(at[across], first[across]))


def bases(lake: LakeReader, cluster_id: str, log_topic_id: str) -> Bases:
    """The bases of a state topic: the bounds of share partitions that retention has cut."""
    is_of_topic = (pc.field("cluster_id") == cluster_id) & (pc.field("log_topic_id") == log_topic_id)
    return Bases(layers=tuple(_layers(lake.snapshot(BASE).rows(where=is_of_topic))))


def _layers(rows: pa.Table) -> Iterator[pa.Table]:
    """The newest row of each share partition, then the next ones."""
    if rows.num_rows == 0:
        return
    (place,), _ = places_of(rows)
    order = np.lexsort((-rows.column("run_id").to_numpy(), place))
    rows, place = rows.take(pa.array(order)), place[order]
    begins = np.flatnonzero(np.diff(place, prepend=-1))
    depth = np.arange(len(place)) - np.repeat(begins, np.diff(np.append(begins, len(place))))
    for number in range(int(depth.max()) + 1):
        yield rows.filter(pa.array(depth == number))


def read_on(lake: Lake, kept_from: pa.Table) -> pa.Table:
    """The first log offset kept (`from`) of each share partition, moved down to where measuring goes on.

    `kept_from`: cluster_id, place_id, place (a state partition of a state topic), key (`jobs.retained.joined`), from.
    """
    names = kept_from.column_names[:4]
    joined_rows = kept_from.join(_progress(lake).select([*names, READ_FROM]), keys=names)
    lowest = pc.min_element_wise(joined_rows.column("from"), joined_rows.column(READ_FROM))
    return joined_rows.set_column(joined_rows.schema.get_field_index("from"), "from", lowest).select(
        kept_from.column_names
    )


def _progress(lake: Lake) -> pa.Table:
    """Where measuring stands, with the columns of `read_on`; from UNREAD on where reading begins with the first."""
    rows = lake.snapshot(PROGRESS).rows()
    columns = {name: rows.column(name) for name in (*WHERE, *SHARE_PARTITION_KEY, "since_log_offset", "log_offset")}
    columns |= {
        READ_FROM: pc.fill_null(rows.column(READ_FROM), UNREAD),
        "place_id": rows.column("log_topic_id"),
        "place": rows.column("state_partition"),
        "key": joined(rows, tuple(SHARE_PARTITION_KEY)),
    }
    return pa.table(columns)


def _rows_at_cut(lake: Lake, kept_from: pa.Table, moments_ms: Mapping[str, int]) -> pa.Table:
    """Rows of gold.measure_base, without run_id; share partitions that lose no rows have none."""
    schema = pa.schema([field for field in TABLES[BASE].schema if field.name != "run_id"])
    rows = _progress(lake).join(kept_from, keys=kept_from.column_names[:4], join_type="inner")
    rows = rows.filter(pc.field("from") > UNREAD)
    tables = [schema.empty_table()]
    for topic in rows.select(WHERE[:2]).group_by(WHERE[:2]).aggregate([]).to_pylist():
        is_of_cluster = pc.field("cluster_id") == topic["cluster_id"]
        topic_rows = rows.filter(is_of_cluster & (pc.field("log_topic_id") == topic["log_topic_id"])).combine_chunks()
        last = topic_rows.column("log_offset")
        columns = {name: topic_rows.column(name) for name in (*WHERE, *SHARE_PARTITION_KEY)} | {
            "events_from_log_offset": pc.add(topic_rows.column(READ_FROM), 1),
            "stalls_from_log_offset": pc.coalesce(topic_rows.column("since_log_offset"), pc.add(last, 1)),
            "hours_from_ms": pa.repeat(moments_ms[topic["cluster_id"]], topic_rows.num_rows),
            "whole_from_offset": pa.array(_whole_from(lake, topic, topic_rows)),
            "lives_to_log_offset": last,
        }
        tables.append(conform(pa.table(columns), schema))
    return pa.concat_tables(tables)


def _whole_from(lake: Lake, topic: Mapping[str, str], topic_rows: pa.Table) -> Ints:
    """Of each share partition the lowest offset that its start offset has been at since the first record kept.

    Moved down so that no row of a measure lies across it.
    """
    places = Places(keys=topic_rows.select(PLACE_KEY))
    begins, lowest = topic_rows.column("from").to_numpy(), np.full(places.count, ABOVE_ALL, np.int64)
    for rows in _rows_of_topic(lake, HISTORY, topic, [*PLACE_KEY, "log_offset", "start_offset"]):
        at = places.of(rows)
        start = ints(rows, "start_offset", ABOVE_ALL)
        is_kept = (at >= 0) & (rows.column("log_offset").to_numpy() >= begins[at])
        lowest = np.minimum(lowest, places.lowest(at[is_kept], start[is_kept]))
    while True:
        before = lowest
        for measure in RANGES:
            for rows in _rows_of_topic(lake, measure.table, topic, [*PLACE_KEY, "first_offset", "last_offset"]):
                lowest = not_across(lowest, rows, places)
        if (lowest == before).all():
            return lowest


def _rows_of_topic(lake: Lake, table: str, topic: Mapping[str, str], columns: list[str]) -> Iterator[pa.Table]:
    """Columns of the rows of a state topic, row group by row group."""
    names = [name for name in WHERE[:2] if name in TABLES[table].schema.names]
    for file in lake.snapshot(table).files:
        for rows in row_groups(lake, TABLES[table], [str(file["path"])], {}, [*columns, *names]):
            for name in names:
                rows = rows.filter(pc.equal(rows.column(name).cast(pa.string()), topic[name]))
            yield rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Whether each range of the delivery history lies where measures are never recomputed.

    `rows`: of gold.measure_base, without run_id; `topics`: the state topics that are measured, as (cluster id, topic
    id).
    """

    rows: pa.Table
    topics: frozenset[tuple[str, str]]

    def holds(self, ranges: pa.Table) -> Flags:
        """Of each range whether its offsets were passed, or its state topic is one of the past."""
        result = np.ones(ranges.num_rows, np.bool_)
        clusters, topics = (ranges.column(name).cast(pa.string()) for name in WHERE[:2])
        for cluster_id, topic_id in sorted(self.topics):
            is_of_topic = pc.and_(pc.equal(clusters, cluster_id), pc.equal(topics, topic_id)).to_numpy(
                zero_copy_only=False
            )
            base_rows = self.rows.filter(
                (pc.field("cluster_id") == cluster_id) & (pc.field("log_topic_id") == topic_id)
            )
            result[is_of_topic] = _Edge(base_rows, ranges.filter(pa.array(is_of_topic))).passed()
        return result


def passed(lake: Lake, kept_from: pa.Table, moments_ms: Mapping[str, int]) -> Passed:
    """Rows of gold.measure_base for a cut of the histories at `kept_from` (`read_on`); `moments_ms`: by cluster."""
    measured = lake.snapshot(PROGRESS).rows(WHERE[:2]).to_pylist()
    topics = frozenset((row["cluster_id"], row["log_topic_id"]) for row in measured)
    return Passed(rows=_rows_at_cut(lake, kept_from, moments_ms), topics=topics)


def commit_rows(lake: Lake, stage: str, run: int, rows: pa.Table) -> None:
    """Adds rows (without run_id) to gold.measure_base, less dominated rows."""
    added = conform(rows, TABLES[BASE].schema, {"run_id": run})
    existing = lake.snapshot(BASE).rows().cast(added.schema)
    union_rows = _telling(pa.concat_tables([existing, added]))
    if not pc.any(pc.equal(union_rows.column("run_id"), run)).as_py():
        return
    files = write_rows(lake, TABLES[BASE], union_rows, {})
    removes = lake.snapshot(BASE).paths
    books.commit(lake, BASE, stage, run, files, removes)


def _telling(rows: pa.Table) -> pa.Table:
    """The rows in the order of runs, less rows that another row of the same share partition dominates."""
    places: dict[tuple[object, ...], list[int]] = {}
    for number, row in enumerate(rows.select([*WHERE, *SHARE_PARTITION_KEY]).to_pylist()):
        places.setdefault(tuple(row.values()), []).append(number)
    values = np.stack([rows.column(name).to_numpy() for name in EDGES], axis=1)
    stays: list[int] = []
    for numbers in places.values():
        kept_numbers: list[int] = []
        for number in numbers:
            if not any((values[other] >= values[number]).all() for other in kept_numbers):
                kept_numbers = [other for other in kept_numbers if not (values[number] >= values[other]).all()]
                kept_numbers.append(number)
        stays += kept_numbers
    return rows.take(pa.array(sorted(stays), pa.int64()))
