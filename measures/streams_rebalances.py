"""Rebalances of streams groups: for each group epoch who joined, who was removed, which tasks moved, and for how long
active tasks had no owner.

    records   19 | 17 | 21 21 20 | 22   22   22        17 …
    rebalance      [epoch 4: target assignment, members reconcile)[epoch 5 …

A task has an owner while it is in the current assignment of a member, also when the member must give it up.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from measures.group_intervals import RecordsSeen, Row, marks
from measures.group_replay import GroupChange, changes
from measures.group_schemas import STREAMS_REBALANCE
from measures.streams_histories import of_types
from measures.streams_replay import StreamsReplay, record_of_change
from state_model.streams.records import (
    ASSIGNMENT,
    MEMBER,
    MEMBER_TARGET,
    METADATA,
    STREAMS_TYPES,
    TARGET,
    value_of,
)
from state_model.streams.values import NO_TASKS, GroupState, MemberMetadata, StreamsGroup, TaskId, Tasks, TasksByType

Targets = Mapping[str, TasksByType]
NO_TARGETS: Targets = {}


def streams_rebalances(records: pa.Table) -> pa.Table:
    """STREAMS_REBALANCE rows of GROUP_RECORD rows, which come in (partition, log offset) order; by group, in order."""
    of_groups: dict[str, _Rebalances] = {}
    for change in changes(records, STREAMS_TYPES):
        of_groups.setdefault(change.group_id, _Rebalances()).take(change)
    rows = [row for name in sorted(of_groups) for row in of_groups[name].finished()]
    return pa.Table.from_pylist(rows, schema=STREAMS_REBALANCE)


@dataclass(slots=True)
class _Rebalances:
    """The rebalances of one group.

    `targets`: the target assignment at the beginning of the newest rebalance. `before`: the one before the records that
    lead to the next group epoch; None: none of them came yet. `lost`: since when each active task has no owner, and the
    row of the rebalance in which it lost it; None: that of the next group epoch, as its member is being removed.
    """

    replay: StreamsReplay = field(default_factory=StreamsReplay)
    seen: RecordsSeen = field(default_factory=RecordsSeen)
    rows: list[Row] = field(default_factory=list)
    targets: Targets = field(default_factory=dict)
    before: Targets | None = None
    joined: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    clients: dict[str, str] = field(default_factory=dict)
    owners: dict[TaskId, set[str]] = field(default_factory=dict)
    lost: dict[TaskId, tuple[int, Row | None]] = field(default_factory=dict)

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.seen.take(change)
        group, kind = self.replay.group, change.record_type
        targets = NO_TARGETS if group is None else group.targets
        if kind == MEMBER or (kind in (MEMBER_TARGET, ASSIGNMENT) and change.is_tombstone):
            self.before = targets if self.before is None else self.before
        elif kind == MEMBER_TARGET:
            self.before = None
        if kind == MEMBER:
            self._note_member(change, group)
        if kind == METADATA:
            self._end_rebalance(targets if self.before is None else self.before)
        self.replay.apply(change)
        if kind == METADATA and not change.is_undecoded:
            self._begin_rebalance(change)
        elif kind == TARGET and self.rows and self.replay.group is not None and change.value_json is not None:
            self.rows[-1]["assignment_epoch"] = self.replay.group.target_assignment_epoch
        if kind in (METADATA, MEMBER, ASSIGNMENT):
            self._update_owners(change, group)
        if kind != MEMBER:
            self._note_stable(change)

    def finished(self) -> list[Row]:
        """The rows, with the moves of the last one."""
        self._end_rebalance(NO_TARGETS if self.replay.group is None else self.replay.group.targets)
        for _, row in self.lost.values():
            if row is not None:
                row["tasks_still_without_owner"] += 1
        return self.rows

    def _note_member(self, change: GroupChange, group: StreamsGroup | None) -> None:
        """Notes a member that joined, was removed or whose metadata changed."""
        name = str(change.member_id)
        if change.is_tombstone:
            self.removed.add(name)
        value = value_of(record_of_change(change))
        if isinstance(value, MemberMetadata):
            self.clients[name] = value.client_id
            member = None if group is None else group.members.get(name)
            if member is None:
                self.joined.add(name)
            elif member.metadata != value:
                self.changed.add(name)

    def _begin_rebalance(self, change: GroupChange) -> None:
        group = self.replay.group
        self.rows.append(
            {
                "group_id": change.group_id,
                "at_ms": change.log_time_ms,
                "group_epoch": None if group is None else group.group_epoch,
                "assignment_epoch": None,
                "state": self.replay.state,
                "member_count": 0 if group is None else len(group.members),
                "joined": self._members(self.joined),
                "removed": self._members(self.removed),
                "changed": self._members(self.changed),
                "stable_after_ms": None,
                "tasks_without_owner": 0,
                "tasks_still_without_owner": 0,
                "longest_without_owner_ms": None,
                "log_partition": change.log_partition,
                "log_offset": change.log_offset,
                **marks(
                    uncommitted=change.uncommitted,
                    undecoded=self.seen.has_undecoded,
                    compacted=not self.seen.bound.covers(change.log_offset),
                ),
            }
        )
        self.joined, self.removed, self.changed, self.before = set(), set(), set(), None
        for task, (since_ms, row) in self.lost.items():
            self.lost[task] = since_ms, self.rows[-1] if row is None else row

    def _end_rebalance(self, targets: Targets) -> None:
        """Adds the moves and their measures to the newest row; `targets`: the target assignment at its end."""
        if self.rows:
            moves = list(self._moves(targets))
            old, new = ({task for own in of.values() for task in own.active} for of in (self.targets, targets))
            moved = {
                TaskId(move["subtopology_id"], move["partition"]) for move in moves if move["task_type"] == "ACTIVE"
            }
            sizes = [sum(map(len, own)) for own in targets.values()]
            self.rows[-1] |= {
                "moved": moves,
                "kept_tasks": len((old & new) - moved),
                "lost_tasks": len(old & new & moved),
                "fewest_tasks": min(sizes, default=None),
                "most_tasks": max(sizes, default=None),
            }
        self.targets = targets

    def _moves(self, targets: Targets) -> Iterator[Row]:
        """TASK_MOVES values: the tasks whose target members differ."""
        old, new = _by_task(self.targets), _by_task(targets)
        for place in sorted(old.keys() | new.keys()):
            before, after = old.get(place, set()), new.get(place, set())
            if before != after:
                yield {
                    "task_type": place[0],
                    "subtopology_id": place[1].subtopology_id,
                    "partition": place[1].partition,
                    "from_members": self._members(before - after),
                    "to_members": self._members(after - before),
                }

    def _update_owners(self, change: GroupChange, before: StreamsGroup | None) -> None:
        """Notes active tasks that lost their last owner, or have an owner again."""
        group = self.replay.group
        if group is None:
            self.owners, self.lost = {}, {}
            return
        if change.record_type == METADATA:
            return
        name = str(change.member_id)
        old, new = _active(before, name), _active(group, name)
        for task in old - new:
            self.owners[task].discard(name)
            if not self.owners[task] and self.rows:
                self.lost[task] = change.log_time_ms, None if change.is_tombstone else self.rows[-1]
        for task in new - old:
            self.owners.setdefault(task, set()).add(name)
            if task in self.lost:
                since_ms, row = self.lost.pop(task)
                row = self.rows[-1] if row is None else row
                longest = row["longest_without_owner_ms"] or 0
                row["longest_without_owner_ms"] = max(longest, change.log_time_ms - since_ms)
                row["tasks_without_owner"] += 1

    def _note_stable(self, change: GroupChange) -> None:
        group = self.replay.group
        if self.rows and group is not None and self.rows[-1]["stable_after_ms"] is None:
            row = self.rows[-1]
            if group.state is GroupState.STABLE:
                row["stable_after_ms"] = change.log_time_ms - row["at_ms"]

    def _members(self, names: Iterable[str]) -> list[Row]:
        return [{"member_id": name, "client_id": self.clients.get(name)} for name in sorted(names)]


def _active(group: StreamsGroup | None, name: str) -> Tasks:
    """The active tasks of a member, also those that it must give up."""
    member = None if group is None else group.members.get(name)
    if member is None or member.assignment is None:
        return NO_TASKS
    return member.assignment.assigned.active | member.assignment.pending.active


def _by_task(targets: Targets) -> dict[tuple[str, TaskId], set[str]]:
    members: dict[tuple[str, TaskId], set[str]] = {}
    for member, tasks in targets.items():
        for task_type, own in of_types(tasks):
            for task in own:
                members.setdefault((task_type, task), set()).add(member)
    return members
