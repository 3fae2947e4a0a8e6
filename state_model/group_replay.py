"""Groups of any kind, record by record, and the records of one operation on a group.

A replay follows the log and judges nothing: it accepts every record in every state. Tombstones of unknown groups and
members change nothing, because compaction may have removed what they end.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from state_model.group_forms import RecordForms, name_of
from state_model.group_records import GroupRecord

G = TypeVar("G")
V = TypeVar("V")


class Change(NamedTuple, Generic[G]):
    """What the records of a type change in a group.

    Attributes:
        with_value: the group after a value, by the name in the record's key (`name_of`).
        without_value: the group after a tombstone; None: there is no group any more.
    """

    with_value: Callable[[G, str, Any], G]
    without_value: Callable[[G, str], G | None]


def field_change(field: str, ended: object) -> Change[Any]:
    """The change of a field of the group, which a tombstone sets to `ended`."""
    return Change(
        lambda group, _, value: group._replace(**{field: value}), lambda group, _: group._replace(**{field: ended})
    )


def entry_change(field: str) -> Change[Any]:
    """The change of one entry of a KeyMap of the group, which a tombstone removes."""
    return Change(
        lambda group, name, value: group._replace(**{field: getattr(group, field).set(name, value)}),
        lambda group, name: group._replace(**{field: getattr(group, field).remove(name)}),
    )


METADATA_CHANGE: Final[Change[Any]] = Change(lambda group, _, value: group._replace(metadata=value), lambda *_: None)
"""That of the record whose tombstone removes the group."""


class Replay(Generic[G, V]):
    """The groups of a kind by their records.

    Args:
        new_group: a group before its first record.
        changes: by record type; each form has one.
        member_types: the types of a member's records, in the order in which Kafka writes their tombstones.
    """

    def __init__(
        self, new_group: G, forms: RecordForms[V], changes: Mapping[int, Change[G]], member_types: tuple[int, ...]
    ) -> None:
        self.new_group = new_group
        self.forms = forms
        self.member_types = member_types
        self._changes = changes

    def apply(self, group: G | None, record: GroupRecord) -> G | None:
        """The group after a record of the kind; None: no such group.

        A record with a value creates the group if there is none. The tombstone of the group's metadata removes it with
        everything but its offsets. A value of an unknown version changes nothing.
        """
        if record.version is None:
            return None if group is None else self.without_value(group, record.record_type, name_of(record))
        value = self.forms.value_of(record)
        return group if value is None else self.with_value(group, record.record_type, name_of(record), value)

    def with_value(self, group: G | None, record_type: int, name: str | None, value: V) -> G:
        """The group after the value of a record; a new one if there was none. `name`: as in the record's key."""
        return self._changes[record_type].with_value(self.new_group if group is None else group, name or "", value)

    def without_value(self, group: G, record_type: int, name: str | None) -> G | None:
        """The group after a tombstone; None: it is removed."""
        return self._changes[record_type].without_value(group, name or "")


class Draft(Generic[G, V]):
    """A group and the records of one operation on it, applied as they are added; none of them ends the group."""

    def __init__(self, replay: Replay[G, V], group_id: str, group: G) -> None:
        self.group_id = group_id
        self.group = group
        self.records: list[GroupRecord] = []
        self._replay = replay

    def add(self, record_type: int, value: V, name: str | None = None) -> None:
        """Add the record of a value; `name`: the member id or regular expression of its key."""
        self.records.append(self._replay.forms.record_of(record_type, self.group_id, value, name))
        self.group = self._replay.with_value(self.group, record_type, name, value)

    def end(self, record_type: int, name: str | None = None) -> None:
        """Add a tombstone."""
        self.records.append(self._replay.forms.record_of(record_type, self.group_id, None, name))
        group = self._replay.without_value(self.group, record_type, name)
        assert group is not None
        self.group = group

    def end_member(self, member_id: str) -> None:
        """Add the tombstones of a member."""
        for record_type in self._replay.member_types:
            self.end(record_type, member_id)
