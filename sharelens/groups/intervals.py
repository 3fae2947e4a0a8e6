"""Rows with the interval of the log in which each is valid, and with their completeness.

A history is written column by column: values become Arrow arrays some thousand rows at a time, and what follows from
the records that begin and end the rows is taken from the columns of these records at the end.
"""

from array import array
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from sharelens.groups import schemas
from sharelens.groups.replaced_records import first_replacements, keys_of
from sharelens.groups.replay import is_undecoded
from sharelens.groups.whole_logs import whole_groups

Row: TypeAlias = dict[str, Any]
Cells: TypeAlias = tuple[object, ...]
Numbers: TypeAlias = "array[int]"
MARKS = [column.name for column in schemas.MARKS]
SLICE_ROWS = 1 << 12
"""Rows whose values are Python objects before they become Arrow arrays."""
NO_END = -1


class ShareTables(NamedTuple):
    """GROUP_HISTORY, MEMBER_HISTORY and SHARE_INITIALIZATION_HISTORY rows of share groups."""

    groups: pa.Table
    members: pa.Table
    initialization: pa.Table


class StreamsTables(NamedTuple):
    """GROUP_HISTORY, MEMBER_HISTORY and TASK_HISTORY rows of streams groups."""

    groups: pa.Table
    members: pa.Table
    tasks: pa.Table


class ConsumerTables(NamedTuple):
    """GROUP_HISTORY and MEMBER_HISTORY rows of consumer groups."""

    groups: pa.Table
    members: pa.Table


class Histories(NamedTuple):
    """GROUP_HISTORY, MEMBER_HISTORY, SHARE_INITIALIZATION_HISTORY and TASK_HISTORY rows.

    Share groups come first, then streams groups, then consumer groups.
    """

    groups: pa.Table
    members: pa.Table
    initialization: pa.Table
    tasks: pa.Table

    @classmethod
    def of(cls, share: ShareTables, streams: StreamsTables, consumer: ConsumerTables) -> "Histories":
        """The history rows of groups of all kinds."""
        return cls(
            groups=pa.concat_tables([share.groups, streams.groups, consumer.groups]),
            members=pa.concat_tables([share.members, streams.members, consumer.members]),
            initialization=share.initialization,
            tasks=streams.tasks,
        )


@dataclass(slots=True)
class Intervals:
    """The rows of a history in the order in which they began; records are numbers of rows of a table.

    `names`: the columns of the values. `open`: the number and the values of the row that is valid now, by what it is
    about. `ends`: NO_END while a row is open. `removed`: the numbers of rows that ended without a next one.
    """

    schema: pa.Schema
    names: Sequence[str]
    open: dict[Hashable, tuple[int, Cells]] = field(default_factory=dict)
    begins: Numbers = field(default_factory=lambda: array("q"))
    ends: Numbers = field(default_factory=lambda: array("q"))
    removed: Numbers = field(default_factory=lambda: array("q"))
    _values: list[Cells] = field(default_factory=list)
    _slices: list[pa.Table] = field(default_factory=list)

    def begin(self, record: int, values: Cells) -> int:
        """Begins a row; its number."""
        if len(self._values) == SLICE_ROWS:
            self._end_slice()
        self._values.append(values)
        self.begins.append(record)
        self.ends.append(NO_END)
        return len(self.begins) - 1

    def end(self, number: int, record: int, *, is_removed: bool) -> None:
        """Ends a row."""
        self.ends[number] = record
        if is_removed:
            self.removed.append(number)

    def update(self, record: int, about: Hashable, values: Cells | None) -> None:
        """Ends the open row about something when its values changed, and begins the next; no values: it is gone."""
        if about in self.open:
            number, values_before = self.open[about]
            if values_before == values:
                return
            self.end(number, record, is_removed=values is None)
            if values is None:
                del self.open[about]
        if values is not None:
            self.open[about] = self.begin(record, values), values

    def replace_all(self, record: int, values: Mapping[Hashable, Cells]) -> None:
        """Updates all rows of the history: a subject without values ends."""
        for about in [about for about in self.open if about not in values]:
            self.update(record, about, None)
        for about, cells in values.items():
            self.update(record, about, cells)

    def table(self, records: pa.Table) -> pa.Table:
        """The rows; `records`: the table with the numbered rows, as `with_marks` gives it."""
        self._end_slice()
        values = pa.concat_tables(self._slices)
        begins, ends, removed = (np.array(numbers, np.int64) for numbers in (self.begins, self.ends, self.removed))
        is_open = ends == NO_END
        first = records.select(list(_FROM_RECORDS)).take(pa.array(begins))
        last = records.select(["log_offset", "log_time_ms"]).take(pa.array(ends, mask=is_open))
        is_removed = np.zeros(len(ends), np.int64)
        is_removed[removed] = 1
        columns = {
            **{name: values.column(name) for name in values.column_names},
            **{_FROM_RECORDS[name]: first.column(name) for name in first.column_names},
            "valid_to_log_offset": last.column("log_offset"),
            "valid_to_ms": last.column("log_time_ms"),
            "end_reason": pa.array([schemas.CHANGED, schemas.REMOVED]).take(pa.array(is_removed, mask=is_open)),
        }
        return pa.table([columns[column.name] for column in self.schema], self.schema)

    def _end_slice(self) -> None:
        """Makes arrays of the values since the last slice; columns that they lack are null."""
        columns = [column for column in self.schema if column.name not in _DERIVED]
        cells = dict(zip(self.names, zip(*self._values, strict=True), strict=True)) if self._values else {}
        arrays = [
            _array(cells[column.name], column.type)
            if column.name in cells
            else pa.nulls(len(self._values), column.type)
            for column in columns
        ]
        self._slices.append(pa.table(arrays, [column.name for column in columns]))
        self._values = []


