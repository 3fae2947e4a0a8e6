"""Topics as group coordinators see them, and their metadata hash (types 3, 11 and 17): XXH3-64, as in Kafka.

The rules are those of Utils.computeGroupHash and computeTopicHash of Kafka 4.3.1 (streams-group §2.5).
"""

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

_HASH_VERSION = 0
_TOPIC_ID = struct.Struct("<qq")
_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")


class TopicMetadata(NamedTuple):
    """An existing topic; `topic_id` is its 16 bytes, `racks` those of a partition's replicas, the same for all."""

    name: str
    topic_id: bytes
    partitions: int
    racks: tuple[str, ...] = ()


Topics: TypeAlias = Callable[[str], TopicMetadata | None]
"""The existing topic of a name; None when there is none."""
TopicNames: TypeAlias = Callable[[str], str | None]
"""The name of an existing topic by its id, in Kafka's text of it; None when there is none."""


def topic_hash(topic: TopicMetadata) -> int:
    """The signed 64-bit hash of a topic: id, name, number of partitions; of each its index and its replicas' racks."""
    hashed = bytearray([_HASH_VERSION])
    hashed += _TOPIC_ID.pack(*struct.unpack(">qq", topic.topic_id))
    hashed += _text(topic.name)
    hashed += _INT32.pack(topic.partitions)
    racks = b"".join(_INT32.pack(_units(rack)) + _text(rack) for rack in sorted(topic.racks, key=_utf16))
    for partition in range(topic.partitions):
        hashed += _INT32.pack(partition) + racks
    return _hash(bytes(hashed))


def metadata_hash(topics: Iterable[TopicMetadata]) -> int:
    """The signed 64-bit hash of the required topics that exist; 0 when none does."""
    hashes = [topic_hash(topic) for topic in sorted(topics, key=lambda topic: topic.name)]
    if not hashes:
        return 0
    return _hash(b"".join(map(_INT64.pack, hashes)))


def _text(text: str) -> bytes:
    """The UTF-16 code units of a text, then their number."""
    return text.encode("utf-16-le") + _INT32.pack(_units(text))


def _units(text: str) -> int:
    return len(_utf16(text)) // 2


def _utf16(text: str) -> bytes:
    """UTF-16 code units, which sort as Java's strings do."""
    return text.encode("utf-16-be")


def _hash(data: bytes) -> int:
    """The signed XXH3-64."""
    import xxhash  # deferred: values of records need the standard library alone

    digest = xxhash.xxh3_64_intdigest(data)
    return digest - (1 << 64) if digest >> 63 else digest
