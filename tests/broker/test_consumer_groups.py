"""Consumer groups of the classic protocol with real clients: sharing out, committed offsets, restarts."""

import time
import uuid

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.kafka_tools import CONSOLE_CONSUMER, CONSUMER_GROUPS, kafka_process, kafka_tool
from tests.broker.test_clients import new_topic, produce

pytestmark = pytest.mark.broker

TIMEOUT_S = 30


def consumer(broker, group, **config):
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 6_000,
            **config,
        }
    )


def new_group():
    return f"g-{uuid.uuid4().hex[:8]}"


def until(condition, consumers=(), timeout_s=TIMEOUT_S):
    """Poll the consumers until the condition holds; what they read."""
    values = []
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come about"
        for each in consumers:
            message = each.poll(0.1)
            if message is not None:
                assert message.error() is None
                values.append(message.value())
    return values


def read(client, count):
    values = []
    while len(values) < count:
        message = client.poll(TIMEOUT_S)
        assert message is not None, f"{len(values)} of {count} came"
        assert message.error() is None
        values.append(message.value())
    return values


def owned(*consumers):
    return [sorted(at.partition for at in each.assignment()) for each in consumers]


def test_two_members_share_the_partitions_and_take_over_from_each_other(shared_broker):
    topic, group = new_topic(shared_broker, 4), new_group()
    first, second = consumer(shared_broker, group), consumer(shared_broker, group)
    try:
        first.subscribe([topic])
        until(lambda: owned(first) == [[0, 1, 2, 3]], [first])
        second.subscribe([topic])
        until(lambda: sorted(map(len, owned(first, second))) == [2, 2], [first, second])
        assert sorted(partition for each in owned(first, second) for partition in each) == [0, 1, 2, 3]
        first.close()
        until(lambda: owned(second) == [[0, 1, 2, 3]], [second])
    finally:
        second.close()


def test_a_member_that_dies_is_missed(shared_broker):
    topic, group = new_topic(shared_broker, 2), new_group()
    first, second = consumer(shared_broker, group, **{"max.poll.interval.ms": 6_000}), consumer(shared_broker, group)
    try:
        first.subscribe([topic])
        second.subscribe([topic])
        until(lambda: owned(first, second) in ([[0], [1]], [[1], [0]]), [first, second])
        until(lambda: owned(second) == [[0, 1]], [second])
    finally:
        second.close()
        first.close()


@pytest.mark.parametrize("is_killed", [False, True])
def test_committed_offsets_and_the_group_outlive_the_broker(start_broker, is_killed):
    broker = start_broker()
    topic, group = new_topic(broker), new_group()
    produce(broker, topic, [f"{number}" for number in range(10)])
    reader = consumer(broker, group)
    reader.subscribe([topic])
    assert read(reader, 4) == [b"0", b"1", b"2", b"3"]
    reader.commit(offsets=[TopicPartition(topic, 0, 4, metadata="half way")], asynchronous=False)
    if is_killed:
        broker.kill()
    else:
        reader.close()
        assert broker.stop() == 0
    again = start_broker(listen=broker.bootstrap)
    other = consumer(again, group)
    try:
        committed = other.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        assert [(at.offset, at.metadata) for at in committed] == [(4, "half way")]
        if is_killed:
            # The member of before is still one: it goes on without joining again.
            assert read(reader, 6) == [b"4", b"5", b"6", b"7", b"8", b"9"]
            reader.commit(offsets=[TopicPartition(topic, 0, 10)], asynchronous=False)
            reader.close()
        other.subscribe([topic])
        produce(again, topic, ["10"])
        assert read(other, 1 if is_killed else 7)[-1] == b"10"
    finally:
        other.close()


