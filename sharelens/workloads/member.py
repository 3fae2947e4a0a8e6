"""A member of a share group that acknowledges on its own and writes its events to the journal.

As a module it runs in a process of its own: it reads its orders as JSON and prints its entries until it is killed.
"""

import json
import random
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer, TopicPartition

from sharelens.workloads.journal import Write, now_ms
from sharelens.workloads.processes import process_command, run_member
from sharelens.workloads.profiles import Kind
from sharelens.workloads.values import read_value

POLL_S: Final = 0.2
COMMIT_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 60.0
"""librdkafka's close of a share consumer takes no time-out, and now and then never returns."""
PAUSE_S: Final = 0.05
LATE_MS: Final = 400
SOCKET_TIMEOUT_MS: Final = 5_000
_TYPE_NAMES: Final = {
    AcknowledgeType.ACCEPT: "accept",
    AcknowledgeType.RELEASE: "release",
    AcknowledgeType.REJECT: "reject",
}
_Place = tuple[str, int, int]
_Answered = Mapping[AcknowledgeType, Sequence[tuple[int, int]]]
"""Offsets with their delivery counts, by type of acknowledgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """The settings of a member. `lock_duration_ms` is the group's."""

    bootstrap: str
    group: str
    topic: str
    member: str
    seed: int
    lock_duration_ms: int


