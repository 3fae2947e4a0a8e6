"""Share groups in tests: brokers with short locks and heartbeats, groups' settings, confluent-kafka's consumer."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import AcknowledgeType, Message, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.broker.running import RunningBroker

TIMEOUT_S = 30
POLL_S = 0.5
LOCK_MS = 1_500
LONG_LOCK = {"share_record_lock_duration_ms": 60_000}
SHARE_SETTINGS = {
    "group_share_heartbeat_interval_ms": 500,
    "group_share_min_heartbeat_interval_ms": 500,
    "group_share_record_lock_duration_ms": LOCK_MS,
    "group_share_min_record_lock_duration_ms": 1_000,
    "share_coordinator_state_topic_num_partitions": 4,
}
"""As the recorded scenarios have it: a lock is over before a test gets bored."""

Place = tuple[int, int]
"""Partition and offset."""


def new_share_group(broker: RunningBroker, **config: object) -> str:
    """A name of a group that begins with the oldest records; `config`: more of its settings, with `_` for `.`.

    Its locks outlast a slow machine (LONG_LOCK); a test of locks says share_record_lock_duration_ms=LOCK_MS.
    """
    group = f"g-{uuid.uuid4().hex[:8]}"
    settings = {"share_auto_offset_reset": "earliest"} | LONG_LOCK
    configure_group(broker, group, **(settings | config))
    return group


def configure_group(broker: RunningBroker, group: str, **config: object) -> None:
    """Set configurations of a group."""
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


@contextmanager
def share_consumer(broker: RunningBroker, group: str, *topics: str, **config: object) -> Iterator[ShareConsumer]:
    """A subscribed member that acknowledges by itself alone, closed at the end; `config` with `_` for `.`."""
    settings = {"share_acknowledgement_mode": "explicit"} | config
    consumer = ShareConsumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group}
        | {name.replace("_", "."): value for name, value in settings.items()}
    )
    try:
        consumer.subscribe(list(topics))
        yield consumer
    finally:
        consumer.close()


def place(message: Message) -> Place:
    """Where a message is."""
    return message.partition(), message.offset()


def poll(consumer: ShareConsumer, timeout_s: float = POLL_S) -> list[Message]:
    """One poll; errors fail the test."""
    messages = list(consumer.poll(timeout_s))
    assert [message.error() for message in messages if message.error()] == []
    return messages


def wait_for(consumer: ShareConsumer, timeout_s: float = TIMEOUT_S) -> list[Message]:
    """Poll until something comes."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        messages = poll(consumer)
        if messages:
            return messages
    raise AssertionError("nothing came")


def commit(consumer: ShareConsumer) -> None:
    """Send what was acknowledged; a refusal fails the test."""
    problems = {str(at): error for at, error in consumer.commit_sync(float(TIMEOUT_S)).items() if error is not None}
    assert problems == {}


def work(
    consumer: ShareConsumer,
    decide: Callable[[Message], AcknowledgeType],
    is_done: Callable[[list[Message]], bool],
    timeout_s: float = TIMEOUT_S,
) -> list[Message]:
    """Acknowledge what comes, as `decide` says, until `is_done` says of all that came that it is enough."""
    all_messages: list[Message] = []
    deadline_s = time.monotonic() + timeout_s
    while not is_done(all_messages):
        assert time.monotonic() < deadline_s, (
            f"not done after {len(all_messages)}: {[place(message) for message in all_messages[-20:]]}"
        )
        messages = poll(consumer)
        for message in messages:
            consumer.acknowledge(message, decide(message))
        if messages:
            commit(consumer)
        all_messages += messages
    return all_messages
