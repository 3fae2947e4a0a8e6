"""Consumer groups of KIP-848 with real clients: librdkafka with `group.protocol=consumer`."""

import subprocess
import sys
import uuid

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
)
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.kafka_tools import CONSOLE_CONSUMER, kafka_process
from tests.broker.test_clients import new_topic, produce
from tests.broker.test_consumer_groups import new_group, owned, read, until

pytestmark = pytest.mark.broker

TIMEOUT_S = 30
QUICK = {
    "group_consumer_heartbeat_interval_ms": 200,
    "group_consumer_min_heartbeat_interval_ms": 200,
    "group_consumer_session_timeout_ms": 30_000,
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
            "reconnect.backoff.max.ms": 500,
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


def test_a_restart_of_the_broker_keeps_members_epochs_and_offsets(start_broker):
    broker = start_broker(**QUICK)
    topic, group = new_topic(broker, partitions=2), new_group()
    members = [consumer(broker, group), consumer(broker, group)]
    try:
        for member in members:
            member.subscribe([topic])
        until(lambda: [*map(len, owned(*members))] == [1, 1], members)
        for partition in range(2):
            produce(broker, topic, [b"before"], partition=partition)
        for member in members:
            assert read(member, 1) == [b"before"]
            member.commit(asynchronous=False)
        before = assignments(broker, group)
        broker.kill()
        broker = start_broker(listen=broker.bootstrap, **QUICK)
        assert assignments(broker, group) == before
        assert described(broker, group).state is ConsumerGroupState.STABLE
        assert committed(broker, group, topic) == {0: 1, 1: 1}
        for partition in range(2):
            produce(broker, topic, [b"after"], partition=partition)
        for member in members:
            assert read(member, 1) == [b"after"]
            member.commit(asynchronous=False)
        assert committed(broker, group, topic) == {0: 2, 1: 2}
    finally:
        for member in members:
            member.close()


LOST_MEMBER = """
import sys
from confluent_kafka import Consumer
bootstrap, group, topic = sys.argv[1:]
member = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"})
member.subscribe([topic])
while True:
    member.poll(0.1)
"""


def test_the_partitions_of_a_killed_member_go_to_the_others(start_broker):
    broker = start_broker(**QUICK | {"group_consumer_session_timeout_ms": 3_000})
    topic, group = new_topic(broker, partitions=2), new_group()
    survivor = consumer(broker, group)
    survivor.subscribe([topic])
    lost_member = subprocess.Popen([sys.executable, "-c", LOST_MEMBER, broker.bootstrap, group, topic])
    try:
        until(lambda: sorted(assignments(broker, group).values()) == [[0], [1]], [survivor])
        lost_member.kill()
        until(lambda: owned(survivor) == [[0, 1]], [survivor])
        assert len(assignments(broker, group)) == 1
    finally:
        lost_member.kill()
        lost_member.wait()
        survivor.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_a_group_goes_from_classic_consumers_to_the_consumer_protocol_and_back(broker, strategy):
    topic, group = new_topic(broker, partitions=4), new_group()
    config = {"group.protocol": "classic", "heartbeat.interval.ms": 200, "session.timeout.ms": 6_000}
    config["partition.assignment.strategy"] = strategy
    classic = [consumer(broker, group, **config) for _ in range(2)]
    for each in classic:
        each.subscribe([topic])
    until(lambda: [*map(len, owned(*classic))] == [2, 2], classic)
    new = consumer(broker, group)
    new.subscribe([topic])
    members = [*classic, new]
    until(lambda: sorted(map(len, owned(*members))) == [1, 1, 2], members)
    assert sorted(partition for each in owned(*members) for partition in each) == [0, 1, 2, 3]
    assert described(broker, group).type is ConsumerGroupType.CONSUMER
    for partition in range(4):
        produce(broker, topic, [b"%d" % partition], partition=partition)
    for each, partitions in zip(members, owned(*members), strict=True):
        assert len(read(each, len(partitions))) == len(partitions)
        each.commit(asynchronous=False)
    assert committed(broker, group, topic) == dict.fromkeys(range(4), 1)
    new.close()
    until(lambda: [*map(len, owned(*classic))] == [2, 2], classic)
    assert described(broker, group).type is ConsumerGroupType.CLASSIC
    for each in classic:
        each.close()
    assert committed(broker, group, topic) == dict.fromkeys(range(4), 1)


def test_an_expression_finds_new_topics(broker):
    prefix, group = f"r-{uuid.uuid4().hex[:8]}", new_group()
    create(broker, f"{prefix}-0")
    member = consumer(broker, group, **{"topic.metadata.refresh.interval.ms": 500})
    try:
        member.subscribe([f"^{prefix}-.*"])
        until(lambda: [each.topic for each in member.assignment()] == [f"{prefix}-0"], [member])
        create(broker, f"{prefix}-1")
        until(lambda: len(member.assignment()) == 2, [member], timeout_s=60)
    finally:
        member.close()


def create(broker, name):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(TIMEOUT_S)


@pytest.mark.parametrize(
    ("options", "subscription", "problem"),
    [
        ((), r"^(a)\1", "regular expression is not valid"),
        (("--feature", "group.version=0"), "t", "API version not supported"),
    ],
    ids=["expression", "feature"],
)
def test_what_the_broker_refuses_is_an_error_of_the_member(start_broker, options, subscription, problem):
    member = consumer(start_broker(*options, **QUICK), new_group())
    try:
        member.subscribe([subscription])
        assert problem in first_error(member).str()
    finally:
        member.close()


def first_error(member):
    """The first error that a member gets."""
    errors = []

    def has_error():
        try:
            message = member.poll(0.1)
        except KafkaException as raised:
            errors.append(raised.args[0])
        else:
            errors.extend([message.error()] if message is not None and message.error() else [])
        return bool(errors)

    until(has_error)
    return errors[0]


def test_static_members_come_back_to_their_partitions(broker):
    topic, group = new_topic(broker, partitions=2), new_group()
    members = [consumer(broker, group, **{"group.instance.id": name}) for name in "ab"]
    for member in members:
        member.subscribe([topic])
    until(lambda: [*map(len, owned(*members))] == [1, 1], members)
    before = owned(*members)
    members[0].close()
    members[0] = consumer(broker, group, **{"group.instance.id": "a"})
    try:
        members[0].subscribe([topic])
        until(lambda: owned(*members) == before, members)
        assert described(broker, group).state is ConsumerGroupState.STABLE
    finally:
        for member in members:
            member.close()


def assignments(broker, group):
    """The partitions of each member."""
    return {
        each.member_id: sorted(at.partition for at in each.assignment.topic_partitions)
        for each in described(broker, group).members
    }


@pytest.mark.components
def test_kafkas_console_consumer_uses_the_protocol(broker):
    topic, group = new_topic(broker, partitions=2), new_group()
    for partition in range(2):
        produce(broker, topic, [b"%d" % partition], partition=partition)
    properties = ["group.protocol=consumer", f"group.id={group}", "auto.offset.reset=earliest"]
    options = [each for text in properties for each in ("--command-property", text)]
    place = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    done = kafka_process(CONSOLE_CONSUMER, *place, *options, "--max-messages", "2", "--timeout-ms", "30000")
    assert sorted(done.lines) == ["0", "1"]
    assert committed(broker, group, topic) == {0: 1, 1: 1}
    assert described(broker, group).state is ConsumerGroupState.EMPTY