_FROM_RECORDS = {
    "group_id": "group_id",
    "partition": "log_partition",
    "log_offset": "valid_from_log_offset",
    "log_time_ms": "valid_from_ms",
    "completeness": "completeness",
    "completeness_reason": "completeness_reason",
}
"""Columns of the record that begins a row, and the columns of the row."""
_DERIVED = {"valid_to_log_offset", "valid_to_ms", "end_reason", *_FROM_RECORDS.values()}


def _array(cells: Cells, kind: pa.DataType) -> pa.Array:
    """The cells as an array; equal lists are converted once, as the next rows of a member have most of them again."""
    if not pa.types.is_list(kind):
        return pa.array(cells, kind)
    places = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
    return pa.array(list(places), kind).take(pa.array([places[cell] for cell in cells], pa.int64()))


def with_marks(records: pa.Table) -> pa.Table:
    """The records of `with_log_times` with the completeness of rows that begin with each, and its reason.

    A record of a group that can't be decoded makes all its rows incomplete: what it changed is unknown.
    """
    keys = keys_of(records)
    is_covered = np.arange(records.num_rows) >= first_replacements(keys, whole_groups(records))[keys.groups]
    has_undecoded = np.zeros(len(keys.names), np.bool_)
    has_undecoded[keys.groups[is_undecoded(records).to_numpy(zero_copy_only=False)]] = True
    uncommitted = records.column("uncommitted").to_numpy()
    conditions = [uncommitted, has_undecoded[keys.groups], ~is_covered]
    cases = np.select(conditions, range(len(conditions)), len(conditions))
    forms = [
        marks(uncommitted=True, undecoded=False, compacted=False),
        marks(uncommitted=False, undecoded=True, compacted=False),
        marks(uncommitted=False, undecoded=False, compacted=True),
        marks(uncommitted=False, undecoded=False, compacted=False),
    ]
    for name in MARKS:
        texts = pa.array([form[name] for form in forms], pa.string())
        records = records.append_column(name, texts.take(pa.array(cases)))
    return records


def marks(*, uncommitted: bool, undecoded: bool, compacted: bool) -> Row:
    """Completeness and its reason."""
    if uncommitted:
        return {"completeness": "uncommitted", "completeness_reason": schemas.UNCOMMITTED}
    reason = schemas.QUARANTINED if undecoded else schemas.COMPACTED if compacted else None
    return {"completeness": "complete" if reason is None else "incomplete", "completeness_reason": reason}
