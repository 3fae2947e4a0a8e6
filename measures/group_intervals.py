"""Rows with the interval of the log in which each is valid, and with their completeness."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from measures import group_schemas as schemas
from measures.group_replay import CompactionBound, GroupChange

Row: TypeAlias = dict[str, Any]
Values: TypeAlias = Mapping[Hashable, Row]
"""The columns of what is valid at a moment, by what they are about."""


@dataclass(slots=True)
class Intervals:
    """Rows with the interval in which each is valid."""

    rows: list[Row] = field(default_factory=list)
    open: dict[Hashable, Row] = field(default_factory=dict)

    def update(self, change: GroupChange, about: Hashable, values: Row | None) -> None:
        """Ends the open row about something when its values changed, and begins the next; no values: it is gone."""
        row = self.open.get(about)
        if row is not None:
            if values is not None and all(row[name] == value for name, value in values.items()):
                return
            row["valid_to_log_offset"], row["valid_to_ms"] = change.log_offset, change.log_time_ms
            row["end_reason"] = schemas.REMOVED if values is None else schemas.CHANGED
            del self.open[about]
        if values is not None:
            began = {
                "group_id": change.group_id,
                "log_partition": change.log_partition,
                "valid_from_log_offset": change.log_offset,
                "valid_from_ms": change.log_time_ms,
                "valid_to_log_offset": None,
                "valid_to_ms": None,
                "end_reason": None,
                "uncommitted": change.uncommitted,
            }
            self.open[about] = began | values
            self.rows.append(self.open[about])

    def replace_all(self, change: GroupChange, values: Values) -> None:
        """Updates everything: what has no values is gone."""
        for about in [about for about in self.open if about not in values]:
            self.update(change, about, None)
        for about, row in values.items():
            self.update(change, about, row)


@dataclass(slots=True)
class RecordsSeen:
    """What the records of a group so far say about the completeness of its rows."""

    bound: CompactionBound = field(default_factory=CompactionBound)
    has_undecoded: bool = False

    def take(self, change: GroupChange) -> None:
        """Looks at the next record of the group."""
        self.bound.take(change)
        self.has_undecoded |= change.is_undecoded

    def marked(self, row: Row) -> Row:
        """A row with its completeness."""
        return row | marks(
            uncommitted=row["uncommitted"],
            undecoded=self.has_undecoded,
            compacted=not self.bound.covers(row["valid_from_log_offset"]),
        )


def marks(*, uncommitted: bool, undecoded: bool, compacted: bool) -> Row:
    """Completeness and its reason."""
    if uncommitted:
        return {"completeness": "uncommitted", "completeness_reason": schemas.UNCOMMITTED}
    reason = schemas.QUARANTINED if undecoded else schemas.COMPACTED if compacted else None
    return {"completeness": "complete" if reason is None else "incomplete", "completeness_reason": reason}
