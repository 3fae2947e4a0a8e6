"""Rows with the interval of the log in which each is valid, and with their completeness."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from sharelens.groups import schemas
from sharelens.groups.replay import CompactionBound, GroupChange

Row: TypeAlias = dict[str, Any]
Values: TypeAlias = Mapping[Hashable, Row]
"""The columns of what is valid at a moment, by what they are about."""
MARKS = [column.name for column in schemas.MARKS]


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


class Histories(NamedTuple):
    """GROUP_HISTORY, MEMBER_HISTORY, SHARE_INITIALIZATION_HISTORY and TASK_HISTORY rows; share groups come first."""

    groups: pa.Table
    members: pa.Table
    initialization: pa.Table
    tasks: pa.Table

    @classmethod
    def of(cls, share: ShareTables, streams: StreamsTables) -> "Histories":
        """The history rows of share groups, followed by those of streams groups."""
        return cls(
            groups=pa.concat_tables([share.groups, streams.groups]),
            members=pa.concat_tables([share.members, streams.members]),
            initialization=share.initialization,
            tasks=streams.tasks,
        )


@dataclass(slots=True)
class Interval:
    """Values with the interval of the log in which they are valid; no end: they are valid now."""

    group_id: str
    log_partition: int
    valid_from_log_offset: int
    valid_from_ms: int
    uncommitted: bool
    values: Row
    valid_to_log_offset: int | None = None
    valid_to_ms: int | None = None
    end_reason: str | None = None


@dataclass(slots=True)
class Intervals:
    """The values of a history of one group, in the order in which they began."""

    rows: list[Interval] = field(default_factory=list)
    open: dict[Hashable, Interval] = field(default_factory=dict)

    def update(self, change: GroupChange, about: Hashable, values: Row | None) -> None:
        """Ends the open row about something when its values changed, and begins the next; no values: it is gone."""
        row = self.open.get(about)
        if row is not None:
            if row.values == values:
                return
            row.valid_to_log_offset, row.valid_to_ms = change.log_offset, change.log_time_ms
            row.end_reason = schemas.REMOVED if values is None else schemas.CHANGED
            del self.open[about]
        if values is not None:
            began = Interval(
                change.group_id,
                change.log_partition,
                change.log_offset,
                change.log_time_ms,
                change.uncommitted,
                values,
            )
            self.open[about] = began
            self.rows.append(began)

    def replace_all(self, change: GroupChange, values: Values) -> None:
        """Updates all rows of the history: a subject without values ends."""
        for about in [about for about in self.open if about not in values]:
            self.update(change, about, None)
        for about, row in values.items():
            self.update(change, about, row)


@dataclass(slots=True)
class RecordsSeen:
    """The completeness of a group's rows, as it follows from the group's records so far."""

    bound: CompactionBound = field(default_factory=CompactionBound)
    has_undecoded: bool = False

    def take(self, change: GroupChange) -> None:
        """Looks at the next record of the group."""
        self.bound.take(change)
        self.has_undecoded |= change.is_undecoded

    def marks_of(self, row: Interval) -> Row:
        """The completeness of a row."""
        return marks(
            uncommitted=row.uncommitted,
            undecoded=self.has_undecoded,
            compacted=not self.bound.covers(row.valid_from_log_offset),
        )


def table_of(intervals: Iterable[tuple[RecordsSeen, Intervals]], schema: pa.Schema) -> pa.Table:
    """The rows of a history of some groups; columns that they have no values of are null."""
    rows = [(row, records_seen.marks_of(row)) for records_seen, of_group in intervals for row in of_group.rows]
    names: set[str] = set().union(*{tuple(row.values) for row, _ in rows})
    columns = []
    for column in schema:
        if column.name in Interval.__slots__:
            cells = [getattr(row, column.name) for row, _ in rows]
        elif column.name in MARKS:
            cells = [marked[column.name] for _, marked in rows]
        elif column.name in names:
            cells = [row.values.get(column.name) for row, _ in rows]
        else:
            cells = [None] * len(rows)
        columns.append(_array(cells, column.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _array(cells: list[Any], kind: pa.DataType) -> pa.Array:
    """The cells as an array; a list that many cells share is converted once."""
    if not pa.types.is_list(kind):
        return pa.array(cells, kind)
    distinct = {id(cell): cell for cell in cells}
    places = {number: place for place, number in enumerate(distinct)}
    codes = pa.array([places[id(cell)] for cell in cells], pa.int64())
    return pa.array(list(distinct.values()), kind).take(codes)


def marks(*, uncommitted: bool, undecoded: bool, compacted: bool) -> Row:
    """Completeness and its reason."""
    if uncommitted:
        return {"completeness": "uncommitted", "completeness_reason": schemas.UNCOMMITTED}
    reason = schemas.QUARANTINED if undecoded else schemas.COMPACTED if compacted else None
    return {"completeness": "complete" if reason is None else "incomplete", "completeness_reason": reason}
