"""Rebalances of streams and consumer groups in the light broker: a member joins many others."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from sharelens.broker.broker import Broker, Options
from sharelens.broker.config.settings import Settings
from sharelens.broker.coordinators.epoch_groups import AnyEpochGroups
from sharelens.broker.simulator.timers import Clock, VirtualTimers
from state_model.consumer import heartbeat as consumer
from state_model.consumer.reconciliation import Partitions
from state_model.streams.heartbeat import Heartbeat
from state_model.streams.values import NO_TASKS_BY_TYPE, Subtopology, TasksByType, TopicInfo, Topology

GROUP = "application"
TOPICS = ("input", "changelog")
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
    "group.consumer.assignment.interval.ms": "0",
}
ROUNDS_MAX = 20
SETTLED = "Stable"


class Member(Protocol):
    """A client that has joined."""

    def beat(self) -> None:
        """One heartbeat."""


class _StreamsMember:
    """It reports its tasks after each answer that has some, as Kafka Streams does."""

    def __init__(self, broker: Broker, member_id: str, topology: Topology) -> None:
        self._groups = broker.streams_groups
        self._member_id = member_id
        self._epoch = 0
        self._owned: TasksByType | None = NO_TASKS_BY_TYPE
        self._send(self._request(topology))

    def beat(self) -> None:
        """See Member."""
        self._send(self._request())

    def _request(self, topology: Topology | None = None) -> Heartbeat:
        active, standby, warmup = self._owned or (None, None, None)
        return Heartbeat(
            GROUP,
            self._member_id,
            self._epoch,
            rebalance_timeout_ms=60_000,
            topology=topology,
            active_tasks=active,
            standby_tasks=standby,
            warmup_tasks=warmup,
            process_id=self._member_id,
        )

    def _send(self, request: Heartbeat) -> None:
        answer = self._groups.heartbeat(request)
        self._epoch, self._owned = answer.member_epoch, answer.tasks


class _ConsumerMember:
    """It reports its partitions after each answer that has some, as Kafka's consumers do."""

    def __init__(self, broker: Broker, member_id: str) -> None:
        self._groups = broker.consumer_groups
        self._member_id = member_id
        self._epoch = 0
        self._owned: Partitions | None = frozenset()
        self._send(self._request()._replace(rebalance_timeout_ms=60_000, subscribed_topic_names=frozenset(TOPICS)))

    def beat(self) -> None:
        """See Member."""
        self._send(self._request())

    def _request(self) -> consumer.Heartbeat:
        return consumer.Heartbeat(GROUP, self._member_id, self._epoch, owned=self._owned)

    def _send(self, request: consumer.Heartbeat) -> None:
        answer = self._groups.heartbeat(request, version=1)
        self._epoch, self._owned = answer.member_epoch, answer.assigned


def best_s(rebalance_s: Callable[[Path], float], folder: Path, repeats: int = 3) -> float:
    """The least seconds of some rebalances, each in a new log directory below `folder`."""
    return min(rebalance_s(folder / f"{rebalance_s.__name__}-{repeat}") for repeat in range(repeats))


def streams_rebalance_s(folder: Path, *, tasks: int = 1_000, members: int = 20) -> float:
    """Seconds that the broker needs from the last member's join until every member has its tasks.

    Half of the tasks have state and a standby task. All heartbeats of all members count, with their records in the log.
    """
    topology = Topology(
        0,
        (Subtopology("0", ("input",)), Subtopology("1", ("input",), state_changelog_topics=(TopicInfo("changelog"),))),
    )
    with _broker(folder, tasks) as broker:
        return _join_s(broker.streams_groups, members, lambda name: _StreamsMember(broker, name, topology))


def consumer_rebalance_s(folder: Path, *, partitions: int = 1_000, members: int = 100) -> float:
    """The same of a consumer group, until every member has its partitions."""
    with _broker(folder, partitions) as broker:
        return _join_s(broker.consumer_groups, members, lambda name: _ConsumerMember(broker, name))


@contextmanager
def _broker(folder: Path, partitions: int) -> Iterator[Broker]:
    """A broker with two topics that have so many partitions together."""
    broker = Broker(Settings(SETTINGS), VirtualTimers(Clock(1_000_000)), Options(log_dir=folder, listeners=()))
    broker.load()
    try:
        for name in TOPICS:
            broker.catalog.create(name, partitions // len(TOPICS))
        yield broker
    finally:
        broker.close()


def _join_s(groups: AnyEpochGroups, members: int, join: Callable[[str], Member]) -> float:
    joined = [join(f"member-{number:03}") for number in range(members - 1)]
    _settle(groups, joined)
    begun = time.perf_counter()
    joined.append(join(f"member-{members - 1:03}"))
    _settle(groups, joined)
    return time.perf_counter() - begun


def _settle(groups: AnyEpochGroups, members: list[Member]) -> None:
    for _ in range(ROUNDS_MAX):
        for member in members:
            member.beat()
        group = groups.get(GROUP)
        if group is not None and group.state.value == SETTLED:
            return
    raise AssertionError(f"the group is not stable after {ROUNDS_MAX} rounds")


REBALANCES: dict[str, Callable[[Path], float]] = {
    "the light broker: a 20th member joins a streams group of 1,000 tasks": streams_rebalance_s,
    "the light broker: a 100th member joins a consumer group of 1,000 partitions": consumer_rebalance_s,
}
"""The rebalances of the bench by the name of their line."""
