"""The log of a requested partition, and waiting for appends."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from kio.schema.errors import ErrorCode

from sharelens.broker.ports import Log, Timers
from sharelens.broker.storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

NO_LEADER_EPOCH = -1
_Result = TypeVar("_Result")


def find_log(
    broker: "Broker", topic: str | None, topic_id: str | None, partition: int, leader_epoch: int = NO_LEADER_EPOCH
) -> tuple[PartitionLog | None, ErrorCode]:
    """The log of a partition by the topic's name, else by its id; null with the error that Kafka answers.

    A leader epoch that the client knows must be the current one.
    """
    if topic is not None:
        log = broker.logs.get(topic, partition)
    else:
        log = None if topic_id is None else broker.logs.by_id(topic_id, partition)
    if log is None:
        is_known = topic is not None or (topic_id is not None and broker.catalog.by_id(topic_id) is not None)
        return None, ErrorCode.unknown_topic_or_partition if is_known else ErrorCode.unknown_topic_id
    if leader_epoch not in (NO_LEADER_EPOCH, log.leader_epoch):
        is_old = leader_epoch < log.leader_epoch
        return None, ErrorCode.fenced_leader_epoch if is_old else ErrorCode.unknown_leader_epoch
    return log, ErrorCode.none


async def after_appends(
    logs: Iterable[Log], *, wait_ms: int, timers: Timers, attempt: Callable[[bool], _Result | None]
) -> _Result:
    """Call `attempt` after appends to any of the logs until it has a result, and a last time, with True, at the end.

    The last call must return a result.
    """
    news = asyncio.Event()
    is_over = False

    def end() -> None:
        nonlocal is_over
        is_over = True
        news.set()

    unsubscribe = [log.subscribe(news.set) for log in logs]
    timer = timers.after_ms(wait_ms, end)
    try:
        while True:
            await news.wait()
            news.clear()
            result = attempt(is_over)
            if result is not None:
                return result
            assert not is_over
    finally:
        timer.cancel()
        for stop in unsubscribe:
            stop()