class Member:
    """Consumes in the thread that calls `run`."""

    def __init__(self, orders: Orders, write: Write) -> None:
        self._orders = orders
        self._write = write
        self._random = random.Random(f"{orders.seed} {orders.group} {orders.member}")
        self._sent: defaultdict[_Place, deque[tuple[AcknowledgeType, int]]] = defaultdict(deque)
        self._polled_ms = now_ms()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Join, consume until `is_over`, leave."""
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self._orders.bootstrap,
                "group.id": self._orders.group,
                "client.id": self._orders.member,
                "share.acknowledgement.mode": "explicit",
                "socket.timeout.ms": SOCKET_TIMEOUT_MS,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        consumer.set_acknowledgement_commit_callback(self._answered)
        try:
            consumer.subscribe([self._orders.topic])
            self._tell("joined")
            while not is_over():
                self._round(consumer)
        finally:
            self._leave(consumer)

    def _round(self, consumer: ShareConsumer) -> None:
        since_ms, self._polled_ms = self._polled_ms, now_ms()
        try:
            messages = [message for message in consumer.poll(POLL_S) if not self._is_problem(message)]
        except (KafkaException, RuntimeError) as error:
            self._problem(error)
            time.sleep(PAUSE_S)
            return
        for message in messages:
            self._delivered(message, since_ms)
        if any(_kind(message) is Kind.SLOW and _deliveries(message) == 1 for message in messages):
            time.sleep((self._orders.lock_duration_ms + LATE_MS) / 1000)
        for message in messages:
            self._acknowledge(consumer, message)
        if messages:
            self._send(consumer)

    def _send(self, consumer: ShareConsumer) -> None:
        """Send acknowledgements in a request of their own, synchronously or not, or with the next fetch."""
        way = self._random.random()
        try:
            if way < 0.4:
                consumer.commit_sync(COMMIT_TIMEOUT_S)
            elif way < 0.7:
                consumer.commit_async()
        except (KafkaException, RuntimeError) as error:
            self._problem(error)

    def _acknowledge(self, consumer: ShareConsumer, message: Message) -> None:
        ack_type = decide(_kind(message), _deliveries(message))
        self._sent[_place(message)].append((ack_type, _deliveries(message)))
        try:
            consumer.acknowledge(message, ack_type)
        except (KafkaException, RuntimeError, ValueError) as error:
            self._sent[_place(message)].pop()
            self._problem(error)

    def _answered(self, offsets: Mapping[TopicPartition, set[int]], error: KafkaException | None) -> None:
        """Write the answers to acknowledgements: an entry for each partition and type."""
        outcome = {"outcome": "confirmed"} if error is None else {"outcome": "failed", "error": reason(error)}
        for at, of_partition in offsets.items():
            answered: defaultdict[AcknowledgeType, list[tuple[int, int]]] = defaultdict(list)
            for offset in sorted(of_partition):
                sent = self._sent.get((at.topic, at.partition, offset))
                if sent:
                    ack_type, delivery_count = sent.popleft()
                    answered[ack_type].append((offset, delivery_count))
                if not sent:
                    self._sent.pop((at.topic, at.partition, offset), None)
            self._acks(at.topic, at.partition, answered, outcome)

    def _acks(self, topic: str, partition: int, answered: _Answered, outcome: Mapping[str, str]) -> None:
        for ack_type, places in answered.items():
            self._tell(
                "ack",
                topic=topic,
                partition=partition,
                type=_TYPE_NAMES[ack_type],
                offsets=[offset for offset, _ in places],
                delivery_counts=[count for _, count in places],
                **outcome,
            )

    def _leave(self, consumer: ShareConsumer) -> None:
        for error in close_within(consumer, CLOSE_TIMEOUT_S):
            self._problem(error)
        for (topic, partition, offset), sent in self._sent.items():
            for ack_type, count in sent:
                self._acks(topic, partition, {ack_type: [(offset, count)]}, {"outcome": "unanswered"})
        self._tell("left")

    def _delivered(self, message: Message, since_ms: int) -> None:
        topic, partition, offset = _place(message)
        value = read_value(message.value())
        self._tell(
            "delivery",
            topic=topic,
            partition=partition,
            offset=offset,
            delivery_count=_deliveries(message),
            id=None if value is None else value.id,
            since_ms=since_ms,
        )

    def _is_problem(self, message: Message) -> bool:
        error = message.error()
        if error is not None:
            self._tell("problem", error=error.name())
        return error is not None

    def _problem(self, error: Exception) -> None:
        self._tell("problem", error=reason(error))

    def _tell(self, event: str, **fields: object) -> None:
        self._write(event, group=self._orders.group, member=self._orders.member, **fields)


def close_within(consumer: ShareConsumer, timeout_s: float) -> list[Exception]:
    """What went wrong at the close of a consumer, which runs in a thread; one that does not end in time stays there."""
    errors: list[Exception] = []

    def close() -> None:
        try:
            consumer.close()
        except (KafkaException, RuntimeError) as error:
            errors.append(error)

    thread = threading.Thread(target=close, name="close", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return [*errors, TimeoutError(f"the consumer did not close in {timeout_s:g} s")] if thread.is_alive() else errors


def decide(kind: Kind, delivery_count: int) -> AcknowledgeType:
    """The acknowledgement of a record at a delivery."""
    match kind:
        case Kind.REJECTED:
            return AcknowledgeType.REJECT
        case Kind.POISON:
            return AcknowledgeType.RELEASE
        case Kind.FLAKY if delivery_count == 1:
            return AcknowledgeType.RELEASE
        case _:
            return AcknowledgeType.ACCEPT


def reason(error: object) -> str:
    """Kafka's name of an error, else its text."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    name = getattr(inner, "name", None)
    return str(name()) if callable(name) else str(inner)


def _kind(message: Message) -> Kind:
    value = read_value(message.value())
    return Kind.ORDINARY if value is None else value.kind


def _place(message: Message) -> _Place:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset


def _deliveries(message: Message) -> int:
    return message.delivery_count() or 0


def command(orders: Orders) -> list[str]:
    """The command of a member's process."""
    return process_command("sharelens.workloads.member", orders)


def main(arguments: Sequence[str]) -> None:
    """Run a member by its orders while its parent process lives."""
    (orders,) = arguments
    run_member(lambda write, is_over: Member(Orders(**json.loads(orders)), write).run(is_over))


if __name__ == "__main__":
    main(sys.argv[1:])
