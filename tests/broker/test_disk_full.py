"""A disk that takes no more: clients are told, what was acknowledged stays, and it goes on when there is room again."""

import resource

import pytest
from confluent_kafka import Producer

from tests.broker.test_clients import consume, new_topic

pytestmark = pytest.mark.broker

LIMIT_BYTES = 64 << 10
VALUE = b"x" * 1_000


def produce(broker, topic, count):
    """How many of the records were acknowledged, and the errors of the others."""
    errors, acknowledged = set(), []

    def answered(error, message):
        if error is None:
            acknowledged.append(message.offset())
        else:
            errors.add(error.name())

    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 3_000, "batch.size": 4_000})
    for _ in range(count):
        producer.produce(topic, VALUE, partition=0, on_delivery=answered)
    assert producer.flush(60) == 0
    return len(acknowledged), errors


def test_a_full_disk_refuses_writes_and_loses_none_that_was_acknowledged(start_broker):
    broker = start_broker()
    topic = new_topic(broker)
    first, errors = produce(broker, topic, 20)
    assert (first, errors) == (20, set())
    before = resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE)
    # No file may grow beyond this: for the log that is what a full disk is.
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (LIMIT_BYTES, before[1]))
    second, errors = produce(broker, topic, 100)
    assert second < 100
    assert errors
    assert broker.process.poll() is None
    assert len(consume(broker, topic, first + second)) == first + second
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, before)
    third, errors = produce(broker, topic, 50)
    assert (third, errors) == (50, set())
    broker.kill()
    broker = start_broker()
    values = [message.value() for message in consume(broker, topic, first + second + third)]
    assert values == [VALUE] * (first + second + third)
    assert broker.stop() == 0
