"""Rows of the share partitions of one task, read from the lake's tables row group by row group.

Only this module and `jobs.measure.stage` access the lake's files here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.lake import LakeView
from sharelens.lake.row_groups import RowGroups
from sharelens.lake.tables import TABLES
from sharelens.measures.ranges.places import Places, codes_in
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
class StateTopic:
    """An incarnation of __share_group_state in a lake (`log_topic_id`), published or not."""

    lake: LakeView
    cluster_id: str
    log_topic_id: str

    def scan(self, table: str, columns: list[str], where: pc.Expression) -> pa.Table:
        """Rows of the cluster in a table that meet a condition."""
        condition = (pc.field("cluster_id") == self.cluster_id) & where
        dataset = self.lake.snapshot(table).dataset(LOG_TOPIC)
        kinds = pa.schema([TABLES[table].schema.field(name) for name in columns])
        return dataset.to_table(columns=columns, filter=condition).cast(kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Share partitions of one state topic, by name.

    `keys`: PLACE_KEY rows without repetition, `whole`: whether all their rows are recomputed, `upto`: the last log
    offset that is read. `before`: the last run that was measured; 0 for none.
    """

    topic: StateTopic
    run: int
    before: int
    keys: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """Rows that meet one of the limits `least`, if there are any, and all of `upper_limits`."""

    least: Sequence[Limit]
    upper_limits: Sequence[Limit]

    @property
    def columns(self) -> list[str]:
        """The columns that are compared."""
        return [name for name, _ in (*self.least, *self.upper_limits)]

    def met(self, rows: pa.Table, at: Ints) -> Flags:
        """Whether each row meets the limits; `at`: which value of the limits is the row's."""
        values = {name: ints(rows, name, ABOVE_ALL) for name in self.columns}
        result = np.ones(rows.num_rows, np.bool_)
        if self.least:
            result = np.logical_or.reduce([values[name] >= lowest[at] for name, lowest in self.least])
        for name, highest in self.upper_limits:
            result &= values[name] <= highest[at]
        return result

    def widest(self, part: Ints, count: int) -> "_Limits":
        """The widest limits of each of `count` parts of the places; `part`: of each place."""
        least = [(name, np.full(count, ABOVE_ALL, np.int64)) for name, _ in self.least]
        for (_, lowest), (_, values) in zip(least, self.least, strict=True):
            np.minimum.at(lowest, part, values)
        upper_limits = [(name, np.full(count, BELOW_ALL, np.int64)) for name, _ in self.upper_limits]
        for (_, highest), (_, values) in zip(upper_limits, self.upper_limits, strict=True):
            np.maximum.at(highest, part, values)
        return _Limits(least=least, upper_limits=upper_limits)


