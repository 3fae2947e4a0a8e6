"""Measure: what the histories say, into one gold table a measure; incremental by share partition.

A share partition is measured again when a run since the last measuring wrote a record of it, took headers of its user
partition, learned its topic's name, or found or filled a hole in its state partition. Everything else keeps its row.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.decode import changed
from jobs.executors import Engine
from jobs.plan import STATE_TOPIC
from jobs.progress import Progress
from lake import delta, scan, user_topics
from lake.delta import DataFile
from lake.parquet import ParquetSink
from lake.tables import TABLES, TOPIC
from measures import incomplete, lag, poison, stalls
from measures.headers import NoRecords, OffsetTimes, begins_of
from measures.settings import GroupSettings
from measures.topics import BATCH_COLUMNS, EndsFromHeaders, TopicPartition
from state_model.columnar import schemas
from state_model.columnar.keys import KEY, number_keys, only_keys_of

STATE, HISTORY, DELIVERY = "gold.share_partition_state", "gold.share_partition_history", "gold.delivery_history"
NO_SETTINGS = GroupSettings()
KEYS_A_TASK = 512
PLACE = ["cluster_id", *KEY]
NO_PLACES = TABLES[STATE].schema.empty_table().select(PLACE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Share partitions (KEY rows) of one cluster for one measure, by name. `log_topic_id`: of the state topic."""

    lake: Path
    run: int
    measure: str
    cluster_id: str
    log_topic_id: str
    keys: pa.Table


