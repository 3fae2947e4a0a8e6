"""A member of a consumer group that reads, commits after each batch, and writes its events to the journal.

As a module it runs in a process of its own.
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from sharelens.workloads.journal import Write, now_ms
from sharelens.workloads.member import PAUSE_S, POLL_S, SOCKET_TIMEOUT_MS, reason
from sharelens.workloads.processes import process_command, run_member
from sharelens.workloads.values import read_value

BATCH: Final = 100
METADATA_MS: Final = 1_000
CLASSIC: Final = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}
"""A member of the classic protocol sets these times itself."""
_Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOrders:
    """The settings of a member.

    Attributes:
        subscription: a topic, or a regular expression that begins with ^.
        member: its client id.
        instance_id: of a static member; None for others.
        protocol: `consumer`, or `classic` for a member whose group its consumers assign.
    """

    bootstrap: str
    group: str
    subscription: str
    member: str
    instance_id: str | None = None
    protocol: str = "consumer"


class Reader:
    """Reads in the thread that calls `run`; only what it has read is committed, and only while it has the partition."""

    def __init__(self, orders: ReaderOrders, write: Write) -> None:
        self._orders = orders
        self._write = write
        self._partitions: set[_Place] = set()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Join, read until `is_over`, leave."""
        orders = self._orders
        static = {} if orders.instance_id is None else {"group.instance.id": orders.instance_id}
        classic = CLASSIC if orders.protocol == "classic" else {}
        consumer = Consumer(
            {
                "bootstrap.servers": orders.bootstrap,
                "group.id": orders.group,
                "group.protocol": orders.protocol,
                "client.id": orders.member,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "socket.timeout.ms": SOCKET_TIMEOUT_MS,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": METADATA_MS,
                "log_level": 0,
                **static,
                **classic,
            }
        )
        try:
            consumer.subscribe(
                [orders.subscription], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
            self._tell("joined")
            while not is_over():
                self._round(consumer)
        finally:
            consumer.close()
            self._tell("left")

    def _round(self, consumer: Consumer) -> None:
        try:
            messages = consumer.consume(BATCH, POLL_S)
        except (KafkaException, RuntimeError) as error:
            self._tell("problem", error=reason(error))
            time.sleep(PAUSE_S)
            return
        reads: defaultdict[_Place, list[Message]] = defaultdict(list)
        for message in messages:
            problem = message.error()
            place = message.topic() or "", message.partition() or 0
            if problem is not None:
                is_fatal = problem.code() == KafkaError._FATAL
                self._tell("problem", error=problem.name(), **({"fatal": problem.str()} if is_fatal else {}))
            elif place in self._partitions:
                reads[place].append(message)
        for (topic, partition), of_partition in reads.items():
            values = [read_value(message.value()) for message in of_partition]
            offsets = [message.offset() for message in of_partition]
            ids = [None if value is None else value.id for value in values]
            self._tell("read", topic=topic, partition=partition, offsets=offsets, ids=ids)
        if reads:
            ends = {place: (of_partition[-1].offset() or 0) + 1 for place, of_partition in reads.items()}
            self._commit(consumer, ends)

    def _commit(self, consumer: Consumer, ends: dict[_Place, int]) -> None:
        """Commit offsets; a partition without an answer counts as failed."""
        since_ms = now_ms()
        places = [TopicPartition(*place, offset) for place, offset in ends.items()]
        failures: dict[_Place, str] = dict.fromkeys(ends, "no answer")
        try:
            answers = consumer.commit(offsets=places, asynchronous=False)
        except (KafkaException, RuntimeError) as error:
            failures = dict.fromkeys(ends, reason(error))
        else:
            for at in answers or ():
                del failures[at.topic, at.partition]
                if at.error is not None:
                    failures[at.topic, at.partition] = at.error.name()
        for (topic, partition), offset in ends.items():
            failure = failures.get((topic, partition))
            outcome = {"outcome": "confirmed"} if failure is None else {"outcome": "failed", "error": failure}
            self._tell("commit", topic=topic, partition=partition, offset=offset, since_ms=since_ms, **outcome)

    # What librdkafka calls inside consume() and close()

    def _assigned(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self._partitions |= self._changed("assigned", places)

    def _revoked(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self._partitions -= self._changed("revoked", places)

    def _lost(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self._partitions -= self._changed("lost", places)

    def _changed(self, event: str, places: list[TopicPartition]) -> set[_Place]:
        """Write a change of the assignment; its partitions."""
        changed = {(at.topic, at.partition) for at in places}
        self._tell(event, partitions=sorted(changed))
        return changed

    def _tell(self, event: str, **fields: object) -> None:
        self._write(event, group=self._orders.group, member=self._orders.member, **fields)


def command(orders: ReaderOrders) -> list[str]:
    """The command of a member's process."""
    return process_command("sharelens.workloads.reader", orders)


def main(arguments: Sequence[str]) -> None:
    """Run a member by its orders while its parent process lives."""
    (orders,) = arguments
    run_member(lambda write, is_over: Reader(ReaderOrders(**json.loads(orders)), write).run(is_over))


if __name__ == "__main__":
    main(sys.argv[1:])
