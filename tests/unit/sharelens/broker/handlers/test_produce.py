"""Records for internal topics: the codes of Kafka 4.3.1 for the same requests."""

import pytest

from sharelens.broker.ports import Record
from sharelens.broker.security.authorization.entries import Operation
from sharelens.broker.storage import record_batch as rb
from tests.broker_parts.acl_answers import entry
from tests.broker_parts.dispatched_broker import DispatchedBroker

PRODUCE, FIND_COORDINATOR, COMMIT, FETCH_OFFSETS = 0, 10, 8, 9
NONE, UNKNOWN_PARTITION, INVALID_TOPIC, TOPIC_REFUSED, INVALID_RECORD = 0, 3, 17, 29, 87
ADMIN_CLIENT = "__admin_client"
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
KEYED, KEYLESS = Record(key=b"\x00\x63key", value=b"v"), Record(key=None, value=b"v")
SETTINGS = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
    "transaction_state_log_num_partitions": 2,
    "share_coordinator_state_topic_num_partitions": 2,
}


@pytest.fixture
def broker(tmp_path):
    """Has its internal topics, with two partitions each."""
    served = DispatchedBroker(tmp_path / "log", **SETTINGS)
    for key_type, key in enumerate(("g", "x", "g:AAECAwQFBgcICQoLDA0ODw:0")):
        served.call(FIND_COORDINATOR, 6, key_type=key_type, coordinator_keys=[key])
    assert set(INTERNAL_TOPICS) <= set(served.broker.catalog.topics)
    yield served
    served.close()


def produce(broker, topic, record=KEYED, *, client_id=ADMIN_CLIENT, user="ANONYMOUS", version=9, partition=0):
    records = rb.build([record], now_ms=broker.timers.now_ms())
    named = {"name": topic} if version < 13 else {"topic_id": broker.broker.catalog.by_name(topic).topic_id}
    data = [{**named, "partition_data": [{"index": partition, "records": records}]}]
    answer = broker.call_as(f"User:{user}", PRODUCE, version, {"acks": -1, "topic_data": data}, client_id)
    return int(answer["responses"][0]["partition_responses"][0]["error_code"])


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
@pytest.mark.parametrize("version", [3, 9, 13])
def test_one_client_id_alone_writes_to_internal_topics(broker, topic, version):
    assert produce(broker, topic, client_id="c", version=version) == INVALID_TOPIC
    assert produce(broker, topic, client_id="", version=version) == INVALID_TOPIC
    assert broker.broker.logs.get(topic, 0).high_watermark == 0
    assert produce(broker, topic, version=version) == NONE
    assert broker.broker.logs.get(topic, 0).high_watermark == 1


def test_the_client_id_gives_no_right(broker):
    assert produce(broker, "__consumer_offsets", user="alice") == TOPIC_REFUSED
    broker.broker.acls.add([entry("User:alice", "*", 2, "__consumer_offsets", 3, Operation.WRITE, 3)])
    assert produce(broker, "__consumer_offsets", user="alice") == NONE
    assert produce(broker, "__consumer_offsets", user="alice", client_id="c") == INVALID_TOPIC


def test_other_rules_hold_for_that_client_too(broker):
    assert produce(broker, "__consumer_offsets", partition=99) == UNKNOWN_PARTITION
    assert produce(broker, "__consumer_offsets", KEYLESS) == INVALID_RECORD


@pytest.mark.slow
def test_groups_are_loaded_over_records_that_no_coordinator_wrote(broker):
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
    broker.create("orders", 1)
    for key in (b"", b"\x00", b"\x00\x01", b"\x00\x03", b"\x7f\xff", b"\x00\x00\x00\x01x"):
        for partition in (0, 1):
            assert produce(broker, "__consumer_offsets", Record(key=key, value=b"v"), partition=partition) == NONE
            assert produce(broker, "__transaction_state", Record(key=key, value=b"v"), partition=partition) == NONE
    broker.call(COMMIT, 8, group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics)
    broker.restart()
    requested = [{"name": "orders", "partition_indexes": [0]}]
    (group,) = broker.call(FETCH_OFFSETS, 8, groups=[{"group_id": "g", "topics": requested}])["groups"]
    assert group["topics"][0]["partitions"][0]["committed_offset"] == 7