class Reader:
    """Reads the tables of a state topic. Histories read as if their log ended at `upto`, an offset for each place."""

    def __init__(self, topic: StateTopic, places: Places, upto: Ints) -> None:
        self.topic = topic
        self.places = places
        self._upto = upto
        # Row groups hold few state partitions: limits by state partition exclude most rows of other places.
        state_partitions = places.keys.column("state_partition").to_numpy()
        self._state_partitions, self._part = np.unique(state_partitions, return_inverse=True)
        self._row_groups: dict[str, RowGroups] = {}

    def rows(
        self,
        table: str,
        columns: list[str],
        *least: Limit,
        upper_limit: Limit | None = None,
        coded: bool = True,
        final: bool | None = None,
    ) -> pa.Table:
        """Rows of the places that meet one of the limits at least, and `upper_limit`.

        `final`: of files with that `is_final` alone.
        """
        parts = self.parts(table, columns, *least, upper_limit=upper_limit, coded=coded, final=final)
        return pa.concat_tables(parts).combine_chunks()

    def parts(
        self,
        table: str,
        columns: list[str],
        *least: Limit,
        upper_limit: Limit | None = None,
        coded: bool = True,
        final: bool | None = None,
    ) -> Iterator[pa.Table]:
        """The same in bounded tables, one at least."""
        is_cut = table in BEGINS and bool((self._upto < ABOVE_ALL).any())
        limits = _Limits(least=least, upper_limits=[] if upper_limit is None else [upper_limit])
        if is_cut:
            limits = self._cut(table, limits)
        ends = [END] if is_cut and table == DELIVERY else []
        names = {*columns, *self.places.keys.column_names, *self._topic_values(table), *limits.columns, *ends} - {PLACE}
        texts = [name for name in (*LOG_TOPIC, *(CODED if coded else ())) if name in names]
        groups = self._groups(table)
        yield _with_place(groups.schema(sorted(names), texts).empty_table(), np.zeros(0, np.int64)).select(columns)
        near = limits.widest(self._part, len(self._state_partitions))
        chosen = self._chosen(table, groups, near)
        if final is not None:
            chosen &= groups.partition_is("is_final", str(final).lower())
        for rows in groups.read(chosen, sorted(names), texts):
            rows = self._near(rows, near)
            at = self.places.of(rows)
            is_kept = (at >= 0) & self._is_here(table, rows) & limits.met(rows, at)
            kept_rows = rows if is_kept.all() else rows.filter(pa.array(is_kept))
            if ends:
                kept_rows = _reopened(kept_rows, ints(kept_rows, END, ABOVE_ALL) > self._upto[at[is_kept]])
            yield _with_place(kept_rows, at[is_kept]).select(columns)

    def _cut(self, table: str, limits: _Limits) -> _Limits:
        """Limits of a history whose log ends at `upto`: a range that ended later is open, which is above all."""
        least = [
            (name, np.minimum(values, self._upto + 1 if name == END else ABOVE_ALL)) for name, values in limits.least
        ]
        return _Limits(least=least, upper_limits=[*limits.upper_limits, (BEGINS[table], self._upto)])

    def _groups(self, table: str) -> RowGroups:
        """The row groups of the files with the places' state partitions."""
        if table not in self._row_groups:
            self._row_groups[table] = self.topic.lake.snapshot(table).row_groups(self._state_partitions)
        return self._row_groups[table]

    def _topic_values(self, table: str) -> dict[str, str]:
        """The columns of a table that name the state topic, with its values."""
        values = {"cluster_id": self.topic.cluster_id, "log_topic_id": self.topic.log_topic_id}
        return {name: text for name, text in values.items() if name in TABLES[table].schema.names}

    def _is_here(self, table: str, rows: pa.Table) -> Flags:
        """Which rows are of the cluster and the state topic."""
        result = np.ones(rows.num_rows, np.bool_)
        for name, text in self._topic_values(table).items():
            result &= codes_in(rows.column(name), pa.array([text])) == 0
        return result

    def _chosen(self, table: str, groups: RowGroups, near: _Limits) -> Flags:
        """Whether each row group may have rows of the places in the limits, by statistics; a null is above all values.

        `near`: the limits by state partition.
        """
        texts = {name: (text, text) for name, text in self._topic_values(table).items()}
        if self.places.count:
            group_ids = self.places.keys.column("group_id")
            texts["group_id"] = (group_ids[0].as_py(), group_ids[-1].as_py())
        result = np.ones(groups.count, np.bool_)
        for name, (first, last) in texts.items():
            result &= groups.may_hold(name, first, last)
        numbers = groups.integers("state_partition")
        begin = np.searchsorted(self._state_partitions, numbers.low)
        end = np.searchsorted(self._state_partitions, numbers.high, "right")
        result &= end > begin
        reached = np.full(groups.count, not near.least)
        for name, lowest in near.least:
            values = groups.integers(name)
            highest = np.where(values.nulls, ABOVE_ALL, values.high)
            for number in np.flatnonzero(result & ~reached).tolist():
                reached[number] = lowest[begin[number] : end[number]].min() <= highest[number]
        result &= reached
        for name, highest in near.upper_limits:
            low = groups.integers(name).low
            for number in np.flatnonzero(result).tolist():
                result[number] = low[number] <= highest[begin[number] : end[number]].max()
        return result

    def _near(self, rows: pa.Table, near: _Limits) -> pa.Table:
        """The rows in the limits of their state partition: those of the places are among them."""
        if not near.least:
            return rows
        numbers = rows.column("state_partition").to_numpy()
        at = np.minimum(np.searchsorted(self._state_partitions, numbers), len(self._state_partitions) - 1)
        result = near.met(rows, at) & (self._state_partitions[at] == numbers)
        return rows if result.all() else rows.filter(pa.array(result))


def by_cluster(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each cluster, by cluster id."""
    for cluster_id in pc.unique(rows.column("cluster_id")).sort().to_pylist():
        yield cluster_id, rows.filter(pc.field("cluster_id") == cluster_id)


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
