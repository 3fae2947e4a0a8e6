"""The metadata and assignments of classic consumers: ConsumerProtocolSubscription and ConsumerProtocolAssignment.

An int16 version comes first. Versions 0 to 3 are known; a later one is read as version 3, whose fields it begins with.
Bytes behind the fields are ignored (org.apache.kafka.clients.consumer.internals.ConsumerProtocol of 4.3.1).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from state_model.errors import DecodeError, InvalidLengthError
from state_model.schema import (
    CLASSIC_STRING,
    INT16,
    INT32,
    ClassicArray,
    ClassicBytes,
    ClassicString,
    Field,
    Struct,
    Tree,
)

PROTOCOL_TYPE: Final = "consumer"
LAST_VERSION: Final = 3
NamedPartitions: TypeAlias = frozenset[tuple[str, int]]
"""Partitions: topic name and number."""
_PARTITIONS = ClassicArray(
    item=Struct(
        Field(name="topic", kind=CLASSIC_STRING),
        Field(name="partitions", kind=ClassicArray(item=INT32)),
        flexible=False,
    )
)
_USER_DATA = Field(name="user_data", kind=ClassicBytes(nullable=True))
_SUBSCRIPTION_FIELDS = (
    (Field(name="topics", kind=ClassicArray(item=CLASSIC_STRING)), _USER_DATA),
    (Field(name="owned_partitions", kind=_PARTITIONS),),
    (Field(name="generation_id", kind=INT32),),
    (Field(name="rack_id", kind=ClassicString(nullable=True)),),
)
"""The fields that each version adds."""
_SUBSCRIPTIONS = tuple(
    Struct(*(field for fields in _SUBSCRIPTION_FIELDS[: version + 1] for field in fields), flexible=False)
    for version in range(LAST_VERSION + 1)
)
_ASSIGNMENT = Struct(Field(name="assigned_partitions", kind=_PARTITIONS), _USER_DATA, flexible=False)


class ProtocolSubscription(NamedTuple):
    """What a consumer subscribes to. Fields of later versions than its own have their defaults.

    Attributes:
        owned: the partitions that it has.
        rack_id: None and empty: none.
    """

    topics: frozenset[str]
    owned: NamedPartitions = frozenset()
    rack_id: str | None = None


class ProtocolAssignment(NamedTuple):
    """The partitions of a consumer; `user_data` is that of its assignor, null and empty alike."""

    partitions: NamedPartitions
    user_data: bytes = b""


def read_version(data: bytes) -> int:
    """The version of a subscription or an assignment, at most the last known one.

    Raises:
        BufferUnderflowError: less than two bytes.
        InvalidLengthError: it is negative.
    """
    version = cast(int, INT16.read(data, 0)[0])
    if version < 0:
        raise InvalidLengthError(f"the version {version} of a consumer's metadata is negative")
    return min(version, LAST_VERSION)


def read_subscription(data: bytes) -> ProtocolSubscription:
    """The subscription in a member's metadata. Raises DecodeError for bytes that are none."""
    version = read_version(data)
    tree = cast(Mapping[str, Any], _SUBSCRIPTIONS[version].read(data, INT16.min_bytes)[0])
    owned = _named_partitions(tree.get("owned_partitions", ()))
    return ProtocolSubscription(frozenset(tree["topics"]), owned, tree.get("rack_id"))


def read_assignment(data: bytes) -> ProtocolAssignment:
    """The assignment of a member. Raises DecodeError for bytes that are none."""
    read_version(data)
    tree = cast(Mapping[str, Any], _ASSIGNMENT.read(data, INT16.min_bytes)[0])
    return ProtocolAssignment(_named_partitions(tree["assigned_partitions"]), tree["user_data"] or b"")


def write_assignment(version: int, partitions: Iterable[tuple[str, int]]) -> bytes:
    """The bytes of an assignment of partitions (topic name, number), without data of an assignor."""
    numbers: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        numbers.setdefault(topic, []).append(number)
    trees: tuple[Tree, ...] = tuple(
        {"topic": topic, "partitions": tuple(of_topic)} for topic, of_topic in numbers.items()
    )
    return INT16.write(version) + _ASSIGNMENT.write({"assigned_partitions": trees, "user_data": None})


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of a member's metadata of any version; None for bytes that are no subscription."""
    try:
        tree = cast(Mapping[str, Any], _SUBSCRIPTIONS[0].read(metadata, INT16.min_bytes)[0])
    except DecodeError:
        return None
    return frozenset(tree["topics"])


def _named_partitions(trees: Iterable[Mapping[str, Any]]) -> NamedPartitions:
    return frozenset((tree["topic"], number) for tree in trees for number in tree["partitions"])
