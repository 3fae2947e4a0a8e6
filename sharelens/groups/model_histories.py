"""Histories of a consumer or streams group: the group and its members, each value with its validity."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Final

from sharelens.groups.consumer_values import consumer_group_values, consumer_member_values, read_value
from sharelens.groups.intervals import Cells, Intervals, Row
from sharelens.groups.model_replay import ConsumerReplay, ModelReplay, SettledMembers
from sharelens.groups.replay import GroupChange
from sharelens.groups.schemas import DEAD
from state_model.consumer.group_values import ConsumerMember


@dataclass(slots=True)
class ModelHistories(ABC):
    """The rows of a group after the records so far."""

    groups: Intervals
    members: Intervals
    replay: ModelReplay[Any] = field(init=False)
    settled: SettledMembers = field(init=False)

    def __post_init__(self) -> None:
        """Begins the replay."""
        self.replay = self.new_replay()
        self.settled = SettledMembers(self.replay.model.settled_epoch)

    @staticmethod
    @abstractmethod
    def new_replay() -> ModelReplay[Any]:
        """The replay of a group of the kind before its first record."""

    @staticmethod
    @abstractmethod
    def group_values(group: Any, state: str) -> Row:
        """The columns GROUP_VALUES of a group (None: deleted) in a state."""

    @staticmethod
    @abstractmethod
    def member_cells(member_id: str, member: Any, target: Any) -> Cells:
        """The columns of a member with its target."""

    def take(self, record: int, change: GroupChange) -> None:
        """Applies the next record of the group."""
        before = self.replay.group
        self.replay.apply(change)
        if not self.replay.is_known:
            return
        group, kind, model = self.replay.group, change.record_type, self.replay.model
        if group is None:
            self.remove_all(record)
        elif kind in (model.member, model.member_target, model.assignment):
            name = str(change.member_id)
            member = group.members.get(name)
            cells = None if member is None else self.member_cells(name, member, group.targets.get(name, ()))
            self.members.update(record, name, cells)
            if kind != model.member_target:
                self.update_member(record, name, before and before.members.get(name), member)
        if before is None or kind != model.member_target:
            self._update_group(record, group)

    def update_member(self, record: int, name: str, before: Any, member: Any) -> None:
        """Takes a member whose metadata or current assignment changed; None: it is not in the group."""
        self.settled.update(before, member)

    def remove_all(self, record: int) -> None:
        """Ends all rows of members."""
        self.members.replace_all(record, {})
        self.settled.counts.clear()

    def _update_group(self, record: int, group: Any) -> None:
        """Begins a row of the group if one of its values changed."""
        state = DEAD if group is None else self.settled.state_of(group)
        self.groups.update(record, None, tuple(self.group_values(group, state).values()))


class ConsumerGroupHistories(ModelHistories):
    """The rows of a consumer group."""

    @staticmethod
    def new_replay() -> ModelReplay[Any]:
        """A replay that reads targets as cells."""
        return ConsumerReplay(read=read_value)

    @staticmethod
    def group_values(group: Any, state: str) -> Row:
        """The columns CONSUMER_GROUP_COLUMNS."""
        return consumer_group_values(group, state)

    @staticmethod
    def member_cells(member_id: str, member: Any, target: Any) -> Cells:
        """The columns CONSUMER_MEMBER_COLUMNS."""
        return tuple(consumer_member_values(member_id, member, target).values())


CONSUMER_GROUP_COLUMNS: Final = tuple(consumer_group_values(None))
CONSUMER_MEMBER_COLUMNS: Final = tuple(consumer_member_values("", ConsumerMember(), ()))
