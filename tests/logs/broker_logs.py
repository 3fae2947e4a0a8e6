"""A partition's log in a folder of its own, on a clock that tests move."""

from collections.abc import Callable
from pathlib import Path

from sharelens.broker.ports import Record, TopicPartition
from sharelens.broker.storage import record_batch as rb
from sharelens.broker.storage.files import OpenFiles
from sharelens.broker.storage.log_config import LogConfig
from sharelens.broker.storage.partition_log import Faults, PartitionLog

TOPIC_ID = "K51Cxa-PRr201FlO_cKcVQ"
TOPIC_PARTITION = TopicPartition("orders", 0)


class Timer:
    """A timer of the clock below."""

    def __init__(self, due_ms: int, callback: Callable[[], None]) -> None:
        self.due_ms, self.callback = due_ms, callback

    def cancel(self) -> None:
        self.callback = lambda: None


class Clock:
    """sharelens.broker.ports.Timers whose time passes by `pass_ms` alone."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.time_ms = now_ms
        self.timers: list[Timer] = []

    def now_ms(self) -> int:
        return self.time_ms

    def after_ms(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(self.time_ms + delay_ms, callback)
        self.timers.append(timer)
        return timer

    def pass_ms(self, duration_ms: int) -> None:
        end_ms = self.time_ms + duration_ms
        while due := [timer for timer in self.timers if timer.due_ms <= end_ms]:
            timer = min(due, key=lambda timer: timer.due_ms)
            self.timers.remove(timer)
            self.time_ms = max(self.time_ms, timer.due_ms)
            timer.callback()
        self.time_ms = end_ms


def open_log(
    directory: Path,
    *,
    clock: Clock | None = None,
    is_clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    faults: Faults | None = None,
    **config: int | bool | None,
) -> PartitionLog:
    return PartitionLog(
        directory,
        TOPIC_PARTITION,
        topic_id=TOPIC_ID,
        config=LogConfig(**config),
        timers=clock or Clock(),
        files=OpenFiles(4),
        is_clean=is_clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        faults=faults,
    )


def values(*texts: str) -> list[Record]:
    return [Record(key=None, value=text.encode()) for text in texts]


def produced(
    *texts: str,
    producer_id: int = -1,
    epoch: int = 0,
    sequence: int = -1,
    transactional: bool = False,
    timestamp_ms: int = 1_700_000_000_000,
    codec: int = 0,
) -> bytes:
    """A batch as a producer sends it."""
    return rb.build(
        [Record(key=b"k", value=text.encode(), timestamp_ms=timestamp_ms) for text in texts],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch if producer_id >= 0 else -1,
        base_sequence=sequence,
        attributes=rb.TRANSACTIONAL if transactional else 0,
    )


def all_values(log: PartitionLog) -> list[str]:
    return [(record.value or b"").decode() for record in log.records(0, log.high_watermark)]
