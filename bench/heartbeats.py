"""Heartbeats of a consumer group that nothing happens in: the broker's processor time for many members."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from bench.brokers import Started
from bench.connection import Connection
from bench.measure import processor_s_of
from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.admin import Admin

MEMBERS, PARTITIONS, INTERVAL_S = 200, 1_000, 5.0
NAME = f"the light broker: {MEMBERS} members of a consumer group heartbeat every {INTERVAL_S:g} s"
ROUNDS, SETTLE_ROUNDS_MAX = 20, 60
VERSION = 1
SETTINGS = {"group.consumer.assignment.interval.ms": "0"}
GROUP, TOPIC = "readers", "input"


class _Member:
    """A client that says what it has after each answer with an assignment, as Kafka's consumers do."""

    def __init__(self, connection: Connection, member_id: str) -> None:
        self._connection = connection
        self._member_id = member_id
        self._epoch = 0
        self._owned: Sequence[Any] | None = []
        self._send(rebalance_timeout=60_000, subscribed_topic_names=[TOPIC])

    def beat(self) -> bool:
        """One heartbeat; whether it changed nothing."""
        epoch = self._epoch
        self._send()
        return self._epoch == epoch and self._owned is None

    def _send(self, rebalance_timeout: int = -1, subscribed_topic_names: Sequence[str] | None = None) -> None:
        body = {
            "group_id": GROUP,
            "member_id": self._member_id,
            "member_epoch": self._epoch,
            "rebalance_timeout": rebalance_timeout,
            "subscribed_topic_names": subscribed_topic_names,
            "topic_partitions": self._owned,
        }
        answer = self._connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, VERSION, body)
        if answer.error_code:
            raise ValueError(f"{self._member_id}: {answer.error_message}")
        self._epoch = answer.member_epoch
        assignment = answer.assignment
        self._owned = None if assignment is None else [_fields(each) for each in assignment.topic_partitions]


def _fields(topic: Any) -> dict[str, Any]:
    return {"topic_id": topic.topic_id, "partitions": topic.partitions}


def share_of_core(
    started: Started, members: int = MEMBERS, rounds: int = ROUNDS, partitions: int = PARTITIONS
) -> float:
    """The part of a core that a broker needs for heartbeats of members once in INTERVAL_S, each over its connection.

    Measured over `rounds` heartbeats of each member, one after the other without a pause.
    """
    Admin(started.bootstrap).create_topic(TOPIC, partitions)
    with ExitStack() as connections:
        joined = [
            _Member(connections.enter_context(Connection(started.bootstrap)), f"member-{number:03}")
            for number in range(members)
        ]
        for _ in range(SETTLE_ROUNDS_MAX):
            are_settled = [member.beat() for member in joined]
            if all(are_settled):
                break
        else:
            raise AssertionError(f"members get new assignments after {SETTLE_ROUNDS_MAX} rounds")
        begun_s = processor_s_of(started.pid)
        for _ in range(rounds):
            for member in joined:
                member.beat()
        return (processor_s_of(started.pid) - begun_s) / rounds / INTERVAL_S
