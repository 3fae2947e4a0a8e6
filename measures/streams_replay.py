"""Streams groups replayed from GROUP_RECORD rows, record by record, by `state_model.streams.group`."""

from dataclasses import dataclass

from measures.group_replay import GroupChange
from measures.group_schemas import DEAD
from state_model.group_records import GroupRecord, from_formatter_json
from state_model.group_schemas import RECORD_TYPES
from state_model.streams.group import apply
from state_model.streams.records import METADATA
from state_model.streams.values import GroupState, StreamsGroup

VALUE_VERSION = 0
"""The only version of values of these types."""


@dataclass(slots=True)
class StreamsReplay:
    """A streams group after the records applied so far; `group` None: it does not exist."""

    group: StreamsGroup | None = None
    is_known: bool = False
    """Whether a record said that the group is there, or that it is deleted: tombstones of members alone do not."""

    @property
    def is_deleted(self) -> bool:
        """Whether the group's tombstone is the newest that is known of it."""
        return self.is_known and self.group is None

    @property
    def state(self) -> str:
        """Kafka's state of the group in the words of the tables."""
        return state_of(self.group)

    def apply(self, change: GroupChange) -> None:
        """Applies the next record of the log; one with an unknown value version changes nothing."""
        self.group = apply(self.group, record_of_change(change))
        self.is_known |= self.group is not None or (change.is_tombstone and change.record_type == METADATA)


def state_of(group: StreamsGroup | None) -> str:
    """Kafka's state of a group in the words of the tables: EMPTY, NOT_READY, …; DEAD without a group."""
    state: GroupState | None = None if group is None else group.state
    return DEAD if state is None else state.name


def record_of_change(change: GroupChange) -> GroupRecord:
    """The record of a change; `value` None with a version: its version is unknown."""
    key = {"group_id": change.group_id}
    if change.member_id is not None:
        key["member_id"] = change.member_id
    value = None
    if change.value is not None:
        value = from_formatter_json(change.record_type, VALUE_VERSION, change.value)
    return GroupRecord(
        record_type=change.record_type,
        name=RECORD_TYPES[change.record_type].name,
        key=key,
        version=None if change.is_tombstone else VALUE_VERSION,
        value=value,
    )
