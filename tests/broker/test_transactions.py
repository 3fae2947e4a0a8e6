"""Transactional producers and readers of committed records with real clients."""

import re
import uuid

import pytest
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from sharelens.broker.coordinators.transaction_log import TransactionStatus
from tests.broker.kafka_tools import DUMP_LOG_SEGMENTS, TRANSACTIONS, kafka_tool
from tests.broker.test_clients import TIMEOUT_S, consume, new_topic, produce
from tests.broker.test_consumer_groups import consumer, new_group, read

pytestmark = pytest.mark.broker

UNCOMMITTED = {"isolation.level": "read_uncommitted"}
STATUS = re.compile(r'"transactionStatus":(\d)')


def transactional(broker, transactional_id=None, **config):
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": transactional_id or f"tx-{uuid.uuid4().hex[:8]}",
            **config,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def write(producer, topic, *values, partition=0):
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def in_transaction(producer, topic, *values, is_commit=True, partition=0):
    producer.begin_transaction()
    write(producer, topic, *values, partition=partition)
    if is_commit:
        producer.commit_transaction(TIMEOUT_S)
    else:
        producer.abort_transaction(TIMEOUT_S)


def committed_values(broker, topic, count):
    return [
        message.value().decode() for message in consume(broker, topic, count, **{"isolation.level": "read_committed"})
    ]


def latest(broker, topic, level):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    at = TopicPartition(topic, 0)
    requested = admin.list_offsets({at: OffsetSpec.latest()}, isolation_level=level)
    return requested[at].result(TIMEOUT_S).offset


def test_readers_of_committed_records_see_what_was_committed_alone(shared_broker):
    topic = new_topic(shared_broker)
    producer = transactional(shared_broker)
    in_transaction(producer, topic, "a", "b")
    in_transaction(producer, topic, "never", is_commit=False)
    in_transaction(producer, topic, "c")
    produce(shared_broker, topic, ["d"])
    assert committed_values(shared_broker, topic, 4) == ["a", "b", "c", "d"]
    values = [message.value().decode() for message in consume(shared_broker, topic, 5, **UNCOMMITTED)]
    assert values == ["a", "b", "never", "c", "d"]


def test_an_open_transaction_holds_readers_of_committed_records_back(shared_broker):
    topic = new_topic(shared_broker)
    producer = transactional(shared_broker)
    in_transaction(producer, topic, "a")
    producer.begin_transaction()
    write(producer, topic, "open")
    produce(shared_broker, topic, ["behind"])
    assert latest(shared_broker, topic, IsolationLevel.READ_COMMITTED) == 2
    assert latest(shared_broker, topic, IsolationLevel.READ_UNCOMMITTED) == 4
    producer.commit_transaction(TIMEOUT_S)
    assert committed_values(shared_broker, topic, 3) == ["a", "open", "behind"]


