"""Rows of the share partitions of one task, read from the lake's tables row group by row group.

Only this module and `jobs.measure.stage` access the lake's files here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake.lake import LakeView
from lake.row_groups import RowGroups
from lake.tables import TABLES
from measures.places import Places, codes_in
from state_model.columnar.codes import ABOVE_ALL, BELOW_ALL, ints

STATE, HISTORY, DELIVERY = "gold.share_partition_state", "gold.share_partition_history", "gold.delivery_history"
BEGINS, END = {HISTORY: "log_offset", DELIVERY: "valid_from_log_offset"}, "valid_to_log_offset"
"""Columns with the log offset from which on a row counts, and where a range ended."""
STILL_OPEN = {"is_open": True, END: None, "valid_to_ms": None, "end_reason": None}
"""Columns of a range that is part of the state."""
LOG_TOPIC = ["cluster_id", "log_topic_id"]
PLACE = "place"
"""The number of a row's place among those of the task: a column that `Reader` adds where it is named."""
CODED = ["group_id", "topic_id", "record_type", "completeness"]
"""Text without nulls: Arrow can't concatenate dictionaries with nulls."""
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Limit = tuple[str, Ints]
"""A column, and for each place the least (or the highest) value that is read; a null is above all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Share partitions of one cluster, by name, for some measures.

    `log_topic_id`: of the state topic. `keys`: PLACE_KEY rows without repetition, `whole`: whether all their rows are
    recomputed, `upto`: the last log offset that is read. `before`: the last run that was measured; 0 for none.
    """

    lake: LakeView
    run: int
    before: int
    measures: tuple[str, ...]
    cluster_id: str
    log_topic_id: str
    keys: pa.Table


class Reader:
    """Reads the tables of a task's lake, published or not. Histories read as if their log ended at `upto`."""

    def __init__(self, task: Task, places: Places, upto: Ints) -> None:
        self.task = task
        self.places = places
        self._upto = upto
        self._state_partitions = np.unique(places.keys.column("state_partition").to_numpy())
        self._row_groups: dict[str, RowGroups] = {}

    def scan(self, table: str, columns: list[str], where: pc.Expression) -> pa.Table:
        """Rows of the cluster in a table that meet a condition."""
        mine = (pc.field("cluster_id") == self.task.cluster_id) & where
        dataset = self.task.lake.snapshot(table).dataset(LOG_TOPIC)
        kinds = pa.schema([TABLES[table].schema.field(name) for name in columns])
        return dataset.to_table(columns=columns, filter=mine).cast(kinds)

    def rows(
        self,
        table: str,
        columns: list[str],
        *least: Limit,
        most: Limit | None = None,
        coded: bool = True,
        final: bool | None = None,
    ) -> pa.Table:
        """Rows of the places that meet one of the limits at least, and `most`; `final`: of files with that `is_final`
        alone.
        """
        parts = self.parts(table, columns, *least, most=most, coded=coded, final=final)
        return pa.concat_tables(parts).combine_chunks()

    def parts(
        self,
        table: str,
        columns: list[str],
        *least: Limit,
        most: Limit | None = None,
        coded: bool = True,
        final: bool | None = None,
    ) -> Iterator[pa.Table]:
        """The same in bounded tables, one at least."""
        highest = [] if most is None else [most]
        is_cut = table in BEGINS and bool((self._upto < ABOVE_ALL).any())
        if is_cut:
            highest.append((BEGINS[table], self._upto))
            least = tuple(
                (name, np.minimum(values, self._upto + 1 if name == END else ABOVE_ALL)) for name, values in least
            )
        limits = _Limits(self.task, self.places, least, highest)
        ends = [END] if is_cut and table == DELIVERY else []
        stored = [name for name in columns if name != PLACE]
        names = [*dict.fromkeys([*stored, *self.places.keys.column_names, *limits.columns(table), *ends])]
        texts = [name for name in (*LOG_TOPIC, *(CODED if coded else ())) if name in names]
        groups = self._groups(table)
        yield _with_place(groups.schema(stored, texts).empty_table(), np.zeros(0, np.int64)).select(columns)
        chosen = limits.chosen(table, groups)
        if final is not None:
            chosen &= groups.partition_is("is_final", str(final).lower())
        for read in groups.read(chosen, names, texts):
            rows = limits.near(read)
            at = self.places.of(rows)
            kept = (at >= 0) & limits.is_here(rows)
            if least:
                kept &= np.logical_or.reduce([ints(rows, name, ABOVE_ALL) >= values[at] for name, values in least])
            for name, values in highest:
                kept &= ints(rows, name, ABOVE_ALL) <= values[at]
            mine = rows if kept.all() else rows.filter(pa.array(kept))
            if ends:
                mine = _reopened(mine, ints(mine, END, ABOVE_ALL) > self._upto[at[kept]])
            yield _with_place(mine, at[kept]).select(columns)

    def _groups(self, table: str) -> RowGroups:
        """The row groups of the files with the places' state partitions."""
        if table not in self._row_groups:
            self._row_groups[table] = self.task.lake.snapshot(table).row_groups(self._state_partitions)
        return self._row_groups[table]


