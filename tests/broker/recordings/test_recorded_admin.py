"""The recorded scenario `admin` with real clients: the same life of each share partition, deed by deed.

Offsets altered and deleted, groups deleted and created again, topics deleted, made again and grown, three restarts.
Compared is what is written of each share partition, without what consumption adds: the updates that hold batches.
"""

import pytest
from confluent_kafka import AcknowledgeType, Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from state_model import share_records
from state_model.share_records import ShareSnapshot, ShareUpdate
from tests.broker.java import java_machine
from tests.broker.kafka_tools import SHARE_GROUPS
from tests.broker.recordings.recorded import Recorded
from tests.broker.recordings.test_recorded_scenarios import URL_SAFE, start
from tests.broker.share_clients import TIMEOUT_S, configure_group, share_consumer, work
from tests.broker.test_clients import consume

pytestmark = pytest.mark.components

GROUPS = ("gE", "gL")


class Cluster:
    """A broker that is restarted on its directory, and what the scenario's deeds need."""

    def __init__(self, folder, recorded):
        self._folder, self._recorded = folder, recorded
        self._connect(start(folder, recorded))
        self.lives = {}
        self._partitions = {}

    def _connect(self, broker):
        self.broker = broker
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def restart(self):
        assert self.broker.stop() == 0
        self._connect(start(self._folder, self._recorded))

    def create(self, topic, partitions):
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(TIMEOUT_S)
        described = self._admin.describe_topics(TopicCollection([topic]))[topic].result(TIMEOUT_S)
        life = sum(name == topic for name, _ in self.lives.values())
        self.lives[str(described.topic_id).translate(URL_SAFE)] = (topic, life)
        self._partitions[topic] = partitions

    def delete(self, topic):
        self._admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def grow(self, topic, partitions):
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(TIMEOUT_S)
        self._partitions[topic] = partitions

    def produce(self, *topics):
        """One record for each partition; where they are."""
        places = set()
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for topic in topics:
            for partition in range(self._partitions[topic]):
                producer.produce(
                    topic, b"x", partition=partition,
                    on_delivery=lambda _, sent: places.add((sent.topic(), sent.partition(), sent.offset())),
                )  # fmt: skip
        assert producer.flush(TIMEOUT_S) == 0
        return places

    def session(self, group, *topics):
        """A member joins, accepts what there is, at least one record of each partition, and leaves."""
        expected = self.produce(*topics)
        with share_consumer(self.broker, group, *topics) as consumer:
            work(
                consumer,
                lambda message: AcknowledgeType.ACCEPT,
                lambda messages: (
                    expected <= {(message.topic(), message.partition(), message.offset()) for message in messages}
                ),
            )

    def state_records(self):
        """Group, topic with its life, partition and value of each record of the state log."""
        probe = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "probe"})
        try:
            for partition in range(int(self._recorded.broker_config["share.coordinator.state.topic.num.partitions"])):
                at = TopicPartition("__share_group_state", partition)
                low, high = probe.get_watermark_offsets(at, TIMEOUT_S)
                for message in consume(self.broker, at.topic, high - low, partition=partition) if high > low else ():
                    record = share_records.decode_record(message.key(), message.value())
                    yield (record.key.group_id, self.lives[record.key.topic_id], record.key.partition), record.value
        finally:
            probe.close()


def our_kind(value):
    match value:
        case ShareSnapshot():
            count = value.delivery_complete_count
            return ("snapshot", value.snapshot_epoch, value.start_offset >= 0, None if count < 0 else count)
        case ShareUpdate():
            return None if value.state_batches else ("leader", value.leader_epoch)
    return "tombstone"


def their_kind(number, value):
    if value is None:
        return "tombstone"
    if number == 0:
        return ("snapshot", value["snapshotEpoch"], value["startOffset"] >= 0, value.get("deliveryCompleteCount"))
    return None if value["stateBatches"] else ("leader", value["leaderEpoch"])


def lives_of(kinds):
    """The kinds of each share partition's records in order, without those of consumption."""
    actual = {}
    for place, kind in kinds:
        if place[0] in GROUPS and kind is not None:
            actual.setdefault(place, []).append(kind)
    return actual


@pytest.mark.soak
def test_admin(tmp_path):
    recorded = Recorded("admin")
    cluster = Cluster(tmp_path, recorded)
    try:
        play(cluster, java_machine())
        ours = lives_of((place, our_kind(value)) for place, value in cluster.state_records())
        theirs = lives_of((place, their_kind(number, value)) for place, number, value in recorded.lives())
        assert ours == theirs
        assert cluster.broker.stop() == 0
    finally:
        cluster.broker.kill()


def play(cluster, java):
    """The deeds of the scenario for a group that begins with the earliest records and one that is deleted."""

    def groups(*arguments):
        return java.tool(SHARE_GROUPS, "--bootstrap-server", cluster.broker.bootstrap, *arguments)

    cluster.create("alpha", 3)
    cluster.create("beta", 2)
    for group in GROUPS:
        configure_group(cluster.broker, group, share_auto_offset_reset="earliest")
    cluster.session("gE", "alpha", "beta")
    cluster.session("gL", "alpha")
    cluster.session("gE", "alpha", "beta")
    groups("--reset-offsets", "--group", "gE", "--topic", "alpha:0,1", "--to-latest", "--execute")
    cluster.session("gE", "alpha")
    groups("--delete-offsets", "--group", "gE", "--topic", "beta")
    cluster.session("gE", "alpha", "beta")
    groups("--delete", "--group", "gL")
    cluster.session("gL", "alpha")
    cluster.restart()
    cluster.session("gE", "alpha", "beta")
    cluster.session("gL", "alpha")
    cluster.delete("beta")
    cluster.create("beta", 3)
    cluster.session("gE", "alpha", "beta")
    cluster.restart()
    cluster.restart()
    cluster.grow("alpha", 4)
    cluster.session("gL", "alpha")
    cluster.session("gE", "alpha", "beta")
