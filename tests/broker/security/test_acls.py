"""ACLs with stock clients: kafka-acls, Java's and librdkafka's clients, restarts and kill -9."""

import time
from collections.abc import Sequence

import pytest
from confluent_kafka import KafkaError, Producer
from py4j.protocol import Py4JJavaError

from tests.broker.java import java_machine
from tests.broker.kafka_tools import ACLS, SHARE_GROUPS, TOPICS, kafka_tool
from tests.broker.running import RunningBroker
from tests.broker.share_clients import TIMEOUT_S, configure_group

pytestmark = pytest.mark.components

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SETTINGS = {"authorizer_class_name": AUTHORIZER, "share_coordinator_state_topic_num_partitions": 2}
OPEN = SETTINGS | {"super_users": "User:ANONYMOUS"}
"""Every client of the tests is User:ANONYMOUS."""


def acls(broker: RunningBroker, *arguments: str) -> Sequence[str]:
    return kafka_tool(ACLS, "--bootstrap-server", broker.bootstrap, *arguments).lines


def allow(broker: RunningBroker, resource: str, operation: str, name: str) -> None:
    arguments = ("--cluster",) if resource == "cluster" else (f"--{resource}", name)
    acls(broker, "--add", "--allow-principal", "User:ANONYMOUS", "--operation", operation, *arguments)


def test_kafka_acls_adds_lists_and_removes(start_broker):
    broker = start_broker(**OPEN)
    alice = ("--allow-principal", "User:alice", "--operation", "Read")
    acls(broker, "--add", *alice, "--topic", "orders", "--group", "workers")
    acls(broker, "--add", *alice, "--topic", "pay", "--resource-pattern-type", "prefixed")
    acls(
        broker, "--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "All", "--topic", "*"
    )
    listed = "\n".join(acls(broker, "--list"))
    assert "ResourcePattern(resourceType=GROUP, name=workers, patternType=LITERAL)" in listed
    assert "(principal=User:bob, host=10.0.0.1, operation=ALL, permissionType=DENY)" in listed
    matching = "\n".join(acls(broker, "--list", "--topic", "payments", "--resource-pattern-type", "match"))
    assert "name=pay, patternType=PREFIXED" in matching
    assert "name=*, patternType=LITERAL" in matching
    assert "orders" not in matching
    broker.kill()
    broker = start_broker(**OPEN)
    assert sorted("\n".join(acls(broker, "--list")).split()) == sorted(listed.split())
    acls(broker, "--remove", *alice, "--topic", "orders", "--force")
    acls(broker, "--remove", "--topic", "*", "--force")
    remaining_acls = "\n".join(acls(broker, "--list"))
    assert "pay" in remaining_acls
    assert "workers" in remaining_acls
    assert "orders" not in remaining_acls
    assert "bob" not in remaining_acls


def test_without_an_authorizer_there_are_no_acls(shared_broker):
    done = kafka_tool(ACLS, "--bootstrap-server", shared_broker.bootstrap, "--list", code=None)
    assert "SecurityDisabledException: No Authorizer is configured." in done.out + done.err


def test_clients_see_what_their_rights_show_and_new_rights_count_at_once(start_broker):
    broker = start_broker(**OPEN)
    server = ("--bootstrap-server", broker.bootstrap)
    for topic in ("orders", "payments"):
        kafka_tool(TOPICS, *server, "--create", "--topic", topic)
    allow(broker, "cluster", "Alter", "")
    allow(broker, "topic", "Describe", "orders")
    assert broker.stop() == 0
    broker = start_broker(**SETTINGS)
    server = ("--bootstrap-server", broker.bootstrap)
    assert kafka_tool(TOPICS, *server, "--list").lines == ["orders"]
    refused = kafka_tool(TOPICS, *server, "--delete", "--topic", "orders", code=None)
    assert "Topic authorization failed." in refused.out
    assert written(broker, "orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow(broker, "topic", "Write", "orders")
    assert written(broker, "orders") is None
    assert written(broker, "payments") == KafkaError.TOPIC_AUTHORIZATION_FAILED


def written(broker: RunningBroker, topic: str) -> int | None:
    """The error code of a record's delivery."""
    codes: list[int | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"v", on_delivery=lambda error, _: codes.append(error and error.code()))
    assert producer.flush(TIMEOUT_S) == 0
    (code,) = codes
    return code


def test_a_share_consumer_needs_the_group_and_the_topic(start_broker):
    broker = start_broker(**OPEN)
    kafka_tool(TOPICS, "--bootstrap-server", broker.bootstrap, "--create", "--topic", "orders")
    assert written(broker, "orders") is None
    configure_group(broker, "workers", **{"share.auto.offset.reset": "earliest"})
    allow(broker, "cluster", "Alter", "")
    assert broker.stop() == 0
    broker = start_broker(**SETTINGS)
    allow(broker, "topic", "Describe", "orders")
    assert "GroupAuthorizationException" in polled(broker)
    allow(broker, "group", "Read", "workers")
    assert "TopicAuthorizationException" in polled(broker)
    allow(broker, "topic", "Read", "orders")
    assert polled(broker) == "v"
    server = ("--bootstrap-server", broker.bootstrap)
    assert "workers" in kafka_tool(SHARE_GROUPS, *server, "--describe", "--group", "workers").out


def polled(broker: RunningBroker) -> str:
    """What Java's share consumer gets: the value of a record, or an error."""
    with java_machine().share_consumer(broker.bootstrap, "workers", "orders") as consumer:
        deadline_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline_s:
            try:
                records = consumer.poll()
            except Py4JJavaError as error:
                return str(error.java_exception)
            if records:
                return str(records[0].value)
    raise AssertionError("neither a record nor an error came")
