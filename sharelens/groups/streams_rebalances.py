"""Rebalances of streams groups: for each group epoch who joined, who was removed, which tasks moved, and for how long
active tasks had no owner.

    records   19 | 17 | 21 21 20 | 22   22   22        17 …
    rebalance      [epoch 4: target assignment, members reconcile)[epoch 5 …

A task has an owner while it is in the current assignment of a member, also when the member must give it up.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from sharelens.groups.intervals import Row, marks
from sharelens.groups.rebalance_rows import Move, RebalanceRows, TargetChange
from sharelens.groups.replay import CompactionBound, GroupChange, changes
from sharelens.groups.schemas import ACTIVE, STREAMS_REBALANCE
from sharelens.groups.streams_replay import StreamsReplay, value_of_change
from sharelens.groups.streams_values import of_types
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, STREAMS_TYPES, TARGET
from state_model.streams.values import (
    NO_TASKS,
    NO_TASKS_BY_TYPE,
    GroupState,
    MemberMetadata,
    StreamsGroup,
    TaskId,
    Tasks,
    TasksByType,
)

Targets = Mapping[str, TasksByType]
NO_TARGETS: Targets = {}
Place = tuple[str, TaskId]
"""A task with its type."""


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
    lead to the next group epoch; None: none of them came yet. `owner_counts`: members by active task in `targets`.
    """

    replay: StreamsReplay = field(default_factory=StreamsReplay)
    bound: CompactionBound = field(default_factory=CompactionBound)
    has_undecoded: bool = False
    of: RebalanceRows = field(default_factory=RebalanceRows)
    targets: Targets = field(default_factory=dict)
    before: Targets | None = None
    owners: dict[TaskId, set[str]] = field(default_factory=dict)
    owner_counts: Counter[TaskId] = field(default_factory=Counter)

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.bound.take(change)
        self.has_undecoded |= change.is_undecoded
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
        elif kind == TARGET and self.of.rows and self.replay.group is not None and change.value_json is not None:
            self.of.rows[-1]["assignment_epoch"] = self.replay.group.target_assignment_epoch
        if kind in (METADATA, MEMBER, ASSIGNMENT):
            self._update_owners(change, group)
        if kind != MEMBER:
            self._note_stable(change)

    def finished(self) -> list[Row]:
        """The rows, with the moves of the last one."""
        self._end_rebalance(NO_TARGETS if self.replay.group is None else self.replay.group.targets)
        return self.of.finished()

    def _note_member(self, change: GroupChange, group: StreamsGroup | None) -> None:
        """Notes a member that joined, was removed or whose metadata changed."""
        name = str(change.member_id)
        if change.is_tombstone:
            self.of.removed.add(name)
        value = None if change.value_json is None else value_of_change(change)
        if isinstance(value, MemberMetadata):
            member = None if group is None else group.members.get(name)
            self.of.note_metadata(name, value, member and member.metadata, is_member=member is not None)

    def _begin_rebalance(self, change: GroupChange) -> None:
        group = self.replay.group
        self.of.begin(
            {
                "group_id": change.group_id,
                "at_ms": change.log_time_ms,
                "group_epoch": None if group is None else group.group_epoch,
                "state": self.replay.state,
                "member_count": 0 if group is None else len(group.members),
                "log_partition": change.log_partition,
                "log_offset": change.log_offset,
                **marks(
                    uncommitted=change.uncommitted,
                    undecoded=self.has_undecoded,
                    compacted=not self.bound.covers(change.log_offset),
                ),
            }
        )
        self.before = None

    def _end_rebalance(self, targets: Targets) -> None:
        """Adds the moves and their measures to the newest row; `targets`: the target assignment at its end."""
        lost, gained = self._moved(targets)
        moved = sorted(lost.keys() | gained.keys())
        active = [task for task_type, task in moved if task_type == ACTIVE]
        count, had = len(self.owner_counts), {task for task in active if task in self.owner_counts}
        for task in active:
            self.owner_counts[task] += len(gained.get((ACTIVE, task), ())) - len(lost.get((ACTIVE, task), ()))
            if not self.owner_counts[task]:
                del self.owner_counts[task]
        self.targets = targets
        if self.of.rows:
            moves = [Move(place[0], *place[1], lost.get(place, ()), gained.get(place, ())) for place in moved]
            sizes = [sum(map(len, member_tasks)) for member_tasks in targets.values()]
            self.of.end(TargetChange(moves, count - len(had), len(had & self.owner_counts.keys()), sizes))

    def _moved(self, targets: Targets) -> tuple[dict[Place, list[str]], dict[Place, list[str]]]:
        """The members that lost and that gained each task; most members have the same target as before."""
        lost: dict[Place, list[str]] = {}
        gained: dict[Place, list[str]] = {}
        for name in self.targets.keys() | targets.keys():
            old, new = (of.get(name, NO_TASKS_BY_TYPE) for of in (self.targets, targets))
            if old is new:
                continue
            for (task_type, before), (_, after) in zip(of_types(old), of_types(new), strict=True):
                for task in before - after:
                    lost.setdefault((task_type, task), []).append(name)
                for task in after - before:
                    gained.setdefault((task_type, task), []).append(name)
        return lost, gained

    def _update_owners(self, change: GroupChange, before: StreamsGroup | None) -> None:
        """Notes active tasks that lost their last owner, or have an owner again."""
        group = self.replay.group
        if group is None:
            self.owners = {}
            self.of.forget_tasks()
            return
        if change.record_type == METADATA:
            return
        name = str(change.member_id)
        old, new = _active(before, name), _active(group, name)
        for task in old - new:
            self.owners[task].discard(name)
            if not self.owners[task]:
                self.of.lose(task, change.log_time_ms, is_removal=change.is_tombstone)
        for task in new - old:
            self.owners.setdefault(task, set()).add(name)
            self.of.note_owner(task, change.log_time_ms)

    def _note_stable(self, change: GroupChange) -> None:
        group, rows = self.replay.group, self.of.rows
        if rows and group is not None and rows[-1]["stable_after_ms"] is None and group.state is GroupState.STABLE:
            rows[-1]["stable_after_ms"] = change.log_time_ms - rows[-1]["at_ms"]


def _active(group: StreamsGroup | None, name: str) -> Tasks:
    """The active tasks of a member, also those that it must give up."""
    member = None if group is None else group.members.get(name)
    if member is None or member.assignment is None:
        return NO_TASKS
    return member.assignment.assigned.active | member.assignment.pending.active
