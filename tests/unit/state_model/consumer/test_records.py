import pytest

from state_model.consumer.group_values import GroupMetadata, MemberMetadata, PartitionMetadata, ResolvedExpression
from state_model.consumer.reconciliation import MemberAssignment, Partition
from state_model.consumer.records import record_of, value_of
from state_model.group_forms import name_of
from state_model.group_records import decode_record, encode_record
from state_model.group_targets import TargetMetadata
from tests.consumer_group_vectors import CONSUMER_VECTORS, raw

TOPIC, OTHER = "AAECAwQFBgcICQoLDA0ODw", "AAECAwQFBgcICQoLDA0OEA"
PARTITIONS = frozenset({Partition(TOPIC, 0), Partition(TOPIC, 2), Partition(OTHER, 1)})
CLASSIC = {"session_timeout_ms": 9, "supported_protocols": ({"name": "range", "metadata": b"x"},)}
METADATA = MemberMetadata("i", "r", "c", "/h", frozenset("tu"), "u.*", 9, "range")


@pytest.mark.parametrize(
    ("number", "value", "name"),
    [
        (3, GroupMetadata(4, -5), None),
        (4, PartitionMetadata(), None),
        (5, METADATA, "m"),
        (5, METADATA._replace(classic_member_metadata=CLASSIC, server_assignor=None), "m"),
        (6, TargetMetadata(4, 99), None),
        (7, PARTITIONS, "m"),
        (7, frozenset(), "m"),
        (8, MemberAssignment(1, 4, 3, dict.fromkeys(PARTITIONS, 2), {Partition(OTHER, 7): 4}), "m"),
        (8, MemberAssignment(0, -2, 3), "m"),
        (16, ResolvedExpression(frozenset("tu"), 3, 99), "u.*"),
    ],
)
def test_a_value_is_the_same_after_its_bytes(number, value, name):
    record = decode_record(*encode_record(record_of(number, "g", value, name)))
    assert (value_of(record), name_of(record), record.group_id) == (value, name or "", "g")
    ended = decode_record(*encode_record(record_of(number, "g", None, name)))
    assert (ended.is_tombstone, name_of(ended), value_of(ended)) == (True, name or "", None)


@pytest.mark.parametrize(("number", "key", "value"), [vector[:3] for vector in CONSUMER_VECTORS])
def test_records_of_kafka_have_values(number, key, value):
    record = decode_record(*raw(number, key, value))
    again = record_of(number, record.group_id, value_of(record), name_of(record) or None)
    assert value_of(again) == value_of(record)
    assert again.key == record.key


def test_lists_are_written_in_ascending_order():
    assert record_of(5, "g", METADATA, "m").value["subscribed_topic_names"] == ("t", "u")
    assert record_of(7, "g", PARTITIONS, "m").value["topic_partitions"] == (
        {"topic_id": TOPIC, "partitions": (0, 2)},
        {"topic_id": OTHER, "partitions": (1,)},
    )
