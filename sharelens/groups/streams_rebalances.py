"""Rebalances of streams groups: for each group epoch who joined, who was removed, which tasks moved, and for how long
active tasks had no owner.

    records   19 | 17 | 21 21 20 | 22   22   22        17 …
    rebalance      [epoch 4: target assignment, members reconcile)[epoch 5 …

A task has an owner while it is in the current assignment of a member, also when the member must give it up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from sharelens.groups.histories import MANY
from sharelens.groups.intervals import RecordsSeen, Row, marks
from sharelens.groups.rebalance_rows import Move, RebalanceRows, TargetChange
from sharelens.groups.replay import GroupChange, changes, is_of_types
from sharelens.groups.schemas import ACTIVE, STREAMS_REBALANCE
from sharelens.groups.streams_histories import of_types
from sharelens.groups.streams_rebalance_columns import many_streams_rebalances
from sharelens.groups.streams_replay import StreamsReplay, record_of_change
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, STREAMS_TYPES, TARGET, value_of
from state_model.streams.values import NO_TASKS, GroupState, MemberMetadata, StreamsGroup, TaskId, Tasks, TasksByType

Targets = Mapping[str, TasksByType]
NO_TARGETS: Targets = {}


def streams_rebalances(records: pa.Table) -> pa.Table:
    """STREAMS_REBALANCE rows of GROUP_RECORD rows, which come in (partition, log offset) order; by group, in order."""
    streams_records = records.filter(is_of_types(records, STREAMS_TYPES))
    return (
        many_streams_rebalances(streams_records)
        if streams_records.num_rows >= MANY
        else streams_rebalances_by_record(streams_records)
    )


def streams_rebalances_by_record(records: pa.Table) -> pa.Table:
    """The rebalances, record by record: the reference of `many_streams_rebalances`."""
    of_groups: dict[str, _Rebalances] = {}
    for change in changes(records, STREAMS_TYPES):
        of_groups.setdefault(change.group_id, _Rebalances()).take(change)
    rows = [row for name in sorted(of_groups) for row in of_groups[name].finished()]
    return pa.Table.from_pylist(rows, schema=STREAMS_REBALANCE)


@dataclass(slots=True)
class _Rebalances:
    """The rebalances of one group.

    `targets`: the target assignment at the beginning of the newest rebalance. `before`: the one before the records that
    lead to the next group epoch; None: none of them came yet.
    """

    replay: StreamsReplay = field(default_factory=StreamsReplay)
    records_seen: RecordsSeen = field(default_factory=RecordsSeen)
    of: RebalanceRows = field(default_factory=RebalanceRows)
    targets: Targets = field(default_factory=dict)
    before: Targets | None = None
    owners: dict[TaskId, set[str]] = field(default_factory=dict)

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.records_seen.take(change)
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
        value = value_of(record_of_change(change))
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
                    undecoded=self.records_seen.has_undecoded,
                    compacted=not self.records_seen.bound.covers(change.log_offset),
                ),
            }
        )
        self.before = None

    def _end_rebalance(self, targets: Targets) -> None:
        """Adds the moves and their measures to the newest row; `targets`: the target assignment at its end."""
        if self.of.rows:
            moves = list(self._moves(targets))
            old, new = (
                {task for member_tasks in of.values() for task in member_tasks.active} for of in (self.targets, targets)
            )
            moved = {TaskId(move.subtopology_id, move.partition) for move in moves if move.task_type == ACTIVE}
            sizes = [sum(map(len, member_tasks)) for member_tasks in targets.values()]
            self.of.end(TargetChange(moves, len((old & new) - moved), len(old & new & moved), sizes))
        self.targets = targets

    def _moves(self, targets: Targets) -> Iterator[Move]:
        """The tasks whose target members differ."""
        old, new = _by_task(self.targets), _by_task(targets)
        for place in sorted(old.keys() | new.keys()):
            before, after = old.get(place, set()), new.get(place, set())
            if before != after:
                yield Move(place[0], *place[1], before - after, after - before)

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


def _by_task(targets: Targets) -> dict[tuple[str, TaskId], set[str]]:
    members: dict[tuple[str, TaskId], set[str]] = {}
    for member, tasks in targets.items():
        for task_type, tasks_of_type in of_types(tasks):
            for task in tasks_of_type:
                members.setdefault((task_type, task), set()).add(member)
    return members
