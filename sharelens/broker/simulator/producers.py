"""Producers: batches for all user topics, in turns."""

from typing import Final

from sharelens.broker.ports import Record
from sharelens.broker.simulator.world import DEAD_LETTERS_PREFIX, World
from sharelens.broker.storage import record_batch

TEMPLATES: Final = 64


class Producers:
    """In each interval every partition of every user topic gets a batch, or is skipped."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance("producers")
        self._templates = [self._template() for _ in range(TEMPLATES)]
        self.produced = 0

    def start(self) -> None:
        """Start to produce."""
        self._produce()

    def _produce(self) -> None:
        world, draw = self._world, self._chance.randrange
        stop_ms = world.settings.produced_ms
        if stop_ms and world.clock.now_ms >= world.settings.start_ms + stop_ms:
            return
        logs = world.broker.logs
        for topic in list(world.broker.catalog.topics.values()):
            if topic.is_internal or topic.name.startswith(DEAD_LETTERS_PREFIX):
                continue
            for partition in range(topic.partitions):
                number = draw(TEMPLATES + TEMPLATES // 8)
                log = logs.get(topic.name, partition) if number < TEMPLATES else None
                if log is not None:
                    count, batch = self._templates[number]
                    log.append_client(batch)
                    self.produced += count
        world.timers.after_ms(world.settings.produce_interval_ms, self._produce)

    def _template(self) -> tuple[int, bytes]:
        """A batch as a client sends it, and the number of its records."""
        settings, chance = self._world.settings, self._chance
        count = chance.randint(1, settings.batch_records)
        records = [
            Record(key=str(index).encode(), value=chance.randbytes(settings.record_bytes), timestamp_ms=0)
            for index in range(count)
        ]
        return count, record_batch.build(records)
