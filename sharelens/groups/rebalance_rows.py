"""Rows of rebalances of a streams group, while the group's records are replayed."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from sharelens.groups.intervals import Row
from state_model.streams.values import MemberMetadata

_Member: TypeAlias = tuple[str, str | None]
"""An entry of MEMBERS."""


class Move(NamedTuple):
    """A task whose target members changed, and these members."""

    task_type: str
    subtopology_id: str
    partition: int
    lost: Iterable[str]
    gained: Iterable[str]


class TargetChange(NamedTuple):
    """The tasks that a rebalance moved in the target assignment, and the size of each member's target.

    kept_count, lost: the active tasks in the targets before and after that stay, and those that move. sizes: the number
    of tasks of each member with a target.
    """

    moves: Sequence[Move]
    kept_count: int
    lost: int
    sizes: Sequence[int]


@dataclass(slots=True)
class RebalanceRows:
    """STREAMS_REBALANCE rows of a group in the order of its epochs; the last one is open.

    What is in lists are tuples, which take less time than dicts where there are many moves.

    `members`: an entry of MEMBERS by member id, with the newest client id. `_lost`: since when each active task has no
    owner, and the row of the rebalance in which it lost it; None: that of the next group epoch, as its member is being
    removed.
    """

    rows: list[Row] = field(default_factory=list)
    joined: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    members: dict[str, _Member] = field(default_factory=dict)
    _lost: dict[Hashable, tuple[int, Row | None]] = field(default_factory=dict)

    def note_metadata(
        self, name: str, value: MemberMetadata, before: MemberMetadata | None, *, is_member: bool
    ) -> None:
        """Notes a member that joined or whose metadata changed."""
        self.members[name] = name, value.client_id
        if not is_member:
            self.joined.add(name)
        elif before != value:
            self.changed.add(name)

    def begin(self, values: Mapping[str, object]) -> None:
        """Begins the row of a group epoch; `values`: columns from the record and the group after it."""
        self.rows.append(
            {
                **values,
                "assignment_epoch": None,
                "joined": self._members(self.joined),
                "removed": self._members(self.removed),
                "changed": self._members(self.changed),
                "stable_after_ms": None,
                "tasks_without_owner": 0,
                "tasks_still_without_owner": 0,
                "longest_without_owner_ms": None,
            }
        )
        self.joined, self.removed, self.changed = set(), set(), set()
        for task, (since_ms, row) in self._lost.items():
            self._lost[task] = since_ms, self.rows[-1] if row is None else row

    def end(self, change: TargetChange) -> None:
        """Adds the moves and their measures to the open row."""
        self.rows[-1] |= {
            "moved": [
                (move.task_type, move.subtopology_id, move.partition, *map(self._members, (move.lost, move.gained)))
                for move in change.moves
            ],
            "kept_tasks": change.kept_count,
            "lost_tasks": change.lost,
            "fewest_tasks": min(change.sizes, default=None),
            "most_tasks": max(change.sizes, default=None),
        }

    def lose(self, task: Hashable, at_ms: int, *, is_removal: bool) -> None:
        """Notes an active task that lost its last owner; `is_removal`: as its member is being removed."""
        if self.rows:
            self._lost[task] = at_ms, None if is_removal else self.rows[-1]

    def note_owner(self, task: Hashable, at_ms: int) -> None:
        """Notes an active task that has an owner, perhaps again."""
        if task in self._lost:
            since_ms, row = self._lost.pop(task)
            row = self.rows[-1] if row is None else row
            row["longest_without_owner_ms"] = max(row["longest_without_owner_ms"] or 0, at_ms - since_ms)
            row["tasks_without_owner"] += 1

    def forget_tasks(self) -> None:
        """Notes that the group is deleted."""
        self._lost = {}

    def finished(self) -> list[Row]:
        """The rows, after the end of the last one."""
        for _, row in self._lost.values():
            if row is not None:
                row["tasks_still_without_owner"] += 1
        return self.rows

    def _members(self, names: Iterable[str]) -> tuple[_Member, ...]:
        return tuple([self.members.get(name, (name, None)) for name in sorted(names)])
