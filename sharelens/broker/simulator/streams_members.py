"""A simulated application of Kafka Streams: instances that come and go, their heartbeats, tasks and commits."""

from collections.abc import Callable
from typing import Final

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_groups import MemberCall
from sharelens.broker.coordinators.classic_records import CommittedOffset
from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.ports import Handle, TopicPartition
from sharelens.broker.simulator.world import World
from state_model.group_heartbeat import JOINING, LEAVING, UNCHANGED_TIMEOUT
from state_model.streams.heartbeat import Heartbeat, HeartbeatError
from state_model.streams.values import NO_TASKS_BY_TYPE, Subtopology, TasksByType, TopicInfo, Topology

SOURCE_TOPIC: Final = "words"
SOURCE_PARTITIONS: Final = 6
MAX_POLL_INTERVAL_MS: Final = 20_000
SCALES_EVERY_MS: Final = 15_000
TAKES_OVER_MS: Final = 400
SLOW_MS: Final = 4_000
DIES, IS_SLOW, COMMITS = 0.01, 0.1, 0.5
"""Probabilities: at a heartbeat that the member dies, or commits; that revoking and taking over of tasks is slow."""


def word_count(group_id: str) -> Topology:
    """The topology that counts words: a repartition topic between two subtopologies, the second one with a store."""
    repartition, changelog = f"{group_id}-counts-repartition", f"{group_id}-counts-changelog"
    return Topology(
        0,
        (
            Subtopology("0", (SOURCE_TOPIC,), repartition_sink_topics=(repartition,)),
            Subtopology(
                "1",
                state_changelog_topics=(TopicInfo(changelog, configs=(("cleanup.policy", "compact"),)),),
                repartition_source_topics=(TopicInfo(repartition, configs=(("cleanup.policy", "delete"),)),),
            ),
        ),
    )


class StreamsApplication:
    """An application whose number of instances changes, from one to the settings' `streams_instances`."""

    def __init__(self, world: World, group_id: str) -> None:
        self.group_id = group_id
        self._world = world
        self._chance = world.chance(f"application {group_id}")
        self._members: dict[str, StreamsMember] = {}
        self._created_count = 0

    def start(self) -> None:
        """Start instances, and others from time to time."""
        self._scale()

    def _scale(self) -> None:
        count = self._chance.randint(1, self._world.settings.streams_instances)
        while len(self._members) < count:
            self._add()
        for member in list(self._members.values())[count:]:
            member.leave()
        self._world.timers.after_ms(SCALES_EVERY_MS, self._scale)

    def _add(self) -> None:
        self._created_count += 1
        member_id = f"{self.group_id}-{self._created_count}"
        self._members[member_id] = StreamsMember(self._world, self.group_id, member_id, self._gone)
        self._members[member_id].join()

    def _gone(self, member_id: str) -> None:
        del self._members[member_id]


class StreamsMember:
    """One instance with one thread, from `join` until it dies or leaves; then `on_gone` is called."""

    def __init__(self, world: World, group_id: str, member_id: str, on_gone: Callable[[str], None]) -> None:
        self._world = world
        self._group_id = group_id
        self._member_id = member_id
        self._on_gone = on_gone
        self._chance = world.chance(f"member {member_id}")
        self._epoch = JOINING
        self._owned = NO_TASKS_BY_TYPE
        self._reports: TasksByType | None = None
        self._timer: Handle | None = None

    def join(self) -> None:
        """Join, or join again after the group has fenced the member: without tasks."""
        self._epoch, self._owned, self._reports = JOINING, NO_TASKS_BY_TYPE, NO_TASKS_BY_TYPE
        self._beat()

    def leave(self) -> None:
        """Leave the group."""
        try:
            self._world.broker.streams_groups.heartbeat(Heartbeat(self._group_id, self._member_id, LEAVING))
        except (HeartbeatError, GroupError) as error:
            self._note("refused", error=str(error))
        self._end("left")

    def _end(self, how: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._note(how)
        self._on_gone(self._member_id)

    def _beat(self) -> None:
        if self._chance.random() < DIES:
            self._end("died")
            return
        if self._chance.random() < COMMITS:
            self._commit()
        is_join = self._epoch == JOINING
        active, standby, warmup = self._reports or (None, None, None)
        self._send(
            Heartbeat(
                self._group_id,
                self._member_id,
                self._epoch,
                client_id=f"{self._member_id}-consumer",
                client_host="/127.0.0.1",
                rebalance_timeout_ms=MAX_POLL_INTERVAL_MS if is_join else UNCHANGED_TIMEOUT,
                topology=word_count(self._group_id) if is_join else None,
                active_tasks=active,
                standby_tasks=standby,
                warmup_tasks=warmup,
                process_id=f"process-{self._member_id}" if is_join else None,
                client_tags=() if is_join else None,
            )
        )

    def _send(self, request: Heartbeat) -> None:
        try:
            answer = self._world.broker.streams_groups.heartbeat(request)
        except (HeartbeatError, GroupError) as error:
            self._note("refused", error=str(error))
            self._again(self._world.settings.poll_interval_ms, self.join)
            return
        self._epoch, self._reports = answer.member_epoch, None
        if answer.tasks is not None and answer.tasks != self._owned:
            tasks = answer.tasks
            delay_ms = SLOW_MS if self._chance.random() < IS_SLOW else self._chance.randrange(TAKES_OVER_MS)
            self._again(delay_ms, lambda: self._take_over(tasks))
        else:
            self._again(answer.heartbeat_interval_ms, self._beat)

    def _take_over(self, tasks: TasksByType) -> None:
        self._owned = self._reports = tasks
        self._beat()

    def _commit(self) -> None:
        """Commit the next offset of each partition that the member's first tasks read."""
        offsets = self._world.broker.classic_groups.offsets
        commits = {}
        for task in sorted(self._owned.active):
            at = TopicPartition(SOURCE_TOPIC, task.partition)
            if task.subtopology_id == "0":
                before = offsets.get(self._group_id, at)
                now_ms = self._world.clock.now_ms
                next_offset = 1 if before is None else before.offset + 1
                commits[at] = CommittedOffset(offset=next_offset, commit_timestamp_ms=now_ms)
        call = MemberCall(group_id=self._group_id, member_id=self._member_id, generation_id=self._epoch)
        codes = self._world.broker.offset_commits.commit(call, commits) if commits else {}
        for at, code in codes.items():
            if code is not ErrorCode.none:
                self._note("commit refused", partition=at.partition, error=code.name)

    def _again(self, delay_ms: int, callback: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._world.timers.after_ms(delay_ms, callback)

    def _note(self, name: str, **about: object) -> None:
        now_ms = self._world.clock.now_ms
        self._world.journal.event(now_ms, name, group=self._group_id, member=self._member_id, **about)
