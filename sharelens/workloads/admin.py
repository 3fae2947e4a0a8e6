"""Admin operations of a workload: topics, group configurations, start offsets, and reading the logs at the end."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kio.schema.errors import ErrorCode

from sharelens.broker.errors import BrokerError
from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.values import read_value
from sharelens.workloads.wire import UnreachableError, ask

TIMEOUT_S: Final = 30.0
RETRY_S: Final = 0.2
DEAD_LETTERS_LEVEL: Final = 2

_NO_ANSWER: Final = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN})
_Answer = TypeVar("_Answer")

Read = tuple[int, int | None]
"""Offset and record id; None for records of other producers."""


class WorkloadError(BrokerError):
    """Raised when a workload can't be set up or finished; the message names the refused operation."""


class Admin:
    """The admin client of a cluster. Its methods raise UnreachableError when the cluster does not answer in time."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def _patiently(self, ask_once: Callable[[], _Answer]) -> _Answer:
        """Retry without an answer: the broker may be starting. Raises KafkaException, UnreachableError."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return ask_once()
            except (KafkaException, TimeoutError) as error:
                if isinstance(error, KafkaException) and error.args[0].code() not in _NO_ANSWER:
                    raise
                if time.monotonic() > deadline_s:
                    message = f"{self._bootstrap} does not answer within {TIMEOUT_S:g} s; is a broker running there?"
                    raise UnreachableError(message) from error
            time.sleep(RETRY_S)

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> int:
        """Create a topic unless it exists; its number of partitions. Raises WorkloadError."""
        new_topic = NewTopic(name, partitions, 1, config=dict(configs or {}))
        try:
            self._patiently(lambda: self._client.create_topics([new_topic])[name].result(TIMEOUT_S))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise WorkloadError(f"{self._bootstrap} refuses topic {name}: {error.args[0].str()}") from error
        return self.partitions(name)

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic. Raises WorkloadError when it does not exist."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline_s:
            metadata = self._patiently(lambda: self._client.list_topics(topic, TIMEOUT_S)).topics[topic]
            if metadata.error is None and metadata.partitions:
                return len(metadata.partitions)
            time.sleep(RETRY_S)
        raise WorkloadError(f"{self._bootstrap} has no topic {topic}")

    def configure_group(self, group: str, configs: Mapping[str, str]) -> None:
        """Set configurations of a group. Raises WorkloadError."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
        try:
            self._patiently(lambda: self._client.incremental_alter_configs([resource])[resource].result(TIMEOUT_S))
        except KafkaException as error:
            raise WorkloadError(
                f"{self._bootstrap} refuses the configuration of {group}: {error.args[0].str()}"
            ) from error

    def broker_configs(self) -> Mapping[str, str]:
        """The configurations of the broker."""
        cluster = self._patiently(lambda: self._client.list_topics(timeout=TIMEOUT_S))
        resource = ConfigResource(ResourceType.BROKER, str(next(iter(cluster.brokers))))
        described = self._patiently(lambda: self._client.describe_configs([resource])[resource].result(TIMEOUT_S))
        return {name: entry.value for name, entry in described.items() if entry.value is not None}

    def require_dead_letters(self) -> None:
        """Check that share.version supports dead letters. Raises WorkloadError, UnreachableError."""
        client = {"client_software_name": "sharelens", "client_software_version": "1"}
        answer = ask(self._bootstrap, ApiKey.API_VERSIONS, 4, client)
        levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
        if levels.get("share.version", 0) < DEAD_LETTERS_LEVEL:
            raise WorkloadError("dead letters need share.version=2: sharelens broker start --feature share.version=2")

    def reset(self, group: str, topic: str, start_offsets: Mapping[int, int], timeout_s: float) -> None:
        """Move start offsets, as soon as the group is empty. Raises WorkloadError."""
        partitions = [{"partition_index": at, "start_offset": offset} for at, offset in start_offsets.items()]
        body = {"group_id": group, "topics": [{"topic_name": topic, "partitions": partitions}]}
        deadline_s = time.monotonic() + timeout_s
        while (problem := self._reset_problem(body)) is not None:
            if time.monotonic() > deadline_s:
                raise WorkloadError(f"{self._bootstrap} does not reset {group}: {problem}")
            time.sleep(RETRY_S)

    def _reset_problem(self, body: Mapping[str, object]) -> str | None:
        try:
            answer = ask(self._bootstrap, ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, body)
        except UnreachableError as error:
            return str(error)
        parts = [part.error_code for topic in answer.responses for part in topic.partitions]
        return next((code.name for code in (answer.error_code, *parts) if code is not ErrorCode.none), None)

    def read(self, topic: str) -> Mapping[int, Sequence[Read]]:
        """All committed records of each partition of a topic. Raises WorkloadError."""
        partitions = range(self.partitions(topic))
        reads: dict[int, list[Read]] = {partition: [] for partition in partitions}
        unread = set(partitions)
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "not-used",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        deadline_s = time.monotonic() + TIMEOUT_S
        try:
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
            while unread and time.monotonic() < deadline_s:
                message = consumer.poll(1.0)
                if message is not None:
                    _collect(message, reads, unread)
        finally:
            consumer.close()
        if unread:
            raise WorkloadError(f"{self._bootstrap}: partitions {sorted(unread)} of {topic} can't be read to their end")
        return reads


def _collect(message: Message, reads: Mapping[int, list[Read]], unread: set[int]) -> None:
    """Collect a record, or the end of a partition; the consumer retries after other errors."""
    error, partition = message.error(), message.partition() or 0
    if error is None:
        value = read_value(message.value())
        reads[partition].append((message.offset() or 0, None if value is None else value.id))
    elif error.code() == KafkaError._PARTITION_EOF:
        unread.discard(partition)
