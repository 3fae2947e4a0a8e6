"""The value of record type 2: a classic group after a rebalance (GroupMetadataValue, versions 0 to 3)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from state_model.consumer_protocol import PROTOCOL_TYPE, NamedPartitions, read_assignment
from state_model.errors import DecodeError
from state_model.schema import (
    CLASSIC_STRING,
    INT16,
    INT32,
    INT64,
    ClassicArray,
    ClassicBytes,
    ClassicString,
    Field,
    Struct,
)

GROUP_METADATA: Final = 2
LAST_VERSION: Final = 3
"""The version that Kafka writes; 4 is flexible, and no release writes it."""
_NULLABLE: Final = ClassicString(nullable=True)


def _layout(version: int) -> Struct:
    member = (
        Field(name="member_id", kind=CLASSIC_STRING),
        *([Field(name="group_instance_id", kind=_NULLABLE)] if version >= 3 else []),
        Field(name="client_id", kind=CLASSIC_STRING),
        Field(name="client_host", kind=CLASSIC_STRING),
        *([Field(name="rebalance_timeout", kind=INT32)] if version >= 1 else []),
        Field(name="session_timeout", kind=INT32),
        Field(name="subscription", kind=ClassicBytes()),
        Field(name="assignment", kind=ClassicBytes()),
    )
    return Struct(
        Field(name="protocol_type", kind=CLASSIC_STRING),
        Field(name="generation", kind=INT32),
        Field(name="protocol", kind=_NULLABLE),
        Field(name="leader", kind=_NULLABLE),
        *([Field(name="current_state_timestamp", kind=INT64)] if version >= 2 else []),
        Field(name="members", kind=ClassicArray(item=Struct(*member, flexible=False))),
        flexible=False,
    )


LAYOUTS: Final = tuple(map(_layout, range(LAST_VERSION + 1)))


class ClassicGroup(NamedTuple):
    """A classic group in its record.

    `leader`: empty: none. `assignments`: the partitions by member, of groups of consumers; what can't be read is empty.
    """

    generation: int
    leader: str
    members: frozenset[str]
    assignments: Mapping[str, NamedPartitions]


def read_group(value: bytes) -> ClassicGroup | None:
    """The group of a value; None: its version is unknown. Raises DecodeError for bytes that are none."""
    version = cast(int, INT16.read(value, 0)[0])
    if not 0 <= version <= LAST_VERSION:
        return None
    tree = cast(Mapping[str, Any], LAYOUTS[version].read(value, INT16.min_bytes)[0])
    is_of_consumers = tree["protocol_type"] == PROTOCOL_TYPE
    return ClassicGroup(
        generation=tree["generation"],
        leader=tree["leader"] or "",
        members=frozenset(member["member_id"] for member in tree["members"]),
        assignments={
            member["member_id"]: _assigned(member["assignment"]) for member in tree["members"] if is_of_consumers
        },
    )


def _assigned(assignment: bytes) -> NamedPartitions:
    """The partitions of a member; those of an assignment that is empty or of its assignor's own form are unknown."""
    try:
        return read_assignment(assignment).partitions if assignment else frozenset()
    except DecodeError:
        return frozenset()
