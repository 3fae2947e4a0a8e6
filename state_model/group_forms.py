"""Records of groups from values and back: a form for each record type of a kind."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from state_model.group_records import GroupRecord, group_record
from state_model.group_targets import TargetMetadata
from state_model.schema import Tree

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class Form(NamedTuple, Generic[V_co]):
    """How the value of a record type is read from the tree of its schema, and written to it."""

    read: Callable[[Mapping[str, Any]], V_co]
    write: Callable[[Any], Mapping[str, Any]]


TARGET_FORM: Final = Form(
    lambda tree: TargetMetadata(tree["assignment_epoch"], tree["assignment_timestamp"]),
    lambda value: {"assignment_epoch": value.assignment_epoch, "assignment_timestamp": value.assignment_timestamp_ms},
)
"""That of record types 6 and 20."""


class RecordForms(Generic[V]):
    """The forms of a kind's record types, which have value version 0 only. `V`: the union of their values."""

    def __init__(self, forms: Mapping[int, Form[V]]) -> None:
        self._forms = forms

    def value_of(self, record: GroupRecord) -> V | None:
        """The value of a record; None for a tombstone and for an unknown value version."""
        return None if record.value is None else self.tree_value(record.record_type, record.value)

    def tree_value(self, record_type: int, tree: Tree) -> V:
        """The value of the tree that its schema reads."""
        return self._forms[record_type].read(cast("Mapping[str, Any]", tree))

    def record_of(self, record_type: int, group_id: str, value: V | None, name: str | None = None) -> GroupRecord:
        """The record of a value; None: its tombstone. `name`: that in the key, as `name_of` gives it."""
        tree = None if value is None else self._forms[record_type].write(value)
        return group_record(record_type, group_id, tree, name)


def name_of(record: GroupRecord) -> str:
    """What the key names in its group: a member id or a regular expression; empty for types with one record a group."""
    return str(record.key.get("member_id", record.key.get("regular_expression", "")))
