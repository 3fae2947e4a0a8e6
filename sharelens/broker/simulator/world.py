"""The shared objects of a simulation: the current broker, the clock, the journal, and random numbers by name."""

import random
from pathlib import Path
from typing import Final

from sharelens.broker.broker import Broker, Options
from sharelens.broker.config.settings import Settings
from sharelens.broker.simulator.journal import DELIVERIES_FILE, Journal
from sharelens.broker.simulator.settings import SimulationSettings
from sharelens.broker.simulator.timers import Clock, VirtualTimers
from state_model.topics import STATE_TOPIC
from state_model.uuids import uuid_text

DEAD_LETTERS_PREFIX: Final = "dlq."
WRITE_BUFFER_BYTES: Final = 64 << 10
"""No client relies on durable writes before the end: writes are buffered."""
_LONG_AGO_MS: Final = str(365 * 86_400_000)


class World:
    """See the module. A restart replaces `broker`: keep no references to its parts."""

    def __init__(self, settings: SimulationSettings, seed: int, directory: Path) -> None:
        self.settings = settings
        self.clock = Clock(settings.start_ms)
        self.timers = VirtualTimers(self.clock)
        self._seed = seed
        self._directory = directory
        self._ids = self.chance("ids")
        self._connections = 0
        self.broker = self._open()
        # After the broker, which requires an empty directory.
        self.journal = Journal(directory / DELIVERIES_FILE, is_kept=settings.keeps_deliveries)

    def chance(self, who: str) -> random.Random:
        """The random numbers of a participant, independent of other participants."""
        return random.Random(f"{self._seed}/{who}")  # noqa: S311 - it shall repeat itself

    def fixed_chance(self, *names: object) -> float:
        """A number from 0 to 1 that follows from the seed and its arguments alone."""
        return random.Random(f"{self._seed}/{names}").random()  # noqa: S311 - it shall repeat itself

    def new_id(self) -> str:
        """A uuid as Kafka's text."""
        return uuid_text(bytes([self._ids.randrange(0xF0)]) + self._ids.randbytes(15))

    def new_connection(self) -> int:
        """A new connection id."""
        self._connections += 1
        return self._connections

    def state_records(self) -> int:
        """State records written so far."""
        logs = self.broker.logs
        state_logs = (logs.get(STATE_TOPIC, index) for index in range(self.settings.state_partitions))
        return sum(log.high_watermark for log in state_logs if log is not None)

    def restart(self) -> None:
        """Stop the broker cleanly and start it again: leader epochs rise, connections end."""
        self.broker.close()
        self.broker = self._open()

    def close(self) -> None:
        """Stop the broker cleanly, close the journal. Raises StorageError."""
        try:
            self.broker.close()
        finally:
            self.journal.close()

    def _open(self) -> Broker:
        settings = self.settings
        options = Options(
            log_dir=self._directory,
            listeners=(),
            features={"share.version": 2} if settings.has_dead_letters else {},
            kafka_version=settings.kafka_version,
            make_id=self.new_id,
            write_buffer_bytes=WRITE_BUFFER_BYTES,
        )
        broker = Broker(Settings(_configuration(settings)), VirtualTimers(self.clock), options)
        broker.load()
        return broker


def _configuration(settings: SimulationSettings) -> dict[str, str]:
    """The broker's configuration. User records are stamped on arrival: producers may then send the same batch again."""
    return {
        "share.coordinator.state.topic.num.partitions": str(settings.state_partitions),
        "share.coordinator.snapshot.update.records.per.snapshot": str(settings.snapshot_update_records),
        "offsets.topic.num.partitions": str(settings.state_partitions),
        "group.share.record.lock.duration.ms": str(settings.lock_duration_ms),
        "group.share.min.record.lock.duration.ms": str(min(15_000, settings.lock_duration_ms)),
        "group.share.delivery.count.limit": str(settings.delivery_count_limit),
        "replica.high.watermark.checkpoint.interval.ms": "60000",
        "group.streams.min.heartbeat.interval.ms": "1000",
        "group.streams.heartbeat.interval.ms": "1000",
        "group.streams.min.session.timeout.ms": "6000",
        "group.streams.session.timeout.ms": "6000",
        "log.message.timestamp.type": "LogAppendTime",
        "log.retention.ms": _LONG_AGO_MS,
        "log.cleaner.enable": "false",
        "errors.deadletterqueue.auto.create.topics.enable": "true",
    }
