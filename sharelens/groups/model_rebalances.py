"""Rebalances of consumer and streams groups: for each group epoch who joined, who was removed, which tasks moved, and
for how long active tasks had no owner.

    records   19 | 17 | 21 21 20 | 22   22   22        17 …
    rebalance      [epoch 4: target assignment, members reconcile)[epoch 5 …

A task has an owner while it is in the current assignment of a member, also when the member must give it up. A partition
of a consumer group counts as an active task, its topic id as the subtopology.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

import pyarrow as pa

from sharelens.groups.consumer_values import read_value as read_consumer_value
from sharelens.groups.intervals import Row, marks
from sharelens.groups.model_replay import (
    ConsumerReplay,
    ModelGroup,
    ModelReplay,
    SettledMembers,
    StreamsReplay,
)
from sharelens.groups.rebalance_rows import Move, RebalanceRows, TargetChange
from sharelens.groups.replay import CompactionBound, GroupChange, changes
from sharelens.groups.schemas import ACTIVE, CONSUMER_REBALANCE, DEAD, STABLE, STREAMS_REBALANCE
from sharelens.groups.streams_values import TASK_TYPES, TaskCell, epochs_of, metadata_of, read_value
from sharelens.groups.whole_logs import whole_groups
from state_model.collection import paused_collection
from state_model.consumer.group_spec import by_topic
from state_model.consumer.group_values import ConsumerMember, member_assignment
from state_model.streams.values import StreamsMember

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
    return pa.Table.from_pylist(list(_rows(records, _STREAMS)), schema=STREAMS_REBALANCE)


@paused_collection()
def consumer_rebalances(records: pa.Table) -> pa.Table:
    """CONSUMER_REBALANCE rows, as `streams_rebalances`."""
    rows = [
        {name.replace("tasks", "partitions"): value for name, value in row.items()}
        | {"moved": [move[1:] for move in row["moved"]]}
        for row in _rows(records, _CONSUMER)
    ]
    return pa.Table.from_pylist(rows, schema=CONSUMER_REBALANCE)


class _Kind(NamedTuple):
    """A kind of groups: a replay that reads targets as TaskCell, and what its members have."""

    new_replay: Callable[[], ModelReplay[Any]]
    metadata_of: Callable[[Any], Any]
    active_of: Callable[[Any], Mapping[str, Set[int]]]


def _rows(records: pa.Table, kind: _Kind) -> Iterator[Row]:
    """The rows of all groups of a kind, in the names of STREAMS_REBALANCE."""
    of_groups: dict[str, _Rebalances] = {}
    groups_of_whole_logs = whole_groups(records)
    for change in changes(records, kind.new_replay().model.types):
        if change.group_id not in of_groups:
            bound = CompactionBound(is_log_whole=change.group_id in groups_of_whole_logs)
            of_groups[change.group_id] = _Rebalances(kind, bound)
        of_groups[change.group_id].take(change)
    for name in sorted(of_groups):
        yield from of_groups[name].finished()


@dataclass(slots=True)
class _Rebalances:
    """The rebalances of one group.

    `targets`: the target assignment at the beginning of the newest rebalance. `before`: the one before the records that
    lead to the next group epoch; None: none of them came yet. `target_counts`: members by active task in `targets`.
    """

    kind: _Kind
    bound: CompactionBound
    replay: ModelReplay[Any] = field(init=False)
    settled: SettledMembers = field(init=False)
    has_undecoded: bool = False
    rows: RebalanceRows = field(default_factory=RebalanceRows)
    targets: Targets = field(default_factory=dict)
    before: Targets | None = None
    owners: dict[Task, set[str]] = field(default_factory=dict)
    target_counts: Counter[Task] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begins the replay."""
        self.replay = self.kind.new_replay()
        self.settled = SettledMembers(self.replay.model.settled_epoch)

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.bound.take(change)
        self.has_undecoded |= change.is_undecoded
        group, kind, of = self.replay.group, change.record_type, self.replay.model
        targets = _targets(group)
        if kind == of.member or (kind in (of.member_target, of.assignment) and change.is_tombstone):
            self.before = targets if self.before is None else self.before
        elif kind == of.member_target:
            self.before = None
        if kind == of.member and change.is_tombstone:
            self.rows.removed.add(str(change.member_id))
        if kind == of.metadata:
            self._end_rebalance(targets if self.before is None else self.before)
        self.replay.apply(change)
        if self.replay.group is None:
            self._forget_members()
        elif kind in (of.member, of.assignment):
            self._update_member(change, None if group is None else group.members.get(str(change.member_id)))
        if kind == of.metadata and not change.is_undecoded:
            self._begin_rebalance(change)
        elif kind == of.target and self.rows.rows and self.replay.group is not None and change.value_json is not None:
            self.rows.rows[-1]["assignment_epoch"] = self.replay.group.target_assignment_epoch
        if kind != of.member:
            self._note_stable(change)

    def finished(self) -> list[Row]:
        """The rows, with the moves of the last one."""
        self._end_rebalance(_targets(self.replay.group))
        return self.rows.finished()

    def _begin_rebalance(self, change: GroupChange) -> None:
        group = self.replay.group
        self.rows.begin(
            {
                "group_id": change.group_id,
                "at_ms": change.log_time_ms,
                "group_epoch": None if group is None else group.group_epoch,
                "state": DEAD if group is None else self.settled.state_of(group),
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
        if self.rows.rows:
            moves = [Move(*place, lost.get(place, ()), gained.get(place, ())) for place in moved]
            sizes = [sum(len(partitions) for _, _, partitions in cell) for cell in targets.values()]
            lost_count = len(moved_before & self.target_counts.keys())
            self.rows.end(TargetChange(moves, count - len(moved_before), lost_count, sizes))

    def _update_member(self, change: GroupChange, before: Any) -> None:
        """Notes new metadata of a member, and active tasks that lost their last owner or have one again."""
        name, group = str(change.member_id), self.replay.group
        member = None if group is None else group.members.get(name)
        self.settled.update(before, member)
        metadata = self.kind.metadata_of(member)
        if change.record_type == self.replay.model.member and change.value_json is not None and metadata is not None:
            self.rows.note_metadata(name, metadata, self.kind.metadata_of(before), is_member=before is not None)
        old, new = self.kind.active_of(before), self.kind.active_of(member)
        for task in _difference(old, new):
            self.owners[task].discard(name)
            if not self.owners[task]:
                self.rows.lose(task, change.log_time_ms, is_removal=change.is_tombstone)
        for task in _difference(new, old):
            self.owners.setdefault(task, set()).add(name)
            self.rows.note_owner(task, change.log_time_ms)

    def _forget_members(self) -> None:
        """Notes that the group is not there."""
        self.owners = {}
        self.settled.counts.clear()
        self.rows.forget_tasks()

    def _note_stable(self, change: GroupChange) -> None:
        group, rows = self.replay.group, self.rows.rows
        if not rows or group is None or rows[-1]["stable_after_ms"] is not None:
            return
        if self.settled.state_of(group) == STABLE:
            rows[-1]["stable_after_ms"] = change.log_time_ms - rows[-1]["at_ms"]


def _targets(group: ModelGroup | None) -> Targets:
    """The target assignment of a group whose replay reads targets as TaskCell."""
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


def _consumer_target(change: GroupChange) -> Any:
    """The value of a record of a consumer group; a target as TaskCell."""
    value = read_consumer_value(change)
    is_target = change.record_type == ConsumerReplay.model.member_target
    return tuple((ACTIVE, *entry) for entry in value) if is_target else value


def _partitions(member: ConsumerMember | None) -> dict[str, Set[int]]:
    """Partitions by topic id of a member, also of those that it must give up."""
    if member is None:
        return {}
    assignment = member_assignment(member)
    topics = by_topic(assignment.assigned.keys() | assignment.pending.keys())
    return {topic_id: set(numbers) for topic_id, numbers in topics.items()}


_CONSUMER = _Kind(lambda: ConsumerReplay(read=_consumer_target), lambda member: member and member.metadata, _partitions)
_STREAMS = _Kind(lambda: StreamsReplay(read=read_value), metadata_of, _active)