def test_a_static_member_that_comes_back_keeps_its_partitions(shared_broker):
    topic, group = new_topic(shared_broker, 2), new_group()
    static = {"group.instance.id": "one", "session.timeout.ms": 30_000}
    first, second = consumer(shared_broker, group, **static), consumer(shared_broker, group)
    first.subscribe([topic])
    second.subscribe([topic])
    until(lambda: sorted(map(len, owned(first, second))) == [1, 1], [first, second])
    before = owned(first)
    first.close()
    again = consumer(shared_broker, group, **static)
    try:
        again.subscribe([topic])
        until(lambda: owned(again) == before, [again, second])
        assert len(second.assignment()) == 1
    finally:
        again.close()
        second.close()


def test_groups_are_listed_described_and_deleted(shared_broker):
    topic, group = new_topic(shared_broker, 2), new_group()
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    reader = consumer(shared_broker, group, **{"client.id": "reader"})
    reader.subscribe([topic])
    until(lambda: owned(reader) == [[0, 1]], [reader])
    reader.commit(offsets=[TopicPartition(topic, 1, 7)], asynchronous=False)
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    assert described.state is ConsumerGroupState.STABLE
    assert [member.client_id for member in described.members] == ["reader"]
    assert sorted(at.partition for at in described.members[0].assignment.topic_partitions) == [0, 1]
    with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    reader.close()
    assert group in {each.group_id for each in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(TIMEOUT_S)
    assert [(at.topic, at.partition, at.offset) for at in offsets.topic_partitions] == [(topic, 1, 7)]
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    assert group not in {each.group_id for each in admin.list_consumer_groups().result(TIMEOUT_S).valid}


def test_offsets_of_a_topic_go_with_it(shared_broker):
    topic, group = new_topic(shared_broker), new_group()
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    keeper = consumer(shared_broker, group)
    try:
        keeper.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        assert [at.offset for at in keeper.committed([TopicPartition(topic, 0)], TIMEOUT_S)] == [5]
        admin.delete_topics([topic])[topic].result(TIMEOUT_S)
        requested = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(TIMEOUT_S)
        assert requested.topic_partitions == []
    finally:
        keeper.close()


@pytest.mark.soak
@pytest.mark.components
def test_the_console_consumer_goes_on_where_its_group_was(shared_broker):
    topic, group = new_topic(shared_broker, 2), new_group()
    produce(shared_broker, topic, ["a", "b"], partition=0)
    produce(shared_broker, topic, ["c"], partition=1)
    arguments = ("--bootstrap-server", shared_broker.bootstrap, "--topic", topic, "--group", group, "--from-beginning")
    done = kafka_process(CONSOLE_CONSUMER, *arguments, "--max-messages", "3", "--timeout-ms", "30000")
    assert sorted(done.lines) == ["a", "b", "c"]
    produce(shared_broker, topic, ["d"], partition=1)
    done = kafka_process(CONSOLE_CONSUMER, *arguments, "--max-messages", "1", "--timeout-ms", "30000")
    assert done.lines == ["d"]
    output = kafka_tool(CONSUMER_GROUPS, "--bootstrap-server", shared_broker.bootstrap, "--describe", "--group", group)
    rows = [line.split()[:6] for line in output.lines if line.startswith(group)]
    assert sorted(rows) == [[group, topic, "0", "2", "2", "0"], [group, topic, "1", "2", "2", "0"]]


@pytest.mark.components
def test_kafkas_tool_deletes_the_offsets_that_a_group_has_for_a_topic(shared_broker):
    topic, group = new_topic(shared_broker), new_group()
    other = new_topic(shared_broker)
    for name in (topic, other):
        produce(shared_broker, name, "a")
    reader = consumer(shared_broker, group)
    reader.commit(offsets=[TopicPartition(topic, 0, 1), TopicPartition(other, 0, 1)], asynchronous=False)
    reader.close()
    server = ("--bootstrap-server", shared_broker.bootstrap)
    done = kafka_tool(CONSUMER_GROUPS, *server, "--delete-offsets", "--group", group, "--topic", topic)
    assert "Successful" in done.out
    output = kafka_tool(CONSUMER_GROUPS, *server, "--describe", "--group", group)
    assert {line.split()[1] for line in output.lines if line.startswith(group)} == {other}
