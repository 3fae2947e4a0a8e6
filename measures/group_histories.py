"""Histories of share groups: groups, members and share partition initialization, each value with its validity.

Rows are as exact as the log: one operation of the coordinator writes several records, so some rows are valid for no
time at all. "As of T" is the row with valid_from_ms <= T < valid_to_ms (null: no end).

A row is complete only where compaction can have removed no record that it depends on. Of other rows the newest has the
right values, and its begin can be too late.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from measures import group_schemas as schemas
from measures.group_replay import (
    ASSIGNMENT,
    GROUP,
    MEMBER,
    MEMBER_TARGET,
    STATE_PARTITIONS,
    CompactionBound,
    GroupChange,
    Member,
    Partitions,
    ShareGroup,
    changes,
)

Row = dict[str, Any]
Values = Mapping[Hashable, Row]
"""The columns of what is valid at a moment, by what they are about."""


class Histories(NamedTuple):
    """GROUP_HISTORY, MEMBER_HISTORY and SHARE_INITIALIZATION_HISTORY rows."""

    groups: pa.Table
    members: pa.Table
    initialization: pa.Table


def histories(records: pa.Table) -> Histories:
    """The histories of all share groups in GROUP_RECORD rows, which come in (partition, log offset) order.

    Rows come by group, in the order in which they began.
    """
    of_groups: dict[str, _GroupHistories] = {}
    for change in changes(records):
        of_groups.setdefault(change.group_id, _GroupHistories()).take(change)
    ordered = [of_groups[name] for name in sorted(of_groups)]
    return Histories(
        groups=_table(ordered, lambda of: of.groups, schemas.GROUP_HISTORY),
        members=_table(ordered, lambda of: of.members, schemas.MEMBER_HISTORY),
        initialization=_table(ordered, lambda of: of.initialization, schemas.SHARE_INITIALIZATION_HISTORY),
    )


@dataclass(slots=True)
class _Intervals:
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
class _GroupHistories:
    group: ShareGroup = field(default_factory=ShareGroup)
    bound: CompactionBound = field(default_factory=CompactionBound)
    is_known: bool = False
    has_undecoded: bool = False
    groups: _Intervals = field(default_factory=_Intervals)
    members: _Intervals = field(default_factory=_Intervals)
    initialization: _Intervals = field(default_factory=_Intervals)

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.bound.take(change)
        self.has_undecoded |= change.is_undecoded
        self.is_known |= not change.is_tombstone or change.record_type == GROUP
        self.group.apply(change)
        if not self.is_known:
            return
        self.groups.update(change, None, group_values(self.group))
        if self.group.is_deleted:
            self.members.replace_all(change, {})
            self.initialization.replace_all(change, {})
        elif change.record_type in (MEMBER, MEMBER_TARGET, ASSIGNMENT):
            self._update_member(change)
        elif change.record_type == STATE_PARTITIONS:
            self.initialization.replace_all(change, initialization_values(self.group))

    def _update_member(self, change: GroupChange) -> None:
        member = self.group.members.get(str(change.member_id))
        target = self.group.targets.get(str(change.member_id), ())
        values = None if member is None else member_values(str(change.member_id), member, target)
        self.members.update(change, change.member_id, values)

    def marked(self, row: Row) -> Row:
        """The row with its completeness."""
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


def group_values(group: ShareGroup) -> Row:
    """The columns GROUP_VALUES."""
    return {
        "state": group.state,
        "group_epoch": group.group_epoch,
        "metadata_hash": group.metadata_hash,
        "assignment_epoch": group.assignment_epoch,
        "assignment_timestamp_ms": group.assignment_timestamp_ms,
        "member_count": len(group.members),
    }


def member_values(member_id: str, member: Member, target: Partitions) -> Row:
    """The columns member_id and MEMBER_VALUES."""
    return {
        "member_id": member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack_id": member.rack_id,
        "subscribed_topics": None if member.subscribed_topics is None else list(member.subscribed_topics),
        "member_epoch": member.member_epoch,
        "previous_member_epoch": member.previous_member_epoch,
        "assigned_partitions": _partition_rows(member.assigned),
        "target_partitions": _partition_rows(target),
    }


def initialization_values(group: ShareGroup) -> Values:
    """The columns topic_id, partition, status and topic, by share partition and status."""
    return {
        key: {
            "topic_id": key.topic_id,
            "partition": None if key.partition < 0 else key.partition,
            "status": key.status,
            "topic": topic,
        }
        for key, topic in sorted((group.initialization or {}).items())
    }


def _partition_rows(partitions: Partitions) -> list[Row]:
    return [{"topic_id": topic_id, "partitions": list(numbers)} for topic_id, numbers in partitions]


def _table(
    of_groups: list[_GroupHistories], intervals: Callable[[_GroupHistories], _Intervals], schema: pa.Schema
) -> pa.Table:
    rows: Iterator[Row] = (of.marked(row) for of in of_groups for row in intervals(of).rows)
    return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema=schema)