class Inputs:
    """What a measure may read of its share partitions, of one cluster and the newest incarnation of the state topic."""

    def __init__(self, task: Task) -> None:
        self._task = task

    @cached_property
    def states(self) -> pa.Table:
        """SHARE_PARTITION_STATE rows of the live ones, none of them misplaced, by KEY."""
        names = schemas.PLACED_STATE.names
        rows = self.read(STATE, names).filter(~pc.field("misplaced"))
        order = [(name, "ascending") for name in KEY]
        return rows.select(schemas.SHARE_PARTITION_STATE.names).sort_by(order)

    @cached_property
    def history(self) -> pa.Table:
        """SHARE_PARTITION_HISTORY rows, in any order, with the columns that measures read."""
        return self.read(HISTORY, incomplete.HISTORY_COLUMNS)

    @cached_property
    def deliveries(self) -> pa.Table:
        """DELIVERY_HISTORY rows, in any order, with the columns that measures read."""
        return self.read(DELIVERY, incomplete.DELIVERY_COLUMNS)

    def headers(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """BATCH_COLUMNS rows of user partitions from these offsets on, by user partition, in offset order."""
        return user_topics.batches(self.scan, self.topic_books, begins, BATCH_COLUMNS)

    @cached_property
    def no_records(self) -> NoRecords:
        """The offsets without records, from the lowest start offsets on."""
        found = NoRecords()
        for batches in self.headers(begins_of(self.history)):
            found.take(batches)
        return found

    def read(self, table: str, columns: list[str]) -> pa.Table:
        """Rows of the share partitions in a table that has KEY and log_topic_id."""
        keys = self._task.keys
        here = pc.field("log_topic_id") == self._task.log_topic_id
        for name in KEY:
            here &= pc.field(name).isin(pc.unique(keys.column(name)))
        return only_keys_of(self.scan(table, columns, here), keys)

    def scan(self, table: str, columns: list[str], where: pc.Expression) -> pa.Table:
        """Rows of the cluster in a table, as they are now, published or not."""
        mine = (pc.field("cluster_id") == self._task.cluster_id) & where
        wanted = pa.schema([TABLES[table].schema.field(name) for name in columns])
        return scan.dataset_at(self._task.lake, table).to_table(columns=columns, filter=mine).cast(wanted)

    @cached_property
    def topic_books(self) -> pa.Table:
        """What the runs were told of user partitions (`lake.user_topics`)."""
        return user_topics.books(self.scan)

    def names(self) -> Mapping[str, str]:
        """Topic names by id, the newest."""
        topics = pc.unique(self._task.keys.column("topic_id"))
        rows = self.scan("silver.name", ["topic_id", "topic", "run_id"], pc.field("topic_id").isin(topics))
        ordered = rows.sort_by("run_id")
        return dict(zip(ordered.column("topic_id").to_pylist(), ordered.column("topic").to_pylist(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A gold table with KEY columns, and the rows of a task's share partitions in it, without cluster_id and run_id."""

    table: str
    rows: Callable[[Inputs], pa.Table]


def lag_rows(inputs: Inputs) -> pa.Table:
    """LAG rows."""
    states = inputs.states
    begins = lag.begins_of(states)
    folded = EndsFromHeaders()
    for batches in inputs.headers(begins):
        folded.take(batches)
    return lag.lag(states, folded.ends(user_topics.extents(inputs.topic_books, begins)), inputs.names())


def stall_rows(inputs: Inputs) -> pa.Table:
    """STALL rows with the topic's name: what lasted a minute, and what stands still, as if nothing came any more.

    So no row depends on the moment of the run, and what is not touched needs no new one.
    """
    found = stalls.intervals(inputs.history, inputs.deliveries, inputs.no_records.ranges(), NO_SETTINGS)
    found = stalls.long_enough(found, None, stalls.MIN_DURATION_MS)
    wanted = stalls.offsets_of(found)
    times = OffsetTimes(wanted)
    for batches in inputs.headers({place: int(offsets[0]) for place, offsets in wanted.items()}):
        times.take(batches)
    ends = {
        (row["topic_id"], row["partition"]): (row["end_offset"], row["end_offset_source"])
        for row in user_topics.extents(inputs.topic_books, wanted).to_pylist()
        if row["end_offset"] is not None
    }
    rows = stalls.stalls(found, times.table(), ends, NO_SETTINGS, now_ms=None)
    rows = rows.filter(pc.not_equal(rows.column("kind"), stalls.IDLE))
    return _with_topic(rows, inputs).sort_by([(name, "ascending") for name in TABLES["gold.stall"].clustering])


def poison_rows(inputs: Inputs) -> pa.Table:
    """POISON_RECORD rows with the topic's name; a run knows no settings of groups, so fewer causes are told."""
    headers = inputs.no_records
    rows = poison.poison(inputs.history, inputs.deliveries, headers.ranges(), headers.held(), NO_SETTINGS)
    return _with_topic(rows, inputs)


def _with_topic(rows: pa.Table, inputs: Inputs) -> pa.Table:
    names = inputs.names()
    topics = [names.get(topic_id) for topic_id in rows.column("topic_id").to_pylist()]
    return rows.add_column(rows.schema.get_field_index("topic_id") + 1, TOPIC, pa.array(topics, pa.string()))


MEASURES = {
    "stall": Measure(table="gold.stall", rows=stall_rows),
    "poison_record": Measure(table="gold.poison_record", rows=poison_rows),
    "lag": Measure(table="gold.lag", rows=lag_rows),
}
"""By name; the one whose table marks the stage as done (`books.MARKER`) comes last."""


def measure_task(task: Task) -> tuple[DataFile, ...]:
    """Measures the share partitions of a task and writes their rows; runs on an executor."""
    measure = MEASURES[task.measure]
    with ParquetSink(task.lake, TABLES[measure.table], constants={"run_id": task.run}) as sink:
        sink.write(measure.rows(Inputs(task)), cluster_id=task.cluster_id)
    return tuple(sink.files)


def is_due(lake: Path, run: int) -> bool:
    """Whether a measure has not seen what the runs up to `run` wrote."""
    return any(not books.is_committed(lake, measure.table, "measure", run) for measure in MEASURES.values())


def run_measure(engine: Engine, lake: Path, run: int, progress: Progress) -> dict[str, int]:
    """Measures what changed since each measure was last taken; rows written, by table."""
    counts = {}
    for name, measure in MEASURES.items():
        if books.is_committed(lake, measure.table, "measure", run):
            continue
        before = delta.committed_txn(delta.table_path(lake, measure.table), "measure") or 0
        touched = touched_since(lake, before, measure.table)
        tasks = list(_tasks(lake, run, name, touched))
        files = engine.run("measure", measure_task, tasks, progress, size_bytes=_size_bytes(lake, touched))
        adds = [file for found in files for file in found]
        counts[measure.table] = sum(file.record_count for file in adds)
        kept, removes = _without(lake, measure.table, touched)
        books.commit(lake, measure.table, "measure", run, [*adds, *kept], removes)
    return counts


def touched_since(lake: Path, before: int, table: str) -> pa.Table:
    """The share partitions (PLACE) that have news since run `before`, without repetition.

    What is told of a topic concerns the live ones, and those that have a row in the measure's `table`.
    """
    history = scan.dataset_at(lake, HISTORY)
    later = pc.field("run_id") > before
    found = [NO_PLACES, history.to_table(columns=PLACE, filter=later)]
    places = _state_partitions_with_holes(lake, before)
    if places is not None:
        found.append(history.to_table(columns=PLACE, filter=places))
    measured = [scan.dataset_at(lake, name).to_table(columns=PLACE) for name in (STATE, table)]
    held = pa.concat_tables(measured).group_by(PLACE).aggregate([])
    topics = set(changed(lake, before, ["topic_batch"]))
    names = scan.dataset_at(lake, "silver.name").to_table(columns=["cluster_id", "topic_id"], filter=later)
    named = set(zip(*(names.column(name).to_pylist() for name in names.column_names), strict=True))
    rows = zip(*(held.column(name).to_pylist() for name in ("cluster_id", "topic_id", "partition")), strict=True)
    found.append(held.filter(pa.array([row in topics or row[:2] in named for row in rows], pa.bool_())))
    return pa.concat_tables(found).group_by(PLACE).aggregate([])


def _state_partitions_with_holes(lake: Path, before: int) -> pc.Expression | None:
    """State partitions that start over, or in which a run since then found or filled a hole."""
    later = (pc.field("run_id") > before) & (pc.field("status") == "taken") & (pc.field("topic") == STATE_TOPIC)
    rows = [row for row in books.extents(lake, later) if row["rebuild"] or row["gaps"]]
    return books.of_partitions(set(books.by_partition(rows)), "log_topic_id", "state_partition")


def _tasks(lake: Path, run: int, name: str, touched: pa.Table) -> Iterator[Task]:
    """Tasks of up to KEYS_A_TASK share partitions, neighbours by key together."""
    incarnations = newest_incarnations(lake)
    for cluster_id in pc.unique(touched.column("cluster_id")).sort().to_pylist():
        mine = touched.filter(pc.field("cluster_id") == cluster_id).select(KEY)
        keys = mine.sort_by([(column, "ascending") for column in KEY])
        for first in range(0, keys.num_rows, KEYS_A_TASK):
            yield Task(
                lake=lake,
                run=run,
                measure=name,
                cluster_id=cluster_id,
                log_topic_id=incarnations.get(cluster_id, ""),
                keys=keys.slice(first, KEYS_A_TASK).combine_chunks(),
            )


def newest_incarnations(lake: Path) -> dict[str, str]:
    """Per cluster the id of the state topic whose records are the newest: what questions answer from."""
    extents = books.extents(lake, (pc.field("topic") == STATE_TOPIC) & (pc.field("status") == "taken"))
    times = [row for row in extents if row["content"] == "log_record"]
    ordered: list[dict[str, Any]] = sorted(
        times, key=lambda row: -1 if row["log_time_ms"] is None else row["log_time_ms"]
    )
    return {row["cluster_id"]: row["topic_id"] for row in ordered}


def _size_bytes(lake: Path, touched: pa.Table) -> int:
    """About how much the tasks read: the share of the state table and of the headers that is touched."""
    held = int(scan.dataset_at(lake, STATE).count_rows())
    tables = (STATE, "bronze.topic_batch")
    whole = sum(
        int(str(file["size_bytes"])) for name in tables for file in delta.live_files(delta.table_path(lake, name))
    )
    return whole * min(int(touched.num_rows), held) // max(1, held)


def _without(lake: Path, name: str, touched: pa.Table) -> tuple[list[DataFile], list[str]]:
    """New files with the rows of all other share partitions, and the paths of the files that hold touched ones."""
    adds: list[DataFile] = []
    removes: list[str] = []
    root = delta.table_path(lake, name)
    for fragment in scan.dataset_at(lake, name).get_fragments():
        rows = fragment.to_table(schema=TABLES[name].schema)
        kept = rows.filter(pa.array(~_are_among(rows, touched)))
        if kept.num_rows == rows.num_rows:
            continue
        removes.append(delta.relative_path(root, fragment.path))
        with ParquetSink(lake, TABLES[name], constants={}) as sink:
            sink.write(kept)
        adds += sink.files
    return adds, removes


def _are_among(rows: pa.Table, places: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each row's share partition is one of `places`; both have the columns of PLACE."""
    result = np.zeros(rows.num_rows, np.bool_)
    clusters = rows.column("cluster_id").to_numpy(zero_copy_only=False)
    for cluster_id in pc.unique(rows.column("cluster_id")).to_pylist():
        here = clusters == cluster_id
        wanted = places.filter(pc.field("cluster_id") == cluster_id)
        (ours, theirs), _ = number_keys(rows.filter(pa.array(here)), wanted)
        result[here] = np.isin(ours, theirs)
    return result
