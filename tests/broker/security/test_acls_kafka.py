"""Random ACL entries on the light broker and on a real Kafka 4.3.1: the same client gets the same answers."""

import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema

from bench.brokers import HOST, Listener, free_ports, kafka_broker
from sharelens.broker.security.authorization.entries import AclEntry
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write
from sharelens.spark.java import JavaError
from tests.broker.security.test_acls import AUTHORIZER
from tests.broker.share_clients import TIMEOUT_S
from tests.broker_parts.acl_answers import entry, facts
from tests.broker_parts.broker_messages import plain
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tools.kept_jars import ToolUnavailableError

pytestmark = pytest.mark.components

SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
SASL = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.named.plain.sasl.jaas.config": PLAIN}
TOPICS = ("a", "ab", "b")
ROUNDS = 60
ALL_ENTRIES = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}


class Wire:
    """One connection: `call` is an answer as a mapping."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), TIMEOUT_S)

    def authenticate(self, user: str, password: str) -> None:
        """Authenticate with SASL PLAIN."""
        assert self.call(17, 1, mechanism="PLAIN")["error_code"] == 0
        answer = self.call(36, 2, auth_bytes=f"\0{user}\0{password}".encode())
        assert answer["error_code"] == 0, answer

    def call(self, key: int, version: int, **fields: Any) -> dict[str, Any]:
        schema: Any = load_request_schema(key, version)
        response: Any = load_response_schema(key, version)
        names = {"request_api_key": key, "request_api_version": version, "correlation_id": 5, "client_id": "c"}
        frame = write(schema.__header_schema__, names) + write(schema, fields)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size_bytes,) = struct.unpack(">i", self._received(4))
        raw = self._received(size_bytes)
        _, at = read(response.__header_schema__, raw)
        return plain(read(response, raw, at)[0])

    def _received(self, size_bytes: int) -> bytes:
        data = b""
        while len(data) < size_bytes:
            part = self._socket.recv(size_bytes - len(data))
            assert part, "the connection was closed"
            data += part
        return data

    def close(self) -> None:
        self._socket.close()


class Kafka:
    """A real broker: a super user's connection, and that of User:alice."""

    def __init__(self, port: int, named_port: int) -> None:
        self.admin, self.alice = Wire(port), Wire(named_port)
        self.alice.authenticate("alice", "secret")
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in TOPICS]
        self.admin.call(19, 7, topics=topics, timeout=10_000)
        self._until(self._has_coordinators)

    def _has_coordinators(self) -> bool:
        """Whether groups and transactions have coordinators, as they do a while after the first request."""
        coordinators = [
            self.admin.call(10, 4, key_type=key_type, coordinator_keys=["x"])["coordinators"][0] for key_type in (0, 1)
        ]
        answers = [
            *coordinators,
            self.admin.call(22, 4, transactional_id=None, transaction_timeout=1_000),
            *self.admin.call(15, 5, groups=["g", "gg"])["groups"],
        ]
        return all(answer["error_code"] == 0 for answer in answers)

    def replace(self, entries: list[AclEntry]) -> None:
        """Make these the only entries, and wait until the broker decides by them."""
        self.admin.call(31, 3, filters=[ALL_ENTRIES])
        self.admin.call(30, 3, creations=[creation(each) for each in entries])
        self._until(lambda: self._entries() == sorted(set(entries)))

    def _entries(self) -> list[AclEntry]:
        described = self.admin.call(29, 3, **ALL_ENTRIES)
        return sorted(
            entry(
                *(acl["principal"], acl["host"], each["resource_type"], each["resource_name"], each["pattern_type"]),
                *(acl["operation"], acl["permission_type"]),
            )
            for each in described["resources"]
            for acl in each["acls"]
        )

    @staticmethod
    def _until(is_so: Any) -> None:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not is_so():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)

    def close(self) -> None:
        self.admin.close()
        self.alice.close()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Skipped, with the reason in a line, where Java or Kafka's jars can't be had."""
    (port,) = free_ports(1)
    folder: Path = tmp_path_factory.mktemp("acls") / "kafka"
    try:
        with kafka_broker(folder, SETTINGS | SASL, {"NAMED": Listener("SASL_PLAINTEXT", port)}) as started:
            connected = Kafka(int(started.bootstrap.rpartition(":")[2]), port)
            yield connected
            connected.close()
    except (ToolUnavailableError, JavaError) as error:
        pytest.skip(f"Kafka's broker: {error}")


def creation(each: AclEntry) -> dict[str, Any]:
    return {
        "resource_type": each.resource_type,
        "resource_name": each.name,
        "resource_pattern_type": each.pattern_type,
        "principal": each.principal,
        "host": each.host,
        "operation": each.operation,
        "permission_type": each.permission,
    }


def random_entries(dice: random.Random) -> list[AclEntry]:
    """Entries that mostly concern alice, on topics, the cluster, a group and a transactional id."""
    entries = []
    for _ in range(dice.randint(1, 8)):
        resource_type = dice.choice((2, 2, 2, 2, 3, 4, 5))
        name = "kafka-cluster" if resource_type == 4 else dice.choice((*TOPICS, "a", "*", "g", "x"))
        pattern_type = 3 if resource_type == 4 else dice.choice((3, 3, 4))
        principal = dice.choice(("User:alice", "User:alice", "User:alice", "User:*", "User:bob", "Group:alice"))
        host = dice.choice(("*", "*", "127.0.0.1", "10.0.0.1"))
        permission = dice.choice((3, 3, 2))
        entries.append(entry(principal, host, resource_type, name, pattern_type, dice.randint(2, 12), permission))
    return entries


def requests() -> list[tuple[int, int, dict[str, Any]]]:
    """Requests that change nothing, or are refused by their own fields where a right allows them."""
    partitions = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]
    named = [{"name": name} for name in (*TOPICS, "missing")]
    fetched = {"partition": 0, "current_leader_epoch": -1, "partition_max_bytes": 1}
    new = {"name": "new", "num_partitions": 1, "replication_factor": 1}
    return [
        (3, 12, {"topics": named, "include_topic_authorized_operations": True}),
        (3, 12, {"topics": None, "include_topic_authorized_operations": True}),
        (2, 7, {"topics": [{"name": name, "partitions": partitions} for name in TOPICS], "replica_id": -1}),
        (1, 12, {"topics": [{"topic": name, "partitions": [fetched]} for name in TOPICS], "replica_id": -1}),
        (10, 4, {"coordinator_keys": ["g", "gg"]}),
        (10, 4, {"coordinator_keys": ["x"], "key_type": 1}),
        (15, 5, {"groups": ["g", "gg"], "include_authorized_operations": True}),
        (19, 7, {"topics": [new], "timeout": 1_000, "validate_only": True}),
        (20, 6, {"topics": [{"name": "missing"}], "timeout": 1_000}),
        (22, 4, {"transactional_id": None, "transaction_timeout": 1_000}),
        (29, 3, {**ALL_ENTRIES, "principal_filter": "User:nobody"}),
        (60, 1, {"include_cluster_authorized_operations": True, "endpoint_type": 1}),
    ]


@pytest.mark.soak
def test_random_entries_decide_as_kafka_decides(kafka: Kafka, tmp_path: Path) -> None:
    settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    light = DispatchedBroker(tmp_path / "log", **settings)
    for name in TOPICS:
        light.create(name, 1)
    answered = set()
    for number in range(ROUNDS):
        entries = random_entries(random.Random(number))
        kafka.replace(entries)
        acls = light.broker.acls
        acls.remove(acls.authorizer.entries)
        acls.add(entries)
        for key, version, fields in requests():
            expected = facts(comparable(kafka.alice.call(key, version, **fields)))
            actual = facts(comparable(light.call_as("User:alice", key, version, fields)))
            assert actual == expected, (number, key, entries)
            answered.add((key, repr(expected)))
    light.close()
    # Each request was answered in several ways.
    assert {key for key, _ in answered} == {key for key, *_ in requests()}
    assert len(answered) > 4 * len(requests())


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Without internal topics, which one of the brokers may have created, and Kafka's text with the whole request."""
    answer.pop("error_message", None)
    if "topics" in answer:
        answer["topics"] = [each for each in answer["topics"] if not str(each.get("name")).startswith("__")]
    return answer
