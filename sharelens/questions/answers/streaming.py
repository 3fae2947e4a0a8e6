"""Sums and first rows of a stream of tables: memory depends on the result, not on the number of rows.

A stream has one table at least, so that its columns are known.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.figures import COUNT, counted
from sharelens.output import RowCounts
from sharelens.questions.answers.completeness import incomplete_rows
from sharelens.tables.port import Tables
from state_model.columnar.keys import SHARE_PARTITION_KEY

Order = Sequence[tuple[str, str]]
"""Columns, each "ascending" or "descending"; nulls come last."""
Ints = npt.NDArray[np.int64]
SUMMED_ROWS = 1 << 17
LEAST = -(1 << 63)


def rows_of_stream(tables: Iterable[pa.Table], order: Order) -> pa.Table:
    """All rows of the stream, sorted."""
    return pa.concat_tables(list(tables)).sort_by(list(order))


class Sums:
    """Aggregates of a stream by key columns.

    `functions`: the aggregate function ("sum", "min" or "max") of each column that is aggregated.
    """

    def __init__(self, keys: Sequence[str], functions: Mapping[str, str]) -> None:
        self._keys, self._functions = list(keys), dict(functions)
        self._parts: list[pa.Table] = []
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        """Adds the rows of a table."""
        part = self._aggregated(table)
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > SUMMED_ROWS:
            self._parts = [self.table()]
            self._rows = self._parts[0].num_rows

    def table(self) -> pa.Table:
        """The key columns and the aggregated columns, under their own names, in any order of rows."""
        return self._aggregated(pa.concat_tables(self._parts))

    def _aggregated(self, table: pa.Table) -> pa.Table:
        sums = table.group_by(self._keys).aggregate(list(self._functions.items()))
        columns = {name: sums.column(name) for name in self._keys}
        columns |= {name: sums.column(f"{name}_{function}") for name, function in self._functions.items()}
        return pa.table(columns)


def with_ones(rows: pa.Table) -> pa.Table:
    """The rows with `rows`, 1 each."""
    return rows.append_column("rows", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))


def by_share_partition(name: str, stream: Iterable[pa.Table]) -> pa.Table:
    """A figure of each share partition with a row of its measure (SHARE_PARTITION_KEY, `records`), in any order."""
    sums = Sums(SHARE_PARTITION_KEY, {COUNT: "sum"})
    for rows in stream:
        sums.add(counted(name, rows))
    return sums.table()


class FirstRows:
    """The first rows of a stream by an order, `row_limit` at most."""

    def __init__(self, order: Order, row_limit: int) -> None:
        self._order, self._row_limit = list(order), row_limit
        self._first: pa.Table | None = None

    def add(self, table: pa.Table) -> None:
        """Adds the rows of a table."""
        if self._first is not None:
            if self._first.num_rows == self._row_limit:
                table = table.filter(_not_behind(table, self._order, self._first.slice(self._row_limit - 1, 1)))
            if table.num_rows == 0:
                return
            table = pa.concat_tables([self._first, table])
        self._first = table.sort_by(self._order).slice(0, self._row_limit).combine_chunks()

    def table(self) -> pa.Table:
        """The rows, sorted."""
        assert self._first is not None, "a stream has one table at least"
        return self._first


def _not_behind(table: pa.Table, order: Order, row: pa.Table) -> pa.ChunkedArray:
    """Whether each row may come before `row`, or beside it."""
    flags = pa.chunked_array([pa.repeat(True, table.num_rows)], pa.bool_())
    for name, direction in reversed(order):
        column, value = table.column(name), row.column(name)[0]
        if value.as_py() is None:
            flags = pc.or_(pc.is_valid(column), flags)
            continue
        before = pc.less if direction == "ascending" else pc.greater
        is_before, is_equal = (pc.fill_null(compare(column, value), False) for compare in (before, pc.equal))
        flags = pc.or_(is_before, pc.and_(is_equal, flags))
    return flags


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChoice:
    """Which rows an answer lists: the first `row_limit` (None: all) by an order.

    `ranks`: functions of rows that give columns which only the order needs.
    """

    order: Order
    row_limit: int | None = None
    ranks: Mapping[str, Callable[[pa.Table], pa.ChunkedArray]] = field(default_factory=dict)


class Listing:
    """The listed rows of a stream, and counts over all of them."""

    def __init__(self, choice: RowChoice) -> None:
        self._order, self._ranks, self._rows = list(choice.order), choice.ranks, 0
        self._first = None if choice.row_limit is None else FirstRows(self._order, max(choice.row_limit, 1))
        self._tables: list[pa.Table] = []
        self._incomplete = 0
        self._unnamed: set[str] = set()

    def add(self, table: pa.Table) -> None:
        """Adds rows with completeness, topic_id and perhaps topic."""
        for name, rank in self._ranks.items():
            table = table.append_column(name, rank(table))
        if self._first is None:
            self._tables.append(table)
            return
        self._first.add(table)
        self._rows += table.num_rows
        self._incomplete += incomplete_rows(table.column("completeness"))
        if "topic" in table.column_names:
            table = table.filter(pc.is_null(table.column("topic")))
        self._unnamed.update(pc.unique(table.column("topic_id").drop_null()).to_pylist())

    def table(self) -> pa.Table:
        """The rows, sorted."""
        rows = rows_of_stream(self._tables, self._order) if self._first is None else self._first.table()
        return rows.drop_columns(list(self._ranks))

    def row_counts(self, evidence: Tables) -> RowCounts | None:
        """The counts; None where the table has all rows. `evidence`: what knows names of topics."""
        if self._first is None:
            return None
        unnamed = self._unnamed - evidence.names(self._unnamed).keys()
        return RowCounts(rows=self._rows, incomplete=self._incomplete, unnamed_topics=len(unnamed))


class FirstOfEach:
    """The first row of each key in a stream, by an order whose first column holds integers."""

    def __init__(self, keys: Sequence[str], order: Order) -> None:
        self._keys, self._order = list(keys), list(order)
        self._first: pa.Table | None = None

    def add(self, table: pa.Table) -> None:
        """Adds the rows of a table."""
        if self._first is not None:
            table = pa.concat_tables([self._first, table])
        name, direction = self._order[0]
        column = table.column(name).cast(pa.int64())
        values = pc.fill_null(column if direction == "descending" else pc.negate(column), LEAST).to_numpy()
        numbers = _numbers(table, self._keys)
        best = np.full(int(numbers.max(initial=-1)) + 1, LEAST, np.int64)
        np.maximum.at(best, numbers, values)
        rows = table.filter(pa.array(values == best[numbers]))
        rows = rows.sort_by([*((key, "ascending") for key in self._keys), *self._order]).combine_chunks()
        is_first = np.append(True, np.diff(_numbers(rows, self._keys)) != 0)[: rows.num_rows]
        self._first = rows.filter(pa.array(is_first))

    def table(self) -> pa.Table:
        """The rows, by key."""
        assert self._first is not None, "a stream has one table at least"
        return self._first


def _numbers(table: pa.Table, keys: Sequence[str]) -> Ints:
    """The number of each row's key, dense from 0."""
    numbers: Ints = np.zeros(table.num_rows, np.int64)
    for key in keys:
        codes = table.column(key).combine_chunks().dictionary_encode()
        numbers = numbers * max(1, len(codes.dictionary)) + codes.indices.to_numpy().astype(np.int64)
        numbers = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return numbers
