"""confluent-kafka's producer, consumer and admin client against a broker."""

import uuid

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    ElectionType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

TIMEOUT_S = 20


def new_topic(broker, partitions=1, **config):
    name = f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(TIMEOUT_S)
    return name


def produce(broker, topic, values, *, partition=0, **config):
    """Produce and flush; the offset of each value, or its error."""
    outcomes = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, **config})
    for value in values:
        producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, sent: outcomes.append(error or sent.offset())
        )
    assert producer.flush(TIMEOUT_S) == 0
    return outcomes


def consume(broker, topic, count, *, partition=0, offset=OFFSET_BEGINNING, **config):
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "not-used", "enable.auto.commit": False, **config}
    )
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        messages = []
        while len(messages) < count:
            actual = consumer.consume(count - len(messages), TIMEOUT_S)
            assert actual, f"{len(messages)} of {count} came"
            assert [each.error() for each in actual if each.error()] == []
            messages += actual
        return messages
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed_in_every_codec(shared_broker, codec):
    topic = new_topic(shared_broker)
    values = [f"value {number} {'x' * 200}".encode() for number in range(500)]
    assert produce(shared_broker, topic, values, **{"compression.type": codec, "linger.ms": 20}) == list(range(500))
    messages = consume(shared_broker, topic, 500)
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(500))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_all_acks_write(shared_broker, acks):
    topic = new_topic(shared_broker)
    outcomes = produce(shared_broker, topic, [b"a", b"b"], acks=acks)
    assert len(outcomes) == 2
    assert all(not isinstance(outcome, KafkaError) for outcome in outcomes)
    assert [message.value() for message in consume(shared_broker, topic, 2)] == [b"a", b"b"]


def test_idempotent_producers_write_each_record_once(shared_broker):
    topic = new_topic(shared_broker)
    values = [str(number).encode() for number in range(2000)]
    config = {"enable.idempotence": True, "batch.num.messages": 50}
    assert produce(shared_broker, topic, values, **config) == list(range(2000))
    assert [message.value() for message in consume(shared_broker, topic, 2000)] == values


def test_headers_keys_and_timestamps_come_back(shared_broker):
    topic = new_topic(shared_broker)
    producer = Producer({"bootstrap.servers": shared_broker.bootstrap})
    producer.produce(topic, b"v", b"k", headers=[("a", b"1"), ("a", None)], timestamp=1_700_000_000_000)
    assert producer.flush(TIMEOUT_S) == 0
    (message,) = consume(shared_broker, topic, 1)
    assert (message.key(), message.headers(), message.timestamp()[1]) == (
        b"k",
        [("a", b"1"), ("a", None)],
        1_700_000_000_000,
    )


def test_a_fetch_waits_for_what_is_produced_later(shared_broker):
    topic = new_topic(shared_broker)
    consumer = Consumer({"bootstrap.servers": shared_broker.bootstrap, "group.id": "g", "fetch.wait.max.ms": 10_000})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(0.5) is None
        produce(shared_broker, topic, [b"late"])
        message = consumer.poll(5)
        assert message is not None
        assert message.value() == b"late"
    finally:
        consumer.close()


def test_too_large_a_record_is_refused_and_the_log_stays_readable(shared_broker):
    topic = new_topic(shared_broker, **{"max.message.bytes": "1000"})
    (error,) = produce(shared_broker, topic, [b"x" * 2000])
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert produce(shared_broker, topic, [b"y"]) == [0]
    assert consume(shared_broker, topic, 1)[0].value() == b"y"


def test_internal_topics_can_be_read_and_not_written(shared_broker):
    consumer = Consumer({"bootstrap.servers": shared_broker.bootstrap, "group.id": f"g-{uuid.uuid4().hex}"})
    topic = new_topic(shared_broker)
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()
    (error,) = produce(shared_broker, "__consumer_offsets", [b"x"])
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.TOPIC_EXCEPTION
    metadata = AdminClient({"bootstrap.servers": shared_broker.bootstrap}).list_topics(timeout=TIMEOUT_S)
    stored = []
    for partition in metadata.topics["__consumer_offsets"].partitions:
        probe = Consumer({"bootstrap.servers": shared_broker.bootstrap, "group.id": "g"})
        low, high = probe.get_watermark_offsets(TopicPartition("__consumer_offsets", partition), TIMEOUT_S)
        probe.close()
        if high > low:
            stored += consume(shared_broker, "__consumer_offsets", high - low, partition=partition)
    assert any(topic.encode() in message.key() for message in stored)


def test_offsets_by_time_and_at_the_ends(shared_broker):
    topic = new_topic(shared_broker)
    producer = Producer({"bootstrap.servers": shared_broker.bootstrap})
    for timestamp in (1000, 2000, 3000):
        producer.produce(topic, b"v", partition=0, timestamp=timestamp)
        producer.flush(TIMEOUT_S)
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    place = TopicPartition(topic, 0)

    def offset(spec, isolation=IsolationLevel.READ_UNCOMMITTED):
        (future,) = admin.list_offsets({place: spec}, isolation_level=isolation).values()
        return future.result(TIMEOUT_S).offset

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 3
    assert offset(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED) == 3
    assert offset(OffsetSpec.max_timestamp()) == 2
    assert offset(OffsetSpec.for_timestamp(1500)) == 1
    assert offset(OffsetSpec.for_timestamp(9000)) == -1