def _with_place(rows: pa.Table, place: Ints) -> pa.Table:
    return rows.append_column(PLACE, pa.array(place))


def _reopened(rows: pa.Table, ended_later: Flags) -> pa.Table:
    """DELIVERY_HISTORY rows, open where they ended behind the last log offset that is read."""
    for name, value in STILL_OPEN.items():
        if name in rows.column_names:
            at = rows.schema.get_field_index(name)
            kind = rows.schema.field(at)
            column = pc.if_else(pa.array(ended_later), pa.scalar(value, kind.type), rows.column(at))
            rows = rows.set_column(at, kind, column)
    return rows


class _Limits:
    """Whether each row group may have rows of a task's places, by its statistics.

    `least`: a row group must meet one of these limits, if there are any; `most`: it must meet them all. Of a state
    partition the lowest and the highest one count.
    """

    def __init__(self, task: Task, places: Places, least: Sequence[Limit], most: Sequence[Limit]) -> None:
        self._log_topic = {"cluster_id": task.cluster_id, "log_topic_id": task.log_topic_id}
        self._texts = {name: (text, text) for name, text in self._log_topic.items()}
        if places.count:
            groups = places.keys.column("group_id")
            self._texts["group_id"] = (groups[0].as_py(), groups[-1].as_py())
        state_partitions = places.keys.column("state_partition").to_numpy()
        self._numbers = np.unique(state_partitions)
        at = np.searchsorted(self._numbers, state_partitions)
        self._least = [(name, np.full(len(self._numbers), ABOVE_ALL, np.int64)) for name, _ in least]
        for (_, lowest), (_, values) in zip(self._least, least, strict=True):
            np.minimum.at(lowest, at, values)
        self._most = [(name, np.full(len(self._numbers), BELOW_ALL, np.int64)) for name, _ in most]
        for (_, highest), (_, values) in zip(self._most, most, strict=True):
            np.maximum.at(highest, at, values)

    def columns(self, table: str) -> list[str]:
        """Columns that `chosen` and `is_here` read, and those that are compared."""
        own = [name for name in (*LOG_TOPIC, "state_partition") if name in TABLES[table].schema.names]
        return [*own, *(name for name, _ in (*self._least, *self._most))]

    def chosen(self, table: str, groups: RowGroups) -> Flags:
        """Whether each row group may have rows in the limits, by statistics; a null is above all values."""
        result = np.ones(groups.count, np.bool_)
        for name, (first, last) in self._texts.items():
            if name in TABLES[table].schema.names:
                result &= groups.may_hold(name, first, last)
        numbers = groups.integers("state_partition")
        begin = np.searchsorted(self._numbers, numbers.low)
        end = np.searchsorted(self._numbers, numbers.high, "right")
        result &= end > begin
        if self._least:
            reached = np.zeros(groups.count, np.bool_)
            for name, lowest in self._least:
                values = groups.integers(name)
                highest = np.where(values.nulls, ABOVE_ALL, values.high)
                for number in np.flatnonzero(result & ~reached).tolist():
                    reached[number] = lowest[begin[number] : end[number]].min() <= highest[number]
            result &= reached
        for name, highest in self._most:
            low = groups.integers(name).low
            for number in np.flatnonzero(result).tolist():
                result[number] = low[number] <= highest[begin[number] : end[number]].max()
        return result

    def near(self, rows: pa.Table) -> pa.Table:
        """The rows that meet one of the limits of their state partition: those of its share partitions lie above."""
        if not self._least:
            return rows
        numbers = rows.column("state_partition").to_numpy()
        at = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        reached = [ints(rows, name, ABOVE_ALL) >= lowest[at] for name, lowest in self._least]
        result = np.logical_or.reduce(reached) & (self._numbers[at] == numbers)
        return rows if result.all() else rows.filter(pa.array(result))

    def is_here(self, rows: pa.Table) -> Flags:
        """Which rows are of the task's cluster and state topic."""
        result = np.ones(rows.num_rows, np.bool_)
        for name, text in self._log_topic.items():
            if name in rows.column_names:
                result &= codes_in(rows.column(name), pa.array([text])) == 0
        return result
