"""Orders that Java printed for keys that were inserted in ascending order; tests/broker compares random ones."""

from state_model.consumer.hash_order import (
    members_in_hash_order,
    partitions_in_hash_order,
    topics_in_hash_order,
    uuid_hash,
)


def test_partitions_are_in_the_order_of_their_buckets():
    assert partitions_in_hash_order([1, 16, 0, 17, 2]) == [0, 16, 1, 17, 2]


def test_a_table_doubles_at_the_thirteenth_key():
    assert partitions_in_hash_order([*range(11), 16]) == [0, 16, *range(1, 11)]
    assert partitions_in_hash_order([*range(12), 16]) == [*range(12), 16]


def test_a_table_doubles_at_the_ninth_key_of_a_bucket():
    assert partitions_in_hash_order(range(0, 9 * 16, 16)) == [0, 32, 64, 96, 128, 16, 48, 80, 112]


def test_the_upper_half_of_a_hash_counts():
    assert partitions_in_hash_order([1 << 16, 0, 2]) == [0, 1 << 16, 2]
    assert members_in_hash_order(["member-10", "member-2", "b", "a"]) == ["a", "b", "member-2", "member-10"]


def test_topic_ids_are_in_the_order_of_their_hashes():
    hashes = {
        "AAAAAAAAAAAAAAAAAAAAAQ": 1,
        "Ls0Yyy2dTJ6dWFs1cZf7BA": 4020237412,
        "x3QKQyYvSfqzqLEC6H2Gmg": 3129898017,
    }
    assert {topic_id: uuid_hash(topic_id) for topic_id in hashes} == hashes
    assert topics_in_hash_order(reversed(list(hashes))) == list(hashes)