def test_a_second_producer_of_the_id_fences_the_first(shared_broker):
    topic, transactional_id = new_topic(shared_broker), f"tx-{uuid.uuid4().hex[:8]}"
    first = transactional(shared_broker, transactional_id)
    first.begin_transaction()
    write(first, topic, "left open")
    second = transactional(shared_broker, transactional_id)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(TIMEOUT_S)
    assert refused.value.args[0].fatal()
    in_transaction(second, topic, "mine")
    assert committed_values(shared_broker, topic, 1) == ["mine"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_producer_goes_on_after_a_restart_of_the_broker(start_broker, is_killed):
    broker = start_broker()
    topic = new_topic(broker)
    producer = transactional(broker)
    in_transaction(producer, topic, "before")
    producer.begin_transaction()
    write(producer, topic, "across")
    if is_killed:
        broker.kill()
    else:
        assert broker.stop() == 0
    again = start_broker(listen=broker.bootstrap)
    write(producer, topic, "the restart")
    producer.commit_transaction(TIMEOUT_S)
    assert committed_values(again, topic, 3) == ["before", "across", "the restart"]


def test_a_transaction_open_too_long_is_aborted(start_broker):
    broker = start_broker(transaction_abort_timed_out_transaction_cleanup_interval_ms=200)
    topic = new_topic(broker)
    producer = transactional(broker, **{"transaction.timeout.ms": 1_000, "message.timeout.ms": 1_000})
    producer.begin_transaction()
    write(producer, topic, "slow")
    produce(broker, topic, ["behind"])
    assert committed_values(broker, topic, 1) == ["behind"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(TIMEOUT_S)


def test_consumed_offsets_are_committed_with_what_was_made_of_them(shared_broker):
    source, target, group = new_topic(shared_broker), new_topic(shared_broker), new_group()
    produce(shared_broker, source, ["1", "2", "3"])
    reader, producer = consumer(shared_broker, group), transactional(shared_broker)
    try:
        reader.subscribe([source])
        for is_commit, expected in ((True, 2), (False, 2), (True, 3)):
            values = read(reader, 2 if expected == 2 and is_commit else 1)
            producer.begin_transaction()
            write(producer, target, *(value.decode() + "!" for value in values))
            places = reader.position(reader.assignment())
            producer.send_offsets_to_transaction(places, reader.consumer_group_metadata(), TIMEOUT_S)
            if is_commit:
                producer.commit_transaction(TIMEOUT_S)
            else:
                producer.abort_transaction(TIMEOUT_S)
                reader.seek(TopicPartition(source, 0, 2))
            stored = reader.committed([TopicPartition(source, 0)], TIMEOUT_S)
            assert [at.offset for at in stored] == [expected]
        assert committed_values(shared_broker, target, 3) == ["1!", "2!", "3!"]
    finally:
        reader.close()


@pytest.mark.components
def test_kafkas_own_tool_reads_the_log_of_transactions(start_broker):
    broker = start_broker(transaction_state_log_num_partitions=1)
    topic = new_topic(broker)
    producer = transactional(broker, "tx-dumped")
    in_transaction(producer, topic, "a")
    in_transaction(producer, topic, "b", is_commit=False)
    assert broker.stop() == 0
    segment = broker.log_dir / "__transaction_state-0" / "00000000000000000000.log"
    done = kafka_tool(DUMP_LOG_SEGMENTS, "--files", str(segment), "--transaction-log-decoder", "--deep-iteration")
    output = [int(status) for status in STATUS.findall(done.out)]
    assert output == [
        TransactionStatus.EMPTY,
        TransactionStatus.ONGOING,
        TransactionStatus.PREPARE_COMMIT,
        TransactionStatus.COMPLETE_COMMIT,
        TransactionStatus.ONGOING,
        TransactionStatus.PREPARE_ABORT,
        TransactionStatus.COMPLETE_ABORT,
    ]


@pytest.mark.components
def test_kafkas_tool_lists_and_describes_transactions_and_producers(shared_broker):
    topic, transactional_id = new_topic(shared_broker), f"tx-{uuid.uuid4().hex[:8]}"
    producer = transactional(shared_broker, transactional_id)
    producer.begin_transaction()
    write(producer, topic, "a")
    server = ("--bootstrap-server", shared_broker.bootstrap)
    listed = [line.split() for line in kafka_tool(TRANSACTIONS, *server, "list").lines]
    assert [(row[0], row[3]) for row in listed if row[0] == transactional_id] == [(transactional_id, "Ongoing")]
    described = kafka_tool(TRANSACTIONS, *server, "describe", "--transactional-id", transactional_id)
    assert "Ongoing" in described.out
    assert f"{topic}-0" in described.out
    place = ("--topic", topic, "--partition", "0")
    open_producers = kafka_tool(TRANSACTIONS, *server, "describe-producers", *place).lines[1].split()
    assert open_producers[-1] == "0"
    producer.commit_transaction(TIMEOUT_S)
    assert kafka_tool(TRANSACTIONS, *server, "describe-producers", *place).lines[1].split()[-1] == "None"
    described = kafka_tool(TRANSACTIONS, *server, "describe", "--transactional-id", transactional_id)
    assert "CompleteCommit" in described.out
