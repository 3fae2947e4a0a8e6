"""What measures read of a lake: the histories of a task's share partitions, whole or from where the last run ended."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs.measure.bases import PLACE, Bases, bases
from jobs.measure.kept_property import kept_property
from lake import user_topics
from lake.lake import LakeView
from lake.row_groups import RowGroups
from lake.tables import TABLES
from measures import incomplete, stalls
from measures.headers import NoRecords, news_from
from measures.incomplete import Intervals
from measures.places import Places, codes_in
from measures.progress import progress
from measures.settings import GroupSettings
from measures.topics import BATCH_COLUMNS, TopicPartition, runs, topic_partitions
from state_model.columnar import schemas
from state_model.columnar.keys import KEY

STATE, HISTORY, DELIVERY = "gold.share_partition_state", "gold.share_partition_history", "gold.delivery_history"
PROGRESS = "gold.progress"
BEGINS, END = {HISTORY: "log_offset", DELIVERY: "valid_from_log_offset"}, "valid_to_log_offset"
"""Columns that tell from where on a row counts, and where a range ended."""
OPEN = {"is_open": True, END: None, "valid_to_ms": None, "end_reason": None}
"""What a range has that is still there."""
NO_SETTINGS = GroupSettings()
WHERE = ["cluster_id", "log_topic_id"]
CODED = ["group_id", "topic_id", "record_type"]
"""Text without nulls: Arrow can't bring dictionaries with nulls together."""
EVERYTHING = -(1 << 62)
"""An offset below all others."""
NOTHING = 1 << 62
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Limit = tuple[str, Ints]
"""A column, and for each place the least (or the highest) value that is asked for; a null is above all."""
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Share partitions of one cluster, by name, for some measures.

    `log_topic_id`: of the state topic. `keys`: PLACE rows without repetition, `whole`: whether to begin anew, `upto`:
    the last log offset that is read. `before`: the last run that was measured; 0 for none. `newest_ms`: log time of the
    lake's newest record.
    """

    lake: LakeView
    run: int
    before: int
    measures: tuple[str, ...]
    cluster_id: str
    log_topic_id: str
    keys: pa.Table
    newest_ms: int = 0


class Inputs:
    """What a measure may read, of one cluster and the newest incarnation of the state topic.

    Text of the `recent` tables, and of `deliveries_from`, `open_deliveries` and `history_from`, is dictionary-encoded.

    Arrays with one entry a place are in the order of `places`. Misplaced share partitions have no rows. Histories read
    as if their log ended at `upto` of each place.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        keys = task.keys.sort_by([(name, "ascending") for name in PLACE]).combine_chunks()
        self.places = Places(keys=keys.select(PLACE))
        self._made: dict[str, object] = {}
        self._upto: Ints = keys.column("upto").to_numpy()
        self._asked_whole: Flags = keys.column("whole").to_numpy(zero_copy_only=False).astype(np.bool_)

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """What `make` gives, kept under a name for the other measures of the task."""
        if name not in self._made:
            self._made[name] = make()
        return cast(Made, self._made[name])

    @kept_property
    def progress(self) -> pa.Table:
        """PROGRESS rows of the places that are read on; those that begin anew have none."""
        names = [*PLACE, *(name for name in PROGRESS_COLUMNS if name not in PLACE)]
        if self._asked_whole.all():
            return self._typed(PROGRESS, names).empty_table()
        rows = self._read(PROGRESS, names)
        at = self.places.of(rows)
        known = pc.is_valid(rows.column("read_from_log_offset")).to_numpy()
        rows, at = rows.filter(pa.array(known & ~self._asked_whole[at])), at[known & ~self._asked_whole[at]]
        since = np.where(_plain(rows, "since_log_offset") >= 0, _plain(rows, "highest_earlier_offset"), NOTHING)
        told = self.news[at]
        return rows.filter(pa.array((told == NOTHING) | (told > since)))

    @kept_property
    def whole(self) -> Flags:
        """Which places begin anew: what they have in a table is replaced."""
        result = np.ones(self.places.count, np.bool_)
        result[self.places.of(self.progress)] = False
        return result

    def known(self, name: str, otherwise: int) -> Ints:
        """A column of the progress, one entry a place; `otherwise` where it is null or the place begins anew."""
        result = np.full(self.places.count, otherwise, np.int64)
        result[self.places.of(self.progress)] = _plain(self.progress, name, otherwise)
        return result

    @kept_property
    def measured_to(self) -> Ints:
        """The last log offset that the runs before measured; EVERYTHING where a place begins anew."""
        return self.known("log_offset", EVERYTHING)

    @kept_property
    def since(self) -> Ints:
        """The log offset from which on intervals of the first incomplete offset are found anew."""
        since = self.known("since_log_offset", EVERYTHING)
        return np.where(self.whole | (since >= 0), since, self.measured_to + 1)

    @kept_property
    def base(self) -> Bases:
        """Where rows are never made anew, because retention has cut what they rest on."""
        return bases(self.task.lake, self.task.cluster_id, self.task.log_topic_id)

    @kept_property
    def states(self) -> pa.Table:
        """SHARE_PARTITION_STATE rows of the live ones, none of them misplaced, by KEY."""
        rows = self._read(STATE, schemas.PLACED_STATE.names, coded=False)
        rows = rows.filter(pc.invert(rows.column("misplaced")))
        order = [(name, "ascending") for name in KEY]
        return rows.select(schemas.SHARE_PARTITION_STATE.names).sort_by(order)

    @kept_property
    def history(self) -> pa.Table:
        """SHARE_PARTITION_HISTORY rows, in any order, with the columns that measures read."""
        return self._placed(self._read(HISTORY, HISTORY_COLUMNS, coded=False))

    @kept_property
    def deliveries(self) -> pa.Table:
        """DELIVERY_HISTORY rows, in any order, with the columns that measures read."""
        return self._placed(self._read(DELIVERY, DELIVERY_COLUMNS, coded=False))

    @kept_property
    def read_from(self) -> Ints:
        """The log offset from which on `recent_history` holds the records; EVERYTHING where a place begins anew."""
        return self.known("read_from_log_offset", EVERYTHING)

    @kept_property
    def recent_history(self) -> pa.Table:
        """Those of `history` from `read_from` on, with the epochs."""
        columns = [*dict.fromkeys([*HISTORY_COLUMNS, *EPOCHS])]
        return self._placed(self._read(HISTORY, columns, ("log_offset", self.read_from)))

    @kept_property
    def recent_deliveries(self) -> pa.Table:
        """Those of `deliveries` that were part of a state after `read_from`."""
        return self._placed(self._read(DELIVERY, DELIVERY_COLUMNS, ("valid_to_log_offset", self.read_from + 1)))

    @kept_property
    def open_deliveries(self) -> pa.Table:
        """Those of `deliveries` that are part of the state at the end."""
        nothing = np.full(self.places.count, NOTHING, np.int64)
        return self._placed(self._read(DELIVERY, DELIVERY_COLUMNS, ("valid_to_log_offset", nothing)))

    def deliveries_from(self, offsets: Ints, columns: Sequence[str] | None = None) -> pa.Table:
        """Those of `deliveries` that reach a record offset or lie above it, given for each place."""
        names = list(columns or DELIVERY_COLUMNS)
        if self.whole.all():
            return self.recent_deliveries.select(names)
        return self._placed(self._read(DELIVERY, names, ("last_offset", offsets)))

    def history_from(self, offsets: Ints, times_ms: Ints) -> tuple[pa.Table, pa.Table]:
        """Of the history the rows from a log offset on, and those from a log time on, given for each place."""
        if self.whole.all():
            return self.recent_history, self.recent_history
        asked = [("log_offset", offsets), ("log_time_ms", times_ms)]
        rows = self._read(HISTORY, HISTORY_COLUMNS, *asked)
        at = self.places.of(rows)
        from_offset, from_time = (
            rows.filter(pa.array(rows.column(name).to_numpy() >= values[at])) for name, values in asked
        )
        return from_offset, from_time

    @kept_property
    def new_offsets(self) -> Ints:
        """The lowest record offset, for each place, of which there is news; NOTHING for none."""
        if self.whole.all():
            return np.full(self.places.count, EVERYTHING, np.int64)
        result = self.news.copy()
        rows = self.recent_deliveries
        at = self.places.of(rows)
        fresh = rows.column("valid_from_log_offset").to_numpy() > self.measured_to[at]
        np.minimum.at(result, at[fresh], rows.column("first_offset").to_numpy()[fresh])
        rows = self.recent_history
        at, start = self.places.of(rows), _plain(rows, "start_offset", NOTHING)
        # A start offset that is not known any more (-1) lies below all that it had passed.
        lower = (start >= 0) | (self.known("start_offset", NOTHING)[at] >= 0)
        fresh = (rows.column("log_offset").to_numpy() > self.measured_to[at]) & lower
        np.minimum.at(result, at[fresh], start[fresh])
        return np.where(self.whole, EVERYTHING, result)

    @kept_property
    def new_progress(self) -> pa.Table:
        """PROGRESS rows, without log_topic_id, as of this run."""
        return progress(self.intervals, self.places, self.progress)

    @kept_property
    def intervals(self) -> Intervals:
        """The intervals of the first incomplete offset, from `since` on."""
        found = stalls.intervals(
            self.recent_history, self.recent_deliveries, self.no_records.ranges(), NO_SETTINGS, earlier=self.progress
        )
        at = found.rows[:, incomplete.BEGIN]
        begun = found.history.column("log_offset").to_numpy()[at]
        kept = begun >= self.since[self.places.of(found.history)[at]]
        return Intervals(history=found.history, rows=found.rows[kept])

    @kept_property
    def lowest_offsets(self) -> dict[TopicPartition, int]:
        """Where the user partitions of the places begin to matter."""
        if self.topic_books.num_rows == 0:
            return {}
        of_topics = pc.field("topic_id").isin(pc.unique(self.places.keys.column("topic_id")))
        rows = self.scan("silver.topic_start", ["topic_id", "partition", "start_offset"], of_topics)
        lowest = rows.group_by(["topic_id", "partition"]).aggregate([("start_offset", "min")])
        return dict(zip(topic_partitions(lowest), lowest.column("start_offset_min").to_pylist(), strict=True))

    def headers(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """BATCH_COLUMNS rows of user partitions from these offsets on, by user partition, in offset order."""
        return user_topics.batches(self.scan, self.topic_books, begins, BATCH_COLUMNS)

    @kept_property
    def no_records(self) -> NoRecords:
        """The offsets without records, from the lowest start offsets on."""
        found = NoRecords()
        for batches in self.headers(self.lowest_offsets):
            found.take(batches)
        return found

    @kept_property
    def news(self) -> Ints:
        """The lowest record offset of which headers tell something new since the run before; NOTHING for none."""
        told: dict[TopicPartition, int] = {}
        if not self.lowest_offsets:
            return np.full(self.places.count, NOTHING, np.int64)
        fresh = self.scan("bronze.ingest_extent", ["topic_id", "partition"], self._new_headers())
        begins = {p: first for p, first in self.lowest_offsets.items() if p in set(topic_partitions(fresh))}
        for batches in user_topics.batches(self.scan, self.topic_books, begins, [*BATCH_COLUMNS, "run_id"]):
            for mine in runs(batches) if batches.num_rows else ():
                lowest = news_from(mine, mine.column("run_id").to_numpy() > self.task.before)
                if lowest is not None:
                    told[topic_partitions(mine.slice(0, 1))[0]] = lowest
        return np.array([told.get(place, NOTHING) for place in topic_partitions(self.places.keys)], np.int64)

    def _new_headers(self) -> pc.Expression:
        taken = (pc.field("content") == "topic_batch") & (pc.field("status") == "taken")
        return taken & (pc.field("run_id") > self.task.before)

    @kept_property
    def topic_books(self) -> pa.Table:
        """What the runs were told of user partitions (`lake.user_topics`)."""
        return user_topics.books(self.scan)

    @kept_property
    def names(self) -> Mapping[str, str]:
        """Topic names by id, the newest."""
        topics = pc.unique(self.places.keys.column("topic_id"))
        rows = self.scan("silver.name", ["topic_id", "topic", "run_id"], pc.field("topic_id").isin(topics))
        ordered = rows.sort_by("run_id")
        return dict(zip(ordered.column("topic_id").to_pylist(), ordered.column("topic").to_pylist(), strict=True))

    def scan(self, table: str, columns: list[str], where: pc.Expression) -> pa.Table:
        """Rows of the cluster in a table, as they are now, published or not."""
        mine = (pc.field("cluster_id") == self.task.cluster_id) & where
        dataset = self.task.lake.snapshot(table).dataset(WHERE)
        return dataset.to_table(columns=columns, filter=mine).cast(self._typed(table, columns))

    def _typed(self, table: str, columns: list[str]) -> pa.Schema:
        return pa.schema([TABLES[table].schema.field(name) for name in columns])

    @kept_property
    def _misplaced(self) -> Flags:
        """Which places hold share partitions that belong to another state partition."""
        rows = self._read(STATE, [*PLACE, "misplaced"])
        result = np.zeros(self.places.count, np.bool_)
        result[self.places.of(rows)] = rows.column("misplaced").to_numpy(zero_copy_only=False)
        return result

    def _placed(self, rows: pa.Table) -> pa.Table:
        if not self._misplaced.any():
            return rows
        return rows.filter(pa.array(~self._misplaced[self.places.of(rows)]))

    def rows_of(self, table: str, columns: list[str], *least: Limit) -> pa.Table:
        """Rows of the places in a table; `least`: those that meet one of these limits at least."""
        return self._read(table, columns, *least)

    def history_parts(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Columns of `history` and PLACE, part by part: what is not held together needs no memory for all."""
        names = [*dict.fromkeys([*columns, *PLACE])]
        return (self._placed(rows) for rows in self._parts(HISTORY, names, coded=True))

    def _read(self, table: str, columns: list[str], *least: Limit, coded: bool = True) -> pa.Table:
        return pa.concat_tables(self._parts(table, columns, *least, coded=coded)).combine_chunks()

    def _parts(self, table: str, columns: list[str], *least: Limit, coded: bool) -> Iterator[pa.Table]:
        most = (BEGINS[table], self._upto) if table in BEGINS and (self._upto < NOTHING).any() else None
        if most is not None:
            least = tuple(
                (name, np.minimum(values, self._upto + 1 if name == END else NOTHING)) for name, values in least
            )
        reach = _Reach(self.task, self.places.keys.column("state_partition").to_numpy(), least, most)
        ends = [END] if most is not None and table == DELIVERY else []
        names = [*dict.fromkeys([*columns, *PLACE, *reach.columns(table), *ends])]
        texts = [name for name in (*WHERE, *(CODED if coded else ())) if name in names]
        groups = self.task.lake.snapshot(table).row_groups
        yield groups.schema(columns, texts).empty_table()
        for rows in groups.read(reach.chosen(table, groups), names, texts):
            at = self.places.of(rows)
            kept = (at >= 0) & reach.is_here(rows)
            if least:
                kept &= np.logical_or.reduce([_plain(rows, name, NOTHING) >= values[at] for name, values in least])
            if most is not None:
                kept &= _plain(rows, most[0]) <= most[1][at]
            wanted = rows.filter(pa.array(kept))
            if ends:
                wanted = _reopened(wanted, _plain(wanted, END, NOTHING) > self._upto[at[kept]])
            yield wanted.select(columns)


def _reopened(rows: pa.Table, ended_later: Flags) -> pa.Table:
    """DELIVERY_HISTORY rows of which some were still there where the log is read to."""
    for name, value in OPEN.items():
        if name in rows.column_names:
            at = rows.schema.get_field_index(name)
            kind = rows.schema.field(at)
            column = pc.if_else(pa.array(ended_later), pa.scalar(value, kind.type), rows.column(at))
            rows = rows.set_column(at, kind, column)
    return rows


class _Reach:
    """Where rows of a task's state partitions lie, from the lowest value that any place there asks for to the highest.

    `least`: one of these is met; none of them: no matter. Row groups are left out by their statistics.
    """

    def __init__(self, task: Task, state_partitions: Ints, least: Sequence[Limit], most: Limit | None) -> None:
        self._task = task
        self._numbers = np.unique(state_partitions)
        at = np.searchsorted(self._numbers, state_partitions)
        self._least = [(name, np.full(len(self._numbers), NOTHING, np.int64)) for name, _ in least]
        for (_, lowest), (_, values) in zip(self._least, least, strict=True):
            np.minimum.at(lowest, at, values)
        self._most = None if most is None else (most[0], np.full(len(self._numbers), EVERYTHING, np.int64))
        if self._most is not None and most is not None:
            np.maximum.at(self._most[1], at, most[1])

    def columns(self, table: str) -> list[str]:
        """What `chosen` and `is_here` look at, and what is compared."""
        own = [name for name in (*WHERE, "state_partition") if name in TABLES[table].schema.names]
        return [*own, *(name for name, _ in (*self._least, *([] if self._most is None else [self._most])))]

    def chosen(self, table: str, groups: RowGroups) -> Flags:
        """Which row groups statistics do not exclude; a null reaches all."""
        result = np.ones(groups.count, np.bool_)
        for name, text in zip(WHERE, (self._task.cluster_id, self._task.log_topic_id), strict=True):
            if name in TABLES[table].schema.names:
                result &= groups.may_hold(name, text)
        numbers = groups.integers("state_partition")
        begin = np.searchsorted(self._numbers, numbers.low)
        end = np.searchsorted(self._numbers, numbers.high, "right")
        result &= end > begin
        if self._least:
            reached = np.zeros(groups.count, np.bool_)
            for name, lowest in self._least:
                values = groups.integers(name)
                highest = np.where(values.nulls, NOTHING, values.high)
                for number in np.flatnonzero(result & ~reached).tolist():
                    reached[number] = lowest[begin[number] : end[number]].min() <= highest[number]
            result &= reached
        if self._most is not None:
            name, highest = self._most
            low = groups.integers(name).low
            for number in np.flatnonzero(result).tolist():
                result[number] = low[number] <= highest[begin[number] : end[number]].max()
        return result

    def is_here(self, rows: pa.Table) -> Flags:
        """Which rows are of the task's cluster and state topic."""
        result = np.ones(rows.num_rows, np.bool_)
        for name, text in ((WHERE[0], self._task.cluster_id), (WHERE[1], self._task.log_topic_id)):
            if name in rows.column_names:
                result &= codes_in(rows.column(name), pa.array([text])) == 0
        return result


EPOCHS = ["snapshot_epoch", "state_epoch", "leader_epoch"]
HISTORY_COLUMNS = incomplete.HISTORY_COLUMNS
DELIVERY_COLUMNS = incomplete.DELIVERY_COLUMNS
PROGRESS_COLUMNS = [
    "start_offset", "first_incomplete_offset", "since_log_offset", "highest_earlier_offset", "earlier_write_ms",
    "read_from_log_offset", "log_offset", "log_time_ms", "completeness", "completeness_reason",
]  # fmt: skip


def _plain(rows: pa.Table, name: str, unknown: int = -1) -> Ints:
    values: Ints = pc.fill_null(rows.column(name), unknown).to_numpy()
    return values
