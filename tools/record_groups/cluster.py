"""A real Kafka of one node for a recording, a JVM with its clients, and the members of groups that run in it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Producer

from bench.brokers import Started, kafka_again, kafka_broker
from tools.java_gateway import end_gateway, open_gateway
from tools.kafka_tools import class_path
from tools.record_groups.members import JavaMember, KilledMember, ScriptedMember

ADMIN_TIMEOUT_S = 60
SEND_TIMEOUT_S = 60


class Cluster(AbstractContextManager["Cluster"]):
    """Kafka with its files in a new folder, and a JVM; both end with the block.

    Raises:
        ToolUnavailableError, JavaError, BrokerUnavailableError: no jars, no Java, no answer.
    """

    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        self.folder, self.settings = folder, settings
        self._broker, self._stack = ExitStack(), ExitStack()
        self._members: list[JavaMember | KilledMember] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            gateway, process = open_gateway(class_path())
            stack.callback(end_gateway, gateway, process)
            stack.enter_context(self._broker)
            started = self._broker.enter_context(kafka_broker(self.folder, self.settings))
            self.jvm: Any = gateway.jvm
            self.bootstrap = started.bootstrap
            self.admin = self._java_admin()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def log_dir(self) -> Path:
        """The broker's log directory."""
        return self.folder / "log"

    def stop(self) -> None:
        """End the broker in order; its files are whole then."""
        self.admin.close(self.jvm.java.time.Duration.ofSeconds(5))
        self._broker.close()

    def restart(self) -> Started:
        """End the broker in order and start it again; members in the JVM stay and find it again."""
        self._broker.close()
        return self._broker.enter_context(kafka_again(self.folder, self.bootstrap))

    def _java_admin(self) -> Any:
        properties = self.jvm.java.util.Properties()
        properties.put("bootstrap.servers", self.bootstrap)
        return self.jvm.org.apache.kafka.clients.admin.Admin.create(properties)

    def wait_for(self, future: Any) -> Any:
        """The value of one of the Admin client's futures."""
        return future.get(ADMIN_TIMEOUT_S, self.jvm.java.util.concurrent.TimeUnit.SECONDS)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, and wait until it is."""
        topic = self.jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, 1)
        self.wait_for(self.admin.createTopics([topic]).all())

    def grow_topic(self, name: str, partitions: int) -> None:
        """Let a topic have more partitions."""
        total = self.jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(partitions)
        self.wait_for(self.admin.createPartitions({name: total}).all())

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self.wait_for(self.admin.deleteTopics([name]).all())

    def send(self, topic: str, records: int) -> None:
        """Send records to the partitions of a topic in turn."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        partitions = len(producer.list_topics(topic, SEND_TIMEOUT_S).topics[topic].partitions)
        for number in range(records):
            producer.produce(topic, value=f"{topic} {number}", partition=number % partitions)
        if producer.flush(SEND_TIMEOUT_S):
            raise TimeoutError(f"{self.bootstrap} does not take records of {topic}")

    def member(self, group: str, *topics: str, pattern: str | None = None, **config: object) -> JavaMember:
        """Start a consumer of the Java client; `config` with `_` for `.`."""
        started = JavaMember(self.jvm, {"bootstrap.servers": self.bootstrap, "group.id": group}, config)
        started.start(topics, pattern)
        self._members.append(started)
        return started

    def killed_member(self, group: str, topic: str) -> KilledMember:
        """Start a consumer of librdkafka in a process of its own, which can be killed."""
        started = KilledMember(self.bootstrap, group, topic)
        self._members.append(started)
        return started

    def scripted_member(self, group: str, member_id: str, *topics: str, **joined: object) -> ScriptedMember:
        """Let a member join by a request; it beats, and revokes partitions, only as the caller says."""
        return ScriptedMember(self.bootstrap, group, member_id, topics, joined)

    def end_members(self) -> None:
        """Close all members that still run."""
        for member in self._members:
            member.close()
        self._members.clear()
