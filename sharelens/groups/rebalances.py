"""Rebalances of share groups: for each group epoch who joined, who was removed, and which partitions moved.

One operation of the coordinator writes the subscription of a new member, or the tombstones of a removed one, before the
group epoch; the target assignment follows, up to a second later (KIP-1263), and an epoch can pass without one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from sharelens.groups.intervals import Row, marks
from sharelens.groups.replay import (
    ASSIGNMENT,
    GROUP,
    MEMBER,
    MEMBER_TARGET,
    TARGET,
    CompactionBound,
    GroupChange,
    Member,
    Partitions,
    ShareGroup,
    changes,
)
from sharelens.groups.schemas import REBALANCE
from sharelens.groups.whole_logs import whole_groups

_Member: TypeAlias = tuple[str, str | None]
Targets = Mapping[str, Partitions]
"""The target assignment by member."""


def rebalances(records: pa.Table) -> pa.Table:
    """REBALANCE rows of GROUP_RECORD rows, which come in (partition, log offset) order; by group, then as they came."""
    of_groups: dict[str, _Rebalances] = {}
    groups_of_whole_logs = whole_groups(records)
    for change in changes(records):
        if change.group_id not in of_groups:
            of_groups[change.group_id] = _Rebalances(
                CompactionBound(is_log_whole=change.group_id in groups_of_whole_logs)
            )
        of_groups[change.group_id].take(change)
    rows = [row for name in sorted(of_groups) for row in of_groups[name].finished()]
    return pa.Table.from_pylist(rows, schema=REBALANCE)


@dataclass(slots=True)
class _Rebalances:
    """The rebalances of one group.

    `targets`: the target assignment at the beginning of the newest rebalance. `before`: the one before the records that
    lead to the next group epoch; None: none of them came yet. `entries`: an entry of MEMBERS by member. What is in
    lists are tuples, which take less time than dicts where there are many moves.
    """

    bound: CompactionBound
    group: ShareGroup = field(default_factory=ShareGroup)
    rows: list[Row] = field(default_factory=list)
    targets: Targets = field(default_factory=dict)
    before: Targets | None = None
    joined: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    resubscribed: set[str] = field(default_factory=set)
    entries: dict[str, _Member] = field(default_factory=dict)
    has_undecoded: bool = False

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.bound.take(change)
        self.has_undecoded |= change.is_undecoded
        if change.record_type == MEMBER or (change.record_type == MEMBER_TARGET and change.is_tombstone):
            self.before = dict(self.group.targets) if self.before is None else self.before
        elif change.record_type == MEMBER_TARGET:
            self.before = None
        elif change.record_type == TARGET and self.rows and (value := change.value) is not None:
            self.rows[-1]["assignment_epoch"] = value.get("assignmentEpoch")
        if change.record_type == MEMBER:
            self._note_member(change)
        if change.record_type == GROUP:
            self._end_rebalance(dict(self.group.targets) if self.before is None else self.before)
        self._apply(change)
        if change.record_type == GROUP and not change.is_undecoded:
            self._begin_rebalance(change)

    def _apply(self, change: GroupChange) -> None:
        """Applies the record; a current assignment, as most records are, says only that its member is there."""
        if change.record_type == ASSIGNMENT and change.value_json is not None:
            self.group.is_deleted = False
            self.group.members.setdefault(str(change.member_id), Member())
        else:
            self.group.apply(change)

    def finished(self) -> list[Row]:
        """The rows, with the moves of the last one."""
        self._end_rebalance(self.group.targets)
        return self.rows

    def _note_member(self, change: GroupChange) -> None:
        """Notes a member that joined, was removed or subscribes to other topics."""
        name = str(change.member_id)
        member = self.group.members.get(name)
        value = change.value
        if value is not None:
            self.entries[name] = name, value.get("clientId")
            topics = tuple(sorted(value.get("subscribedTopicNames", ())))
            if member is None:
                self.joined.add(name)
            elif member.subscribed_topics != topics:
                self.resubscribed.add(name)
        elif change.is_tombstone:
            self.removed.add(name)

    def _begin_rebalance(self, change: GroupChange) -> None:
        group = self.group
        self.rows.append(
            {
                "group_id": change.group_id,
                "at_ms": change.log_time_ms,
                "group_epoch": group.group_epoch,
                "assignment_epoch": None,
                "state": group.state,
                "member_count": len(group.members),
                "joined": self._members(self.joined),
                "removed": self._members(self.removed),
                "resubscribed": self._members(self.resubscribed),
                "moved": [],
                "log_partition": change.log_partition,
                "log_offset": change.log_offset,
                **marks(
                    uncommitted=change.uncommitted,
                    undecoded=self.has_undecoded,
                    compacted=not self.bound.covers(change.log_offset),
                ),
            }
        )
        self.joined, self.removed, self.resubscribed, self.before = set(), set(), set(), None

    def _end_rebalance(self, targets: Targets) -> None:
        """Adds the moves to the newest row; `targets`: the target assignment at its end."""
        if self.rows:
            self.rows[-1]["moved"] = list(self._moves(targets))
        self.targets = dict(targets)

    def _moves(self, targets: Targets) -> Iterator[tuple[object, ...]]:
        """MOVES values: the partitions whose target members differ, by the members whose target differs."""
        lost: dict[tuple[str, int], list[str]] = {}
        gained: dict[tuple[str, int], list[str]] = {}
        for member in self.targets.keys() | targets.keys():
            old, new = self.targets.get(member, ()), targets.get(member, ())
            if old != new:
                before, after = _places(old), _places(new)
                for place in before - after:
                    lost.setdefault(place, []).append(member)
                for place in after - before:
                    gained.setdefault(place, []).append(member)
        for place in sorted(lost.keys() | gained.keys()):
            yield (*place, self._members(lost.get(place, ())), self._members(gained.get(place, ())))

    def _members(self, names: Iterable[str]) -> list[_Member]:
        return [self.entries.get(name, (name, None)) for name in sorted(names)]


def _places(partitions: Partitions) -> set[tuple[str, int]]:
    return {(topic_id, partition) for topic_id, numbers in partitions for partition in numbers}
