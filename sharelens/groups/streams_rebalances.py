"""Rebalances of streams groups: for each group epoch who joined, who was removed, which tasks moved, and for how long
active tasks had no owner.

    records   19 | 17 | 21 21 20 | 22   22   22        17 …
    rebalance      [epoch 4: target assignment, members reconcile)[epoch 5 …

A task has an owner while it is in the current assignment of a member, also when the member must give it up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import pyarrow as pa

from sharelens.groups.intervals import Row, marks
from sharelens.groups.rebalance_rows import Move, RebalanceRows, TargetChange
from sharelens.groups.replay import CompactionBound, GroupChange, changes
from sharelens.groups.schemas import ACTIVE, DEAD, STREAMS_REBALANCE
from sharelens.groups.streams_replay import SettledMembers, StreamsReplay
from sharelens.groups.streams_values import TASK_TYPES, TaskCell, epochs_of, metadata_of, read_value
from sharelens.groups.whole_logs import whole_groups
from state_model.collection import paused_collection
from state_model.streams.records import ASSIGNMENT, MEMBER, MEMBER_TARGET, METADATA, STREAMS_TYPES, TARGET
from state_model.streams.values import GroupState, StreamsGroup, StreamsMember

Targets: TypeAlias = Mapping[str, TaskCell]
"""The target assignment by member."""
NO_TARGETS: Targets = {}
Task: TypeAlias = tuple[str, int]
"""Subtopology and partition of an active task."""
Place: TypeAlias = tuple[str, str, int]
"""A task: type, subtopology, partition."""
NO_PARTITIONS: Set[int] = frozenset()


@paused_collection()
def streams_rebalances(records: pa.Table) -> pa.Table:
    """STREAMS_REBALANCE rows of GROUP_RECORD rows, which come in (partition, log offset) order; by group, in order."""
    of_groups: dict[str, _Rebalances] = {}
    groups_of_whole_logs = whole_groups(records)
    for change in changes(records, STREAMS_TYPES):
        if change.group_id not in of_groups:
            of_groups[change.group_id] = _Rebalances(
                CompactionBound(is_log_whole=change.group_id in groups_of_whole_logs)
            )
        of_groups[change.group_id].take(change)
    rows = [row for name in sorted(of_groups) for row in of_groups[name].finished()]
    return pa.Table.from_pylist(rows, schema=STREAMS_REBALANCE)


@dataclass(slots=True)
class _Rebalances:
    """The rebalances of one group.

    `targets`: the target assignment at the beginning of the newest rebalance. `before`: the one before the records that
    lead to the next group epoch; None: none of them came yet. `target_counts`: members by active task in `targets`.
    """

    bound: CompactionBound
    replay: StreamsReplay = field(default_factory=lambda: StreamsReplay(read=read_value))
    settled: SettledMembers = field(default_factory=SettledMembers)
    has_undecoded: bool = False
    of: RebalanceRows = field(default_factory=RebalanceRows)
    targets: Targets = field(default_factory=dict)
    before: Targets | None = None
    owners: dict[Task, set[str]] = field(default_factory=dict)
    target_counts: Counter[Task] = field(default_factory=Counter)

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.bound.take(change)
        self.has_undecoded |= change.is_undecoded
        group, kind = self.replay.group, change.record_type
        targets = _targets(group)
        if kind == MEMBER or (kind in (MEMBER_TARGET, ASSIGNMENT) and change.is_tombstone):
            self.before = targets if self.before is None else self.before
        elif kind == MEMBER_TARGET:
            self.before = None
        if kind == MEMBER and change.is_tombstone:
            self.of.removed.add(str(change.member_id))
        if kind == METADATA:
            self._end_rebalance(targets if self.before is None else self.before)
        self.replay.apply(change)
        if self.replay.group is None:
            self._forget_members()
        elif kind in (MEMBER, ASSIGNMENT):
            self._update_member(change, None if group is None else group.members.get(str(change.member_id)))
        if kind == METADATA and not change.is_undecoded:
            self._begin_rebalance(change)
        elif kind == TARGET and self.of.rows and self.replay.group is not None and change.value_json is not None:
            self.of.rows[-1]["assignment_epoch"] = self.replay.group.target_assignment_epoch
        if kind != MEMBER:
            self._note_stable(change)

    def finished(self) -> list[Row]:
        """The rows, with the moves of the last one."""
        self._end_rebalance(_targets(self.replay.group))
        return self.of.finished()

    def _begin_rebalance(self, change: GroupChange) -> None:
        group = self.replay.group
        self.of.begin(
            {
                "group_id": change.group_id,
                "at_ms": change.log_time_ms,
                "group_epoch": None if group is None else group.group_epoch,
                "state": DEAD if group is None else self.settled.state_of(group).name,
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
        lost, gained = _moved(self.targets, targets)
        moved = sorted(lost.keys() | gained.keys())
        tasks = {(subtopology_id, partition) for kind, subtopology_id, partition in moved if kind == ACTIVE}
        count, moved_before = len(self.target_counts), tasks & self.target_counts.keys()
        for task in tasks:
            self.target_counts[task] += len(gained.get((ACTIVE, *task), ())) - len(lost.get((ACTIVE, *task), ()))
            if not self.target_counts[task]:
                del self.target_counts[task]
        self.targets = targets
        if self.of.rows:
            moves = [Move(*place, lost.get(place, ()), gained.get(place, ())) for place in moved]
            sizes = [sum(len(partitions) for _, _, partitions in cell) for cell in targets.values()]
            lost_count = len(moved_before & self.target_counts.keys())
            self.of.end(TargetChange(moves, count - len(moved_before), lost_count, sizes))

    def _update_member(self, change: GroupChange, before: StreamsMember | None) -> None:
        """Notes new metadata of a member, and active tasks that lost their last owner or have one again."""
        name, group = str(change.member_id), self.replay.group
        member = None if group is None else group.members.get(name)
        self.settled.update(before, member)
        metadata = metadata_of(member)
        if change.record_type == MEMBER and change.value_json is not None and metadata is not None:
            self.of.note_metadata(name, metadata, metadata_of(before), is_member=before is not None)
        old, new = _active(before), _active(member)
        for task in _difference(old, new):
            self.owners[task].discard(name)
            if not self.owners[task]:
                self.of.lose(task, change.log_time_ms, is_removal=change.is_tombstone)
        for task in _difference(new, old):
            self.owners.setdefault(task, set()).add(name)
            self.of.note_owner(task, change.log_time_ms)

    def _forget_members(self) -> None:
        """Notes that the group is not there."""
        self.owners = {}
        self.settled.counts.clear()
        self.of.forget_tasks()

    def _note_stable(self, change: GroupChange) -> None:
        group, rows = self.replay.group, self.of.rows
        if not rows or group is None or rows[-1]["stable_after_ms"] is not None:
            return
        if self.settled.state_of(group) is GroupState.STABLE:
            rows[-1]["stable_after_ms"] = change.log_time_ms - rows[-1]["at_ms"]


def _targets(group: StreamsGroup | None) -> Targets:
    """The target assignment of a group with the values that `read_value` gives."""
    return NO_TARGETS if group is None else cast(Targets, group.targets)


def _moved(before: Targets, after: Targets) -> tuple[dict[Place, list[str]], dict[Place, list[str]]]:
    """The members that lost and that gained each task. A member without a new target has the same value in both."""
    lost: dict[Place, list[str]] = {}
    gained: dict[Place, list[str]] = {}
    for name in before.keys() | after.keys():
        old, new = before.get(name, ()), after.get(name, ())
        if old is not new:
            old_places, new_places = _places(old), _places(new)
            for place in old_places - new_places:
                lost.setdefault(place, []).append(name)
            for place in new_places - old_places:
                gained.setdefault(place, []).append(name)
    return lost, gained


def _places(cell: TaskCell) -> set[Place]:
    return {(kind, subtopology_id, partition) for kind, subtopology_id, partitions in cell for partition in partitions}


def _active(member: StreamsMember | None) -> dict[str, Set[int]]:
    """Partitions by subtopology of the active tasks of a member, also of those that it must give up."""
    partitions: dict[str, Set[int]] = {}
    for tasks in epochs_of(member):
        for (place, subtopology_id), epochs in tasks.items():
            if TASK_TYPES[place] == ACTIVE:
                partitions[subtopology_id] = partitions.get(subtopology_id, NO_PARTITIONS) | epochs.keys()
    return partitions


def _difference(tasks: Mapping[str, Set[int]], other_tasks: Mapping[str, Set[int]]) -> Iterator[Task]:
    """The tasks that are not among the other ones."""
    for subtopology_id, partitions in tasks.items():
        for partition in partitions - other_tasks.get(subtopology_id, NO_PARTITIONS):
            yield subtopology_id, partition
