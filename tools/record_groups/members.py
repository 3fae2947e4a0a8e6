"""Members of groups for a recording: of the Java client, of librdkafka in a process to be killed, and scripted."""

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.wire import ask

POLL_MS = 100
CLOSE_S = 5
"""A consumer that closes commits until then where the topic is gone."""
END_TIMEOUT_S = 60
STRINGS = "org.apache.kafka.common.serialization.StringDeserializer"
DEFAULTS = {
    "group.protocol": "consumer",
    "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": 3_000,
    "key.deserializer": STRINGS,
    "value.deserializer": STRINGS,
}
KILLED_MEMBER = """
import sys
from confluent_kafka import Consumer

bootstrap, group, topic = sys.argv[1:]
settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer", "client.id": "killed"}
consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
consumer.subscribe([topic])
while True:
    consumer.poll(0.1)
"""


class JavaMember:
    """A consumer of the Java client, which a thread polls until it is closed."""

    def __init__(self, jvm: Any, fixed: Mapping[str, object], config: Mapping[str, object]) -> None:
        self._jvm = jvm
        settings = DEFAULTS | dict(fixed) | {name.replace("_", "."): value for name, value in config.items()}
        properties = jvm.java.util.Properties()
        for name, value in settings.items():
            properties.put(name, str(value))
        self.java = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.error: Py4JError | None = None

    def start(self, topics: Sequence[str], pattern: str | None) -> None:
        """Subscribe to topics by names or, with `pattern`, by an expression that the broker resolves."""
        clients = self._jvm.org.apache.kafka.clients.consumer
        self.java.subscribe(clients.SubscriptionPattern(pattern) if pattern is not None else list(topics))
        self._thread.start()

    def _poll(self) -> None:
        pause = self._jvm.java.time.Duration.ofMillis(POLL_MS)
        while not self._is_over.is_set():
            try:
                with self._lock:
                    self.java.poll(pause)
            except Py4JError as error:
                self.error = error
                return

    def commit_in_transaction(self, producer: Any, offsets: Mapping[Any, Any]) -> None:
        """Send offsets to a transaction of a Java producer, with the epoch that the member has."""
        with self._lock:
            metadata = self.java.groupMetadata()
        producer.sendOffsetsToTransaction(offsets, metadata)

    def close(self, operation: str = "DEFAULT") -> None:
        """End it; `operation`: a constant of Kafka's GroupMembershipOperation. Closed a second time it does nothing."""
        if self._is_over.is_set():
            return
        self._is_over.set()
        self._thread.join(END_TIMEOUT_S)
        options = self._jvm.org.apache.kafka.clients.consumer.CloseOptions
        operations = getattr(self._jvm.org.apache.kafka.clients.consumer, "CloseOptions$GroupMembershipOperation")
        timeout = self._jvm.java.time.Duration.ofSeconds(CLOSE_S)
        self.java.close(options.groupMembershipOperation(operations.valueOf(operation)).withTimeout(timeout))


class KilledMember:
    """A consumer of librdkafka in a process of its own."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", KILLED_MEMBER, bootstrap, group, topic])

    def close(self) -> None:
        """Kill it: it neither commits nor leaves."""
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)


class ScriptedMember:
    """A member that sends a heartbeat when it is told to, and that keeps what it was once assigned."""

    def __init__(
        self, bootstrap: str, group: str, member_id: str, topics: Sequence[str], joined: Mapping[str, object]
    ) -> None:
        self._bootstrap = bootstrap
        self._fixed = {"group_id": group, "member_id": member_id}
        self.assigned: list[dict[str, Any]] = []
        joining = {"subscribed_topic_names": topics, "rebalance_timeout": 60_000, "topic_partitions": []}
        self.epoch = 0
        self.beat(**joining | dict(joined))

    def beat(self, **fields: object) -> Any:
        """The answer to a heartbeat in the member's epoch; fields of the request that are not given are null."""
        body = {
            "instance_id": None, "rack_id": None, "rebalance_timeout": -1, "subscribed_topic_names": None,
            "subscribed_topic_regex": None, "server_assignor": None, "topic_partitions": None,
        } | {"member_epoch": self.epoch} | self._fixed | fields  # fmt: skip
        answer = ask(self._bootstrap, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)
        if not answer.error_code.value:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = [
                    {"topic_id": each.topic_id, "partitions": list(each.partitions)}
                    for each in answer.assignment.topic_partitions
                ]
        return answer
