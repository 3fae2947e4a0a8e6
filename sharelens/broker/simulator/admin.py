"""The admin: at intervals it resets or deletes offsets, deletes a group, a topic or records, or adds a partition."""

from collections.abc import Callable
from typing import Final

from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.simulator.crowd import Crowd
from sharelens.broker.simulator.world import World

AWAY_MS: Final = 2_000
MAX_ATTEMPTS: Final = 20
"""Checks for an empty group: a dead member stays in its group until its session timeout."""
MORE_PARTITIONS: Final = 2


class Admin:
    """Performs one operation after the other."""

    def __init__(self, world: World, crowds: list[Crowd]) -> None:
        self._world = world
        self._crowds = crowds
        self._chance = world.chance("admin")
        self._topics = sorted({topic for crowd in crowds for topic in crowd.topics})
        self.works = 0

    def start(self) -> None:
        """Start the operations, if an interval is set."""
        if self._world.settings.admin_interval_ms:
            self._world.timers.after_ms(self._world.settings.admin_interval_ms, self._work)

    def _work(self) -> None:
        self.works += 1
        works: tuple[Callable[[], None], ...] = (
            lambda: self._with_empty("reset", self._reset),
            lambda: self._with_empty("offsets deleted", self._delete_offsets),
            lambda: self._with_empty("group deleted", self._delete_group),
            self._delete_topic,
            self._add_partitions,
            self._delete_records,
        )
        self._chance.choice(works)()
        self.start()

    def _note(self, operation: str, **about: object) -> None:
        self._world.journal.event(self._world.clock.now_ms, operation, **about)

    # Groups

    def _with_empty(self, operation: str, work: Callable[[Crowd], None], attempts: int = MAX_ATTEMPTS) -> None:
        crowd = self._chance.choice(self._crowds)
        crowd.disperse()
        self._world.timers.after_ms(AWAY_MS, lambda: self._try(operation, work, crowd, attempts))

    def _try(self, operation: str, work: Callable[[Crowd], None], crowd: Crowd, attempts: int) -> None:
        group = self._world.broker.share_groups.get(crowd.group_id)
        if group is not None and group.members and attempts:
            self._world.timers.after_ms(5_000, lambda: self._try(operation, work, crowd, attempts - 1))
            return
        try:
            work(crowd)
            self._note(operation, group=crowd.group_id)
        except GroupError as error:
            self._note(f"{operation}: refused", group=crowd.group_id, error=str(error))
        crowd.gather()

    def _reset(self, crowd: Crowd) -> None:
        broker = self._world.broker
        offsets: dict[str, dict[int, int]] = {}
        for name in crowd.topics:
            topic = broker.catalog.by_name(name)
            if topic is None:
                continue
            for partition in range(topic.partitions):
                log = broker.logs.get(name, partition)
                if log is not None and self._chance.random() < 0.5:
                    back = self._chance.randrange(200)
                    offset = max(log.log_start_offset, log.high_watermark - back)
                    offsets.setdefault(name, {})[partition] = offset
        broker.share_offsets.alter(crowd.group_id, offsets)

    def _delete_offsets(self, crowd: Crowd) -> None:
        self._world.broker.share_offsets.delete_offsets(crowd.group_id, [self._chance.choice(crowd.topics)])

    def _delete_group(self, crowd: Crowd) -> None:
        self._world.broker.share_offsets.delete_group(crowd.group_id)

    # Topics

    def _delete_topic(self) -> None:
        name = self._chance.choice(self._topics)
        catalog = self._world.broker.catalog
        topic = catalog.by_name(name)
        if topic is None:
            return
        catalog.delete(name)
        self._note("topic deleted", topic=name, id=topic.topic_id)
        self._world.timers.after_ms(AWAY_MS, lambda: self._create(name))

    def _create(self, name: str) -> None:
        topic = self._world.broker.catalog.create(name, self._world.settings.partitions)
        self._note("topic created", topic=name, id=topic.topic_id)

    def _add_partitions(self) -> None:
        name = self._chance.choice(self._topics)
        topic = self._world.broker.catalog.by_name(name)
        if topic is not None and topic.partitions < MORE_PARTITIONS * self._world.settings.partitions:
            self._world.broker.catalog.add_partitions(name, topic.partitions + 1)
            self._note("partition added", topic=name)

    def _delete_records(self) -> None:
        name = self._chance.choice(self._topics)
        log = self._world.broker.logs.get(name, self._chance.randrange(self._world.settings.partitions))
        if log is not None:
            start = log.delete_records(max(0, log.high_watermark - self._chance.randrange(100)))
            self._note("records deleted", topic=name, partition=log.topic_partition.partition, before=start)
