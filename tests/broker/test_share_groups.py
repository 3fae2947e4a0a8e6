"""Share groups as real clients see them: librdkafka's share consumer, and Kafka's own tools."""

import time
import uuid

import pytest
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.broker import running
from tests.broker.kafka_tools import SHARE_GROUPS, kafka_tool

pytestmark = pytest.mark.components

TIMEOUT_S = 120
FAST = {"group_share_heartbeat_interval_ms": 500, "group_share_min_heartbeat_interval_ms": 500}


class Cluster:
    """A broker with one topic of three partitions and 30 records, and share consumers on it."""

    def __init__(self, broker):
        self.bootstrap = broker.bootstrap
        self.topic = f"t-{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        self.admin.create_topics([NewTopic(self.topic, 3, 1)])[self.topic].result(TIMEOUT_S)
        self.produce(30)

    def produce(self, count):
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in range(count):
            producer.produce(self.topic, b"v", partition=number % 3)
        assert producer.flush(TIMEOUT_S) == 0

    def new_group(self):
        """A group that begins with the earliest records."""
        group = f"g-{uuid.uuid4().hex[:8]}"
        entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        for done in self.admin.incremental_alter_configs([resource]).values():
            done.result(TIMEOUT_S)
        return group

    def consumer(self, group):
        consumer = ShareConsumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        consumer.subscribe([self.topic])
        return consumer

    def consume(self, group, count):
        """Accept `count` records, then leave; their (partition, offset)."""
        consumer = self.consumer(group)
        try:
            places = read(consumer, count)
            consumer.commit_sync(TIMEOUT_S)
            return places
        finally:
            consumer.close()

    def tool(self, *arguments, code=0):
        done = kafka_tool(SHARE_GROUPS, "--bootstrap-server", self.bootstrap, *arguments, code=code)
        assert "Error: Executing" not in done.out, done.out
        return done

    def rows(self, *arguments):
        """The rows that the tool prints, without their heading."""
        return [line.split() for line in self.tool(*arguments).lines[1:]]


def read(consumer, count):
    places = set()
    deadline_s = time.monotonic() + TIMEOUT_S
    while len(places) < count and time.monotonic() < deadline_s:
        for message in consumer.poll(1.0):
            assert message.error() is None
            places.add((message.partition(), message.offset()))
    assert len(places) >= count
    return places


@pytest.fixture(scope="module")
def cluster(share_broker):
    return Cluster(share_broker)


@pytest.fixture(scope="module")
def share_broker(tmp_path_factory):
    broker = running.start(tmp_path_factory.mktemp("share") / "log", **FAST)
    yield broker
    assert broker.stop() == 0, broker.problems.read_text()[-2000:]


def test_a_share_consumer_gets_every_record_and_an_empty_group_is_left(cluster):
    group = cluster.new_group()
    assert cluster.consume(group, 30) == {(partition, offset) for partition in range(3) for offset in range(10)}
    assert [group, "Empty"] in cluster.rows("--list", "--state")
    offsets = cluster.rows("--describe", "--group", group, "--offsets")
    assert {row[0] for row in offsets} == {group}
    assert [row[2] for row in offsets] == ["0", "1", "2"]
    assert {row[-1] for row in offsets} == {"0"}


def test_members_are_described_while_they_are_there(cluster):
    group = cluster.new_group()
    consumers = [cluster.consumer(group) for _ in range(2)]
    try:
        read(consumers[0], 1)
        for consumer in consumers:
            consumer.poll(2.0)
        members = cluster.rows("--describe", "--group", group, "--members", "--verbose")
        assert len(members) == 2
        assert {row[0] for row in members} == {group}
        assert cluster.rows("--describe", "--group", group, "--state")[0][-2:] == ["Stable", "2"]
        refused = cluster.tool("--delete", "--group", group, code=None)
        assert "not empty" in (refused.out + refused.err).lower()
    finally:
        for consumer in consumers:
            consumer.close()


def test_offsets_are_reset_and_the_records_come_again(cluster):
    group = cluster.new_group()
    cluster.consume(group, 30)
    where = ("--group", group, "--topic", cluster.topic)
    dry = cluster.rows("--reset-offsets", *where, "--to-earliest", "--dry-run")
    assert [row[-1] for row in dry] == ["0", "0", "0"]
    cluster.rows("--reset-offsets", *where, "--to-earliest", "--execute")
    described = cluster.rows("--describe", "--group", group, "--offsets")
    assert [row[3:] for row in described] == [["0", "10"]] * 3
    assert len(cluster.consume(group, 30)) == 30


def test_offsets_and_groups_are_deleted(cluster):
    group = cluster.new_group()
    cluster.consume(group, 30)
    assert cluster.rows("--delete-offsets", "--group", group, "--topic", cluster.topic) == [
        [cluster.topic, "Successful"]
    ]
    assert "successful" in cluster.tool("--delete", "--group", group).out
    assert [group] not in cluster.rows("--list")


def test_a_killed_broker_finds_its_groups_again(start_broker):
    first = start_broker(**FAST)
    cluster = Cluster(first)
    group = cluster.new_group()
    cluster.consume(group, 30)
    first.kill()
    second = start_broker(listen=first.bootstrap, **FAST)
    assert second.bootstrap == cluster.bootstrap
    described = cluster.rows("--describe", "--group", group, "--offsets")
    assert {row[-1] for row in described} == {"0"}
    cluster.produce(3)
    assert cluster.consume(group, 3) == {(partition, 10) for partition in range(3)}
