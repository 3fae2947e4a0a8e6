"""The iteration order of Java's HashMap and HashSet, by which Kafka's assignors break ties.

A table has a power of two of buckets, at least 16, and at most three quarters as many keys; it doubles for a bucket of
more than 8 keys while it has fewer than 64 buckets. Keys of one bucket follow each other in the order of their
insertion. A specification of a group doesn't have that order, so they are taken in ascending order.

Not modelled: a table that lost keys stays as large as it was, a name without a topic counts for the size of the table
of topics, a bucket of more than 8 keys in a larger table becomes a tree, and in some versions of Java (17, but not 25)
a HashSet that is a copy of exactly 12, 24, 48 … keys has twice the buckets.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TypeVar

from state_model.java import string_hash
from state_model.uuids import uuid_bytes

Key = TypeVar("Key")

FEWEST_BUCKETS = 16
FEWEST_BUCKETS_WITH_TREES = 64
MOST_KEYS_OF_A_BUCKET = 8
"""More than these become a tree, or double a table that has fewer buckets than tables with trees."""


def members_in_hash_order(member_ids: Iterable[str]) -> list[str]:
    """Member ids in the order of a HashMap with String keys."""
    hashes = {member_id: string_hash(member_id) for member_id in sorted(member_ids)}
    return _in_bucket_order(hashes)


def topics_in_hash_order(topic_ids: Iterable[str]) -> list[str]:
    """Topic ids, of 22 characters, in the order of a HashSet of Uuid."""
    hashes = {topic_id: uuid_hash(topic_id) for topic_id in sorted(topic_ids)}
    return _in_bucket_order(hashes)


def partitions_in_hash_order(partitions: Iterable[int]) -> list[int]:
    """Partitions in the order of a HashSet of Integer, whose hash is the number itself."""
    return _in_bucket_order({partition: partition for partition in sorted(partitions)})


def uuid_hash(topic_id: str) -> int:
    """Kafka's Uuid.hashCode as an unsigned number: the exclusive or of the four 32-bit words."""
    raw = uuid_bytes(topic_id)
    words = [int.from_bytes(raw[start : start + 4]) for start in range(0, len(raw), 4)]
    return words[0] ^ words[1] ^ words[2] ^ words[3]


def _in_bucket_order(hashes: dict[Key, int]) -> list[Key]:
    buckets = _bucket_count(hashes.values())
    return sorted(hashes, key=lambda key: _bucket(hashes[key], buckets))


def _bucket_count(hashes: Collection[int]) -> int:
    """The size of a table with these hashes, which doesn't depend on the order of their insertion."""
    buckets = FEWEST_BUCKETS
    while len(hashes) * 4 > buckets * 3:
        buckets *= 2
    while buckets < FEWEST_BUCKETS_WITH_TREES and _most_keys_of_a_bucket(hashes, buckets) > MOST_KEYS_OF_A_BUCKET:
        buckets *= 2
    return buckets


def _most_keys_of_a_bucket(hashes: Collection[int], buckets: int) -> int:
    return max(Counter(_bucket(hashed, buckets) for hashed in hashes).values(), default=0)


def _bucket(hashed: int, buckets: int) -> int:
    """The bucket of a hash: HashMap mixes its upper 16 bits into the lower ones."""
    unsigned = hashed & 0xFFFFFFFF
    return (unsigned ^ unsigned >> 16) & (buckets - 1)
