"""Consumer groups of KIP-848 with real clients: librdkafka with `group.protocol=consumer`."""

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from tests.broker.test_clients import new_topic, produce
from tests.broker.test_consumer_groups import new_group, owned, read, until

pytestmark = pytest.mark.broker

TIMEOUT_S = 30
QUICK = {
    "group_consumer_heartbeat_interval_ms": 200,
    "group_consumer_min_heartbeat_interval_ms": 200,
    "group_consumer_session_timeout_ms": 3_000,
    "group_consumer_min_session_timeout_ms": 1_000,
    "group_consumer_assignment_interval_ms": 0,
}


@pytest.fixture
def broker(start_broker):
    return start_broker(**QUICK)


def consumer(broker, group, **config):
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
    )


def described(broker, group):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    return admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)


def committed(broker, group, topic):
    """The committed offsets by partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    result = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(TIMEOUT_S)
    return {each.partition: each.offset for each in result.topic_partitions if each.topic == topic}


def test_two_members_share_a_topic_commit_and_leave(broker):
    topic, group = new_topic(broker, partitions=4), new_group()
    for partition in range(4):
        produce(broker, topic, [b"%d" % partition], partition=partition)
    first, second = consumer(broker, group), consumer(broker, group)
    first.subscribe([topic])
    assert sorted(read(first, 4)) == [b"0", b"1", b"2", b"3"]
    first.commit(asynchronous=False)
    second.subscribe([topic])
    until(lambda: [*map(len, owned(first, second))] == [2, 2], [first, second])
    assert sorted(partition for each in owned(first, second) for partition in each) == [0, 1, 2, 3]
    description = described(broker, group)
    assert (description.state, len(description.members)) == (ConsumerGroupState.STABLE, 2)
    for partition in range(4):
        produce(broker, topic, [b"later"], partition=partition)
    assert read(first, 2) == read(second, 2) == [b"later"] * 2
    for member in (first, second):
        member.commit(asynchronous=False)
    assert committed(broker, group, topic) == dict.fromkeys(range(4), 2)
    second.close()
    until(lambda: owned(first) == [[0, 1, 2, 3]], [first])
    first.close()
    assert described(broker, group).state is ConsumerGroupState.EMPTY
    assert committed(broker, group, topic) == dict.fromkeys(range(4), 2)