def test_deleted_records_are_gone(shared_broker):
    topic = new_topic(shared_broker)
    produce(shared_broker, topic, [b"a", b"b", b"c"])
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    (future,) = admin.delete_records([TopicPartition(topic, 0, 2)]).values()
    assert future.result(TIMEOUT_S).low_watermark == 2
    assert [message.value() for message in consume(shared_broker, topic, 1)] == [b"c"]


def test_a_reset_to_the_end_follows_an_offset_out_of_range(shared_broker):
    topic = new_topic(shared_broker)
    produce(shared_broker, topic, [b"a"])
    consumer = Consumer(
        {"bootstrap.servers": shared_broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 100)])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert (message.error(), message.offset()) == (None, 0)
    finally:
        consumer.close()


def test_topics_are_created_described_grown_and_deleted(shared_broker):
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    topic = new_topic(shared_broker, partitions=2)
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(TIMEOUT_S)
    described = admin.list_topics(topic, TIMEOUT_S).topics[topic]
    assert sorted(described.partitions) == [0, 1, 2, 3, 4]
    assert {partition.leader for partition in described.partitions.values()} == {1}
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    assert topic not in admin.list_topics(timeout=TIMEOUT_S).topics


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("a b", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("ok", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("ok", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("ok", 1, 1, config={"retention.msec": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic("ok", 1, 1, config={"retention.ms": "long"}), KafkaError.INVALID_CONFIG),
    ],
)
def test_topics_that_can_not_be_are_refused_with_kafkas_codes(shared_broker, topic, code):
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([topic])[topic.topic].result(TIMEOUT_S)
    assert caught.value.args[0].code() == code
    assert "ok" not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_a_topic_that_exists_is_not_created_again(shared_broker):
    topic = new_topic(shared_broker)
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    assert caught.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS


def test_asking_for_a_topic_creates_it_only_where_that_is_allowed(start_broker):
    allowing = start_broker(num_partitions=3)
    topic = f"auto-{uuid.uuid4().hex[:8]}"
    assert produce(allowing, topic, [b"x"], partition=2) == [0]
    allowing.stop()
    refusing = start_broker(auto_create_topics_enable="false")
    admin = AdminClient({"bootstrap.servers": refusing.bootstrap})
    actual = admin.list_topics("never-created", TIMEOUT_S).topics["never-created"]
    assert actual.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert len(admin.list_topics(topic, TIMEOUT_S).topics[topic].partitions) == 3


def test_configurations_are_described_with_their_source_and_altered(shared_broker):
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    topic = new_topic(shared_broker, **{"retention.ms": "1000"})
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def described():
        (future,) = admin.describe_configs([resource]).values()
        return future.result(TIMEOUT_S)

    assert (described()["retention.ms"].value, described()["retention.ms"].source) == ("1000", 1)
    assert (described()["segment.bytes"].value, described()["segment.bytes"].source) == ("1073741824", 5)
    resource.incremental_configs = [
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
    ]
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(TIMEOUT_S)
    assert described()["cleanup.policy"].value == "delete,compact"
    assert described()["retention.ms"].value == "604800000"


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning")
def test_configurations_are_replaced_for_clients_without_incremental_changes(shared_broker):
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    topic = new_topic(shared_broker, **{"retention.ms": "1000"})
    (future,) = admin.alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, set_config={"cleanup.policy": "compact"})]
    ).values()
    future.result(TIMEOUT_S)
    (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    own_values = {name: entry.value for name, entry in future.result(TIMEOUT_S).items() if entry.source == 1}
    assert own_values == {"cleanup.policy": "compact"}


def test_a_client_learns_that_no_election_is_needed(shared_broker):
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    topic = new_topic(shared_broker)
    partitions = [TopicPartition(topic, 0), TopicPartition("no-such-topic", 0)]
    results = admin.elect_leaders(ElectionType.PREFERRED, partitions).result(TIMEOUT_S)
    assert {at.topic: error.code() for at, error in results.items()} == {
        topic: KafkaError.ELECTION_NOT_NEEDED,
        "no-such-topic": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }


def test_everything_is_there_after_a_stop_and_after_a_kill(start_broker):
    broker = start_broker()
    topic = new_topic(broker, partitions=2)
    produce(broker, topic, [b"one"])
    assert broker.stop() == 0
    broker = start_broker()
    produce(broker, topic, [b"two"])
    broker.kill()
    broker = start_broker()
    assert produce(broker, topic, [b"three"]) == [2]
    assert [message.value() for message in consume(broker, topic, 3)] == [b"one", b"two", b"three"]
    assert (broker.log_dir / f"{topic}-0" / "leader-epoch-checkpoint").read_text().splitlines()[2:] == [
        "0 0",
        "2 1",
        "4 2",
    ]


def test_the_end_offset_of_a_new_consumer_is_the_end(shared_broker):
    topic = new_topic(shared_broker)
    produce(shared_broker, topic, [b"a"] * 10)
    consumer = Consumer({"bootstrap.servers": shared_broker.bootstrap, "group.id": "g"})
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S) == (0, 10)
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    assert consumer.poll(0.3) is None
    consumer.close()
