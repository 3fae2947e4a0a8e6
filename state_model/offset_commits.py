"""Offset commits, record type 1 of `__consumer_offsets` in every version of its value (consumer-offsets-records §2)."""

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from state_model.codec.primitives import need
from state_model.errors import InvalidKeyError
from state_model.group_schemas import OFFSET_KEY
from state_model.schema import CLASSIC_STRING, INT32, INT64, STRING, UUID, Field, Struct
from state_model.uuids import ZERO_UUID

OFFSET_COMMIT: Final = 1
UNKNOWN: Final = -1
_OFFSET = Field(name="offset", kind=INT64)
_LEADER_EPOCH = Field(name="leader_epoch", kind=INT32)
_METADATA = Field(name="metadata", kind=CLASSIC_STRING)
_COMMIT_TIMESTAMP = Field(name="commit_timestamp", kind=INT64)
OFFSET_COMMIT_VALUES: Final[Mapping[int, Struct]] = {
    0: Struct(_OFFSET, _METADATA, _COMMIT_TIMESTAMP, flexible=False),
    1: Struct(_OFFSET, _METADATA, _COMMIT_TIMESTAMP, Field(name="expire_timestamp", kind=INT64), flexible=False),
    2: Struct(_OFFSET, _METADATA, _COMMIT_TIMESTAMP, flexible=False),
    3: Struct(_OFFSET, _LEADER_EPOCH, _METADATA, _COMMIT_TIMESTAMP, flexible=False),
    4: Struct(
        _OFFSET,
        _LEADER_EPOCH,
        Field(name="metadata", kind=STRING),
        _COMMIT_TIMESTAMP,
        Field(name="topic_id", kind=UUID, tag=0, default=ZERO_UUID),
    ),
}
"""The schemas of the value by version."""


class OffsetPlace(NamedTuple):
    """The key of an offset commit: group, topic and partition."""

    group_id: str
    topic: str
    partition: int


class CommittedOffset(NamedTuple):
    """A committed offset, the next to read; leader epoch -1 and the zero topic id are unknown."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    topic_id: str


def key_prefix(group_id: str) -> bytes:
    """The bytes with which the keys of all offset commits of a group begin."""
    return OFFSET_COMMIT.to_bytes(2, "big") + CLASSIC_STRING.write(group_id)


def read_place(key: bytes) -> OffsetPlace:
    """The key of an offset commit.

    Raises:
        InvalidKeyError: it is of another type.
        DecodeError: it is cut short.
    """
    if key[:2] != OFFSET_COMMIT.to_bytes(2, "big"):
        raise InvalidKeyError("the key is not that of an offset commit")
    tree, _ = OFFSET_KEY.read(key, 2)
    return OffsetPlace(str(tree["group"]), str(tree["topic"]), cast(int, tree["partition"]))


def read_committed(value: bytes) -> CommittedOffset | None:
    """The value of an offset commit; None for an unknown version.

    Raises:
        DecodeError: it is cut short or malformed.
    """
    need(value, 0, 2)
    layout = OFFSET_COMMIT_VALUES.get(int.from_bytes(value[:2], "big", signed=True))
    if layout is None:
        return None
    tree, _ = layout.read(value, 2)
    return CommittedOffset(
        cast(int, tree["offset"]),
        cast(int, tree.get("leader_epoch", UNKNOWN)),
        str(tree["metadata"]),
        cast(int, tree["commit_timestamp"]),
        str(tree.get("topic_id", ZERO_UUID)),
    )
