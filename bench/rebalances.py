"""A rebalance of a streams group in the light broker: a member joins many others with many tasks."""

import time
from pathlib import Path

from sharelens.broker.broker import Broker, Options
from sharelens.broker.config.settings import Settings
from sharelens.broker.simulator.timers import Clock, VirtualTimers
from state_model.streams.heartbeat import Heartbeat
from state_model.streams.values import NO_TASKS_BY_TYPE, GroupState, Subtopology, TasksByType, TopicInfo, Topology

NAME = "the light broker: a 20th member joins a streams group of 1,000 tasks"
GROUP = "application"
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
}
ROUNDS_MAX = 20


class _Member:
    """A client: it reports its tasks after each answer that has some, as Kafka Streams does."""

    def __init__(self, broker: Broker, member_id: str, topology: Topology) -> None:
        self._groups = broker.streams_groups
        self._member_id = member_id
        self._epoch = 0
        self._owned: TasksByType | None = NO_TASKS_BY_TYPE
        self._send(self._request(topology))

    def beat(self) -> None:
        """One heartbeat."""
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


def best_s(folder: Path, repeats: int = 3) -> float:
    """The least seconds of some rebalances, each in a new log directory below `folder`."""
    return min(rebalance_s(folder / f"rebalance-{repeat}") for repeat in range(repeats))


def rebalance_s(folder: Path, *, tasks: int = 1_000, members: int = 20) -> float:
    """Seconds that the broker needs from the last member's join until every member has its tasks.

    Half of the tasks have state and a standby task. All heartbeats of all members count, with their records in the log.
    """
    topology = Topology(
        0,
        (Subtopology("0", ("input",)), Subtopology("1", ("input",), state_changelog_topics=(TopicInfo("changelog"),))),
    )
    timers = VirtualTimers(Clock(1_000_000))
    broker = Broker(Settings(SETTINGS), timers, Options(log_dir=folder, listeners=()))
    broker.load()
    try:
        for name in ("input", "changelog"):
            broker.catalog.create(name, tasks // 2)
        joined = [_Member(broker, f"member-{number:02}", topology) for number in range(members - 1)]
        _settle(broker, joined)
        begun = time.perf_counter()
        joined.append(_Member(broker, f"member-{members - 1:02}", topology))
        _settle(broker, joined)
        return time.perf_counter() - begun
    finally:
        broker.close()


def _settle(broker: Broker, members: list[_Member]) -> None:
    for _ in range(ROUNDS_MAX):
        for member in members:
            member.beat()
        group = broker.streams_groups.get(GROUP)
        if group is not None and group.state is GroupState.STABLE:
            return
    raise AssertionError(f"the group is not stable after {ROUNDS_MAX} rounds")
